"""Tests what the cases cannot say of the Kafka transport: where records go, faults, foreign verdicts, forks, loops and the end."""

import asyncio
import json
import struct
import subprocess
import sys
import threading

import pytest
from confluent_kafka import Consumer, Producer
from fake_gate import allowed, blocked
from fake_kafka import DECISIONS, QUICK, REPLIES
from test_docs import snippet

from tollgate import AsyncGate, Gate, ToolCall
from tollgate.kafka import Kafka

LONG = 30.0


def at(fake_kafka, **settings):
    return Kafka(fake_kafka.brokers, properties=QUICK, **settings)


@pytest.fixture(params=[REPLIES, None], ids=["replies", "decisions"])
def kafka(fake_kafka, request):
    return at(fake_kafka, reply_topic=request.param)


def test_an_event_goes_under_its_threads_key_with_the_address_of_the_reply(fake_kafka):
    with Gate(kafka=at(fake_kafka, reply_topic=REPLIES, reply_partition=2), deadline=LONG) as gate, gate.turn("thread-1") as turn:
        turn.tool_call("bash", {"command": "ls"}, tool_call_id="c")
    assert [event["type"] for event in fake_kafka.events] == ["turn_start", "tool_call", "turn_end"]
    record = fake_kafka.records[1]
    headers = dict(record.headers())
    assert record.key() == b"thread-1" and headers["kafka_replyTopic"] == REPLIES.encode()
    assert struct.unpack(">i", headers["kafka_replyPartition"]) == (2,) and headers["kafka_correlationId"].isascii()
    assert {record.partition() for record in fake_kafka.records} == {record.partition()} and headers["content-type"] == b"application/json"


def test_records_go_where_javas_partitioner_puts_them(fake_kafka, kafka):
    # Of four partitions; the hashes are murmur2's.
    with Gate(kafka=kafka, deadline=LONG) as gate:
        for thread in ("thread-1", "t", "a thread"):
            gate.tool_call(thread, "bash", {})
    assert [record.partition() for record in fake_kafka.records] == [murmur2(record.key()) % 4 for record in fake_kafka.records]


def murmur2(key):
    """Returns Kafka's hash of a key, without its sign."""
    mixed, length = 0x9747B28C ^ len(key), len(key) // 4 * 4
    for start in range(0, length, 4):
        word = int.from_bytes(key[start : start + 4], "little") * 0x5BD1E995 & 0xFFFFFFFF
        word = (word ^ word >> 24) * 0x5BD1E995 & 0xFFFFFFFF
        mixed = mixed * 0x5BD1E995 & 0xFFFFFFFF ^ word
    if len(key) > length:
        mixed = (mixed ^ int.from_bytes(key[length:], "little")) * 0x5BD1E995 & 0xFFFFFFFF
    mixed = (mixed ^ mixed >> 13) * 0x5BD1E995 & 0xFFFFFFFF
    return (mixed ^ mixed >> 15) & 0x7FFFFFFF


def test_the_calls_of_one_response_are_answered_each_in_its_place(fake_kafka, kafka):
    fake_kafka.decide = lambda event: blocked(event) if event["tool_name"] == "rm" else allowed(event)
    with Gate(kafka=kafka, deadline=LONG) as gate:
        verdicts = gate.tool_calls("t", [ToolCall("ls", {}), ToolCall("bad", {"a": float("nan")}), ToolCall("rm", "{}")])
    assert [verdict.code for verdict in verdicts] == ["allow", "arguments_unsendable", "tool_denied"] and len(fake_kafka.events) == 2


def test_the_oldest_ids_are_forgotten(fake_kafka, kafka, monkeypatch):
    monkeypatch.setattr("tollgate._core.waits.REMEMBERED_MAX", 2)
    with Gate(kafka=kafka, deadline=LONG) as gate:
        asked = [
            gate.tool_call("t", tool, {}, tool_call_id=ident)
            for tool, ident in (("ls", "a"), ("rm", "a"), ("ls", "b"), ("ls", "c"), ("rm", "a"))
        ]
        assert len(gate._transport._link._waits._contents) == 2
    assert [verdict.event_id.startswith("/a/call/") for verdict in asked] == [False, True, False, False, False]


