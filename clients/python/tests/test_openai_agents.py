"""Tests what the cases of all adapters cannot say of the OpenAI Agents SDK: streams, subagents, hand-overs, approvals, provider bodies."""

import asyncio
import json
import sys

import pytest
from agents import (
    Agent,
    ModelBehaviorError,
    OpenAIChatCompletionsModel,
    OpenAIResponsesModel,
    RunConfig,
    Runner,
    RunState,
    ToolInputGuardrailTripwireTriggered,
    WebSearchTool,
    function_tool,
    handoff,
)
from agents.mcp import MCPServerStdio
from agents.testing import ScriptedModel
from fake_gate import FakeGate, allowed, blocked, together
from hosts import Run
from hosts import openai_agents as host
from hosts.openai_agents import call, said, work_on
from openai import AsyncOpenAI
from test_adapters import CASES, check, decide_as

from tollgate.openai_agents import Tollgate, http_client


def run(gate, agent, given="go", **more):
    async def inside():
        async with gate.turn("t", turn_id="u"):
            return await Runner.run(agent, given, **more)

    return asyncio.run(inside())


@pytest.mark.parametrize("case", [case for case in CASES if "fault" not in case], ids=lambda case: case["name"])
def test_a_streamed_run_passes_the_cases(fake, case):
    fake.decide = decide_as(case)
    given = Run({"url": fake.url, "deadline": 20}, case.get("calls", [{"id": "c1", "value": 3}]))
    check(case["expect"], asyncio.run(host.converse(given, streamed=True)), fake, host)


def test_calls_of_one_response_are_asked_for_at_once(fake):
    fake.decide, ran = together(3), []
    gate = Tollgate(fake.url, deadline=30)
    model = ScriptedModel([[call(f"c{value}", value) for value in range(3)], [said("done")]])
    run(gate, gate.guard(Agent(name="a", model=model, tools=[work_on(ran)])))
    assert sorted(ran) == [0, 1, 2]


def test_an_agent_that_is_a_tool_is_a_thread_of_its_own(fake):
    ran, gate = [], Tollgate(fake.url)
    inner = Agent(name="inner", model=ScriptedModel([[call("c9", 7)], [said("inner")]]), tools=[work_on(ran)])
    delegate = inner.as_tool("delegate", "Asks another agent.")
    outgoing = call("d1", 0, "delegate")
    outgoing.arguments = '{"input": "go"}'
    outer = Agent(name="outer", model=ScriptedModel([[outgoing], [call("c1", 1)], [said("outer")]]), tools=[delegate, work_on(ran)])
    assert run(gate, gate.guard(outer)).final_output == "outer"
    threads = {event["tool_call_id"]: (event["thread_id"], event.get("is_subagent")) for event in fake.of_type("tool_call")}
    assert ran == [7, 1] and threads == {"d1": ("t", None), "c9": ("t/d1", True), "c1": ("t", None)}
    assert {event["thread_id"] for event in fake.of_type("model_response")} == {"t", "t/d1"}


def test_an_approved_call_of_an_agent_that_is_a_tool_is_the_same_event(fake):
    ran, gate = [], Tollgate(fake.url)
    tool = work_on(ran)
    tool.needs_approval = True
    inner = Agent(name="inner", model=ScriptedModel([[call("c9", 7)], [said("inner")]]), tools=[tool])
    outgoing = call("d1", 0, "delegate")
    outgoing.arguments = '{"input": "go"}'
    delegate = inner.as_tool("delegate", "Asks another agent.")
    outer = gate.guard(Agent(name="outer", model=ScriptedModel([[outgoing], [said("outer")]]), tools=[delegate]))
    state = run(gate, outer).to_state()
    assert ran == [] and [event["thread_id"] for event in fake.of_type("tool_call")] == ["t"]
    state.approve(state.get_interruptions()[0])
    assert run(gate, outer, state).final_output == "outer" and ran == [7]
    asked = {(event["thread_id"], event["event_id"]) for event in fake.of_type("tool_call")}
    assert asked == {("t", "u/d1/call"), ("t/d1", "u/c9/call")}


@pytest.mark.parametrize("how", [handoff, lambda agent: agent], ids=["handoff", "agent"])
def test_the_agent_that_takes_over_is_gated_too(fake, how):
    ran, gate = [], Tollgate(fake.url)
    fake.decide = lambda event: blocked(event) if event["type"] == "tool_call" else allowed(event)
    second = Agent(name="second", model=ScriptedModel([[call("c1", 1)], [said("done")]]), tools=[work_on(ran)])
    first = Agent(name="first", model=ScriptedModel([[call("h", 0, "transfer_to_second")]]), handoffs=[how(second)])
    assert run(gate, gate.guard(first)).final_output == "done" and ran == []
    assert len(fake.of_type("tool_call")) == 1


