#!/usr/bin/env python3
"""An orchestrator's side of Tollgate: ask before every tool call, report every result, do what the verdict says.

    pip install confluent-kafka
    python orchestrator.py --brokers 127.0.0.1:9092 --via decisions

`Gate` and `run_step` are the part to copy. Below them a scripted agent runs one turn and prints a line per step, with
the verdict that settled it: the result's if the tool ran, else the call's.

    {"event_id":"turn-18…/call_1/result","tool_name":"read_file","action":"allow","code":"allow","did":"ran"}

To expect, where a guardrail denies `bash` (by default none does, and step 2 is another `ran`):

    event          tool_name  action  code                            did
    call_1/result  read_file  allow   allow                           ran
    call_2/call    bash       block   oap.tool_not_allowed            synthetic
    call_3/result  terminal   allow   allow                           ran
    call_4/result  terminal   warn    repeated_exact_failure_warning  ran
    call_5/call    terminal   block   repeated_exact_failure_block    stopped

The script's sixth call is never made. A step without a verdict in time is `block`, `verdict_timeout`, `timeout`, and
the turn ends. Exit 0, or 1 after a timeout.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import random
import struct
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

VERDICT_TIMEOUT = "verdict_timeout"

RequestId = tuple[Any, ...]
"""Tells one awaited verdict from another."""
Headers = list[tuple[str, bytes]]


@dataclass(frozen=True)
class Verdict:
    """What an orchestrator acts on; a verdict says more."""

    event_id: str
    action: str
    code: str
    allows_execution: bool
    should_halt: bool
    synthetic_result: str
    guidance: str

    @classmethod
    def read(cls, value: bytes) -> Verdict:
        fields = json.loads(value)
        return cls(
            event_id=fields["event_id"],
            action=fields["action"],
            code=fields["code"],
            # Anything but a plain true is a no.
            allows_execution=fields["allows_execution"] is True,
            should_halt=fields["should_halt"] is not False,
            # An event that could not be read is blocked with a message only.
            synthetic_result=fields.get("synthetic_result", fields["message"]),
            guidance=fields.get("guidance", ""),
        )

    @classmethod
    def missing(cls, event: dict[str, Any], error: Exception) -> Verdict:
        """Stands in for one that did not come: closed, and the turn stops, since the next call would fare no better."""
        return cls(
            event_id=event.get("event_id", ""),
            action="block",
            code=VERDICT_TIMEOUT,
            allows_execution=False,
            should_halt=True,
            synthetic_result=f"Tool call not executed ({VERDICT_TIMEOUT}): no verdict came ({error!r}).",
            guidance="",
        )


class ReplyInbox:
    """`--via reply`: a verdict is also sent to the partition that its event names, which spares us the fleet's."""

    def __init__(self, topic: str) -> None:
        self.topic = topic
        self._partition = 0

    def choose(self, count: int) -> list[int]:
        # Orchestrators may share a partition: what another one awaits is passed over.
        self._partition = random.randrange(count)
        return [self._partition]

    def address(self, _event: dict[str, Any]) -> tuple[RequestId, Headers]:
        correlation_id = uuid.uuid4().hex.encode()
        headers = [
            ("kafka_replyTopic", self.topic.encode()),
            ("kafka_replyPartition", struct.pack(">i", self._partition)),
            ("kafka_correlationId", correlation_id),
        ]
        return (correlation_id,), headers

    def request_id(self, message: Message) -> RequestId:
        return (dict(message.headers() or []).get("kafka_correlationId"),)


class DecisionsInbox:
    """`--via decisions`: every verdict of the fleet comes by, and ours are picked out by thread and event id."""

    def __init__(self, topic: str) -> None:
        self.topic = topic

    def choose(self, count: int) -> list[int]:
        return list(range(count))

    def address(self, event: dict[str, Any]) -> tuple[RequestId, Headers]:
        return (event["thread_id"].encode(), event["event_id"].encode()), []

    def request_id(self, message: Message) -> RequestId:
        return message.key(), dict(message.headers() or []).get("event_id")


