"""Tests what the cases of all adapters cannot say of CrewAI: hooks that fail, calls at once, delegations, and runs outside of a turn."""

from types import SimpleNamespace

import pytest
from crewai import Agent, Crew, Task
from crewai.hooks import clear_all_global_hooks, register_after_tool_call_hook
from crewai.tools import tool
from fake_gate import allowed, blocked, together
from hosts.crewai import call, crew_of, model_with, work_on

from tollgate.crewai import TollgateHooks


@pytest.fixture
def gate(fake):
    clear_all_global_hooks()
    gate = TollgateHooks(fake.url, deadline=20)
    gate.install()
    yield gate
    clear_all_global_hooks()


def run(gate, crew):
    with gate.turn("t", turn_id="u"):
        return crew.kickoff().raw


def test_a_run_outside_of_a_turn_runs_no_tool_and_says_so(fake, gate):
    ran, model = [], model_with([call("c1", 1)], "done")
    crew_of(model, work_on(ran)).kickoff()
    assert ran == [] and fake.events == [] and "no turn is open" in str(model.requests[-1])


def test_a_hook_that_cannot_read_its_context_blocks(gate):
    assert gate.before_tool_call(SimpleNamespace()) is False


def test_calls_of_one_response_are_asked_for_at_once(fake, gate):
    fake.decide, ran = together(3), []
    run(gate, crew_of(model_with([call(f"c{value}", value) for value in range(3)], "done"), work_on(ran)))
    assert sorted(ran) == [0, 1, 2]


def test_a_crew_inside_a_tool_is_a_thread_of_its_own(fake, gate):
    ran = []
    inner = crew_of(model_with([call("c9", 7)], "inner"), work_on(ran))

    @tool
    def delegate(value: int) -> str:
        """Asks another crew."""
        return inner.kickoff().raw

    assert run(gate, crew_of(model_with([call("d1", 0, "delegate")], [call("c1", 1)], "outer"), delegate, work_on(ran))) == "outer"
    first, second, third = fake.of_type("tool_call")
    assert ran == [7, 1] and (first["thread_id"], third["thread_id"]) == ("t", "t")
    assert second["thread_id"] == f"t/{first['tool_call_id']}" and second["is_subagent"] is True


def test_a_coworker_is_a_thread_of_its_own(fake, gate):
    ran = []
    ask = call("d1", 0, "delegate_work_to_coworker")
    ask["function"]["arguments"] = '{"task": "t", "context": "c", "coworker": "helper"}'
    helper = Agent(role="helper", goal="g", backstory="b", llm=model_with([call("c9", 7)], "inner"), tools=[work_on(ran)])
    chief = Agent(role="r", goal="g", backstory="b", llm=model_with([ask], "outer"), allow_delegation=True)
    crew = Crew(agents=[chief, helper], tasks=[Task(description="go", expected_output="o", agent=chief)], cache=False, tracing=False)
    run(gate, crew)
    first, second = fake.of_type("tool_call")
    assert ran == [7] and second["thread_id"] == f"t/{first['tool_call_id']}"


def test_a_halt_is_forgotten_with_its_turn(fake, gate):
    fake.decide = lambda event: blocked(event, should_halt=True) if event["type"] == "tool_call" else allowed(event)
    with pytest.raises(Exception, match="tool_denied"):
        run(gate, crew_of(model_with([call("c1", 1)]), work_on([])))
    assert gate._halts == {} and run(gate, crew_of(model_with("back"))) == "back"


def test_an_error_of_a_tool_is_reported(fake, gate):
    @tool
    def broken(value: int) -> str:
        """Breaks."""
        raise OSError("disk")

    run(gate, crew_of(model_with([call("c1", 1, "broken")], "done"), broken))
    assert "disk" in fake.of_type("tool_result")[0]["result"]


def test_hooks_of_others_see_what_the_agent_reads(fake, gate):
    fake.decide, seen = lambda event: blocked(event) if event["type"] == "tool_call" else allowed(event), []
    register_after_tool_call_hook(lambda context: seen.append(context.tool_result))
    run(gate, crew_of(model_with([call("c1", 1)], "done"), work_on([])))
    assert seen == ["blocked: tool_denied"]
