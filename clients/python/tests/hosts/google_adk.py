"""Google's ADK with a scripted model."""

import asyncio

from google.adk.agents import LlmAgent
from google.adk.models import BaseLlm, LlmResponse
from google.adk.runners import InMemoryRunner
from google.genai import types

from hosts import Seen
from tollgate.google_adk import TollgatePlugin

BREAKS = "tollgate.google_adk.TollgatePlugin._scope_of_call"
LACKS = set()


class Model(BaseLlm):
    """Answers with the parts of a script, and keeps the contents of each request."""

    script: list
    requests: list = []

    async def generate_content_async(self, llm_request, stream=False):
        self.requests.append(list(llm_request.contents))
        yield LlmResponse(content=types.Content(role="model", parts=self.script.pop(0)))


def model_with(*script):
    return Model(model="m", script=list(script), requests=[])


def call(ident, value, name="work"):
    return types.Part(function_call=types.FunctionCall(id=ident, name=name, args={"value": value}))


def said(text):
    return [types.Part(text=text)]


def work_on(ran):
    async def work(value: int) -> str:
        """Works."""
        ran.append(value)
        return f"worked on {value}"

    return work


async def talk(agent, plugin, thread="t", message="go"):
    """Returns the events of a run."""
    runner = InMemoryRunner(agent, app_name="app", plugins=[plugin])
    await runner.session_service.create_session(app_name="app", user_id="u", session_id=thread)
    content = types.Content(role="user", parts=said(message))
    return [event async for event in runner.run_async(user_id="u", session_id=thread, new_message=content)]


def converse_with(run):
    seen = Seen()
    model = model_with(*run.script([call(each["id"], each["value"]) for each in run.calls], said("done")))
    agent = LlmAgent(name="a", model=model, tools=[work_on(seen.ran)])
    events = asyncio.run(talk(agent, TollgatePlugin(**run.settings), run.thread))
    seen.replies = len(model.requests)
    parts = [part for event in events for part in event.content.parts]
    seen.read = {part.function_response.id: str(part.function_response.response) for part in parts if part.function_response}
    seen.text = parts[-1].text
    return seen


def names_of_snippet(ran, _):
    return {"model": model_with([call("c1", 1)], said("done")), "tools": [work_on(ran)]}