def test_an_approved_call_is_the_same_event(fake):
    ran, gate = [], Tollgate(fake.url)
    tool = work_on(ran)
    tool.needs_approval = True
    agent = gate.guard(Agent(name="a", model=ScriptedModel([[call("c1", 1)], [said("done")]]), tools=[tool]))
    first = run(gate, agent)
    assert ran == [] and len(first.interruptions) == 1

    async def resume():
        state = await RunState.from_string(agent, first.to_state().to_string())
        state.approve(state.get_interruptions()[0])
        async with gate.turn("t", turn_id="u"):
            return await Runner.run(agent, state)

    assert asyncio.run(resume()).final_output == "done" and ran == [1]
    assert {event["event_id"] for event in fake.of_type("tool_call")} == {"u/c1/call"}


def test_a_tool_that_the_sdk_does_not_gate_is_refused(fake):
    gate = Tollgate(fake.url)
    with pytest.raises(ValueError, match="web_search"):
        gate.guard(Agent(name="a", model=ScriptedModel([]), tools=[WebSearchTool()]))
    ran = []
    agent = Agent(name="a", model=ScriptedModel([[call("c1", 1)], [said("done")]]), tools=[work_on(ran), WebSearchTool()])
    with pytest.raises(ValueError, match="web_search"):
        gate.guard(agent)
    # An agent that was refused is gated as a whole the next time.
    fake.decide = lambda event: blocked(event) if event["type"] == "tool_call" else allowed(event)
    run(gate, gate.guard(agent, ungated={"web_search"}))
    assert ran == [] and len(fake.of_type("tool_call")) == 1


def test_a_run_without_a_turn_runs_no_tool_and_says_so(fake):
    ran, gate = [], Tollgate(fake.url)
    agent = gate.guard(Agent(name="a", model=ScriptedModel([[call("c1", 1)], [said("done")]]), tools=[work_on(ran)]))
    result = asyncio.run(Runner.run(agent, "go"))
    assert ran == [] and fake.events == [] and "no turn is open" in result.final_output


def test_a_model_in_the_place_of_the_guarded_model_runs_no_tool(fake):
    ran, gate = [], Tollgate(fake.url)
    agent = gate.guard(Agent(name="a", model=ScriptedModel([]), tools=[work_on(ran)]))
    other = ScriptedModel([[call("c1", 1)], [said("done")]])
    run(gate, agent, run_config=RunConfig(model=other))
    assert ran == [] and "RunConfig(model=" in other.calls[-1].input[-1]["output"]


def test_guarding_twice_asks_once(fake):
    gate = Tollgate(fake.url)
    agent = Agent(name="a", model=ScriptedModel([[call("c1", 1)], [said("done")]]), tools=[work_on([])])
    run(gate, gate.guard(gate.guard(agent)))
    assert len(fake.of_type("tool_call")) == 1


MCP = """
from mcp.server import MCPServer

server = MCPServer("work")


@server.tool()
def work(value: int) -> str:
    return f"worked on {value}"


server.run("stdio")
"""


@pytest.mark.parametrize("may_run", [True, False])
def test_a_tool_of_an_mcp_server_is_gated_once_though_agents_share_the_server(fake, may_run):
    fake.decide = lambda event: blocked(event) if event["type"] == "tool_call" and not may_run else allowed(event)

    async def inside():
        async with MCPServerStdio(params={"command": sys.executable, "args": ["-c", MCP]}, client_session_timeout_seconds=60) as server:
            gate, model = Tollgate(fake.url), ScriptedModel([[call("c1", 1)], [said("done")]])
            gate.guard(Agent(name="b", model=ScriptedModel([]), mcp_servers=[server]))
            agent = gate.guard(Agent(name="a", model=model, mcp_servers=[server]))
            async with gate.turn("t"):
                await Runner.run(agent, "go")
            return str(model.calls[-1].input[-1]["output"])

    read = asyncio.run(inside())
    assert ("worked on 1" if may_run else "blocked: tool_denied") in read
    assert len(fake.of_type("tool_call")) == 1 and len(fake.of_type("tool_result")) == may_run


