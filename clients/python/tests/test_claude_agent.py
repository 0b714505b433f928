"""Tests what the cases of all adapters cannot say of the Claude Agent SDK: hooks that fail, subagents, and calls at once."""

import asyncio
import threading

import pytest
from claude_agent_sdk import AgentDefinition
from fake_gate import allowed
from hosts.claude_agent import TOOL, Api, call, talk

from tollgate.claude_agent import TEXT_CHARACTERS_MAX, TollgateHooks


def run(hooks, *script, **more):
    ran, api = [], Api(*script)
    asyncio.run(talk(api, hooks.hooks, ran, **more))
    return ran, api


async def raising(*_):
    raise KeyError("broken")


async def hanging(*_):
    await asyncio.Event().wait()


async def nothing(*_):
    """Gives no answer."""


async def garbage(*_):
    return {"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "perhaps"}}


@pytest.mark.parametrize("broken", [raising, hanging, nothing, garbage])
def test_a_hook_that_fails_lets_no_tool_run(fake, monkeypatch, broken):
    monkeypatch.setattr("tollgate.claude_agent.MARGIN_SECONDS", 2.5)
    hooks = TollgateHooks(fake.url, deadline=0.5)
    monkeypatch.setattr(hooks, "_called", broken)
    ran, api = run(hooks, [call("c1", 3)])
    assert ran == [] and len(api.requests) == 2


def test_a_subagent_is_a_thread_of_its_own(fake):
    agents = {"worker": AgentDefinition(description="Works.", prompt="Work.", tools=[TOOL])}
    delegate = {"type": "tool_use", "id": "d1", "name": "Agent", "input": {"description": "d", "prompt": "p", "subagent_type": "worker"}}
    delegate["input"]["run_in_background"] = False
    ran, _ = run(TollgateHooks(fake.url, deadline=20), [delegate], [call("c9", 7)], agents=agents)
    threads = {event["tool_call_id"]: (event["thread_id"], event.get("is_subagent")) for event in fake.of_type("tool_call")}
    assert ran == [7] and threads["d1"][1] is None
    assert threads["c9"][0].startswith(threads["d1"][0] + "/") and threads["c9"][1] is True


def test_calls_of_one_response_are_asked_for_at_once(fake):
    together = threading.Barrier(2)

    def decide(event):
        if event["type"] == "tool_call":
            together.wait(30)
        return allowed(event)

    fake.decide = decide
    ran, _ = run(TollgateHooks(fake.url, deadline=30), [call("c1", 1), call("c2", 2)])
    assert sorted(ran) == [1, 2]


def test_a_text_is_no_longer_than_the_model_may_read(fake):
    fake.decide = lambda event: allowed(event, **({"guidance": "g" * 20_000} if event["type"] == "tool_result" else {}))
    _, api = run(TollgateHooks(fake.url, deadline=20), [call("c1", 1)])
    assert "g" * TEXT_CHARACTERS_MAX in api.read()["c1"] and "g" * (TEXT_CHARACTERS_MAX + 1) not in api.read()["c1"]


def test_the_same_call_is_the_same_event(fake):
    given = {
        "session_id": "s",
        "prompt_id": "p",
        "hook_event_name": "PreToolUse",
        "tool_name": "Bash",
        "tool_input": {},
        "tool_use_id": "c1",
    }
    hooks = TollgateHooks(fake.url)
    for _ in range(2):
        assert asyncio.run(hooks.hooks["PreToolUse"][0].hooks[0](given, "c1", {})) == {}
    assert [event["event_id"] for event in fake.events] == ["p/c1/call"] * 2
