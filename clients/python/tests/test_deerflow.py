"""Tests the provider and the middleware of DeerFlow in agents of LangChain, which DeerFlow's are.

The registry has an older DeerFlow alone: `Guardrail` calls a provider as the documents of the newest say.
"""

import asyncio
import importlib
from types import SimpleNamespace

import pytest
import yaml
from fake_gate import allowed, blocked
from hosts.deerflow import model_that_calls, work_on
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import AIMessage, ToolMessage
from test_docs import TEXTS, code

from tollgate.deerflow import Decision, TollgateMiddleware, TollgateProvider


class Guardrail(AgentMiddleware):
    """Asks a provider; a provider that raises lets the call run, as with `fail_closed: false`."""

    def __init__(self, provider):
        super().__init__()
        self.provider = provider

    async def awrap_tool_call(self, request, handler):
        call = request.tool_call
        given = asked(tool_name=call["name"], tool_input=call["args"], tool_call_id=call["id"], **request.runtime.context)
        try:
            decision = await self.provider.aevaluate(given)
        except Exception:
            return await handler(request)
        if decision.allow:
            return await handler(request)
        reason = decision.reasons[0]
        return ToolMessage(f"({reason.code}) {reason.message}", tool_call_id=call["id"], name=call["name"], status="error")


def asked(**fields):
    """Returns a request as DeerFlow makes it."""
    plain = {"tool_name": "work", "tool_input": {"value": 1}, "agent_id": "passport", "thread_id": "t", "is_subagent": False}
    return SimpleNamespace(**plain | {"timestamp": "2026-01-01T00:00:00+00:00"} | fields)


def run(middleware, context):
    ran = []
    agent = create_agent(model_that_calls({"id": "c1", "value": 1}), [work_on(ran)], middleware=[middleware], context_schema=dict)
    return ran, asyncio.run(agent.ainvoke({"messages": [("user", "go")]}, context=context))["messages"]


CONTEXT = {"thread_id": "t", "is_subagent": False, "user_id": "mallory", "user_role": "member", "run_id": "r"}


def test_an_allowed_call_runs_for_its_user(fake):
    ran, _ = run(Guardrail(TollgateProvider(fake.url, framework="deerflow", tenant_id="acme")), CONTEXT)
    event = fake.of_type("tool_call")[0]
    assert ran == [1] and event["event_id"] == "r/c1/call"
    names = ("thread_id", "turn_id", "run_id", "agent_id", "user_id", "user_role", "tenant_id")
    assert [event[name] for name in names] == ["t", "r", "r", "passport", "mallory", "member", "acme"]


def test_a_blocked_call_does_not_run_and_the_agent_reads_why(fake):
    fake.decide = lambda event: blocked(event, message="no.", reasons=[{"policy_id": "p"}])
    ran, messages = run(Guardrail(TollgateProvider(fake.url)), CONTEXT)
    assert ran == [] and messages[2].content == "(tool_denied) no"
    assert TollgateProvider(fake.url).evaluate(asked()).policy_id == "p"


@pytest.mark.parametrize("broken", ["refused", "garbage", "raises", "no thread", "reasons"])
def test_a_provider_never_raises_and_never_allows_by_accident(fake, monkeypatch, broken):
    if broken == "refused":
        fake.server.server_close()
    elif broken == "garbage":
        fake.answer = lambda events: (200, {}, "<html>")
    elif broken == "raises":
        monkeypatch.setattr(TollgateProvider, "_scope", lambda *_: 1 / 0)
    elif broken == "reasons":
        fake.decide = lambda event: blocked(event, reasons=["p"])
    context = CONTEXT | {"thread_id": None} if broken == "no thread" else CONTEXT
    ran, messages = run(Guardrail(TollgateProvider(fake.url, deadline=0.5)), context)
    assert ran == [] and messages[2].status == "error"


def test_a_request_of_an_older_version_is_read(fake):
    older = asked()
    assert TollgateProvider(fake.url).evaluate(older) == Decision(True, TollgateProvider(fake.url).evaluate(older).reasons)
    fake.decide = blocked
    decision = asyncio.run(TollgateProvider(fake.url).aevaluate(older))
    assert not decision.allow and decision.reasons[0].code == "tool_denied"


def test_providers_of_one_process_share_their_connections(fake):
    assert TollgateProvider(fake.url)._asker is TollgateProvider(fake.url, framework="deerflow")._asker
    assert TollgateProvider(fake.url)._asker is not TollgateProvider(fake.url, deadline=1)._asker


def test_a_subagent_is_a_thread_of_its_own(fake):
    run(Guardrail(TollgateProvider(fake.url)), CONTEXT | {"is_subagent": True})
    for _ in range(2):
        run(TollgateMiddleware(fake.url), CONTEXT | {"is_subagent": True})
    first, second, third = [event["thread_id"] for event in fake.of_type("tool_call")]
    assert first == "t/subagent" and second.startswith("t/") and third.startswith("t/") and len({first, second, third}) == 3
    assert all(event["is_subagent"] for event in fake.of_type("tool_call"))


def test_the_middleware_says_for_whom_a_run_is(fake):
    ran, _ = run(TollgateMiddleware(fake.url), CONTEXT)
    assert ran == [1] and {event["thread_id"] for event in fake.events} == {"t"}
    assert {(event["user_id"], event["user_role"], event["run_id"]) for event in fake.events} == {("mallory", "member", "r")}


class Rewriting(AgentMiddleware):
    """Hides the reason why a response ended, as DeerFlow's own middleware for safety stops does."""

    async def aafter_model(self, state, runtime):
        last = state["messages"][-1]
        return {"messages": [last.model_copy(update={"response_metadata": {}})]} if isinstance(last, AIMessage) else None


def test_the_middleware_sees_a_response_before_others_rewrite_it(fake):
    model = model_that_calls({"id": "c1", "value": 1})
    cut = AIMessage(
        "", tool_calls=[{"name": "work", "args": {"value": 1}, "id": "c1"}], response_metadata={"finish_reason": "content_filter"}
    )
    model.messages = iter([cut])
    safety = {"category": "safety", "detector": "native", "user_message": "Stopped."}
    fake.decide = lambda event: allowed(event, action="suppress", allows_execution=False, code="safety_terminated", safety=safety)
    ran = []
    agent = create_agent(model, [work_on(ran)], middleware=[TollgateMiddleware(fake.url), Rewriting()])
    assert asyncio.run(agent.ainvoke({"messages": [("user", "go")]}))["messages"][-1].content == "Stopped." and ran == []
    seen = fake.of_type("model_response")
    assert len(seen) == 1 and seen[0]["message"]["data"]["response_metadata"] == {"finish_reason": "content_filter"}


def test_the_class_paths_of_the_page_make_what_deerflow_makes_of_them():
    settings = yaml.safe_load(code("DeerFlow", "yaml"))
    provider = settings["guardrails"]["provider"]
    for path, more in [(settings["extensions"]["middlewares"][0], {}), (provider["use"], {**provider["config"], "framework": "deerflow"})]:
        module, _, name = path.partition(":")
        assert getattr(importlib.import_module(module), name)(**more)
    assert "DeerFlow" in TEXTS
