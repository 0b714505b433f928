"""A small gate that speaks the Kafka contract, on librdkafka's own broker for tests: it answers as a test says, and keeps what it got."""

import json
import struct
import threading

from confluent_kafka import Consumer, Producer, TopicPartition
from fake_gate import allowed

EVENTS, DECISIONS, REPLIES = "agent.events", "agent.decisions", "agent.replies"
QUICK = {"fetch.wait.max.ms": "1", "allow.auto.create.topics": "false"}
"""This broker answers an empty fetch after the whole wait."""


class FakeKafka:
    """A broker with a gate. `decide(event)` gives the verdict; `answer(events)`, if set, gives the values of the verdicts instead."""

    def __init__(self):
        self.events, self.records = [], []
        self.decide, self.answer, self.allows_replies = allowed, None, True
        self.released = threading.Event()
        self.broker = Producer({"bootstrap.servers": "127.0.0.1:1", "test.mock.num.brokers": 1, "partitioner": "murmur2_random"})
        for topic in (EVENTS, DECISIONS, REPLIES):
            self.broker.list_topics(topic, timeout=10)
        broker = next(iter(self.broker.list_topics(timeout=10).brokers.values()))
        self.brokers = f"{broker.host}:{broker.port}"
        self.consumer = Consumer({"bootstrap.servers": self.brokers, "group.id": "fake", "auto.offset.reset": "earliest", **QUICK})
        self.consumer.assign([TopicPartition(EVENTS, number, 0) for number in self.partitions(EVENTS)])
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def partitions(self, topic):
        return list(self.broker.list_topics(topic, timeout=10).topics[topic].partitions)

    def run(self):
        while not self.stop.is_set():
            record = self.consumer.poll(0.05)
            if record is not None and record.error() is None:
                self.handle(record)
        self.consumer.close()

    def handle(self, record):
        event = json.loads(record.value())
        self.events.append(event)
        self.records.append(record)
        if self.answer is not None:
            values = self.answer([event])
        else:
            values = [] if event["type"] in ("turn_start", "turn_end") else [json.dumps(self.decide(event)).encode()]
        for value in values:
            self.publish(record, event, value)

    def publish(self, record, event, value):
        headers = dict(record.headers() or ())
        kept = [("event_id", event["event_id"].encode()), ("content-type", b"application/json")]
        correlation = headers.get("kafka_correlationId")
        if correlation is not None:
            kept.append(("kafka_correlationId", correlation))
        self.broker.produce(DECISIONS, value, record.key(), headers=kept)
        if "kafka_replyTopic" in headers and self.allows_replies:
            (number,) = struct.unpack(">i", headers["kafka_replyPartition"])
            self.broker.produce(headers["kafka_replyTopic"].decode(), value, record.key(), partition=number, headers=kept)
        self.broker.flush(5)

    def of_type(self, kind):
        return [event for event in self.events if event["type"] == kind]

    def close(self):
        self.released.set()
        self.stop.set()
        self.thread.join()
