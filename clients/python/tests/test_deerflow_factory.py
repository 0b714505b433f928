"""Tests what the cases of all adapters cannot say of DeerFlow's own factory: its guardrail, with the provider that its loader finds."""

import asyncio

from deerflow.agents.factory import create_deerflow_agent
from deerflow.agents.features import RuntimeFeatures
from deerflow.guardrails.middleware import GuardrailMiddleware
from deerflow.reflection import resolve_variable
from hosts.deerflow import model_that_calls, work_on


def test_a_call_of_which_an_older_deerflow_names_no_thread_does_not_run(fake):
    provider = resolve_variable("tollgate.deerflow:TollgateProvider")(fake.url, framework="deerflow")
    features = RuntimeFeatures(sandbox=False, guardrail=GuardrailMiddleware(provider, fail_closed=False))
    ran = []
    agent = create_deerflow_agent(model_that_calls({"id": "c1", "value": 1}), [work_on(ran)], features=features)
    messages = asyncio.run(agent.ainvoke({"messages": [("user", "go")]}))["messages"]
    assert ran == [] and "(no_thread)" in messages[2].content and provider.counts == {"closed:no_thread": 1}