def test_one_call_without_a_verdict_opens_for_itself_alone(fake_kafka, kafka):
    fake_kafka.answer = lambda events: [] if events[0]["tool_name"] == "lost" else [json.dumps(blocked(events[0])).encode()]
    with Gate(kafka=kafka, deadline=2, on_failure="open") as gate:
        lost, stopped = gate.tool_calls("t", [ToolCall("lost", {}), ToolCall("rm", {})])
    assert lost.failed_open and lost.code == "deadline_exceeded" and (stopped.code, stopped.allows_execution) == ("tool_denied", False)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"reply_topic": "nowhere"}, "nowhere"),
        ({"decisions_topic": "nowhere"}, "nowhere"),
        ({"events_topic": "nowhere"}, "nowhere"),
        ({"reply_topic": REPLIES, "reply_partition": 9}, "4 partitions"),
    ],
)
def test_a_topic_that_is_not_there_denies_even_where_the_user_fails_open(fake_kafka, settings, said):
    with Gate(kafka=at(fake_kafka, **settings), deadline=LONG, on_failure="open") as gate:
        verdicts = [gate.tool_call("t", "bash", {}) for _ in range(2)]
    assert all(not verdict.allows_execution and verdict.code == "gate_unreachable" and said in verdict.message for verdict in verdicts)


def test_a_reply_topic_that_workers_do_not_allow_is_named(fake_kafka):
    fake_kafka.allows_replies = False
    with Gate(kafka=at(fake_kafka, reply_topic=REPLIES), deadline=1) as gate:
        verdict = gate.tool_call("t", "bash", {})
    assert verdict.code == "deadline_exceeded" and f"`kafka.reply_topics` allow {REPLIES}" in verdict.message


def test_brokers_that_are_down_are_named_and_fail_as_the_user_chose():
    for on_failure, allows in (("closed", False), ("open", True)):
        with Gate(kafka=Kafka("127.0.0.1:1"), deadline=0.5, on_failure=on_failure) as gate:
            verdict = gate.tool_call("t", "bash", {"secret": "x"})
            assert gate.counts == {f"{on_failure}:gate_unreachable": 1}
        assert verdict.allows_execution is allows and "secret" not in verdict.message
        assert allows or "`brokers`" in verdict.message


@pytest.mark.parametrize(("name", "kind"), [("_consumer", Consumer), ("_producer", Producer)])
def test_a_client_that_hangs_for_good_is_renewed(fake_kafka, kafka, monkeypatch, name, kind):
    with Gate(kafka=kafka, deadline=LONG) as gate:
        assert gate.tool_call("t", "bash", {}).code == "allow"
        link = gate._transport._link
        stuck = kind({"bootstrap.servers": "127.0.0.1:1", "group.id": "g", "message.timeout.ms": 100, "log_level": 0})
        well, _ = getattr(link, name), setattr(link, name, stuck)
        monkeypatch.setattr("tollgate._link.RENEW_SECONDS", 0)
        object.__setattr__(gate._settings, "deadline", 1.0)
        for _ in range(200):
            code = gate.tool_call("t", "bash", {}).code
            if code == "allow" and getattr(link, name) is not stuck:
                break
        assert code == "allow" and getattr(link, name) not in (well, stuck)


def test_double_late_and_foreign_verdicts_change_nothing(fake_kafka, kafka):
    late = []
    fake_kafka.answer = lambda events: late.append(events[0]) or []
    with Gate(kafka=kafka, deadline=LONG) as gate:
        object.__setattr__(gate._settings, "deadline", 1.0)
        assert gate.tool_call("t", "bash", {}, tool_call_id="a").code == "deadline_exceeded"
        fake_kafka.publish(fake_kafka.records[0], late[0], json.dumps(allowed(late[0])).encode())
        for topic in (REPLIES, DECISIONS):
            for number in range(4):
                fake_kafka.broker.produce(topic, b"\xff{", b"tollgate.serve/claim", partition=number)
                fake_kafka.broker.produce(
                    topic, None, None, partition=number, headers=[("kafka_correlationId", None), ("event_id", b"\xff")]
                )
        fake_kafka.answer = lambda events: [json.dumps(blocked(events[0])).encode()] * 2
        object.__setattr__(gate._settings, "deadline", LONG)
        assert [gate.tool_call("t", "bash", {}, tool_call_id=ident).code for ident in ("b", "c", "b")] == ["tool_denied"] * 3


def test_a_worker_that_cannot_read_an_event_is_understood(fake_kafka, kafka):
    fake_kafka.decide = lambda event: {
        name: value
        for name, value in blocked(event, "invalid_event", decided_by="envelope", message="value_not_json").items()
        if name not in ("type", "thread_id")
    }
    with Gate(kafka=kafka, deadline=LONG) as gate:
        assert gate.tool_call("t", "bash", {}).code == "invalid_event"