class Gate:
    """Publishes events and awaits verdicts. One per process: threads may share it, a forked child needs its own."""

    def __init__(self, brokers: str, events: str, inbox: ReplyInbox | DecisionsInbox, deadline_ms: int) -> None:
        """Raises KafkaException where brokers or topics are missing: better at start than at the first tool call."""
        self._events, self._inbox, self._deadline_s = events, inbox, deadline_ms / 1000
        self._waiting: dict[RequestId, Future[bytes]] = {}
        self._producer = Producer(producer_config(brokers, deadline_ms))
        self._consumer = Consumer(consumer_config(brokers))
        self._assign_at_end()
        self._is_closing = threading.Event()
        self._reader = threading.Thread(target=self._read, name="tollgate-verdicts", daemon=True)
        self._reader.start()

    def ask(self, event: dict[str, Any]) -> Verdict:
        """The verdict on an event. Never raises: an exception would leave it to the host whether the tool runs."""
        try:
            request_id, headers = self._inbox.address(event)
            # Before the event leaves, or the verdict could be there first. Who asks the same again shares the answer.
            answer = self._waiting.setdefault(request_id, Future())
            try:
                self._publish(event, headers, answer)
                return Verdict.read(answer.result(self._deadline_s))
            finally:
                self._waiting.pop(request_id, None)
        except Exception as error:
            return Verdict.missing(event, error)

    def close(self) -> None:
        self._is_closing.set()
        self._reader.join()
        self._producer.flush(self._deadline_s)
        self._consumer.close()

    def _assign_at_end(self) -> None:
        """Starts where the topic ends now. OFFSET_END would be looked up later, perhaps behind our first verdict."""
        topic = self._inbox.topic
        found = self._consumer.list_topics(topic, self._deadline_s).topics[topic]
        if found.error:
            raise KafkaException(found.error)
        partitions = [TopicPartition(topic, number) for number in self._inbox.choose(len(found.partitions))]
        for partition in partitions:
            _, partition.offset = self._consumer.get_watermark_offsets(partition, self._deadline_s)
        self._consumer.assign(partitions)

    def _publish(self, event: dict[str, Any], headers: Headers, answer: Future[bytes]) -> None:
        def delivered(error: KafkaError | None, _message: Message) -> None:
            if error and not answer.done():
                answer.set_exception(KafkaException(error))

        self._producer.produce(
            self._events,
            key=event["thread_id"],
            value=json.dumps(event),
            # The id besides: so even an event that cannot be read is answered.
            headers=[("event_id", event["event_id"].encode()), *headers],
            on_delivery=delivered,
        )

    def _read(self) -> None:
        """The only thread that settles answers: delivery reports and verdicts both come through here."""
        while not self._is_closing.is_set():
            self._producer.poll(0)
            first = self._consumer.poll(0.1)
            if first is None:
                continue
            # consume() with a timeout would wait all of it unless the whole batch is there.
            for message in [first, *self._consumer.consume(500, 0)]:
                # Everybody waits for this thread: no record may end it.
                with contextlib.suppress(Exception):
                    self._hand_over(message)

    def _hand_over(self, message: Message) -> None:
        if message.error():
            return
        # Not awaited: another orchestrator's, too late, or a second copy.
        answer = self._waiting.pop(self._inbox.request_id(message), None)
        if answer and not answer.done():
            answer.set_result(message.value() or b"")


def producer_config(brokers: str, deadline_ms: int) -> dict[str, Any]:
    return {
        "bootstrap.servers": brokers,
        # Java's partitioner: with librdkafka's own, two clients would send one thread to two partitions.
        "partitioner": "murmur2_random",
        # No event twice or out of order; it also bounds the requests in flight, which keeps latency low under load.
        "enable.idempotence": True,
        "acks": "all",
        # Somebody is waiting: send at once, and give up when nobody waits any longer.
        "linger.ms": 0,
        "message.timeout.ms": deadline_ms,
    }


def consumer_config(brokers: str) -> dict[str, Any]:
    return {
        "bootstrap.servers": brokers,
        # Required by the client; assign() joins no group.
        "group.id": "unused",
        "enable.auto.commit": False,
        # A broker answers as soon as there is one byte; only tollgate dev's embedded one sits the wait out.
        "fetch.min.bytes": 1,
        "fetch.wait.max.ms": 100,
        "fetch.queue.backoff.ms": 5,
        # A broker that creates topics, as tollgate dev's does, may create the reply topic.
        "allow.auto.create.topics": True,
    }


@dataclass(frozen=True)
class ToolCall:
    """A call as the model asks for it."""

    call_id: str
    tool_name: str
    tool_input: dict[str, Any]


