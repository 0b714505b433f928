"""The systems under test: topics, their processes, and what the processes have used."""

import os
import signal
import subprocess
import tempfile
import threading
import time
from pathlib import Path

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from broker import ROOT, TARGET, end_with_parent
from traffic import DENIED

HERE = Path(__file__).resolve().parents[1]
TICKS = os.sysconf("SC_CLK_TCK")
READY_SECONDS = 600
STOP_SECONDS = 60

TOLLGATE_YAML = """
kafka:
  brokers: {brokers}
  group_id: {group}
  topics: {{events: {events}, decisions: {decisions}, dlq: {dlq}, state: {state}}}
worker: {{members: 1}}
admin: {{listen: null}}
guardrails: {{enabled: true, provider: {{use: allowlist, config: {{denied_tools: [{denied}]}}}}}}
"""


def tollgate():
    """The worker's binary, built as it is released."""
    binary = os.environ.get("TOLLGATE_BINARY")
    if binary:
        return binary
    arguments = os.environ.get("TOLLGATE_CARGO_ARGS", "").split()
    build = ["cargo", "build", "--quiet", "--release", *arguments, "--package", "tollgate", "--bin", "tollgate", "--target-dir", TARGET]
    subprocess.run(build, check=True, cwd=ROOT)
    return str(TARGET / "release/tollgate")


class Cluster:
    """Topics on a broker, with a name of their own in every run."""

    def __init__(self, brokers):
        self.brokers = brokers
        self.run = f"{os.getpid()}-{time.time_ns()}"
        self.admin = AdminClient({"bootstrap.servers": brokers})
        self.readers = {}

    def topic(self, name, partitions, **config):
        topic = f"{name}-{self.run}"
        for future in self.admin.create_topics([NewTopic(topic, partitions, 1, config=config)]).values():
            future.result()
        # A topic that was made a moment ago may have no leader yet.
        deadline = time.monotonic() + READY_SECONDS
        while True:
            try:
                self.ends(topic, partitions)
                return topic
            except KafkaException:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)

    def drop(self, *topics):
        for topic in topics:
            self.readers.pop(topic).close()
        for future in self.admin.delete_topics(list(topics)).values():
            future.result()

    def produce(self, topic, events):
        producer = Producer(
            {
                "bootstrap.servers": self.brokers,
                "enable.idempotence": True,
                "partitioner": "murmur2_random",
                "linger.ms": 20,
                "log_level": 2,
                "queue.buffering.max.messages": 100_000,
                "delivery.report.only.error": True,
                "on_delivery": lambda error, _: error and self.fail(error),
            }
        )
        for thread, value in events:
            while True:
                try:
                    producer.produce(topic, value, thread)
                    break
                except BufferError:
                    producer.poll(0.05)
        if producer.flush(120):
            raise RuntimeError("events were not delivered")

    @staticmethod
    def fail(error):
        raise RuntimeError(f"an event was not delivered: {error}")

    def ends(self, topic, partitions):
        """How many records a topic holds."""
        reader = self.reader(topic)
        return sum(reader.get_watermark_offsets(TopicPartition(topic, number), timeout=30)[1] for number in range(partitions))

    def reader(self, topic):
        # One client a topic: a client that knows other topics hears of a new one only when it asks for metadata again, minutes later.
        if topic not in self.readers:
            config = {"bootstrap.servers": self.brokers, "group.id": f"reader-{self.run}", "enable.auto.commit": False}
            self.readers[topic] = Consumer({**config, "enable.partition.eof": True, "fetch.queue.backoff.ms": 5, "log_level": 2})
        return self.readers[topic]

    def read(self, topic, partitions):
        """All records of a topic, partition by partition: (key, value) pairs."""
        consumer = self.reader(topic)
        consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in range(partitions)])
        records, open_partitions = [], set(range(partitions))
        while open_partitions:
            for message in consumer.consume(1000, 1.0):
                if message.error() is None:
                    records.append((message.key(), message.value()))
                elif message.error().code() == KafkaError._PARTITION_EOF:
                    open_partitions.discard(message.partition())
                else:
                    raise RuntimeError(message.error())
        consumer.unassign()
        return records


class System:
    """One way to run the gate, as a process of its own on topics of its own."""

    def __init__(self, name, cluster, events, partitions, arguments=()):
        self.name, self.cluster, self.events, self.partitions = name, cluster, events, partitions
        self.arguments = list(arguments)
        self.directory = tempfile.TemporaryDirectory(prefix=f"tollgate-{name}.")
        self.decisions = cluster.topic(f"decisions-{name}", partitions)
        self.topics = [self.decisions]
        self.process = None

    def command(self):
        if self.name != "tollgate":
            return [str(HERE / self.name / "run.sh"), *self.arguments]
        dlq = self.cluster.topic("dlq", 1)
        state = self.cluster.topic("state", self.partitions, **{"cleanup.policy": "compact"})
        self.topics += [dlq, state]
        config = Path(self.directory.name) / "tollgate.yaml"
        config.write_text(
            TOLLGATE_YAML.format(
                brokers=self.cluster.brokers,
                group=self.group(),
                events=self.events,
                decisions=self.decisions,
                dlq=dlq,
                state=state,
                denied=", ".join(DENIED),
            )
        )
        return [tollgate(), "--config", str(config), "run", *self.arguments]

    def group(self):
        return f"{self.name}-{self.cluster.run}-{id(self)}"

    def start(self):
        environment = {
            **os.environ,
            "TOLLGATE_BROKERS": self.cluster.brokers,
            "TOLLGATE_EVENTS_TOPIC": self.events,
            "TOLLGATE_DECISIONS_TOPIC": self.decisions,
            "TOLLGATE_GROUP": self.group(),
            "TOLLGATE_DENIED_TOOLS": ",".join(DENIED),
            "TOLLGATE_STATE_DIR": self.directory.name,
        }
        if self.name == "tollgate":
            environment = {name: value for name, value in environment.items() if not name.startswith("TOLLGATE_")}
        self.process = subprocess.Popen(
            self.command(), env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, preexec_fn=end_with_parent
        )
        self.log, self.is_ready = [], threading.Event()
        threading.Thread(target=self.follow, args=(self.process.stderr,), daemon=True).start()
        return self

    def follow(self, stderr):
        for line in stderr:
            self.log = [*self.log[-50:], line.decode(errors="replace")]
            if line.strip() == b"ready":
                self.is_ready.set()

    def decided(self):
        """How many verdicts there are."""
        if self.process.poll() is not None:
            raise RuntimeError(f"{self.name} ended:\n{''.join(self.log)}")
        return self.cluster.ends(self.decisions, self.partitions)

    def wait_for(self, count, seconds=READY_SECONDS, interval=0.01):
        """Waits for so many verdicts; what there are then."""
        deadline = time.monotonic() + seconds
        while (decided := self.decided()) < count:
            if time.monotonic() > deadline:
                raise RuntimeError(f"{self.name}: {decided} of {count} verdicts came:\n{''.join(self.log)}")
            time.sleep(interval)
        return decided

    def cpu_seconds(self):
        """User and system time of the process, all of its threads included."""
        with open(f"/proc/{self.process.pid}/stat") as stat:
            fields = stat.read().rpartition(") ")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    def stop(self):
        """Asks it to end, and waits until it has."""
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            raise RuntimeError(f"{self.name} did not end in time:\n{''.join(self.log)}") from None

    def remove(self):
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.cluster.drop(*self.topics)
        self.directory.cleanup()
