"""Tests the middleware in real LangChain agents whose model is a fake."""

import asyncio
import itertools
import threading

import pytest
from fake_gate import allowed, blocked
from fake_kafka import REPLIES
from langchain.agents import create_agent
from langchain.agents.middleware import ToolRetryMiddleware
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import interrupt

from tollgate.kafka import Kafka
from tollgate.langchain import TollgateMiddleware


class Model(GenericFakeChatModel):
    """Answers with the messages of a script."""

    def bind_tools(self, tools, **_):
        return self


def call(name="work", ident="c1", **args):
    return {"name": name, "args": args, "id": ident, "type": "tool_call"}


def script(*messages):
    return Model(messages=iter(messages))


@pytest.fixture
def ran():
    return []


@pytest.fixture
def work(ran):
    @tool
    def work(value: int = 0) -> str:
        """Works."""
        ran.append(value)
        return f"worked on {value}"

    return work


@pytest.fixture(params=["sync", "async"])
def run(request, fake):
    def run(tools, *messages, before=(), config=None, saver=None, given=None, **settings):
        gate = TollgateMiddleware(fake.url, **settings)
        agent = create_agent(script(*messages), tools, middleware=[*before, gate], checkpointer=saver)
        given = {"messages": [("user", "go")]} if given is None else given
        if request.param == "sync":
            return agent.invoke(given, config)["messages"]
        return asyncio.run(agent.ainvoke(given, config))["messages"]

    return run


def ask(*calls, **more):
    return AIMessage("", tool_calls=list(calls), **more)


def test_the_middleware_asks_over_kafka(fake_kafka, work, ran):
    fake_kafka.decide = lambda event: blocked(event) if event.get("tool_call_id") == "c2" else allowed(event)
    gate = TollgateMiddleware(kafka=Kafka(fake_kafka.brokers, reply_topic=REPLIES), deadline=30)

    def agent():
        return create_agent(script(ask(call(value=1)), ask(call(ident="c2", value=2)), AIMessage("done")), [work], middleware=[gate])

    given = {"messages": [("user", "go")]}
    for messages in (agent().invoke(given)["messages"], asyncio.run(agent().ainvoke(given))["messages"]):
        assert [message.status for message in messages if isinstance(message, ToolMessage)] == ["success", "error"]
    assert ran == [1, 1]


def test_an_allowed_call_runs_and_all_of_the_turn_is_published(fake, run, work, ran):
    messages = run([work], ask(call(value=3)), AIMessage("done"), config={"configurable": {"thread_id": "t"}})
    assert ran == [3] and messages[-1].text == "done"
    kinds = ["turn_start", "model_response", "tool_call", "tool_result", "model_response", "turn_end"]
    assert [event["type"] for event in fake.events] == kinds
    assert {event["thread_id"] for event in fake.events} == {"t"} and len({event["turn_id"] for event in fake.events}) == 1
    assert fake.of_type("tool_result")[0]["result"] == "worked on 3"


def test_a_blocked_call_does_not_run_and_the_agent_reads_why(fake, run, work, ran):
    fake.decide = lambda event: blocked(event) if event["type"] == "tool_call" else allowed(event)
    messages = run([work], ask(call()), AIMessage("done"))
    assert ran == [] and messages[-1].text == "done"
    assert (messages[2].content, messages[2].status, messages[2].tool_call_id) == ("blocked: tool_denied", "error", "c1")


def test_a_warning_of_a_result_is_appended(fake, run, work):
    fake.decide = lambda event: allowed(
        event, **({"action": "warn", "guidance": "\n\nTry another way."} if event["type"] == "tool_result" else {})
    )
    messages = run([work], ask(call()), AIMessage("done"))
    assert messages[2].content == "worked on 0\n\nTry another way."


@pytest.mark.parametrize("kind", ["tool_call", "tool_result"])
def test_a_halt_ends_the_run_even_of_parallel_calls(fake, run, work, kind):
    halt = {"action": "halt", "allows_execution": False, "should_halt": True, "code": "same_tool_failure_halt"}
    fake.decide = lambda event: allowed(event, **(halt if event["type"] == kind else {}))
    messages = run([work], ask(call(), call(ident="c2")), AIMessage("never said"))
    assert [type(message) for message in messages[2:]] == [ToolMessage, ToolMessage, AIMessage]
    assert messages[-1].text == "same_tool_failure_halt"
    assert len(fake.of_type("model_response")) == 1 and len(fake.of_type("turn_end")) == 1


def test_a_new_turn_of_a_halted_thread_runs(fake, run, work):
    saver, config = InMemorySaver(), {"configurable": {"thread_id": "t"}}
    fake.decide = lambda event: blocked(event, should_halt=True) if event["type"] == "tool_call" else allowed(event)
    run([work], ask(call()), saver=saver, config=config)
    messages = run([work], AIMessage("back"), saver=saver, config=config)
    assert messages[-1].text == "back" and len({event["turn_id"] for event in fake.events}) == 2


