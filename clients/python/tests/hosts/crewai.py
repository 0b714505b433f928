"""CrewAI with a scripted model. CrewAI shows its hooks no model_response."""

import json
import os

os.environ.setdefault("CREWAI_DISABLE_TELEMETRY", "true")
os.environ.setdefault("CREWAI_TRACING_ENABLED", "false")
os.environ.setdefault("OTEL_SDK_DISABLED", "true")

from crewai import Agent, BaseLLM, Crew, Task  # noqa: E402
from crewai.hooks import clear_all_global_hooks  # noqa: E402
from crewai.hooks.dispatch import HookAborted  # noqa: E402
from crewai.tools import tool  # noqa: E402

from hosts import Seen  # noqa: E402
from tollgate.crewai import TollgateHooks  # noqa: E402

BREAKS = "tollgate.crewai._scope"
LACKS = {"model_response"}


class Model(BaseLLM):
    """Answers with a script, and keeps the messages of each request."""

    script: list
    requests: list = []

    def call(self, messages, tools=None, callbacks=None, available_functions=None, from_task=None, from_agent=None, response_model=None):
        self.requests.append([dict(message) for message in messages])
        answer = self.script.pop(0)
        return answer(messages) if callable(answer) else answer

    def supports_function_calling(self):
        return True


def model_with(*script):
    return Model(model="m", script=list(script), requests=[])


def call(ident, value, name="work"):
    return {"id": ident, "type": "function", "function": {"name": name, "arguments": json.dumps({"value": value})}}


def work_on(ran):
    @tool
    def work(value: int) -> str:
        """Works."""
        ran.append(value)
        return f"worked on {value}"

    return work


def crew_of(model, *tools, agents=(), **more):
    agent = Agent(role="r", goal="g", backstory="b", llm=model, tools=list(tools), max_retry_limit=0, **more)
    task = Task(description="go", expected_output="o", agent=agent)
    return Crew(agents=[agent, *agents], tasks=[task], cache=False, tracing=False)


def converse_with(run):
    clear_all_global_hooks()
    seen, gate = Seen(), TollgateHooks(**run.settings)
    gate.install()
    model = model_with(*run.script([call(each["id"], each["value"]) for each in run.calls], "done"))
    try:
        with gate.turn(run.thread, turn_id=run.turn):
            seen.text = crew_of(model, work_on(seen.ran)).kickoff().raw
    except HookAborted as halt:
        seen.text = halt.reason
    seen.replies = len(model.requests)
    seen.read = {message["tool_call_id"]: message["content"] for message in model.requests[-1] if message["role"] == "tool"}
    return seen


def names_of_snippet(ran, _):
    """The page's snippet prints the last answer, in which the model repeats what it reads of the call."""
    clear_all_global_hooks()
    model = model_with([call("c1", 1)], lambda messages: next(each["content"] for each in messages if each["role"] == "tool"))
    return {"model": model, "tools": [work_on(ran)]}