@pytest.mark.parametrize("character", ["x", "\N{SNAKE}", "\0"])
def test_a_result_of_millions_of_characters_is_sent_cut(fake_kafka, kafka, character):
    with Gate(kafka=kafka, deadline=LONG) as gate:
        verdict = gate.tool_result("t", "cat", character * 5_000_000)
    assert verdict.code == "allow" and verdict.result_was_cut and "5000000 characters, sha256:" in fake_kafka.events[0]["result"]


def test_arguments_that_no_record_holds_are_denied(fake_kafka, kafka):
    with Gate(kafka=kafka, deadline=LONG, on_failure="open") as gate:
        verdict = gate.tool_call("t", "write", {"text": "x" * 5_000_000})
    assert verdict.code == "event_too_large" and not verdict.allows_execution and fake_kafka.events == []


def test_two_hundred_calls_wait_at_once_with_two_threads(fake_kafka, kafka):
    waiting, new = [], []

    def gather(events):
        waiting.append((fake_kafka.records[-1], events[0]))
        new.append(len(set(threading.enumerate()) - before))
        if len(waiting) == 200:
            for record, event in waiting:
                fake_kafka.publish(record, event, json.dumps(allowed(event)).encode())
        return []

    fake_kafka.answer = gather
    before = set(threading.enumerate())

    async def ask():
        async with AsyncGate(kafka=kafka, deadline=LONG) as gate:
            return await asyncio.gather(*[gate.tool_call(f"t{number}", "bash", {}) for number in range(200)])

    assert {verdict.code for verdict in asyncio.run(ask())} == {"allow"}
    # Threads of other tests may end meanwhile.
    assert max(new) <= 2 and set(threading.enumerate()) <= before


def test_a_gate_outlives_a_loop_that_was_closed_while_a_call_waited(fake_kafka, kafka):
    fake_kafka.answer = lambda _: []
    gate = AsyncGate(kafka=kafka, deadline=LONG)

    async def leave():
        call = asyncio.ensure_future(gate.tool_call("t", "bash", {}, tool_call_id="a"))
        while not fake_kafka.events:
            await asyncio.sleep(0.01)
        call.cancel()

    asyncio.run(leave())
    fake_kafka.answer = None
    assert asyncio.run(gate.tool_call("t", "bash", {}, tool_call_id="b")).code == "allow"
    asyncio.run(gate.close())


def test_a_verdict_for_a_loop_that_is_closed_changes_nothing(fake_kafka, kafka):
    fake_kafka.answer = lambda _: []
    gate, loop = AsyncGate(kafka=kafka, deadline=LONG), asyncio.new_event_loop()

    async def published():
        while not fake_kafka.events:
            await asyncio.sleep(0.01)

    call = loop.create_task(gate.tool_call("t", "bash", {}, tool_call_id="a"))
    loop.run_until_complete(published())
    loop.close()
    event = fake_kafka.events[0]
    fake_kafka.publish(fake_kafka.records[0], event, json.dumps(allowed(event)).encode())
    fake_kafka.answer = None
    assert asyncio.run(gate.tool_call("t", "bash", {}, tool_call_id="b")).code == "allow" and not call.done()
    asyncio.run(gate.close())


def test_two_gates_share_a_partition(fake_kafka):
    shared = at(fake_kafka, reply_topic=REPLIES, reply_partition=0)
    with Gate(kafka=shared, deadline=LONG) as one, Gate(kafka=shared, deadline=LONG) as other:
        for _ in range(3):
            assert [gate.tool_call("t", "bash", {}, tool_call_id="c").code for gate in (one, other)] == ["allow", "allow"]


def test_closing_ends_what_waits(fake_kafka, kafka):
    fake_kafka.answer = lambda _: []
    gate, got = Gate(kafka=kafka, deadline=LONG, on_failure="open"), []
    thread = threading.Thread(target=lambda: got.append(gate.tool_call("t", "bash", {})))
    thread.start()
    while not fake_kafka.events:
        thread.join(0.01)
    gate.close()
    thread.join()
    assert got[0].code == "client_closed" and not got[0].allows_execution
    with pytest.raises(RuntimeError, match="closed"):
        gate.tool_call("t", "bash", {})


