"""Tests what the cases cannot say: bounds, forks, loops, turns, logs and the cost of an import."""

import asyncio
import contextlib
import json
import os
import socket
import subprocess
import sys
import threading

import pytest
from fake_gate import allowed, blocked

from tollgate import AsyncGate, Gate, Scope, ToolCall, Who
from tollgate._core.verdict import denial


def test_a_turn_publishes_its_begin_and_end_and_binds_its_calls(fake):
    with Gate(fake.url) as gate, gate.turn("t", turn_id="u", who=Who(agent_id="a")) as turn:
        turn.tool_call("bash", {}, tool_call_id="c")
        turn.subagent("child").tool_call("bash", {}, tool_call_id="c")
    assert [event["type"] for event in fake.events] == ["turn_start", "tool_call", "tool_call", "turn_end"]
    assert {event["turn_id"] for event in fake.events} == {"u"} and {event["agent_id"] for event in fake.events} == {"a"}
    assert (fake.events[2]["thread_id"], fake.events[2]["is_subagent"]) == ("t/child", True)
    assert fake.events[1]["event_id"] == "u/c/call"


def test_a_result_of_none_is_sent_as_null(fake):
    with Gate(fake.url) as gate:
        gate.tool_result("t", "ls", None, tool_call_id="c")
    assert fake.events[0]["result"] is None


def test_an_event_that_the_gate_cannot_read_is_logged(fake, caplog):
    fake.decide = lambda event: blocked(event, "invalid_event", decided_by="envelope")
    with Gate(fake.url) as gate:
        gate.tool_result("t", "ls", "out")
    assert "the gate could not read an event (invalid_event)" in caplog.text


def test_a_call_without_an_id_gets_one(fake):
    with Gate(fake.url) as gate:
        for _ in range(2):
            gate.tool_call("t", "bash", {})
        gate.tool_result("t", "bash", "done")
    ids = [event["tool_call_id"] for event in fake.events]
    assert len(set(ids)) == 3 and [event["event_id"] for event in fake.events] == [
        f"/{ids[0]}/call",
        f"/{ids[1]}/call",
        f"/{ids[2]}/result",
    ]


def test_a_turn_that_raises_still_ends(fake):
    with Gate(fake.url) as gate, pytest.raises(KeyError), gate.turn("t"):
        raise KeyError
    assert [event["type"] for event in fake.events] == ["turn_start", "turn_end"]


def test_the_calls_of_one_response_go_in_one_request_and_one_denial_stays_in_its_place(fake):
    fake.decide = lambda event: blocked(event) if event["tool_name"] == "rm" else allowed(event)
    with Gate(fake.url) as gate:
        verdicts = gate.tool_calls("t", [ToolCall("ls", {}), ToolCall("bad", {"a": {1, 2}}), ToolCall("rm", "{}")])
    assert [verdict.code for verdict in verdicts] == ["allow", "arguments_unsendable", "tool_denied"]
    assert len(fake.headers) == 1 and fake.events[1]["arguments"] == "{}"


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"a": [1, b"secret"]}, "`tool_input.a[1]` is bytes of length 6"),
        ({"a": float("nan")}, "`tool_input.a` is a number that is not finite"),
        ({"a": {"secret"}}, "`tool_input.a` is set of length 1"),
        ({7: 1}, "`tool_input` has a key that is int"),
        ({"a": object()}, "`tool_input.a` is object"),
        ({"a": -(10**5000)}, "`tool_input.a` is a number of more than 14000 bits"),
        (["secret"], "`tool_input` is list of length 1"),
    ],
)
def test_arguments_that_json_cannot_hold_are_denied_by_path(fake, value, said):
    with Gate(fake.url) as gate:
        verdict = gate.tool_call("t", "bash", value)
    assert not verdict.allows_execution and said in verdict.message and "secret" not in verdict.message
    assert fake.events == []


def test_arguments_that_hold_themselves_are_denied(fake):
    knot = {}
    knot["a"] = knot
    with Gate(fake.url) as gate:
        assert gate.tool_call("t", "bash", knot).code == "arguments_unsendable"


def test_a_long_result_is_sent_cut_with_its_hash_and_the_verdict_says_so(fake):
    with Gate(fake.url) as gate:
        first = gate.tool_result("t", "cat", "x" * 5_000_000)
        second = gate.tool_result("t", "cat", "x" * 4_999_999 + "y")
        short = gate.tool_result("t", "cat", b"\xff")
    sent = [event["result"] for event in fake.events]
    assert first.result_was_cut and not short.result_was_cut
    assert len(sent[0]) < 263_000 and "sha256:" in sent[0] and sent[0] != sent[1] and second.allows_execution


def test_an_answer_with_a_number_that_python_does_not_read_denies(fake):
    fake.answer = lambda events: (200, {}, json.dumps(allowed(events[0]))[:-1] + f', "count": {"9" * 5000}}}')
    with Gate(fake.url, on_failure="open") as gate:
        verdict = gate.tool_call("t", "bash", {})
    assert (verdict.allows_execution, verdict.code) == (False, "verdict_unreadable")


