"""Prints the wait of the client over that of a bare client, against the same gate: `python bench/added_wait.py [http | kafka] [CALLS]`.

The bare client is httpx, or confluent-kafka with one thread. The gate is a process of its own that allows every call. The clients take
turns call by call, so that both see the same machine.
"""

import contextlib
import itertools
import json
import pathlib
import statistics
import struct
import subprocess
import sys
import time

import httpx
from confluent_kafka import Consumer, Producer, TopicPartition

from tollgate import Gate
from tollgate.kafka import Kafka

TESTS = pathlib.Path(__file__).resolve().parents[1] / "tests"
ARGUMENTS = {"command": "ls -la", "paths": ["a"] * 50}
QUICK = {"fetch.wait.max.ms": "1"}
WARM_UP = 50
FAKES = {
    "http": "from fake_gate import FakeGate as Fake; fake = Fake(); print(fake.url, flush=True); input()",
    "kafka": "from fake_kafka import FakeKafka as Fake; fake = Fake(); print(fake.brokers, flush=True); input()",
}


@contextlib.contextmanager
def fake(kind):
    """Gives the address of a gate in a process of its own."""
    words = [sys.executable, "-c", FAKES[kind]]
    with subprocess.Popen(words, cwd=TESTS, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as gate:
        try:
            yield gate.stdout.readline().strip()
        finally:
            gate.kill()


def event(number):
    """Returns an event as the bare clients send it."""
    call = {"type": "tool_call", "thread_id": "t", "event_id": f"b{number}", "tool_name": "bash", "tool_input": ARGUMENTS}
    return json.dumps(call).encode()


@contextlib.contextmanager
def over_http(url):
    """Gives what asks over bare httpx, and what asks by the client."""
    with Gate(url) as gate, httpx.Client(trust_env=False) as bare:

        def ask(number):
            answer = bare.post(url + "/v1/events", content=event(number), headers={"content-type": "application/json"})
            return answer.json()["allows_execution"]

        yield ask, gate


@contextlib.contextmanager
def over_kafka(brokers):
    """Gives what asks over bare confluent-kafka, and what asks by the client."""
    producer = Producer({"bootstrap.servers": brokers, "linger.ms": 0, "enable.idempotence": True, "partitioner": "murmur2_random"})
    consumer = Consumer({"bootstrap.servers": brokers, "group.id": "bare", **QUICK})
    consumer.assign([TopicPartition("agent.replies", 1, consumer.get_watermark_offsets(TopicPartition("agent.replies", 1), timeout=10)[1])])
    address = [("kafka_replyTopic", b"agent.replies"), ("kafka_replyPartition", struct.pack(">i", 1))]

    def ask(number):
        headers = [*address, ("kafka_correlationId", str(number).encode())]
        producer.produce("agent.events", event(number), b"t", headers=headers)
        while (answer := consumer.poll(10)) is None or answer.error() is not None:
            pass
        producer.poll(0)
        return json.loads(answer.value())["allows_execution"]

    with Gate(kafka=Kafka(brokers, reply_topic="agent.replies", reply_partition=0, properties=QUICK), deadline=10) as gate:
        yield ask, gate
    consumer.close()


def main(kind, calls):
    """Measures and prints the medians in microseconds, and their ratio."""
    waits = {"bare": [], "client": []}
    with fake(kind) as address, (over_http if kind == "http" else over_kafka)(address) as (bare, gate):
        asks = {"bare": bare, "client": lambda number: gate.tool_call("t", "bash", ARGUMENTS, tool_call_id=f"c{number}").allows_execution}
        for number, name in itertools.product(range(calls + WARM_UP), asks):
            started = time.perf_counter()
            assert asks[name](number)
            if number >= WARM_UP:
                waits[name].append(time.perf_counter() - started)
    bare, client = (statistics.median(waits[name]) * 1e6 for name in ("bare", "client"))
    print(f"{kind}, {calls} calls, p50: bare {bare:.0f} µs, client {client:.0f} µs, ratio {client / bare:.2f}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "http", int(sys.argv[2]) if len(sys.argv) > 2 else 2000)
