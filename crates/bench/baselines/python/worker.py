"""The gate as a Python worker: one consumer, one producer, state in memory. `--eval FILE` decides on a file of events instead.

Configured by environment: TOLLGATE_BROKERS, TOLLGATE_EVENTS_TOPIC, TOLLGATE_DECISIONS_TOPIC, TOLLGATE_GROUP and
TOLLGATE_DENIED_TOOLS (separated by commas). `ready` on stderr says that partitions are assigned; SIGTERM ends it.
"""

import gc
import os
import signal
import sys
import time

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from rules import Gate, Threads, decide_record

BATCH = 1000
BATCH_SECONDS = 0.01
COMMIT_SECONDS = 1.0
FLUSH_SECONDS = 30.0
THREADS_MAX = 200_000


def setting(name, default=None):
    value = os.environ.get(f"TOLLGATE_{name}", default)
    if value is None:
        sys.exit(f"TOLLGATE_{name} is not set")
    return value


def denied_tools():
    return [tool for tool in setting("DENIED_TOOLS", "").split(",") if tool]


class Worker:
    def __init__(self):
        brokers = setting("BROKERS")
        self.events, self.decisions = setting("EVENTS_TOPIC"), setting("DECISIONS_TOPIC")
        self.gate, self.threads = Gate(denied_tools()), Threads(THREADS_MAX)
        self.positions = {}
        self.failure = None
        self.is_running = True
        self.consumer = Consumer(
            {
                "bootstrap.servers": brokers,
                "group.id": setting("GROUP"),
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "enable.auto.offset.store": False,
                "fetch.queue.backoff.ms": 5,
            }
        )
        self.producer = Producer(
            {
                "bootstrap.servers": brokers,
                "enable.idempotence": True,
                "partitioner": "murmur2_random",
                "queue.buffering.max.messages": 200_000,
                # Only failures are of interest; a callback for each verdict costs more than the verdict.
                "delivery.report.only.error": True,
                "on_delivery": self.on_delivery,
            }
        )

    def on_delivery(self, error, _message):
        if error is not None:
            self.failure = error

    def on_assign(self, _consumer, partitions):
        if partitions:
            print("ready", file=sys.stderr, flush=True)

    def on_revoke(self, _consumer, partitions):
        self.commit()
        revoked = {partition.partition for partition in partitions}
        self.threads.drop_partitions(revoked)
        self.positions = {number: offset for number, offset in self.positions.items() if number not in revoked}

    def commit(self):
        """Commits what has been decided, once all verdicts on it are acknowledged."""
        if not self.positions:
            return
        if self.producer.flush(FLUSH_SECONDS) or self.failure is not None:
            raise RuntimeError(f"verdicts were not delivered: {self.failure}")
        offsets = [TopicPartition(self.events, number, offset) for number, offset in self.positions.items()]
        try:
            self.consumer.commit(offsets=offsets, asynchronous=False)
        except KafkaException as error:
            # A rebalance is on: whoever has the partition now decides again.
            print(f"commit: {error}", file=sys.stderr)
        self.positions = {}

    def publish(self, thread_id, event_id, verdict, message):
        headers = [("event_id", event_id.encode())]
        for name, value in message.headers() or ():
            if name == "correlation_id":
                headers.append((name, value))
        while True:
            try:
                self.producer.produce(self.decisions, verdict, thread_id, headers=headers)
                return
            except BufferError:
                self.producer.poll(0.01)

    def handle(self, message):
        if message.error():
            if message.error().code() != KafkaError._PARTITION_EOF:
                print(f"consumer: {message.error()}", file=sys.stderr)
            return
        partition, offset = message.partition(), message.offset()
        coordinates = f"{self.events}/{partition}/{offset}"
        thread_id, event_id, verdict = decide_record(
            self.gate, self.threads, partition, message.key(), message.value(), coordinates
        )
        if verdict is not None:
            self.publish(thread_id, event_id, verdict, message)
        elif thread_id is None:
            print(f"unreadable: {coordinates}", file=sys.stderr)
        self.positions[partition] = offset + 1

    def stop(self, *_):
        self.is_running = False

    def run(self):
        signal.signal(signal.SIGTERM, self.stop)
        signal.signal(signal.SIGINT, self.stop)
        self.consumer.subscribe([self.events], on_assign=self.on_assign, on_revoke=self.on_revoke)
        committed = time.monotonic()
        while self.is_running:
            for message in self.consumer.consume(BATCH, BATCH_SECONDS):
                self.handle(message)
            self.producer.poll(0)
            if self.failure is not None:
                raise RuntimeError(f"a verdict was not delivered: {self.failure}")
            if time.monotonic() - committed >= COMMIT_SECONDS:
                self.commit()
                committed = time.monotonic()
        self.commit()
        self.consumer.close()


def evaluate(path):
    gate, threads = Gate(denied_tools()), Threads(sys.maxsize)
    with open(path, "rb") as lines:
        for number, line in enumerate(lines):
            if line.strip():
                _, _, verdict = decide_record(gate, threads, 0, None, line, f"agent.events/0/{number}")
                if verdict is not None:
                    sys.stdout.buffer.write(verdict + b"\n")


if __name__ == "__main__":
    # Threads live long and hold no cycles: looking for garbage among them is most of what the collector would do.
    gc.set_threshold(100_000, 50, 50)
    if sys.argv[1:2] == ["--eval"]:
        evaluate(sys.argv[2])
    else:
        Worker().run()