def test_a_client_of_kafka_that_hangs_at_its_end_holds_nobody(fake_kafka, kafka, monkeypatch):
    class Hanging:
        def __init__(self, inner):
            self.poll, self._inner = inner.poll, inner

        def close(self):
            released.wait(30)
            self._inner.close()

    released = threading.Event()
    monkeypatch.setattr("tollgate._link.FLUSH_SECONDS", 0.2)
    gate = Gate(kafka=kafka, deadline=LONG)
    gate.tool_call("t", "bash", {})
    link = gate._transport._link
    link._consumer = Hanging(link._consumer)
    gate.close()
    assert any(thread.is_alive() for thread in link._threads)
    released.set()
    for thread in link._threads:
        thread.join()


PROGRAM = """
import gc, os, sys
from tollgate import Gate
from tollgate.kafka import Kafka
gate = Gate(kafka=Kafka(sys.argv[1], properties={"fetch.wait.max.ms": "1"}), deadline=30)
codes = [gate.tool_call("t", "bash", {}).code]
child = os.fork()
if child == 0:
    if sys.argv[2] == "asks":
        codes.append(gate.tool_call("t", "bash", {}).code)
    del gate
    gc.collect()
    print("child", *codes, flush=True)
    sys.exit(0)
assert os.waitpid(child, 0)[1] == 0
codes.append(gate.tool_call("t", "bash", {}).code)
print("parent", *codes, flush=True)
"""


@pytest.mark.parametrize("child", ["asks", "leaves"])
def test_a_forked_process_asks_over_a_link_of_its_own_and_both_end(fake_kafka, child):
    words = [sys.executable, "-c", PROGRAM, fake_kafka.brokers, child]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=True)
    asked = " allow" if child == "asks" else ""
    assert done.stdout.splitlines() == [f"child allow{asked}", "parent allow allow"], done.stderr


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"brokers": " "}, "`brokers`"),
        ({"events_topic": ""}, "`events_topic`"),
        ({"reply_topic": "r", "decisions_topic": "d"}, "`decisions_topic` stands beside `reply_topic`"),
        ({"reply_partition": 0}, "`reply_partition` stands without `reply_topic`"),
        ({"reply_topic": "r", "reply_partition": -1}, "`reply_partition` is below 0"),
        ({"reply_topic": ""}, "empty"),
        ({"properties": {"partitioner": "random"}}, "partitioner"),
    ],
)
def test_a_setting_without_meaning_or_effect_is_refused(settings, said):
    with pytest.raises(ValueError, match=said):
        Kafka(**{"brokers": "127.0.0.1:1", **settings})


@pytest.mark.parametrize("setting", ["url", "token"])
def test_http_and_kafka_exclude_each_other(setting):
    with pytest.raises(ValueError, match=f"`{setting}` stands beside `kafka`"):
        Gate(kafka=Kafka("127.0.0.1:1"), **{setting: "http://gate:1"})


def test_a_password_is_not_shown():
    assert "secret" not in repr(Kafka("127.0.0.1:1", properties={"sasl.password": "secret"}))


@pytest.mark.parametrize("properties", [{"no.such.property": "secret"}, {"security.protocol": "secret"}])
def test_a_property_that_librdkafka_does_not_take_is_the_callers_error(properties):
    with Gate(kafka=Kafka("127.0.0.1:1", properties=properties)) as gate, pytest.raises(ValueError, match="`properties`") as raised:
        gate.tool_call("t", "bash", {})
    assert next(iter(properties)) in str(raised.value) and "secret" not in str(raised.value)


def test_the_trace_goes_with_the_event(fake_kafka, kafka):
    from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags, use_span

    with Gate(kafka=kafka, deadline=LONG) as gate, use_span(NonRecordingSpan(SpanContext(1, 2, False, TraceFlags(1))), False):
        gate.tool_call("t", "bash", {})
    assert dict(fake_kafka.records[0].headers())["traceparent"] == f"00-{1:032x}-{2:016x}-01".encode()


def test_the_pages_snippet_asks_over_kafka(fake_kafka, capsys):
    asked = snippet("Over Kafka")
    assert asked.count("127.0.0.1:9092") == 1
    exec(asked.replace('"127.0.0.1:9092"', f'"{fake_kafka.brokers}"'), {})
    assert capsys.readouterr().out == "allow\n"
    assert dict(fake_kafka.records[0].headers())["kafka_replyTopic"] == REPLIES.encode()
