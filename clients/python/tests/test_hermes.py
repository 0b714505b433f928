"""Tests what the cases of all adapters cannot say of Hermes: the entry point, settings, scripts, subagents, and calls at once."""

import json
import threading
from types import SimpleNamespace

import pytest
from agent.display import _detect_tool_failure
from fake_gate import allowed, blocked
from hermes_cli import plugins
from hosts.hermes import Provider, add_tool, asks, call, load, said, talk, work_on

from tollgate.hermes import KEPT_MAX, TollgatePlugin, _has_calls, _Kept, _without_calls


@pytest.fixture
def provider():
    made = []

    def make(*script, **more):
        made.append(Provider(*script, **more))
        return made[-1]

    yield make
    for each in made:
        each.close()


def test_hermes_finds_and_loads_the_plugin_by_its_entry_point():
    manager = plugins.PluginManager()
    manager.discover_and_load()
    loaded = manager._plugins["tollgate"]
    assert loaded.enabled and loaded.error is None
    assert set(loaded.middleware_registered) == {"tool_execution", "llm_execution"}


def test_settings_without_meaning_deny_every_call_though_hermes_would_go_on_without_the_plugin(provider, monkeypatch):
    monkeypatch.setenv("TOLLGATE_URL", "gate:1")
    ran, server = [], provider(asks(call("c1", 1)))
    load(TollgatePlugin())
    add_tool(work_on(ran))
    assert "neither http:// nor https://" in talk(server) and ran == []
    plugin = TollgatePlugin()
    assert "neither http" in plugin.tool_execution("work", {}, work_on(ran), session_id="s") and ran == []
    assert plugin.counts == {"closed:settings_invalid": 1}


@pytest.mark.parametrize("body", [None, "x", {}, {"choices": [7]}, {"choices": [{}]}, {"content": "x"}, {"output": [{"type": "new_call"}]}])
def test_a_response_that_is_not_known_for_text_may_have_calls(body):
    assert _has_calls(body)


HALT = {"action": "halt", "allows_execution": False, "should_halt": True, "code": "stuck_halt", "message": "stuck"}


@pytest.mark.parametrize("api", ["chat_completions", "anthropic_messages", "codex_responses"])
def test_a_halt_is_the_last_answer_by_every_api(fake, provider, api):
    fake.decide = lambda event: allowed(event, **(HALT if event["type"] == "tool_call" else {}))
    load(TollgatePlugin(fake.url, deadline=20))
    add_tool(work_on([]))
    assert talk(provider(asks(call("c1", 1))), api=api) == "stuck"


def test_equal_calls_of_two_responses_are_two_events(fake, provider):
    ran = []
    load(TollgatePlugin(fake.url, deadline=20))
    add_tool(work_on(ran))
    assert talk(provider(asks(call("c1", 1)), asks(call("c1", 1)), said("done"))) == "done" and ran == [1, 1]
    assert fake.ids("tool_call") == fake.ids("tool_result") == 2


def test_calls_of_one_response_run_each_once(fake, provider):
    ran = []
    load(TollgatePlugin(fake.url, deadline=20))
    add_tool(work_on(ran))
    assert talk(provider(asks(*[call(f"c{value}", value) for value in range(3)]), said("done"))) == "done"
    assert sorted(ran) == [0, 1, 2] and len(fake.of_type("tool_call")) == 3 and len(fake.of_type("tool_result")) == 3


