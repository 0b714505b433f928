"""Pydantic AI with a scripted model."""

import asyncio

from pydantic_ai import Agent
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import FunctionModel

from hosts import Seen
from tollgate.pydantic_ai import Halt, TollgateCapability

BREAKS = "tollgate.pydantic_ai.TollgateCapability._scope"
LACKS = set()


def call(ident, value, name="work"):
    return ToolCallPart(name, {"value": value}, tool_call_id=ident)


def script(requests, *responses):
    """Returns a model that answers with a script, and keeps the messages of each request."""
    left = list(responses)

    def answer(messages, _):
        requests.append(messages)
        return ModelResponse(parts=left.pop(0))

    return FunctionModel(answer)


def work_on(ran):
    def work(value: int) -> str:
        """Works."""
        ran.append(value)
        return f"worked on {value}"

    return work


def converse_with(run):
    seen, requests = Seen(), []
    model = script(requests, *run.script([call(each["id"], each["value"]) for each in run.calls], [TextPart("done")]))
    agent = Agent(model, tools=[work_on(seen.ran)], capabilities=[TollgateCapability(**run.settings)])
    try:
        seen.text = asyncio.run(agent.run("go", conversation_id=run.thread)).output
    except Halt as halt:
        seen.text = halt.verdict.message
    seen.replies = len(requests)
    parts = [part for message in requests[-1] for part in message.parts]
    seen.read = {part.tool_call_id: str(part.content) for part in parts if isinstance(part, ToolReturnPart)}
    return seen


def names_of_snippet(ran, _):
    return {"model": script([], [call("c1", 1)], [TextPart("done")]), "tools": [work_on(ran)]}
