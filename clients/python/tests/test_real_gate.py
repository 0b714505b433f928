"""Asks a real gate: `tollgate dev --http 127.0.0.1:PORT`."""

import socket
import subprocess
import threading

import httpx
import pytest

from tollgate import Gate


@pytest.fixture
def url(program):
    address = f"127.0.0.1:{free_port()}"
    command = [program, "dev", "--http", address]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    said = []
    reader = threading.Thread(target=lambda: said.extend(process.stdout))
    reader.start()
    try:
        while not serves(address):
            assert process.poll() is None, "".join(said)
        yield f"http://{address}"
    finally:
        process.terminate()
        process.wait()
        reader.join()


def free_port():
    """Returns a port that is free for now."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def serves(address):
    """Returns whether the gate answers, with whatever status."""
    try:
        httpx.get(f"http://{address}/v1/verdicts/none", timeout=1, trust_env=False)
        return True
    except httpx.TransportError:
        threading.Event().wait(0.05)
        return False


def test_repeated_failures_are_blocked_by_a_real_gate(url):
    with Gate(url, deadline=30) as gate, gate.turn("python-client") as turn:
        verdicts = []
        for number in range(3):
            ident = f"c{number}"
            verdicts.append(turn.tool_call("terminal", {"command": "make"}, tool_call_id=ident))
            if verdicts[-1].allows_execution:
                turn.tool_result("terminal", "Error: no rule", tool_input={"command": "make"}, tool_call_id=ident, failed=True)
        assert gate.counts == {}
    assert verdicts[0].code == "allow" and verdicts[-1].decided_by == "loop" and not verdicts[-1].allows_execution
    assert verdicts[-1].synthetic_result and verdicts[-1].raw["policy_version"].startswith("sha256:")


def test_a_suppressed_response_stops_its_calls(url):
    body = {"choices": [{"finish_reason": "content_filter", "message": {"role": "assistant", "content": "", "tool_calls": []}}]}
    body["choices"][0]["message"]["tool_calls"].append({"id": "c", "type": "function", "function": {"name": "terminal", "arguments": "{"}})
    with Gate(url, deadline=30) as gate, gate.turn("python-client") as turn:
        assert turn.model_response(response=body, response_id="r").action == "suppress"
        assert turn.tool_call("terminal", {}, tool_call_id="c").code == "suppressed_tool_call"


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


def test_a_real_gate_reads_what_the_adapters_send_of_a_response_that_was_cut_off(url):
    with Gate(url, deadline=30) as gate:
        for number, (name, body) in enumerate(cut_off().items()):
            with gate.turn(f"cut-{number}") as turn:
                assert turn.model_response(response=body, response_id="r").action == "suppress", name
                assert turn.tool_call("terminal", {}, tool_call_id="c").code == "suppressed_tool_call", name
