"""The OpenAI Agents SDK with a scripted model."""

import asyncio

from agents import (
    Agent,
    Runner,
    ToolInputGuardrailTripwireTriggered,
    ToolOutputGuardrailTripwireTriggered,
    function_tool,
    set_tracing_disabled,
)
from agents.testing import ScriptedModel
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

from hosts import Seen
from tollgate.openai_agents import Tollgate

BREAKS = "tollgate.openai_agents._scope"
LACKS = set()
set_tracing_disabled(True)


def call(ident, value, name="work"):
    return ResponseFunctionToolCall(call_id=ident, name=name, arguments=f'{{"value": {value}}}', type="function_call")


def said(text):
    content = [ResponseOutputText(text=text, type="output_text", annotations=[])]
    return ResponseOutputMessage(id="m", type="message", role="assistant", status="completed", content=content)


def work_on(ran):
    @function_tool
    async def work(value: int) -> str:
        """Works."""
        ran.append(value)
        return f"worked on {value}"

    return work


async def converse(run, streamed=False):
    seen, gate = Seen(), Tollgate(**run.settings)
    model = ScriptedModel(run.script([call(each["id"], each["value"]) for each in run.calls], [said("done")]))
    agent = gate.guard(Agent(name="a", model=model, tools=[work_on(seen.ran)]))
    try:
        async with gate.turn(run.thread, turn_id=run.turn):
            if streamed:
                result = Runner.run_streamed(agent, "go")
                async for _ in result.stream_events():
                    pass
            else:
                result = await Runner.run(agent, "go")
        seen.text = result.final_output
    except (ToolInputGuardrailTripwireTriggered, ToolOutputGuardrailTripwireTriggered) as halt:
        seen.text = halt.output.output_info.message
    seen.replies = len(model.calls)
    for item in model.calls[-1].input if seen.replies > 1 else ():
        if item.get("type") == "function_call_output":
            seen.read[item["call_id"]] = item["output"]
    return seen


def converse_with(run):
    return asyncio.run(converse(run))


def names_of_snippet(ran, _):
    return {"model": ScriptedModel([[call("c1", 1)], [said("done")]]), "tools": [work_on(ran)]}
