"""Puts `tollgate mcp-proxy` between a real MCP client and a real MCP server, over both transports and both ages of the protocol."""

import asyncio
import contextlib
import json
import os
import pathlib
import subprocess
import sys
import threading

import pytest
from fake_gate import PROOF, allowed, blocked
from mcp import Client, StdioServerParameters, types
from test_real_gate import free_port, serves
from test_real_gate import running as running  # The fixture.

SERVER = str(pathlib.Path(__file__).with_name("mcp_server.py"))


@pytest.fixture
def runs(tmp_path, monkeypatch):
    file = tmp_path / "runs"
    file.write_text("")
    monkeypatch.setenv("RUNS", str(file))
    return file


@pytest.fixture(params=["stdio", "http"])
def server(request, runs):
    """The words that name the server to the proxy."""
    if request.param == "stdio":
        yield ["--", sys.executable, SERVER]
        return
    port = free_port()
    with subprocess.Popen([sys.executable, SERVER, str(port)], stderr=subprocess.DEVNULL) as process:
        while not serves(f"127.0.0.1:{port}"):
            assert process.poll() is None
        yield ["--url", f"http://127.0.0.1:{port}/mcp"]
        process.kill()


def words(program, gate, server, timeout=60_000):
    return [program, "mcp-proxy", "--server", "files", "--thread", "t", "--timeout", str(timeout), "--gate", gate, *server]


def client(program, gate, server, mode="auto", timeout=60_000, **callbacks):
    command, *args = words(program, gate, server, timeout)
    return Client(StdioServerParameters(command=command, args=args, env=dict(os.environ)), mode=mode, **callbacks)


def texts(result):
    return [item.text for item in result.content]


def ran(runs):
    return [line for line in runs.read_text().split() if line not in ("started", "ended")]


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_calls_are_asked_about_and_results_reported(program, fake, server, runs, mode):
    def decide(event):
        if event["type"] == "tool_result":
            return allowed(event, action="warn", guidance="\n\nCareful.")
        return blocked(event) if "secret" in event["arguments"] else allowed(event)

    async def converse():
        progress = []

        async def on_progress(done, total, _text):
            progress.append((done, total))

        async with client(program, fake.url, server, mode) as session:
            assert [tool.name for tool in (await session.list_tools()).tools] == ["read", "ask"]
            allow = await session.call_tool("read", {"path": "/a"}, progress_callback=on_progress)
            deny = await session.call_tool("read", {"path": "/secret"})
            unknown = await session.call_tool("read", {})
        assert (texts(allow), allow.is_error, progress) == (["text of /a", "Careful."], False, [(1, 2)])
        assert (texts(deny), deny.is_error) == (["blocked: tool_denied"], True)
        assert unknown.is_error and texts(unknown)[1:] == ["Careful."]

    fake.decide = decide
    asyncio.run(converse())
    assert ran(runs) == ["/a"]
    call, result, _denied, *_ = fake.events
    assert (call["type"], call["thread_id"], call["tool_name"], json.loads(call["arguments"])) == (
        "tool_call",
        "t",
        "mcp__files__read",
        {"path": "/a"},
    )
    assert (result["type"], result["tool_call_id"], "text of /a" in result["result"]) == ("tool_result", call["tool_call_id"], True)
    assert [event["type"] for event in fake.events] == ["tool_call", "tool_result", "tool_call", "tool_call", "tool_result"]
    assert fake.events[-1]["failed"] is True


def test_what_the_server_asks_the_client_passes(program, fake, server, runs):
    async def answer(_context, _params):
        return types.ElicitResult(action="accept", content={"word": "swordfish"})

    async def converse():
        async with client(program, fake.url, server, "legacy", elicitation_callback=answer) as session:
            return await session.call_tool("ask")

    assert texts(asyncio.run(converse())) == ["swordfish"]


def test_a_halt_refuses_every_later_call(program, fake, server, runs):
    async def converse():
        async with client(program, fake.url, server) as session:
            first, second = [await session.call_tool("read", {"path": path}) for path in ("/a", "/b")]
            return texts(first), texts(second), len((await session.list_tools()).tools)

    fake.decide = lambda event: allowed(
        event, **({"should_halt": True, "action": "halt", "guidance": "Stop."} if "result" in event else {})
    )
    first, second, tools = asyncio.run(converse())
    assert (first, tools, ran(runs)) == (["text of /a", "Stop."], 2, ["/a"])
    assert second[0].startswith("Tollgate stopped this session")


@pytest.mark.parametrize("fault", ["refused", "silent", "cut", "garbage", "foreign", "status"])
def test_no_call_runs_without_a_verdict(program, fake, runs, fault):
    def answer(events):
        if fault == "silent":
            fake.released.wait()
        bodies = {
            "garbage": "<html>",
            "foreign": json.dumps(allowed({**events[0], "event_id": "another"})),
            "status": json.dumps(allowed(events[0])),
        }
        headers = {} if fault == "garbage" else PROOF
        return (503 if fault == "status" else 200, headers, bodies[fault]) if fault in bodies else None

    async def converse():
        timeout = 300 if fault == "silent" else 60_000
        async with client(program, fake.url, ["--", sys.executable, SERVER], timeout=timeout) as session:
            return await session.call_tool("read", {"path": "/a"})

    fake.answer = answer
    if fault == "refused":
        fake.server.server_close()
    result = asyncio.run(converse())
    assert (result.is_error, ran(runs)) == (True, [])
    assert texts(result)[0].startswith("Tollgate gave no verdict: ")