def test_a_turn_that_a_halt_ends_is_published_to_its_end(fake):
    fake.decide = lambda event: blocked(event, should_halt=True) if event["type"] == "tool_call" else allowed(event)
    gate = Tollgate(fake.url)
    agent = gate.guard(Agent(name="a", model=ScriptedModel([[call("c1", 1)]]), tools=[work_on([])]))
    with pytest.raises(ToolInputGuardrailTripwireTriggered):
        run(gate, agent)
    assert fake.events[-1]["type"] == "turn_end"


def test_a_failed_tool_is_reported_as_failed(fake):
    @function_tool
    def broken() -> str:
        """Breaks."""
        raise OSError("disk")

    gate = Tollgate(fake.url)
    model = ScriptedModel([[call("c1", 1, "broken")], [said("done")]])
    run(gate, gate.guard(Agent(name="a", model=model, tools=[broken])))
    assert fake.of_type("tool_result")[0]["failed"] is True


COMPLETION = {
    "id": "x", "object": "chat.completion", "created": 1, "model": "m",
    "choices": [{"index": 0, "finish_reason": "content_filter", "message": {"role": "assistant", "content": None, "tool_calls": [
        {"id": "c1", "type": "function", "function": {"name": "work", "arguments": '{"value": 1}'}}]}}],
}  # fmt: skip
CHUNK = {
    "id": "x", "object": "chat.completion.chunk", "created": 1, "model": "m",
    "choices": [{"index": 0, "finish_reason": None, "delta": {"role": "assistant", "tool_calls": [
        {"index": 0, "id": "c1", "type": "function", "function": {"name": "work", "arguments": '{"value": 1}'}}]}}],
}  # fmt: skip
LAST = {**CHUNK, "choices": [{"index": 0, "finish_reason": "content_filter", "delta": {}}]}
RESPONSE = {
    "id": "r", "object": "response", "created_at": 1, "model": "m", "status": "incomplete", "parallel_tool_calls": True, "tools": [],
    "tool_choice": "auto", "incomplete_details": {"reason": "content_filter"},
    "output": [{"type": "function_call", "id": "f", "call_id": "c1", "name": "work", "arguments": '{"value": 1}', "status": "completed"}],
}  # fmt: skip


@pytest.fixture
def provider():
    server = FakeGate()
    yield server
    server.close()


def asking(provider, status, headers, text):
    """Returns a client of a provider that gives one answer."""
    provider.answer = lambda events: (status, headers, text)
    return AsyncOpenAI(api_key="k", base_url=provider.url, max_retries=0, http_client=http_client(trust_env=False))


def as_stream(*events):
    return "".join(f"data: {json.dumps(event)}\n\n" for event in events) + "data: [DONE]\n\n"


def cut_off(fake):
    """Decides as the gate does for a provider's reason that says that the response was cut off."""

    def decide(event):
        if event["type"] == "model_response" and "content_filter" in json.dumps(event["response"]):
            safety = {"category": "safety", "detector": "native", "user_message": "Stopped."}
            return allowed(event, action="suppress", allows_execution=False, code="safety_terminated", safety=safety)
        return allowed(event)

    fake.decide = decide


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_the_gate_reads_why_a_completion_ended(fake, provider, stream):
    cut_off(fake)
    ran, gate = [], Tollgate(fake.url)
    text = as_stream(CHUNK, LAST) if stream else json.dumps(COMPLETION)
    client = asking(provider, 200, {"content-type": "text/event-stream" if stream else "application/json"}, text)
    agent = gate.guard(Agent(name="a", model=OpenAIChatCompletionsModel("m", client), tools=[work_on(ran)]))

    async def inside():
        async with gate.turn("t"):
            if not stream:
                return await Runner.run(agent, "go")
            result = Runner.run_streamed(agent, "go")
            async for _ in result.stream_events():
                pass
            return result

    assert asyncio.run(inside()).final_output == "Stopped." and ran == []


def test_the_gate_learns_of_an_incomplete_response_though_the_sdk_raises(fake, provider):
    ran, gate = [], Tollgate(fake.url)
    client = asking(provider, 200, {"content-type": "application/json"}, json.dumps(RESPONSE))
    agent = gate.guard(Agent(name="a", model=OpenAIResponsesModel("m", client), tools=[work_on(ran)]))
    with pytest.raises(ModelBehaviorError):
        run(gate, agent)
    assert ran == [] and fake.of_type("model_response")[0]["response"]["incomplete_details"] == {"reason": "content_filter"}
