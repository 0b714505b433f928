"""Writes what a real LiteLLM proxy hands on of a provider's stop, as JSON lines, as record.py does for SDKs.

    python3 -m venv target/litellm-venv && target/litellm-venv/bin/pip install 'litellm[proxy]'
    target/litellm-venv/bin/python tests/sdk/record_litellm.py >> crates/core/tests/fixtures/sdk_objects.jsonl

The proxy runs in front of a provider on this host that answers as OpenAI and as Anthropic do. Whatever a client of the proxy gets, body, stream
or error, is a line: it is what an orchestrator behind the proxy publishes.
"""

import json
import os
import secrets
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import version

# The proxy does not start without a key.
KEY = f"sk-{secrets.token_hex(24)}"
CALL = {"id": "call_1", "type": "function", "function": {"name": "shell", "arguments": '{"cmd":"l'}}
USAGE = {"prompt_tokens": 5, "completion_tokens": 7, "total_tokens": 12, "prompt_tokens_details": {"cached_tokens": 4}}
STOP = {"category": "safety", "detector": "openai_compatible_content_filter", "stage": "output", "reason_field": "finish_reason", "reason_value": "content_filter"}


def chat(reason):
    message = {"role": "assistant", "content": None, "tool_calls": [CALL]}
    choices = [{"index": 0, "finish_reason": reason, "message": message}]
    return {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": choices, "usage": USAGE}


def chunks(reason):
    for delta, end in (({"role": "assistant", "tool_calls": [{"index": 0, **CALL}]}, None), ({}, reason)):
        choices = [{"index": 0, "delta": delta, "finish_reason": end}]
        yield {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": choices}


def message(reason):
    content = [{"type": "text", "text": "I"}, {"type": "tool_use", "id": "toolu_1", "name": "shell", "input": {"cmd": "l"}}]
    return {"id": "m", "type": "message", "role": "assistant", "model": "m", "content": content, "stop_reason": reason, "stop_sequence": None,
            "usage": {"input_tokens": 5, "output_tokens": 7}}


class Provider(BaseHTTPRequestHandler):
    """Answers with the end that the last word of the prompt names."""

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        said = asked["messages"][-1]["content"]
        reason = (said if isinstance(said, str) else said[-1]["text"]).split()[-1]
        if reason == "error":
            text = "Your request was rejected as a result of our safety system. Your prompt may contain text that is not allowed by it."
            body = {"error": {"message": text, "type": "invalid_request_error", "param": None, "code": "content_policy_violation"}}
            return self.answer(400, "application/json", json.dumps(body))
        if "messages" in self.path:
            return self.answer(200, "application/json", json.dumps(message(reason)))
        if asked.get("stream"):
            text = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks(reason)) + "data: [DONE]\n\n"
            return self.answer(200, "text/event-stream", text)
        self.answer(200, "application/json", json.dumps(chat(reason)))

    def answer(self, status, kind, text):
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_):
        pass


def post(port, path, body):
    """Returns the status and the text of an answer of the proxy; 0 where it does not take connections yet."""
    headers = {"content-type": "application/json", "authorization": f"Bearer {KEY}"}
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", json.dumps(body).encode(), headers)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
    except urllib.error.URLError:
        return 0, ""


def line(name, field, body, expect, tools):
    out = {"sdk": f"litellm {version('litellm')}", "id": f"litellm: {name}", "as": field, "body": body, "tools": tools}
    print(json.dumps(out | ({"expect": expect} if expect else {}), ensure_ascii=False, separators=(",", ":")))


def record(port):
    ask = lambda model, reason, **more: {"model": model, "messages": [{"role": "user", "content": f"x {reason}"}], **more}
    for model, stop, healthy in (("openai", "content_filter", "tool_calls"), ("anthropic", "refusal", "tool_use")):
        for reason, expect in ((stop, STOP), (healthy, None)):
            _, text = post(port, "/v1/chat/completions", ask(model, reason))
            line(f"chat, {model} said {reason}", "response", json.loads(text), expect, ["shell"])
    for reason, expect in (("content_filter", STOP), ("tool_calls", None)):
        _, text = post(port, "/v1/chat/completions", ask("openai", reason, stream=True))
        events = [json.loads(event[6:]) for event in text.splitlines() if event.startswith("data: {")]
        line(f"stream, openai said {reason}", "response", events, expect, ["shell"])
    _, text = post(port, "/v1/messages", ask("anthropic", "refusal", max_tokens=9))
    expect = {"category": "refusal", "detector": "anthropic_refusal", "stage": "output", "reason_field": "stop_reason", "reason_value": "refusal"}
    line("messages, anthropic said refusal", "response", json.loads(text), expect, ["shell"])
    status, text = post(port, "/v1/chat/completions", ask("openai", "error"))
    assert status == 400, text
    expect = {"category": "safety", "detector": "api_error_policy", "stage": "input", "reason_field": "error.message", "reason_value": "Your request was rejected as a result of our safety system"}
    line("error, openai refused the prompt", "error", json.loads(text), expect, [])


def main():
    provider = ThreadingHTTPServer(("127.0.0.1", 0), Provider)
    threading.Thread(target=provider.serve_forever, daemon=True).start()
    base = f"http://127.0.0.1:{provider.server_port}"
    models = [
        {"model_name": "openai", "litellm_params": {"model": "openai/m", "api_base": f"{base}/v1", "api_key": "none"}},
        {"model_name": "anthropic", "litellm_params": {"model": "anthropic/m", "api_base": base, "api_key": "none"}},
    ]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with tempfile.NamedTemporaryFile("w", suffix=".json") as config:
        json.dump({"model_list": models, "litellm_settings": {"num_retries": 0}}, config)
        config.flush()
        program = os.path.join(os.path.dirname(sys.executable), "litellm")
        command = [program, "--config", config.name, "--port", str(port), "--host", "127.0.0.1", "--num_workers", "1"]
        env = {**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_MASTER_KEY": KEY}
        proxy = subprocess.Popen(command, stdout=sys.stderr, stderr=sys.stderr, env=env)
        try:
            while post(port, "/v1/chat/completions", {"model": "openai", "messages": [{"role": "user", "content": "stop"}]})[0] != 200:
                assert proxy.poll() is None, "the proxy has ended"
                time.sleep(0.2)
            record(port)
        finally:
            proxy.terminate()
            proxy.wait()


if __name__ == "__main__":
    main()