@pytest.mark.parametrize("thread", ["", "x" * 257, 7])
def test_a_wrong_thread_is_the_callers_error(fake, thread):
    with Gate(fake.url) as gate, pytest.raises(ValueError, match="thread_id"):
        gate.tool_call(thread, "bash", {})


@pytest.mark.parametrize(
    "settings",
    [
        *(
            {"url": url}
            for url in ("gate:1", "http://:x", "http://a..b", "http://h\n", "http://h/ x", "http://u:p@h", "http://h?q", "http://h#f")
        ),
        *({"token": token} for token in ("s3cret\n", " s3cret", "s3cr\0et", "s3cr\N{LATIN SMALL LETTER E WITH ACUTE}t")),
        {"deadline": 0},
        {"on_failure": "ajar"},
        {"in_flight_max": 0},
    ],
)
def test_a_wrong_setting_is_refused(settings):
    with pytest.raises(ValueError, match=next(iter(settings))):
        Gate(**settings)


def test_a_closed_gate_says_so(fake):
    gate = Gate(fake.url)
    gate.close()
    with pytest.raises(RuntimeError, match="closed"):
        gate.tool_call("t", "bash", {})


@pytest.mark.parametrize("in_flight_max", [1, 2])
def test_a_cancellation_at_any_moment_is_never_lost(fake, in_flight_max):
    async def cancelled_after(gate, steps):
        """Returns whether a call was cancelled, if it was still under way."""
        call = asyncio.create_task(gate.tool_call("t", "bash", {}))
        for _ in range(steps):
            await asyncio.sleep(0)
        is_over = call.done() or not call.cancel()
        await asyncio.wait({call})
        return is_over or call.cancelled()

    async def main():
        async with AsyncGate(fake.url, deadline=20, in_flight_max=in_flight_max) as gate:
            lost = [steps for steps in range(40) if not await cancelled_after(gate, steps)]
            # Two at once: with one place, the second waits for the first.
            both = [all(await asyncio.gather(*(cancelled_after(gate, steps) for _ in range(2)))) for steps in range(10)]
            return lost, both, (await gate.tool_call("t", "bash", {})).code

    assert asyncio.run(main()) == ([], [True] * 10, "allow")


def test_no_more_requests_wait_than_the_bound_and_the_next_is_denied_within_its_deadline(fake):
    entered = threading.Semaphore(0)

    def hold(event):
        entered.release()
        fake.released.wait()
        return allowed(event)

    fake.decide = hold
    with Gate(fake.url, in_flight_max=2, deadline=30) as gate:
        threads = [threading.Thread(target=gate.tool_call, args=("t", "bash", {})) for _ in range(2)]
        for thread in threads:
            thread.start()
        for _ in threads:
            entered.acquire()
        # The third request finds no place: the short deadline is its own.
        object.__setattr__(gate._settings, "deadline", 0.05)
        assert gate.tool_call("t", "bash", {}).code == "client_busy"
        fake.released.set()
        for thread in threads:
            thread.join()
    assert fake.open_max == 2


def test_an_answer_that_drips_for_ever_ends_at_the_deadline():
    with socket.create_server(("127.0.0.1", 0)) as server:

        def drip():
            with contextlib.suppress(OSError):
                connection, _ = server.accept()
                while True:
                    connection.sendall(b"H")
                    threading.Event().wait(0.01)

        thread = threading.Thread(target=drip)
        thread.start()
        with Gate(f"http://127.0.0.1:{server.getsockname()[1]}", deadline=0.5) as gate:
            assert gate.tool_call("t", "bash", {}).code == "deadline_exceeded"
        thread.join()


def test_waiting_for_a_place_counts_into_the_deadline(fake, monkeypatch):
    class Places:
        def acquire(self, timeout):
            now[0] += 1.5
            return True

        def release(self):
            pass

    class Transport:
        def ask(self, events, until):
            left.append(until - now[0])
            return [denial(event, "told", "") for event in events]

        def close(self):
            pass

    now, left = [100.0], []
    monkeypatch.setattr("tollgate._sync.time.monotonic", lambda: now[0])
    with Gate(fake.url, deadline=2) as gate:
        gate._places, gate._transport = Places(), Transport()
        assert gate.tool_call("t", "bash", {}).code == "told"
    assert left == [0.5]


def test_two_hundred_calls_wait_at_once_in_one_loop(fake):
    everyone = threading.Barrier(200)

    def together(event):
        everyone.wait(30)
        return allowed(event)

    fake.decide = together

    async def ask():
        async with AsyncGate(fake.url, deadline=30) as gate:
            before = threading.active_count()
            calls = [asyncio.ensure_future(gate.tool_call("t", "bash", {})) for _ in range(200)]
            verdicts = await asyncio.gather(*calls)
            return before, verdicts

    _, verdicts = asyncio.run(ask())
    assert all(verdict.allows_execution for verdict in verdicts) and fake.open_max == 200


