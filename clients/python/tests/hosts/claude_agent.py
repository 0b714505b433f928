"""The Claude Agent SDK with its own Claude Code, whose API is a script. No model_response, and for users no halt_reason."""

import asyncio
import json
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from claude_agent_sdk import ClaudeAgentOptions, ResultMessage, ToolAnnotations, create_sdk_mcp_server, query, tool

from hosts import Seen
from tollgate.claude_agent import TollgateHooks

BREAKS = "tollgate.claude_agent.TollgateHooks._scope"
LACKS = {"model_response", "halt_reason"}
TOOL = "mcp__t__work"


class Api:
    """An Anthropic API on a port of its own, which answers with the blocks of a script and keeps the requests that have the tool."""

    def __init__(self, *script, tool=TOOL):
        self.script, self.requests = list(script), []
        api = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["content-length"])) or b"{}")
                is_turn = any(each.get("name") == tool for each in body.get("tools", ()))
                if is_turn:
                    api.requests.append(body)
                blocks = api.script.pop(0) if is_turn and api.script else [{"type": "text", "text": "done"}]
                blocks = blocks() if callable(blocks) else blocks
                text = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in stream_of(blocks)).encode()
                self.send_response(200)
                self.send_header("content-type", "text/event-stream")
                self.send_header("content-length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *_):
                """Keeps the tests' output clean."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    def read(self):
        """Returns what the model read of each call, with the texts that Claude Code put behind the calls."""
        messages = self.requests[-1]["messages"]
        first = next(place for place, message in enumerate(messages) if message["role"] == "assistant")
        blocks = [block for message in messages[first:] for block in blocks_of(message)]
        behind = " ".join(block["text"] for block in blocks if block["type"] == "text")
        return {block["tool_use_id"]: f"{block['content']} {behind}" for block in blocks if block["type"] == "tool_result"}


def blocks_of(message):
    content = message["content"]
    return content if isinstance(content, list) else [{"type": "text", "text": content}]


def stream_of(blocks):
    """Returns the events of a streamed message."""
    has_calls = any(block["type"] == "tool_use" for block in blocks)
    message = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
    }
    yield {"type": "message_start", "message": {**message, "usage": {"input_tokens": 1, "output_tokens": 1}}}
    for index, block in enumerate(blocks):
        if block["type"] == "tool_use":
            start, delta = {**block, "input": {}}, {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        else:
            start, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": block["text"]}
        yield {"type": "content_block_start", "index": index, "content_block": start}
        yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    ended = {"stop_reason": "tool_use" if has_calls else "end_turn", "stop_sequence": None}
    yield {"type": "message_delta", "delta": ended, "usage": {"output_tokens": 1}}
    yield {"type": "message_stop"}


def call(ident, value, name=TOOL):
    return {"type": "tool_use", "id": ident, "name": name, "input": {"value": value}}


def work_on(ran):
    # Claude Code runs calls of one response at once only if the tool changes nothing.
    @tool("work", "Works.", {"value": int}, annotations=ToolAnnotations(readOnlyHint=True))
    async def work(given):
        ran.append(given["value"])
        return {"content": [{"type": "text", "text": f"worked on {given['value']}"}]}

    return work


def environment(api, home):
    return {
        "ANTHROPIC_BASE_URL": api.url,
        "ANTHROPIC_API_KEY": "k",
        "HOME": home,
        "CLAUDE_CONFIG_DIR": home,
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "IS_SANDBOX": "1",
        "ENABLE_TOOL_SEARCH": "false",
    }


def options(api, hooks, ran, home, **more):
    env = environment(api, home)
    server = create_sdk_mcp_server("t", tools=[work_on(ran)])
    return ClaudeAgentOptions(
        hooks=hooks, mcp_servers={"t": server}, allowed_tools=[TOOL, "Task"], env=env, cwd=home, model="m", setting_sources=[], **more
    )


async def talk(api, hooks, ran, **more):
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:
        text = thread = ""
        async for message in query(prompt="go", options=options(api, hooks, ran, home, **more)):
            if isinstance(message, ResultMessage):
                text, thread = message.result or "", message.session_id
        return text, thread


def converse_with(run):
    seen, api = Seen(), Api(*run.script([call(each["id"], each["value"]) for each in run.calls]))
    seen.text, seen.thread = asyncio.run(talk(api, TollgateHooks(**run.settings).hooks, seen.ran))
    seen.replies, seen.read = len(api.requests), api.read() if len(api.requests) > 1 else {}
    return seen


def names_of_snippet(ran, monkeypatch):
    """The page's snippet has Claude Code's own tools, and its model repeats what it reads."""
    api = Api([{"type": "tool_use", "id": "c1", "name": "Bash", "input": {"command": "ls"}}], tool="Bash")
    api.script.append(lambda: [{"type": "text", "text": api.read()["c1"]}])
    for name, value in environment(api, tempfile.mkdtemp()).items():
        monkeypatch.setenv(name, value)
    return {}