@dataclass(frozen=True)
class Step:
    """What became of a call."""

    verdict: Verdict
    did: str
    agent_sees: str


def run_step(gate: Gate, thread: str, turn: str, call: ToolCall, tool: Callable[..., str]) -> Step:
    """Runs a tool if it may run, and says what to show the agent as its result."""
    about = {
        "thread_id": thread,
        "turn_id": turn,  # a new one starts a new turn, which forgets earlier failures
        "tool_call_id": call.call_id,
        "tool_name": call.tool_name,
        "tool_input": call.tool_input,
    }
    # Event ids that a retry would choose again: the same event gets the same verdict and counts once.
    verdict = gate.ask({"type": "tool_call", "event_id": f"{turn}/{call.call_id}/call", **about})
    if not verdict.allows_execution:
        return Step(verdict, outcome(verdict, "synthetic"), verdict.synthetic_result)
    try:
        result, failed = tool(**call.tool_input), False
    except Exception as error:
        result, failed = f"Error: {error}", True
    report = {"type": "tool_result", "event_id": f"{turn}/{call.call_id}/result", "result": result, "failed": failed}
    verdict = gate.ask(report | about)
    return Step(verdict, outcome(verdict, "ran"), result + verdict.guidance)


def outcome(verdict: Verdict, otherwise: str) -> str:
    if verdict.code == VERDICT_TIMEOUT:
        return "timeout"
    return "stopped" if verdict.should_halt else otherwise


def read_file(path: str) -> str:
    return f"{path}: all is well"


def bash(command: str) -> str:
    return f"pretended to run {command}"


def terminal(command: str) -> str:
    raise ConnectionError(f"{command}: connection refused")


TOOLS: dict[str, Callable[..., str]] = {"read_file": read_file, "bash": bash, "terminal": terminal}
SCRIPT = [
    ToolCall("call_1", "read_file", {"path": "README.md"}),
    ToolCall("call_2", "bash", {"command": "rm -rf build"}),
    # An agent in a loop: it is warned the second time, stopped the third, and never comes to its last call.
    ToolCall("call_3", "terminal", {"command": "deploy"}),
    ToolCall("call_4", "terminal", {"command": "deploy"}),
    ToolCall("call_5", "terminal", {"command": "deploy"}),
    ToolCall("call_6", "read_file", {"path": "deploy.log"}),
]


def run_turn(gate: Gate, thread: str) -> Iterator[tuple[ToolCall, Step]]:
    turn = f"turn-{time.time_ns():x}"
    for call in SCRIPT:
        step = run_step(gate, thread, turn, call, TOOLS[call.tool_name])
        yield call, step
        if step.verdict.should_halt:
            return


def main() -> int:
    args = arguments()
    inbox = ReplyInbox(args.reply_topic) if args.via == "reply" else DecisionsInbox(args.decisions)
    try:
        gate = Gate(args.brokers, args.events, inbox, args.deadline_ms)
    except KafkaException as error:
        print(f"no gate at {args.brokers}, topic {inbox.topic}: {error}", file=sys.stderr)
        return 1
    has_timed_out = False
    with contextlib.closing(gate):
        for call, step in run_turn(gate, args.thread):
            verdict = step.verdict
            line = {
                "event_id": verdict.event_id,
                "tool_name": call.tool_name,
                "action": verdict.action,
                "code": verdict.code,
                "did": step.did,
            }
            print(json.dumps(line, separators=(",", ":")), flush=True)
            print(f"    the agent sees: {step.agent_sees}", file=sys.stderr)
            has_timed_out |= step.did == "timeout"
    return 1 if has_timed_out else 0


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="A scripted agent whose tool calls pass Tollgate")
    parser.add_argument("--brokers", default="127.0.0.1:9092", help="bootstrap addresses")
    parser.add_argument("--events", default="agent.events", help="topic to publish events to")
    parser.add_argument("--decisions", default="agent.decisions", help="topic that holds all verdicts")
    parser.add_argument("--reply-topic", default="agent.replies", help="topic to be answered on, as Tollgate allows")
    parser.add_argument("--via", choices=["reply", "decisions"], default="decisions", help="where to await verdicts")
    parser.add_argument("--thread", default="demo", help="the agent's thread")
    parser.add_argument("--deadline-ms", type=int, default=5000, help="how long to await a verdict")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
