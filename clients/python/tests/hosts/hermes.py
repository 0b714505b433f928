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


def blocks_of(message):
    """Returns the events of a streamed answer of the Messages API, whose tools call as the message does."""
    texts = [({"type": "text", "text": ""}, {"type": "text_delta", "text": message["content"]})] if message["content"] else []
    calls = [
        (
            {"type": "tool_use", "id": each["id"], "name": each["function"]["name"], "input": {}},
            {"type": "input_json_delta", "partial_json": each["function"]["arguments"]},
        )
        for each in message.get("tool_calls", ())
    ]
    begun = {"id": "x", "type": "message", "role": "assistant", "model": "m", "content": [], "stop_reason": None, "stop_sequence": None}
    yield {"type": "message_start", "message": {**begun, "usage": {"input_tokens": 1, "output_tokens": 1}}}
    for index, (block, delta) in enumerate([*texts, *calls]):
        yield {"type": "content_block_start", "index": index, "content_block": block}
        yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    ended = {"stop_reason": "tool_use" if calls else "end_turn", "stop_sequence": None}
    yield {"type": "message_delta", "delta": ended, "usage": {"output_tokens": 1}}
    yield {"type": "message_stop"}


def items_of(message):
    """Returns the events of a streamed answer of the Responses API."""
    text = {"type": "output_text", "text": message["content"], "annotations": []}
    items = [{"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": [text]}] if message["content"] else []
    for each in message.get("tool_calls", ()):
        items.append({"type": "function_call", "id": f"fc_{each['id']}", "call_id": each["id"], "status": "completed", **each["function"]})
    for index, item in enumerate(items):
        yield {"type": "response.output_item.done", "output_index": index, "item": item}
    yield {"type": "response.completed", "response": {"id": "x", "object": "response", "status": "completed", "output": items}}


def read_of(body):
    """Returns what the model reads of each call, from a request of any of the three APIs."""
    read = {}
    for item in body.get("messages") or body["input"]:
        blocks = item["content"] if item.get("role") == "user" and isinstance(item.get("content"), list) else ()
        read |= {each["tool_use_id"]: each["content"] for each in blocks if each.get("type") == "tool_result"}
        if item.get("role") == "tool":
            read[item["tool_call_id"]] = item["content"]
        elif item.get("type") == "function_call_output":
            read[item["call_id"]] = item["output"]
    return read


class Provider(FakeGate):
    """A provider that answers with the messages of a script, by the API that is asked, and keeps the body of each request."""

    def __init__(self, *script, of_child=()):
        super().__init__()
        self.script, self.of_child, self.requests = list(script), list(of_child), []
        self.answer = self.reply

    def reply(self, bodies):
        body = bodies[0]
        if "messages" not in body and "input" not in body:
            return 404, {}, "{}"
        if not body.get("tools"):
            # A title or a summary, for which Hermes asks besides.
            return 200, {"content-type": "application/json"}, json.dumps(answer_of({"content": "title"}))
        self.requests.append(body)
        is_child = '"go"' not in json.dumps([each for each in body.get("messages") or body["input"] if each.get("role") == "user"])
        message = (self.of_child if is_child else self.script).pop(0)
        if "input" in body or "input_schema" in body["tools"][0]:
            events = items_of(message) if "input" in body else blocks_of(message)
            text = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)
            return 200, {"content-type": "text/event-stream"}, text
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


def talk(provider, session="t", toolsets=("work",), api="chat_completions"):
    where = {"base_url": provider.url, "api_key": "k", "provider": "custom", "model": "m", "session_id": session, "api_mode": api}
    quiet = {"quiet_mode": True, "skip_context_files": True, "skip_memory": True, "tool_delay": 0}
    agent = AIAgent(**where, **quiet, enabled_toolsets=list(toolsets))
    return agent.run_conversation("go")["final_response"]


def converse_with(run, api="chat_completions"):
    script = run.script(asks(*[call(each["id"], each["value"]) for each in run.calls]), said("done"))
    seen, provider = Seen(), Provider(*script)
    load(TollgatePlugin(**run.settings))
    add_tool(work_on(seen.ran))
    try:
        seen.text = talk(provider, run.thread, api=api)
    finally:
        provider.close()
    seen.replies = len(provider.requests)
    seen.read = read_of(provider.requests[-1])
    return seen
