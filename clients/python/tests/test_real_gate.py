"""Asks a real gate over HTTP and over Kafka: `tollgate dev`."""

import asyncio
import contextlib
import socket
import subprocess
import threading

import httpx
import pytest

from tollgate import AsyncGate, Gate, ToolCall
from tollgate.kafka import Kafka

LONG = 30.0


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


class Dev:
    """`tollgate dev` on ports of its own, which stay the same when it is started again."""

    def __init__(self, program):
        self.program = program
        self.http, self.kafka = f"127.0.0.1:{free_port()}", free_port()

    def settings(self, kind):
        """Returns a gate's settings for a way to ask."""
        if kind == "http":
            return {"url": f"http://{self.http}"}
        return {"kafka": Kafka(f"127.0.0.1:{self.kafka}", reply_topic="agent.replies" if kind == "replies" else None)}

    @contextlib.contextmanager
    def runs(self):
        """Runs the program until it answers, and ends it."""
        command = [self.program, "dev", "--http", self.http, "--port", str(self.kafka)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        said = []
        reader = threading.Thread(target=lambda: said.extend(process.stdout))
        reader.start()
        try:
            while not serves(self.http):
                assert process.poll() is None, "".join(said)
            yield
        finally:
            process.terminate()
            process.wait()
            reader.join()


def serves(address):
    """Returns whether the gate answers, with whatever status."""
    try:
        httpx.get(f"http://{address}/v1/verdicts/none", timeout=1, trust_env=False)
        return True
    except httpx.TransportError:
        threading.Event().wait(0.05)
        return False


@pytest.fixture(scope="module")
def running(program):
    dev = Dev(program)
    with dev.runs():
        yield dev


@pytest.fixture(params=["http", "replies", "decisions"])
def kind(request):
    return request.param


def test_repeated_failures_are_blocked_by_a_real_gate(running, kind):
    with Gate(**running.settings(kind), deadline=LONG) as gate, gate.turn(f"failures-{kind}") as turn:
        verdicts = []
        for number in range(3):
            ident = f"c{number}"
            verdicts.append(turn.tool_call("terminal", {"command": "make"}, tool_call_id=ident))
            if verdicts[-1].allows_execution:
                turn.tool_result("terminal", "Error: no rule", tool_input={"command": "make"}, tool_call_id=ident, failed=True)
        assert gate.counts == {}
    assert verdicts[0].code == "allow" and verdicts[-1].decided_by == "loop" and not verdicts[-1].allows_execution
    assert verdicts[-1].synthetic_result and verdicts[-1].raw["policy_version"].startswith("sha256:")


def test_a_suppressed_response_stops_its_calls(running, kind):
    body = {"choices": [{"finish_reason": "content_filter", "message": {"role": "assistant", "content": "", "tool_calls": []}}]}
    body["choices"][0]["message"]["tool_calls"].append({"id": "c", "type": "function", "function": {"name": "terminal", "arguments": "{"}})
    with Gate(**running.settings(kind), deadline=LONG) as gate, gate.turn(f"suppressed-{kind}") as turn:
        assert turn.model_response(response=body, response_id="r").action == "suppress"
        assert turn.tool_call("terminal", {}, tool_call_id="c").code == "suppressed_tool_call"


def test_two_hundred_tasks_ask_a_real_gate_at_once(running, kind):
    async def ask():
        async with AsyncGate(**running.settings(kind), deadline=LONG) as gate:
            calls = [gate.tool_call(f"many-{kind}-{number}", "read_file", {"path": "a"}, tool_call_id="c") for number in range(200)]
            return [verdict.code for verdict in await asyncio.gather(*calls)]

    assert asyncio.run(ask()) == ["allow"] * 200


def test_a_call_without_an_id_is_decided(running, kind):
    with Gate(**running.settings(kind), deadline=LONG) as gate:
        assert gate.tool_call(f"no-id-{kind}", "read_file", {"path": "a"}).code == "allow"
        assert gate.tool_result(f"no-id-{kind}", "read_file", "text", tool_input={"path": "a"}).code == "allow"


def test_calls_that_share_an_id_are_decided_each_for_itself(running, kind):
    calls = [ToolCall("read_file", {"path": path}, "call_0") for path in ("a", "b", "a", "b")]
    with Gate(**running.settings(kind), deadline=LONG) as gate, gate.turn(f"shared-{kind}") as turn:
        before = turn.tool_call("read_file", {"path": "c"}, tool_call_id="call_0")
        first, again = turn.tool_calls(calls), turn.tool_calls(calls)
        results = [turn.tool_result("read_file", text, tool_call_id="call_0") for text in ("a", "b")]
    assert {verdict.code for verdict in [*first, *again, *results]} == {"allow"} and gate.counts == {}
    ids = [verdict.verdict_id for verdict in first]
    assert len({before.verdict_id, *ids}) == 5 and ids == [verdict.verdict_id for verdict in again]
    assert results[0].verdict_id != results[1].verdict_id


def test_an_agent_whose_model_gives_every_call_the_same_id_runs(running, kind):
    from hosts.langchain import Model, work_on
    from langchain.agents import create_agent
    from langchain_core.messages import AIMessage

    from tollgate.langchain import TollgateMiddleware

    def calls(value):
        return AIMessage("", tool_calls=[{"name": "work", "args": {"value": value}, "id": "call_0", "type": "tool_call"}])

    ran, gate = [], TollgateMiddleware(**running.settings(kind), deadline=LONG)
    agent = create_agent(Model(messages=iter([calls(1), calls(2), calls(3), AIMessage("done")])), [work_on(ran)], middleware=[gate])
    asyncio.run(agent.ainvoke({"messages": [("user", "go")]}, {"configurable": {"thread_id": f"call-0-{kind}"}}))
    assert (ran, gate.counts) == ([1, 2, 3], {})


def test_a_long_result_reaches_a_real_gate(running, kind):
    with Gate(**running.settings(kind), deadline=LONG) as gate, gate.turn(f"long-{kind}") as turn:
        turn.tool_call("read_file", {"path": "a"}, tool_call_id="c")
        verdict = turn.tool_result("read_file", "x" * 5_000_000, tool_call_id="c")
    assert (verdict.code, verdict.result_was_cut) == ("allow", True)


def test_a_gate_that_is_down_in_between_blocks_and_answers_again(program, kind):
    dev = Dev(program)
    with Gate(**dev.settings(kind), deadline=2) as gate:
        down = [gate.tool_call("t", "read_file", {}, tool_call_id="before")]
        with dev.runs():
            first = answered(gate, "first")
        down.append(gate.tool_call("t", "read_file", {}, tool_call_id="between"))
        with dev.runs():
            second = answered(gate, "second")
    assert {(verdict.code, verdict.allows_execution) for verdict in down} == {("gate_unreachable", False)}
    assert (first.code, second.code) == ("allow", "allow")


def answered(gate, ident):
    """Asks until the gate itself answers. The program answers, so this ends."""
    while (verdict := gate.tool_call("t", "read_file", {}, tool_call_id=ident)).decided_by == "client":
        pass
    return verdict


CHUNKS = [
    {"object": "chat.completion.chunk", "choices": [{"index": 0, "finish_reason": None, "delta": {"tool_calls": [
        {"index": 0, "id": "c", "type": "function", "function": {"name": "terminal", "arguments": "{"}}]}}]},
    {"object": "chat.completion.chunk", "choices": [{"index": 0, "finish_reason": "content_filter", "delta": {}}]},
]  # fmt: skip


def cut_off():
    """Returns responses that a provider cut off, as the adapters send them."""
    from google.adk.models.llm_response import LlmResponse
    from google.genai import types
    from pydantic_ai.messages import ModelMessagesTypeAdapter, ModelResponse, ToolCallPart

    from tollgate.google_adk import _native

    part = types.Part(function_call=types.FunctionCall(id="c", name="terminal", args={}))
    adk = LlmResponse(content=types.Content(role="model", parts=[part]), finish_reason=types.FinishReason.SAFETY)
    asked = [ToolCallPart("terminal", {}, tool_call_id="c")]
    response = ModelResponse(parts=asked, finish_reason="content_filter", provider_details={"finish_reason": "content_filter"})
    incomplete = {"object": "response", "status": "incomplete", "incomplete_details": {"reason": "content_filter"}}
    incomplete["output"] = [{"type": "function_call", "call_id": "c", "name": "terminal", "arguments": "{"}]
    (dumped,) = ModelMessagesTypeAdapter.dump_python([response], mode="json")
    return {"openai_agents": incomplete, "openai_agents, a stream": CHUNKS, "google_adk": _native(adk), "pydantic_ai": dumped}


def test_a_real_gate_reads_what_the_adapters_send_of_a_response_that_was_cut_off(running):
    with Gate(**running.settings("http"), deadline=LONG) as gate:
        for number, (name, body) in enumerate(cut_off().items()):
            with gate.turn(f"cut-{number}") as turn:
                assert turn.model_response(response=body, response_id="r").action == "suppress", name
                assert turn.tool_call("terminal", {}, tool_call_id="c").code == "suppressed_tool_call", name
