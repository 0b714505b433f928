"""The connection to Kafka that all requests of a gate share: a producer, a consumer, and a thread for each."""

from __future__ import annotations

import logging
import os
import struct
import threading
import time
import uuid
from collections.abc import Callable
from typing import Any, TypeVar

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from ._core.events import Event, encode
from ._core.trace import trace_headers
from ._core.verdict import Fault
from ._core.waits import Wait, Waits
from .kafka import Kafka

POLL_SECONDS = 0.1
ASK_SECONDS = 2.0
"""How long a question about topics may take."""
RETRY_SECONDS = 0.5
LOOK_SECONDS = 60.0
"""How often new partitions are looked for."""
FLUSH_SECONDS = 5.0
RENEW_SECONDS = 10.0
"""How old the clients are at least when they are renewed: an event that was given up may have a reason that new clients do not mend."""
Client = TypeVar("Client", Producer, Consumer)
Header = tuple[str, str | bytes | None]
log = logging.getLogger("tollgate.kafka")

_REFUSALS = {
    KafkaError._AUTHENTICATION: "check the credentials in `properties`",
    KafkaError.SASL_AUTHENTICATION_FAILED: "check the credentials in `properties`",
    KafkaError.CLUSTER_AUTHORIZATION_FAILED: "give this client the rights that it needs",
    KafkaError.TOPIC_AUTHORIZATION_FAILED: "give this client the right to write events and to read verdicts",
    KafkaError.UNKNOWN_TOPIC_OR_PART: "create the topic, or name another one",
    KafkaError._UNKNOWN_TOPIC: "create the topic, or name another one",
    KafkaError._UNKNOWN_PARTITION: "create the topic, or name another one",
    KafkaError.MSG_SIZE_TOO_LARGE: "send less, or raise `max.message.bytes` of the topic and `message.max.bytes` in `properties`",
    KafkaError.INVALID_MSG_SIZE: "send less, or raise `max.message.bytes` of the topic and `message.max.bytes` in `properties`",
}
"""Errors that a person has to mend, so that they never allow an event."""


def _fault_of(error: KafkaError, where: str) -> Fault:
    """Returns the fault that an error of Kafka stands for. Its text has the error's name alone."""
    code = "event_too_large" if error.code() in (KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.INVALID_MSG_SIZE) else "gate_unreachable"
    fix = _REFUSALS.get(error.code())
    if fix is not None:
        return Fault(code, f"{where}: {error.name()}; {fix}", is_refusal=True)
    return Fault(code, f"{where}: {error.name()}; check `brokers`, and that the brokers run")


def _made(kind: Callable[..., Client], properties: dict[str, Any]) -> Client:
    """Returns a client of Kafka.

    Raises `ValueError` for a property that librdkafka does not take. The text has the property's name, and never its value.
    """
    try:
        return kind(properties, logger=log)
    except KafkaException as error:
        names = [name for name in properties if f'"{name}"' in str(error)]
        raise ValueError(f"`properties`: librdkafka takes no such property or value: {', '.join(names) or error.args[0].name()}") from None