def test_the_calls_of_a_suppressed_response_do_not_run(fake, run, work, ran):
    safety = {"category": "safety", "detector": "native", "user_message": "The provider stopped this response."}
    fake.decide = lambda event: allowed(event, action="suppress", allows_execution=False, code="safety_terminated", safety=safety)
    cut = ask(call(), id="m1", response_metadata={"finish_reason": "content_filter"})
    cut.additional_kwargs = {"tool_calls": [{"id": "c1"}]}
    messages = run([work], cut)
    assert ran == [] and fake.of_type("tool_call") == []
    last = messages[-1]
    assert (last.tool_calls, last.text, last.id) == ([], "The provider stopped this response.", "m1")
    assert last.additional_kwargs == {"safety_termination": {"detector": "native"}}
    assert fake.of_type("model_response")[0]["message"]["data"]["response_metadata"] == {"finish_reason": "content_filter"}


def test_parallel_calls_are_asked_for_at_once(fake, run, work, ran):
    together = threading.Barrier(3)

    def decide(event):
        if event["type"] == "tool_call":
            together.wait(30)
        return allowed(event)

    fake.decide = decide
    run([work], ask(*[call(ident=f"c{number}", value=number) for number in range(3)]), AIMessage("done"), deadline=30)
    assert sorted(ran) == [0, 1, 2]


def test_a_gate_that_is_down_lets_no_tool_run_and_says_so(fake, run, work, ran):
    fake.server.server_close()
    messages = run([work], ask(call()))
    assert ran == [] and "cannot be reached" in messages[-1].text


@pytest.mark.parametrize("kind", ["model_response", "tool_call"])
def test_garbage_of_the_gate_lets_no_tool_run(fake, run, work, ran, kind):
    fake.answer = lambda events: (200, {}, "<html>") if events[0]["type"] == kind else fake.usual(events[0], events)
    messages = run([work], ask(call()), AIMessage("done"))
    assert ran == [] and "cannot be read" in str(messages)


def test_an_adapter_that_raises_lets_no_tool_run(fake, run, work, ran, monkeypatch):
    def fail(*_):
        raise KeyError("broken")

    monkeypatch.setattr(TollgateMiddleware, "_scope", fail)
    messages = run([work], ask(call()))
    assert ran == [] and "KeyError" in messages[-1].text


def test_a_thread_that_the_contract_cannot_hold_is_denied(fake, run, work, ran):
    run([work], ask(call()), config={"configurable": {"thread_id": "t" * 300}})
    assert ran == [] and fake.events == []


def test_failing_open_is_the_users_choice(fake, run, work, ran):
    fake.server.server_close()
    run([work], ask(call()), AIMessage("done"), on_failure="open")
    assert ran == [0]


def test_an_error_of_a_tool_is_published_as_failed_and_raised(fake, run):
    @tool
    def broken() -> str:
        """Breaks."""
        raise OSError("disk")

    with pytest.raises(OSError, match="disk"):
        run([broken], ask(call("broken")))
    result = fake.of_type("tool_result")[0]
    assert (result["failed"], result["result"]) == (True, "disk")


def test_a_retry_repeats_the_same_events(fake, run):
    tries = itertools.count()

    @tool
    def flaky() -> str:
        """Fails once."""
        if next(tries) == 0:
            raise OSError("busy")
        return "well"

    retry = ToolRetryMiddleware(max_retries=2, initial_delay=0, jitter=False)
    messages = run([flaky], ask(call("flaky")), AIMessage("done"), before=[retry])
    assert messages[2].content == "well" and next(tries) == 2
    assert len({event["event_id"] for event in fake.of_type("tool_call")}) == 1


def test_equal_calls_of_two_responses_are_two_events(fake, run, work, ran):
    run([work], ask(call(value=1)), ask(call(value=1)), AIMessage("done"))
    assert ran == [1, 1] and fake.ids("tool_call") == fake.ids("tool_result") == 2


def test_a_resumed_call_is_the_same_event(fake, run):
    from langgraph.types import Command

    @tool
    def careful() -> str:
        """Asks a person."""
        return interrupt("may I?")

    saver, config = InMemorySaver(), {"configurable": {"thread_id": "t"}}
    run([careful], ask(call("careful")), saver=saver, config=config)
    messages = run([careful], AIMessage("done"), saver=saver, config=config, given=Command(resume="yes"))
    assert messages[2].content == "yes"
    calls = fake.of_type("tool_call")
    assert len(calls) == 2 and len({event["event_id"] for event in calls}) == 1 and len(fake.of_type("tool_result")) == 1


def test_a_subagent_is_a_thread_of_its_own(fake, work, ran):
    inner = create_agent(script(ask(call(value=7)), AIMessage("inner")), [work], middleware=[TollgateMiddleware(fake.url)])

    @tool
    def delegate() -> str:
        """Asks another agent."""
        return inner.invoke({"messages": [("user", "go")]})["messages"][-1].text

    outer = create_agent(script(ask(call("delegate", "d1")), AIMessage("outer")), [delegate], middleware=[TollgateMiddleware(fake.url)])
    outer.invoke({"messages": [("user", "go")]}, {"configurable": {"thread_id": "t"}})
    threads = {event["tool_name"]: (event["thread_id"], event.get("is_subagent")) for event in fake.of_type("tool_call")}
    assert ran == [7] and threads["delegate"] == ("t", None)
    assert threads["work"][0].startswith("t/") and threads["work"][1] is True