def test_a_real_gate_refuses_the_call_that_repeats(program, running, runs):
    async def converse():
        async with client(program, running.settings("http")["url"], ["--", sys.executable, SERVER]) as session:
            return [await session.call_tool("read", {}) for _ in range(3)]

    first, second, third = asyncio.run(converse())
    assert all(result.is_error for result in (first, second, third))
    assert "same_call_fails_denied" in texts(third)[0] and "same_call_fails_denied" not in str(texts(first) + texts(second))


def frame(**members):
    return json.dumps({"jsonrpc": "2.0", **members}).encode() + b"\n"


CALL = frame(id=1, method="tools/call", params={"name": "read"})


@contextlib.contextmanager
def proxy(program, gate, *server):
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(words(program, gate, server), **pipes) as process:
        yield process
        process.kill()


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("input()", "the MCP server ended"),
        ('input(); print(\'{"jsonrpc": "2.0", "id": 1, "id": 2, "result": {}}\', flush=True); input()', "repeated key"),
        ("input(); print('{' + 'x' * 9_000_000, flush=True); input()", "too long"),
        ("import os; os.close(1); input(); input()", "the MCP server ended"),
    ],
)
def test_a_server_that_ends_or_writes_garbage_answers_what_is_open_and_ends_the_proxy(program, fake, script, said):
    with proxy(program, fake.url, "--", sys.executable, "-c", script) as process:
        process.stdin.write(CALL)
        process.stdin.flush()
        answers = [json.loads(line) for line in process.stdout]
        assert (process.wait(), said in process.stderr.read().decode()) == (1, True)
    if "close" not in script:
        assert [(answer["id"], answer["error"]["code"]) for answer in answers] == [(1, -32603)]
        assert fake.of_type("tool_result")[0]["failed"] is True


def test_lines_that_are_no_frames_are_dropped_and_frames_pass_byte_for_byte(program, fake):
    """Blank lines and logs on stdout are no frames; what the server echoes shows what it got."""
    echo = "import sys\nprint('listening', flush=True)\nfor line in sys.stdin.buffer: sys.stdout.buffer.write(line); sys.stdout.flush()"
    odd = b' { "jsonrpc":"2.0" , "method":"notifications/x","params":{"\\u0061":1e3,"z":"\xc3\xa9"} }'
    with proxy(program, fake.url, "--", sys.executable, "-c", echo) as process:
        process.stdin.write(b"\n" + odd + b"\r\n \n" + b"[" + CALL.strip() + b"]\n" + b"x" * 8_388_609 + b"\n" + odd + b"\n" + CALL.strip())
        process.stdin.close()
        lines = process.stdout.read().splitlines()
        assert process.wait() == 0
        assert b"dropped a line of the MCP server that is no frame" in process.stderr.read()
    assert [line for line in lines if b"error" not in line] == [odd, odd]
    assert [json.loads(line)["error"]["code"] for line in lines if b"error" in line] == [-32600, -32600]
    assert fake.events == []


@pytest.mark.parametrize("end", ["stdin", "kill"])
def test_the_server_ends_with_the_client_and_with_the_proxy(program, fake, runs, end):
    with proxy(program, fake.url, "--", sys.executable, SERVER) as process:
        process.stdin.write(
            frame(
                id=0,
                method="initialize",
                params={"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}},
            )
        )
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["id"] == 0
        if end == "kill":
            process.kill()
        process.stdin.close()
        assert process.wait() == (0 if end == "stdin" else -9)
        # A server that takes too long once the client is gone is killed, and says nothing.
        while end == "kill" and "ended" not in runs.read_text():
            threading.Event().wait(0.05)


def test_a_server_at_a_url_that_fails_answers_with_an_error(program, fake):
    with proxy(program, fake.url, "--url", f"http://127.0.0.1:{free_port()}/mcp") as process:
        process.stdin.write(CALL)
        process.stdin.close()
        answer = json.loads(process.stdout.readline())
        assert (answer["id"], "gave no answer" in answer["error"]["message"], process.wait()) == (1, True, 0)
    assert [event["type"] for event in fake.events] == ["tool_call", "tool_result"]


def test_wrong_options_are_refused(program, fake):
    for server, said in ([[], b"--url"], [["--url", "ftp://x"], b"--url: "], [["--", "/none/such"], b"cannot be started"]):
        done = subprocess.run(words(program, fake.url, server), capture_output=True, stdin=subprocess.DEVNULL, check=False)
        assert done.returncode in (1, 2) and said in done.stderr
    done = subprocess.run([program, "mcp-proxy", "--server", "a__b", "--", "true"], capture_output=True, check=False)
    assert (done.returncode, b"--server: " in done.stderr) == (2, True)