class Link:
    """Publishes events and takes verdicts.

    The reader stands behind the newest verdict before the first event leaves, so that no verdict is missed. Until then, events wait.
    """

    def __init__(self, kafka: Kafka, deadline: float) -> None:
        self._kafka = kafka
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._waits = Waits(kafka.reply_topic is not None)
        self._unsent: list[Wait] | None = []
        self._trouble: Fault | None = None
        self._has_given_up = False
        self._starts: dict[int, int] = {}
        self._headers: list[Header] = [("content-type", b"application/json")]
        self._deadline = deadline
        self._producer, self._consumer = self._clients()
        self._made_at = time.monotonic()
        self._threads = [threading.Thread(target=run, name=f"tollgate-{run.__name__}", daemon=True) for run in (self._deliver, self._read)]
        for thread in self._threads:
            thread.start()

    def _clients(self) -> tuple[Producer, Consumer]:
        """Returns new clients.

        Raises `ValueError` for a property that librdkafka does not take.
        """
        shared = {"log_level": 2, **self._kafka.properties, "bootstrap.servers": self._kafka.brokers, "client.id": "tollgate-python"}
        producer = _made(
            Producer,
            {
                "linger.ms": 0,
                **shared,
                "acks": "all",
                # Order takes one request at a time. Idempotence would take the sequence of all events: it breaks off for good when an event
                # is given up at its deadline. An event that is sent twice counts once, because of its id.
                "enable.idempotence": False,
                "max.in.flight.requests.per.connection": 1,
                "partitioner": "murmur2_random",
                "message.timeout.ms": max(10, int(self._deadline * 1000)),
                "error_cb": self._on_error,
            },
        )
        consumer = _made(
            Consumer,
            {
                "group.id": f"tollgate-python-{uuid.uuid4()}",
                "fetch.queue.backoff.ms": 5,
                **shared,
                "enable.auto.commit": False,
                "auto.offset.reset": "latest",
                "error_cb": self._on_error,
            },
        )
        return producer, consumer

    def ask(self, events: list[Event], notify: Callable[[], object]) -> Wait:
        """Publishes events. Returns their wait, which has to be dropped when it is over."""
        wait = self._waits.add(events, notify, trace_headers())
        with self._lock:
            trouble = self._trouble
            if self._unsent is None:
                self._publish(wait)
            elif trouble is None or not trouble.is_refusal:
                self._unsent.append(wait)
            else:
                self._waits.fail(wait, trouble)
        return wait

    def drop(self, wait: Wait) -> None:
        """Forgets a wait."""
        self._waits.drop(wait)
        if self._unsent:
            with self._lock:
                self._unsent = [other for other in self._unsent or () if other is not wait]

    def absent(self, is_in_log: bool) -> Fault:
        """Returns the fault of an event without an answer."""
        self._has_given_up = True
        if is_in_log:
            reply = self._kafka.reply_topic
            hint = f", and does its `kafka.reply_topics` allow {reply}" if reply else ""
            return Fault("deadline_exceeded", f"the event is in the log, and no verdict came within the deadline: does a worker run{hint}?")
        return self._trouble or Fault("gate_unreachable", "the event did not reach the log within the deadline: do the brokers run?")

    def close(self) -> None:
        """Sends what is left, ends the waits and the threads."""
        # A forked process has none of these threads. Their frames, which it inherited, keep the two clients from being freed there.
        if self._stop.is_set() or self._pid != os.getpid():
            return
        self._producer.flush(FLUSH_SECONDS)
        self._stop.set()
        self._waits.fail_all(Fault("client_closed", "the gate was closed while the event waited", is_refusal=True))
        # A client of Kafka ends no earlier than its lookup of a name, which may hang.
        until = time.monotonic() + FLUSH_SECONDS
        for thread in self._threads:
            thread.join(max(0.0, until - time.monotonic()))

    def _publish(self, wait: Wait) -> None:
        for index, (event, key) in enumerate(zip(wait.events, wait.keys, strict=True)):
            headers: list[Header] = [*self._headers, *((name, value.encode()) for name, value in wait.trace.items())]
            if isinstance(key, bytes):
                headers.append(("kafka_correlationId", key))

            def delivered(error: KafkaError | None, _: Message, index: int = index) -> None:
                if error is None:
                    self._trouble = None
                    self._waits.in_log(wait, index)
                else:
                    self._has_given_up = self._has_given_up or error.code() == KafkaError._MSG_TIMED_OUT
                    self._waits.fail(wait, _fault_of(error, "the event did not reach the log"), index)

            try:
                thread = event["thread_id"].encode()
                self._producer.produce(self._kafka.events_topic, encode([event]), thread, headers=headers, on_delivery=delivered)
            except KafkaException as error:
                self._waits.fail(wait, _fault_of(error.args[0], "the event was not sent"), index)
            except BufferError:
                self._waits.fail(wait, Fault("client_busy", "the producer's queue is full: ask less at once"), index)

    def _on_error(self, error: KafkaError) -> None:
        # That all brokers are down says less than the reason, which comes first.
        if error.code() != KafkaError._ALL_BROKERS_DOWN or self._trouble is None:
            self._trouble = _fault_of(error, "the brokers cannot be reached")

    def _deliver(self) -> None:
        while not self._stop.is_set():
            producer = self._producer
            producer.poll(POLL_SECONDS)
            if producer is not self._producer:
                # What it has sent may still be acknowledged; what it has not sent is given up at its deadline.
                producer.flush(FLUSH_SECONDS)

    def _read(self) -> None:
        looked = -LOOK_SECONDS
        while not self._stop.is_set():
            if self._has_given_up and time.monotonic() - self._made_at >= RENEW_SECONDS:
                self._renew()
            if time.monotonic() - looked >= LOOK_SECONDS:
                if not self._attach() and self._unsent is not None:
                    self._stop.wait(RETRY_SECONDS)
                    continue
                looked = time.monotonic()
            message = self._consumer.poll(POLL_SECONDS)
            if message is not None:
                self._take(message)
        self._consumer.close()

    def _renew(self) -> None:
        """Takes new clients, which go on where the old ones stood.

        A client may wait for a partition's leader for ever after the leader was away for a moment (confluentinc/librdkafka#5430).
        """
        self._has_given_up, self._made_at = False, time.monotonic()
        old = self._consumer
        try:
            self._keep_places()
            self._producer, self._consumer = self._clients()
            self._go_on()
        except (KafkaException, ValueError) as error:
            # The system may have no room for further clients now. The next event that is given up leads here again.
            log.warning("no new clients of Kafka: %s", error)
        else:
            log.info("no verdict came in time: going on with new clients of Kafka")
            old.close()

    def _take(self, message: Message) -> None:
        error = message.error()
        if error is not None:
            self._trouble = _fault_of(error, f"verdicts cannot be read from {self._kafka.answers_topic}")
            return
        headers = dict(message.headers() or ())
        key: Any = headers.get("kafka_correlationId")
        if self._kafka.reply_topic is None:
            key = message.key() or b"", headers.get("event_id") or b""
        if key is not None:
            self._waits.answer(key, message.value() or b"")

    def _attach(self) -> bool:
        """Reads from the newest verdict on, and partitions that are new from their beginning. Returns whether the topics are there."""
        try:
            self._count(self._kafka.events_topic)
            wanted = self._wanted()
            new = [number for number in wanted if number not in self._starts]
            if new:
                self._assign(new)
        except KafkaException as error:
            self._distrust(_fault_of(error.args[0], "the topics cannot be asked about"))
            return False
        except LookupError as error:
            self._distrust(Fault("gate_unreachable", str(error.args[0]), is_refusal=True))
            return False
        with self._lock:
            self._trouble = None
            unsent, self._unsent = self._unsent or [], None
            for wait in unsent:
                self._publish(wait)
        return True

    def _distrust(self, fault: Fault) -> None:
        with self._lock:
            # The reason why the brokers cannot be reached says more than a question that was not answered.
            if fault.is_refusal or self._trouble is None:
                self._trouble = fault
            is_refused = self._trouble.is_refusal
            unsent = self._unsent or []
            if is_refused and self._unsent is not None:
                self._unsent = []
        for wait in unsent if is_refused else ():
            self._waits.fail(wait, self._trouble)

    def _wanted(self) -> list[int]:
        """Returns the partitions to read, and puts the address of the reply partition into the headers.

        Raises `LookupError` if the partition is not there.
        """
        topic, count = self._kafka.answers_topic, self._count(self._kafka.answers_topic)
        if self._kafka.reply_topic is None:
            return list(range(count))
        if self._starts:
            return list(self._starts)
        number = self._kafka.reply_partition if self._kafka.reply_partition is not None else uuid.uuid4().int % count
        if number >= count:
            raise LookupError(f"`reply_partition` is {number}, and {topic} has {count} partitions: add partitions, or give another number")
        address = [("kafka_replyTopic", topic.encode()), ("kafka_replyPartition", struct.pack(">i", number))]
        self._headers = [("content-type", b"application/json"), *address]
        return [number]

    def _count(self, topic: str) -> int:
        """Returns how many partitions a topic has.

        Raises `LookupError` if the topic is not there or may not be read about, `KafkaException` if the brokers do not answer.
        """
        found = self._consumer.list_topics(topic, timeout=ASK_SECONDS).topics[topic]
        if found.error is not None and found.error.code() in _REFUSALS:
            raise LookupError(f"topic {topic}: {found.error.name()}; {_REFUSALS[found.error.code()]}")
        if found.error is not None:
            raise KafkaException(found.error)
        return len(found.partitions)

    def _assign(self, new: list[int]) -> None:
        topic, starts = self._kafka.answers_topic, {number: OFFSET_BEGINNING for number in new}
        if not self._starts:
            for number in new:
                starts[number] = self._consumer.get_watermark_offsets(TopicPartition(topic, number), timeout=ASK_SECONDS)[1]
        self._keep_places()
        self._starts |= starts
        self._go_on()

    def _keep_places(self) -> None:
        """Notes up to where verdicts are read: what was read stays read."""
        places = [TopicPartition(self._kafka.answers_topic, number) for number in self._starts]
        # librdkafka takes no empty list.
        for place in self._consumer.position(places) if places else ():
            if place.offset >= 0:
                self._starts[place.partition] = place.offset

    def _go_on(self) -> None:
        self._consumer.assign([TopicPartition(self._kafka.answers_topic, *start) for start in self._starts.items()])
