"""Tests what the cases of all adapters cannot say of Google's ADK: subagents, branches, confirmations, errors, and what the gate reads."""

import asyncio

import pytest
from fake_gate import allowed, together
from google.adk.agents import LlmAgent, ParallelAgent
from google.adk.apps import App, ResumabilityConfig
from google.adk.models import LlmResponse
from google.adk.runners import InMemoryRunner
from google.adk.tools import FunctionTool
from google.adk.tools.agent_tool import AgentTool
from google.genai import types
from hosts.google_adk import call, model_with, said, talk, work_on

from tollgate.google_adk import GUIDANCE, TollgatePlugin, _native


def run(fake, agent, deadline=20):
    return asyncio.run(talk(agent, TollgatePlugin(fake.url, deadline=deadline)))


def threads(fake):
    return {event["tool_call_id"]: (event["thread_id"], event.get("is_subagent")) for event in fake.of_type("tool_call")}


def test_calls_of_one_response_are_asked_for_at_once(fake):
    fake.decide, ran = together(3), []
    model = model_with([call(f"c{value}", value) for value in range(3)], said("done"))
    run(fake, LlmAgent(name="a", model=model, tools=[work_on(ran)]), deadline=30)
    assert sorted(ran) == [0, 1, 2]


@pytest.mark.parametrize("include_plugins", [True, False])
def test_an_agent_that_is_a_tool_is_a_thread_of_its_own_and_never_without_the_gate(fake, include_plugins):
    ran = []
    inner = LlmAgent(name="inner", model=model_with([call("c9", 7)], said("inner")), tools=[work_on(ran)])
    ask = types.Part(function_call=types.FunctionCall(id="d1", name="inner", args={"request": "go"}))
    model = model_with([ask], [call("c1", 1)], said("done"))
    events = run(fake, LlmAgent(name="a", model=model, tools=[AgentTool(inner, include_plugins=include_plugins), work_on(ran)]))
    if include_plugins:
        assert ran == [7, 1] and threads(fake) == {"d1": ("t", None), "c9": ("t/d1", True), "c1": ("t", None)}
    else:
        assert ran == [1] and threads(fake) == {"c1": ("t", None)} and "include_plugins" in str(events)


def test_parallel_branches_are_threads_of_their_own(fake):
    ran = []
    agents = [LlmAgent(name=f"a{i}", model=model_with([call(f"c{i}", i)], said("done")), tools=[work_on(ran)]) for i in (1, 2)]
    run(fake, ParallelAgent(name="both", sub_agents=agents))
    assert sorted(ran) == [1, 2] and {event["thread_id"] for event in fake.of_type("tool_call")} == {"t/both.a1", "t/both.a2"}


def test_equal_calls_of_two_responses_are_two_events(fake):
    ran = []
    run(fake, LlmAgent(name="a", model=model_with([call("c1", 1)], [call("c1", 1)], said("done")), tools=[work_on(ran)]))
    assert ran == [1, 1] and fake.ids("tool_call") == fake.ids("tool_result") == 2


def test_a_confirmed_call_is_the_same_event(fake):
    ran = []
    tool = FunctionTool(work_on(ran), require_confirmation=True)
    model = model_with([call("c1", 1)], said("done"))
    agent = LlmAgent(name="a", model=model, tools=[tool])
    app = App(name="app", root_agent=agent, plugins=[TollgatePlugin(fake.url)], resumability_config=ResumabilityConfig(is_resumable=True))
    runner = InMemoryRunner(app=app)

    async def send(*parts, **more):
        content = types.Content(role="user", parts=list(parts))
        return [event async for event in runner.run_async(user_id="u", session_id="t", new_message=content, **more)]

    async def converse():
        await runner.session_service.create_session(app_name="app", user_id="u", session_id="t")
        asked = [(each, event) for event in await send(*said("go")) for each in event.get_function_calls()]
        confirm, event = next(found for found in asked if found[0].name == "adk_request_confirmation")
        assert ran == [] and fake.of_type("tool_result") == []
        answer = types.FunctionResponse(id=confirm.id, name=confirm.name, response={"confirmed": True})
        await send(types.Part(function_response=answer), invocation_id=event.invocation_id)

    asyncio.run(converse())
    calls = fake.of_type("tool_call")
    assert ran == [1] and len(calls) == 2 and len({event["event_id"] for event in calls}) == 1
    assert len(fake.of_type("tool_result")) == 1


def test_an_error_of_a_tool_is_published_as_failed_and_raised(fake):
    async def broken(value: int) -> str:
        """Breaks."""
        raise OSError("disk")

    agent = LlmAgent(name="a", model=model_with([call("c1", 1, "broken")]), tools=[broken])
    with pytest.raises(OSError, match="disk"):
        run(fake, agent)
    assert len(fake.of_type("turn_end")) == 1
    assert [(event["failed"], event["result"]) for event in fake.of_type("tool_result")] == [(True, "disk")]


def test_guidance_stands_beside_an_object(fake):
    fake.decide = lambda event: allowed(event, **({"guidance": "Careful."} if event["type"] == "tool_result" else {}))

    async def structured(value: int) -> dict:
        """Gives an object."""
        return {"value": value}

    events = run(fake, LlmAgent(name="a", model=model_with([call("c1", 1, "structured")], said("done")), tools=[structured]))
    found = [part.function_response.response for event in events for part in event.content.parts if part.function_response]
    assert found == [{"value": 1, GUIDANCE: "Careful."}] and fake.of_type("tool_result")[0]["result"] == {"value": 1}


def test_the_gate_reads_a_response_as_gemini_gives_it():
    cut = LlmResponse(content=types.Content(role="model", parts=[call("c1", 1)]), finish_reason=types.FinishReason.SAFETY)
    assert _native(cut)["candidates"][0]["finishReason"] == "SAFETY"
    assert _native(cut)["candidates"][0]["content"]["parts"][0]["functionCall"]["name"] == "work"
    assert _native(LlmResponse(error_code="PROHIBITED_CONTENT"))["promptFeedback"] == {"blockReason": "PROHIBITED_CONTENT"}


def test_a_finished_run_leaves_nothing_behind(fake):
    plugin = TollgatePlugin(fake.url)
    asyncio.run(talk(LlmAgent(name="a", model=model_with([call("c1", 1)], said("done")), tools=[work_on([])]), plugin))
    assert plugin._halts == {} and plugin._calls == {}