def test_calls_that_hermes_runs_at_once_are_asked_for_at_once(fake):
    together, ran, plugin = threading.Barrier(3), [], TollgatePlugin(fake.url, deadline=30)

    def decide(event):
        together.wait(30)
        return allowed(event)

    fake.decide = lambda event: decide(event) if event["type"] == "tool_call" else allowed(event)
    where = {"session_id": "s", "turn_id": "u"}
    threads = [
        threading.Thread(
            target=plugin.tool_execution, args=("work", {"value": value}, work_on(ran)), kwargs={**where, "tool_call_id": f"c{value}"}
        )
        for value in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(ran) == [0, 1, 2]


def test_a_tool_of_the_agent_itself_is_gated_too(fake, provider):
    todo = {"id": "c1", "type": "function", "function": {"name": "todo", "arguments": "{}"}}
    fake.decide = lambda event: blocked(event) if event["type"] == "tool_call" else allowed(event)
    server = provider(asks(todo), said("done"))
    load(TollgatePlugin(fake.url, deadline=20))
    assert talk(server, toolsets=("todo",)) == "done"
    assert [event["tool_name"] for event in fake.of_type("tool_call")] == ["todo"]
    assert "blocked: tool_denied" in str(server.requests[-1])


@pytest.mark.parametrize("tool", ["work", "terminal"])
@pytest.mark.parametrize("text", ["blocked: tool_denied", '{"error": "blocked: tool_denied", "guardrail": {}}'])
def test_hermes_shows_a_blocked_call_as_a_failure(fake, tool, text):
    fake.decide = lambda event: blocked(event, synthetic_result=text)
    assert _detect_tool_failure(tool, TollgatePlugin(fake.url).tool_execution(tool, {}, None, session_id="s")) == (
        True,
        " [blocked: tool_denied]",
    )


def test_hermes_still_reads_a_result_with_guidance(fake):
    fake.decide = lambda event: allowed(event, **({"guidance": "\n\nLook away."} if event["type"] == "tool_result" else {}))
    told = TollgatePlugin(fake.url).tool_execution("terminal", {}, lambda _: '{"output": "", "exit_code": 1}', session_id="s")
    assert _detect_tool_failure("terminal", told) == (True, " [exit 1]") and json.loads(told)["tollgate_guidance"].strip() == "Look away."
    told = TollgatePlugin(fake.url).tool_execution("terminal", {}, lambda _: "[1]", session_id="s")
    assert told == "[1]\n\nLook away."


def test_a_subagent_is_a_thread_of_its_own(fake):
    plugin = TollgatePlugin(fake.url)
    plugin.subagent_start(parent_session_id="s", child_session_id="child", parent_turn_id="u")
    plugin.tool_execution("work", {"value": 1}, work_on([]), session_id="child", turn_id="v", tool_call_id="c1")
    assert {(event["thread_id"], event["is_subagent"], event["turn_id"]) for event in fake.events} == {("s/child", True, "v")}


def test_a_delegation_tells_the_plugin_of_its_child(fake, provider):
    delegate = {
        "id": "d1",
        "type": "function",
        "function": {"name": "delegate_task", "arguments": json.dumps({"goal": "work", "toolsets": ["work"]})},
    }
    worked = threading.Event()

    def work(args, **_):
        worked.set()
        return "well"

    load(TollgatePlugin(fake.url, deadline=20))
    add_tool(work)
    # The child works in the background: the parent may end first.
    talk(
        provider(asks(delegate), said("outer"), said("outer"), of_child=[asks(call("c9", 7)), said("inner")]),
        toolsets=("delegation", "work"),
    )
    assert worked.wait(60)
    threads = {event["tool_call_id"]: event["thread_id"] for event in fake.of_type("tool_call")}
    assert threads["d1"] == "t" and threads["c9"].startswith("t/")


def test_a_call_of_a_script_belongs_to_the_session_of_its_task(fake):
    plugin, ran = TollgatePlugin(fake.url), []
    assert "no session" in plugin.tool_execution("work", {"value": 1}, work_on(ran), task_id="k") and ran == []
    plugin.tool_execution("execute_code", {"value": 2}, work_on(ran), session_id="s", turn_id="u", tool_call_id="c1", task_id="k")
    plugin.tool_execution("work", {"value": 3}, work_on(ran), session_id="", task_id="k")
    assert ran == [2, 3] and {event["thread_id"] for event in fake.events} == {"s"}


def test_a_repeated_call_is_the_same_event(fake):
    plugin = TollgatePlugin(fake.url)
    for _ in range(2):
        plugin.tool_execution("work", {"value": 1}, work_on([]), session_id="s", turn_id="u", tool_call_id="c1")
    assert {event["event_id"] for event in fake.events} == {"u/c1/call", "u/c1/result"}


def test_an_error_of_a_tool_is_reported_and_raised(fake):
    def broken(_):
        raise OSError("disk")

    with pytest.raises(OSError, match="disk"):
        TollgatePlugin(fake.url).tool_execution("work", {}, broken, session_id="s")
    assert [(event["failed"], event["result"]) for event in fake.of_type("tool_result")] == [(True, "disk")]


def test_the_calls_of_a_response_that_cannot_be_read_do_not_run(fake):
    class Broken:
        def model_dump(self, **_):
            raise KeyError("secret")

    plugin, ran, where = TollgatePlugin(fake.url), [], {"session_id": "s", "turn_id": "u", "api_request_id": "q"}
    with pytest.raises(KeyError):
        # Hermes goes on with the response that it has.
        plugin.llm_execution({}, lambda _: Broken(), **where)
    read = plugin.tool_execution("work", {"value": 1}, work_on(ran), tool_call_id="c1", **where)
    assert ran == [] and fake.events == [] and "ValueError" in read and "secret" not in read


def test_an_answer_of_anthropic_loses_its_calls_too(fake):
    call_block = SimpleNamespace(type="tool_use", id="c1", name="work", input={"value": 1})
    said_block = SimpleNamespace(type="text", text="I work.")
    response = SimpleNamespace(id="m", type="message", role="assistant", content=[said_block, call_block], stop_reason="tool_use")
    verdict = TollgatePlugin("gate:1")._ask("model_response", {})
    kept = _without_calls(response, verdict, keeps_text=True)
    assert [block.type for block in kept.content] == ["text", "text"] and kept.stop_reason == "end_turn"
    assert [block.text for block in _without_calls(response, verdict, keeps_text=False).content] == [verdict.message]


def test_what_is_remembered_is_bounded():
    kept = _Kept()
    for number in range(KEPT_MAX + 5):
        kept[number] = number
    assert len(kept) == KEPT_MAX and 0 not in kept
