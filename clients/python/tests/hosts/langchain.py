"""LangChain with a scripted model."""

import asyncio

from langchain.agents import create_agent
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import tool

from hosts import Seen
from tollgate.langchain import TollgateMiddleware

BREAKS = "tollgate.langchain.TollgateMiddleware._scope"
LACKS = set()


class Model(GenericFakeChatModel):
    """Answers with the messages of a script."""

    def bind_tools(self, tools, **_):
        return self


def work_on(ran):
    @tool
    async def work(value: int) -> str:
        """Works."""
        ran.append(value)
        return f"worked on {value}"

    return work


def model_that_calls(*calls):
    calls = [{"name": "work", "args": {"value": each["value"]}, "id": each["id"], "type": "tool_call"} for each in calls]
    asking = [AIMessage("", tool_calls=calls)] if calls else []
    return Model(messages=iter([*asking, AIMessage("done")]))


def converse_with(run, make=TollgateMiddleware, create=create_agent):
    seen = Seen()
    model = model_that_calls(*run.calls)
    agent = create(model, [work_on(seen.ran)], middleware=[make(**run.settings)])
    config = {"configurable": {"thread_id": run.thread}}
    messages = asyncio.run(agent.ainvoke({"messages": [("user", "go")]}, config))["messages"]
    seen.replies = 1 + bool(run.calls) - len(list(model.messages))
    seen.read = {message.tool_call_id: message.content for message in messages if isinstance(message, ToolMessage)}
    seen.text = messages[-1].content
    return seen


def names_of_snippet(ran, _):
    return {"model": model_that_calls({"id": "c1", "value": 1}), "tools": [work_on(ran)]}
