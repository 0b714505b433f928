"""Hermes with its own agent, whose provider is a script on a port of its own."""

import json
import os
import pathlib
import tempfile

HOME = tempfile.mkdtemp()
os.environ["HERMES_HOME"] = HOME
pathlib.Path(HOME, "config.yaml").write_text("plugins:\n  enabled: [tollgate]\n")

from fake_gate import FakeGate  # noqa: E402
from hermes_cli import plugins  # noqa: E402
from run_agent import AIAgent  # noqa: E402
from tools.registry import registry  # noqa: E402

from hosts import Seen  # noqa: E402
from tollgate.hermes import TollgatePlugin  # noqa: E402

BREAKS = "tollgate.hermes.TollgatePlugin._scope"
LACKS = set()


def answer_of(message):
    has_calls = bool(message.get("tool_calls"))
    choice = {"index": 0, "finish_reason": "tool_calls" if has_calls else "stop", "message": {"role": "assistant", **message}}
    return {"id": "x", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], "usage": None}


def stream_of(message):
    """Returns the chunks of a streamed completion."""
    delta = {"role": "assistant", **message}
    delta["tool_calls"] = [{"index": index, **each} for index, each in enumerate(message.get("tool_calls", ()))]
    base = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    ended = "tool_calls" if delta["tool_calls"] else "stop"
    for choice in ({"index": 0, "finish_reason": None, "delta": delta}, {"index": 0, "finish_reason": ended, "delta": {}}):
        yield {**base, "choices": [choice]}


class Provider(FakeGate):
    """A provider that answers with the messages of a script, and keeps the messages of each request."""

    def __init__(self, *script, of_child=()):
        super().__init__()
        self.script, self.of_child, self.requests = list(script), list(of_child), []
        self.answer = self.reply

    def reply(self, bodies):
        body = bodies[0]
        if "messages" not in body:
            return 404, {}, "{}"
        if not body.get("tools"):
            # A title or a summary, for which Hermes asks besides.
            return 200, {"content-type": "application/json"}, json.dumps(answer_of({"content": "title"}))
        self.requests.append(body["messages"])
        is_child = not any(message["role"] == "user" and message["content"] == "go" for message in body["messages"])
        message = (self.of_child if is_child else self.script).pop(0)
        if not body.get("stream"):
            return 200, {"content-type": "application/json"}, json.dumps(answer_of(message))
        text = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in stream_of(message)) + "data: [DONE]\n\n"
        return 200, {"content-type": "text/event-stream"}, text


def call(ident, value, name="work"):
    return {"id": ident, "type": "function", "function": {"name": name, "arguments": json.dumps({"value": value})}}


def asks(*calls):
    return {"content": "", "tool_calls": list(calls)}


def said(text):
    return {"content": text}


def add_tool(handler, name="work"):
    schema = {"name": name, "description": "Works.", "parameters": {"type": "object", "properties": {"value": {"type": "integer"}}}}
    registry.register(name=name, toolset="work", schema=schema, handler=handler, override=True)


def work_on(ran):
    def work(args, **_):
        ran.append(args["value"])
        return f"worked on {args['value']}"

    return work


def load(plugin):
    """Puts a plugin in the place of all that Hermes has loaded."""
    manager = plugins.get_plugin_manager()
    manager.discover_and_load()
    for kept in (manager._hooks, manager._middleware):
        kept.clear()
    manifest = plugins.PluginManifest(name="tollgate")
    plugin.register(plugins.PluginContext(manifest, manager))


def talk(provider, session="t", toolsets=("work",)):
    where = {"base_url": provider.url, "api_key": "k", "provider": "custom", "model": "m", "session_id": session}
    quiet = {"quiet_mode": True, "skip_context_files": True, "skip_memory": True, "tool_delay": 0}
    agent = AIAgent(**where, **quiet, enabled_toolsets=list(toolsets))
    return agent.run_conversation("go")["final_response"]


def converse_with(run):
    seen, provider = Seen(), Provider(asks(*[call(each["id"], each["value"]) for each in run.calls]), said("done"))
    load(TollgatePlugin(**run.settings))
    add_tool(work_on(seen.ran))
    try:
        seen.text = talk(provider, run.thread)
    finally:
        provider.close()
    seen.replies = len(provider.requests)
    seen.read = {message["tool_call_id"]: message["content"] for message in provider.requests[-1] if message["role"] == "tool"}
    return seen
