"""Puts `tollgate mcp-proxy --url` before a server that answers as a test says: JSON on several lines, streams, and each way to fail."""

import json
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

SSE = {"content-type": "text/event-stream"}


class Server:
    """Keeps each request's method, headers and body. `answers` has status, headers and text by the method of the frame."""

    def __init__(self, answers):
        self.asked, server = [], self

        class Handler(BaseHTTPRequestHandler):
            def handle_one(self):
                body = self.rfile.read(int(self.headers.get("content-length", 0)))
                frame = json.loads(body) if body else {}
                server.asked.append((self.command, {name.lower(): value for name, value in self.headers.items()}, frame))
                status, headers, text = answers.get(frame.get("method", self.command), (405, {}, ""))
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(text.encode())

            do_POST = do_GET = do_DELETE = handle_one

            def log_message(self, *_):
                """Keeps the tests' output clean."""

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.http.serve_forever, args=(0.02,), daemon=True).start()


def converse(program, gate, answers, frames, *options):
    """Sends frames, and returns what the client got with what the server was asked."""
    server = Server(answers)
    words = [program, "mcp-proxy", "--server", "s", "--thread", "t", "--gate", gate, "--timeout", "60000"]
    words += ["--url", f"http://127.0.0.1:{server.http.server_port}/mcp", *options]
    text = "".join(json.dumps({"jsonrpc": "2.0", **frame}) + "\n" for frame in frames)
    done = subprocess.run(words, input=text.encode(), capture_output=True, check=True)
    server.http.shutdown()
    return [json.loads(line) for line in done.stdout.splitlines()], server.asked


CALL = {"id": 1, "method": "tools/call", "params": {"name": "read", "arguments": {}}}
ANSWER = json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"content": []}}, indent=1)


def test_a_session_has_its_headers_and_ends(program, fake, tmp_path):
    token = tmp_path / "token"
    token.write_text("s3cret\n")
    begun = json.dumps({"jsonrpc": "2.0", "id": 0, "result": {"protocolVersion": "2025-06-18"}})
    note = '{"jsonrpc":"2.0","method":"notifications/x"}'
    answers = {
        "initialize": (200, {"mcp-session-id": "abc", "content-type": "application/json"}, begun),
        "notifications/initialized": (202, {}, ""),
        "tools/call": (
            200,
            SSE,
            f"id: 1\ndata: \n\nevent: message\r\ndata: {note}\r\n\r\n" + "".join(f"data: {line}\n" for line in ANSWER.split("\n")) + "\n",
        ),
    }
    frames = [{"id": 0, "method": "initialize"}, {"method": "notifications/initialized"}, CALL]
    got, asked = converse(program, fake.url, answers, frames, "--url-token-file", str(token))
    assert [frame.get("method", frame.get("id")) for frame in got] == [0, "notifications/x", 1]
    posts = [(headers, frame) for method, headers, frame in asked if method == "POST"]
    assert [frame["method"] for _, frame in posts] == ["initialize", "notifications/initialized", "tools/call"]
    assert all(headers["authorization"] == "Bearer s3cret" and headers["mcp-method"] == frame["method"] for headers, frame in posts)
    assert all((headers["mcp-session-id"], headers["mcp-protocol-version"]) == ("abc", "2025-06-18") for headers, _ in posts[1:])
    assert posts[2][0]["mcp-name"] == "read" and "text/event-stream" in posts[2][0]["accept"]
    assert [method for method, headers, _ in asked if method != "POST" and headers["mcp-session-id"] == "abc"][-1] == "DELETE"
    assert "s3cret" not in json.dumps(fake.events)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ((200, {"content-type": "application/json"}, ANSWER), None),
        ((404, {}, ANSWER), "status is 404"),
        ((302, {"location": "/"}, ""), "status is 302"),
        ((200, SSE, "data: nonsense\n\n"), "without a result"),
        ((200, SSE, f"data: {ANSWER.replace('1,', '2,')}".replace("\n", "") + "\n\n"), "without a result"),
        ((200, {"content-type": "text/html"}, "<html>"), "without a result"),
        ((200, {"content-length": "1000"}, ANSWER), "the connection broke"),
    ],
)
def test_a_call_gets_its_answer_or_an_error(program, fake, answer, said):
    got, _ = converse(program, fake.url, {"tools/call": answer}, [CALL])
    assert [frame["id"] for frame in got] == [1]
    assert (said is None) == ("result" in got[0]) and (said or "") in got[0].get("error", {}).get("message", "")
    assert [event["type"] for event in fake.events] == ["tool_call", "tool_result"]
