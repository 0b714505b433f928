"""Tests what the cases of all adapters cannot say of Pydantic AI: streams, subagents, approvals, retries and results that are no text."""

import asyncio

import pytest
from fake_gate import allowed, blocked, together
from hosts.pydantic_ai import call, script, work_on
from pydantic_ai import Agent, ApprovalRequired, DeferredToolRequests, DeferredToolResults, ModelRetry, RunContext
from pydantic_ai.messages import ModelRequest, ModelResponse, TextPart, ToolReturnPart, UserPromptPart
from pydantic_ai.models.function import DeltaToolCall, FunctionModel

from tollgate.pydantic_ai import TollgateCapability


def run(fake, tools, *responses, deadline=20, **more):
    requests = []
    agent = Agent(script(requests, *responses), tools=tools, capabilities=[TollgateCapability(fake.url, deadline=deadline)], **more)
    return asyncio.run(agent.run("go", conversation_id="t")), requests, agent


def parts_of(requests, kind):
    return [part for message in requests[-1] if isinstance(message, ModelRequest) for part in message.parts if isinstance(part, kind)]


def test_a_streamed_response_loses_its_calls_too(fake):
    safety = {"category": "safety", "detector": "native", "user_message": "Stopped."}
    fake.decide = lambda event: allowed(event, action="suppress", allows_execution=False, code="safety_terminated", safety=safety)
    ran = []

    async def stream(messages, info):
        yield {0: DeltaToolCall("work", '{"value": 1}', tool_call_id="c1")}

    agent = Agent(FunctionModel(stream_function=stream), tools=[work_on(ran)], capabilities=[TollgateCapability(fake.url)])

    async def consume():
        async with agent.run_stream_events("go") as events:
            return [event async for event in events][-1].result.output

    assert asyncio.run(consume()) == "Stopped." and ran == [] and fake.of_type("tool_call") == []


def test_calls_of_one_response_are_asked_for_at_once(fake):
    fake.decide, ran = together(3), []
    run(fake, [work_on(ran)], [call(f"c{value}", value) for value in range(3)], [TextPart("done")], deadline=30)
    assert sorted(ran) == [0, 1, 2]


def test_an_agent_inside_a_tool_is_a_thread_of_its_own(fake):
    ran = []
    model = script([], [call("c9", 7)], [TextPart("inner")])
    inner = Agent(model, tools=[work_on(ran)], capabilities=[TollgateCapability(fake.url)])

    async def delegate(value: int) -> str:
        """Asks another agent."""
        return (await inner.run("go")).output

    run(fake, [delegate, work_on(ran)], [call("d1", 0, "delegate")], [call("c1", 1)], [TextPart("done")])
    threads = {event["tool_call_id"]: (event["thread_id"], event.get("is_subagent")) for event in fake.of_type("tool_call")}
    assert ran == [7, 1] and threads == {"d1": ("t", None), "c9": ("t/d1", True), "c1": ("t", None)}


def test_equal_calls_of_two_responses_are_two_events(fake):
    ran, parts = [], iter([[call("c1", 1)], [call("c1", 1)], [TextPart("done")]])

    def answer(messages, info):
        return ModelResponse(next(parts), provider_response_id=f"r{len(messages)}")

    agent = Agent(FunctionModel(answer), tools=[work_on(ran)], capabilities=[TollgateCapability(fake.url, deadline=20)])
    assert agent.run_sync("go").output == "done" and ran == [1, 1]
    assert fake.ids("tool_call") == fake.ids("tool_result") == 2


def test_an_approved_call_is_the_same_event(fake):
    ran = []

    def careful(ctx: RunContext, value: int) -> str:
        """Asks a person."""
        if not ctx.tool_call_approved:
            raise ApprovalRequired
        ran.append(value)
        return "well"

    first, _, agent = run(fake, [careful], [call("c1", 1, "careful")], [TextPart("done")], output_type=[str, DeferredToolRequests])
    assert ran == [] and [each.tool_call_id for each in first.output.approvals] == ["c1"]
    results = DeferredToolResults(approvals={"c1": True})
    assert asyncio.run(agent.run(message_history=first.all_messages(), deferred_tool_results=results)).output == "done"
    calls = fake.of_type("tool_call")
    assert ran == [1] and len(calls) == 2 and len({(event["thread_id"], event["event_id"]) for event in calls}) == 1
    assert len(fake.of_type("tool_result")) == 1


def test_a_tool_that_asks_for_a_retry_failed(fake):
    def picky(value: int) -> str:
        """Wants another value."""
        if value == 1:
            raise ModelRetry("give 2")
        return "well"

    run(fake, [picky], [call("c1", 1, "picky")], [call("c2", 2, "picky")], [TextPart("done")])
    assert [(event["tool_call_id"], event.get("failed")) for event in fake.of_type("tool_result")] == [("c1", True), ("c2", None)]


def test_an_error_of_a_tool_is_published_as_failed_and_raised(fake):
    def broken(value: int) -> str:
        """Breaks."""
        raise OSError("disk")

    with pytest.raises(OSError, match="disk"):
        run(fake, [broken], [call("c1", 1, "broken")])
    assert [(event["failed"], event["result"]) for event in fake.of_type("tool_result")] == [(True, "disk")]


def test_guidance_stands_beside_a_result_that_is_no_text(fake):
    fake.decide = lambda event: allowed(event, **({"guidance": "Careful."} if event["type"] == "tool_result" else {}))

    def structured(value: int) -> dict[str, int]:
        """Gives an object."""
        return {"value": value}

    _, requests, _ = run(fake, [structured], [call("c1", 1, "structured")], [TextPart("done")])
    assert parts_of(requests, ToolReturnPart)[0].content == {"value": 1}
    assert "Careful." in str(parts_of(requests, UserPromptPart)[-1].content) and fake.of_type("tool_result")[0]["result"] == {"value": 1}


def test_the_gate_gets_the_response_as_the_framework_serialises_it(fake):
    run(fake, [work_on([])], [call("c1", 1)], [TextPart("done")])
    body = fake.of_type("model_response")[0]["response"]
    assert body["kind"] == "response" and body["parts"][0]["part_kind"] == "tool-call"


def test_a_thread_that_the_contract_cannot_hold_runs_no_tool(fake):
    fake.decide, ran = blocked, []
    agent = Agent(script([], [call("c1", 1)], [TextPart("done")]), tools=[work_on(ran)], capabilities=[TollgateCapability(fake.url)])
    result = asyncio.run(agent.run("go", conversation_id="t" * 300))
    assert ran == [] and fake.events == [] and "ValueError" in result.output