def test_a_gate_outlives_its_event_loop(fake):
    gate = AsyncGate(fake.url)
    assert [asyncio.run(gate.tool_call("t", "bash", {})).code for _ in range(2)] == ["allow", "allow"]


def test_a_forked_process_asks_over_connections_of_its_own(fake):
    gate = Gate(fake.url)
    gate.tool_call("t", "bash", {})
    inherited = gate._transport
    # Another thread of the parent counts a denial while the process forks.
    gate._ledger._lock.acquire()
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        code = gate.tool_call("t", "bash", {}).code
        gate.tool_call("t", "bash", {"a": b""})
        os.write(write, json.dumps([code, gate._transport is inherited]).encode())
        os._exit(0)
    gate._ledger._lock.release()
    os.close(write)
    os.waitpid(child, 0)
    assert json.loads(os.read(read, 100)) == ["allow", False]
    assert gate.tool_call("t", "bash", {}).code == "allow"


def test_an_overloaded_gate_is_asked_again_with_the_same_event(fake):
    answers = iter([(503, {"retry-after": "0"}, "{}")])
    fake.answer = lambda events: next(answers, None) or fake.usual(events[0], events)
    with Gate(fake.url) as gate:
        assert gate.tool_call("t", "bash", {}).allows_execution
    assert len({event["event_id"] for event in fake.events}) == 1 and len(fake.events) == 2


@pytest.mark.parametrize("status", [503, 504])
def test_a_call_that_a_verdict_stops_never_fails_open_beside_a_call_without_a_verdict(fake, status):
    code = "kafka_unreachable" if status == 503 else "deadline_exceeded"
    absent = {"action": "block", "allows_execution": False, "code": code, "message": "m", "decided_by": "envelope"}
    fake.answer = lambda events: (status, {"retry-after": "9"}, json.dumps([blocked(events[0]), allowed(events[1]), absent]))
    with Gate(fake.url, on_failure="open", deadline=0.5) as gate:
        verdicts = gate.tool_calls("t", [ToolCall("rm", {}), ToolCall("ls", {}), ToolCall("cat", {})])
    assert [verdict.allows_execution for verdict in verdicts] == [False, True, True]
    assert (verdicts[0].code, verdicts[2].code) == ("tool_denied", code)


def test_faults_are_counted_each_and_logged_once_a_minute(fake, caplog):
    fake.server.server_close()
    with Gate(fake.url, on_failure="open") as gate:
        now = [0.0]
        gate._ledger._clock = lambda: now[0]
        for now[0] in (0.0, 1.0, 61.0):
            assert gate.tool_call("t", "bash", {"secret": "x"}).failed_open
        assert gate.counts == {"open:gate_unreachable": 3}
    assert len(caplog.records) == 2 and "secret" not in caplog.text


def test_the_token_goes_with_the_request_and_the_trace_too(fake):
    from opentelemetry import trace
    from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags, use_span

    with Gate(fake.url, token="x") as gate, use_span(NonRecordingSpan(SpanContext(1, 2, False, TraceFlags(1))), False):
        gate.tool_call("t", "bash", {})
    assert trace and fake.headers[0]["authorization"] == "Bearer x" and 0 < int(fake.headers[0]["prefer"].removeprefix("wait=")) <= 1900
    assert fake.headers[0]["traceparent"] == f"00-{1:032x}-{2:016x}-01"


@pytest.mark.parametrize("inject", [lambda carrier: 1 / 0, lambda carrier: carrier.update(tracestate="a\nb")])
def test_a_tracer_that_fails_or_gives_what_no_header_holds_decides_about_no_call(fake, monkeypatch, inject):
    monkeypatch.setattr("tollgate._core.trace._inject", lambda: inject)
    with Gate(fake.url) as gate:
        assert gate.tool_call("t", "bash", {}).code == "allow"


def test_the_gate_is_never_asked_to_wait_for_longer_than_it_would(fake):
    with Gate(fake.url, deadline=600) as gate:
        gate.tool_call("t", "bash", {})
    assert fake.headers[0]["prefer"] == "wait=60000"


def test_ids_that_are_too_long_are_hashed(fake):
    with Gate(fake.url) as gate:
        gate.tool_call(Scope("t", "u" * 200), "bash", {}, tool_call_id="c")
        gate.tool_call(Scope("t", "u" * 200), "bash", {}, tool_call_id="d")
    ids = [event["event_id"] for event in fake.events]
    assert len(set(ids)) == 2 and max(map(len, ids)) <= 128


def test_importing_the_package_imports_no_http_library():
    probe = "import sys, tollgate; print([name for name in ('httpcore', 'asyncio', 'confluent_kafka', 'uuid') if name in sys.modules])"
    out = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True).stdout
    assert out.strip() == "['uuid']"


def test_importing_the_package_takes_less_than_150_ms_of_computing():
    probe = "import time; before = time.process_time(); import tollgate; print(time.process_time() - before)"
    took = [float(subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True).stdout) for _ in range(3)]
    assert min(took) < 0.15
