"""Tests lookups of names: a resolver that hangs holds neither a caller, nor the end of a loop, nor the end of a process."""

import asyncio
import socket
import subprocess
import sys
import threading

import pytest

from tollgate import AsyncGate, Gate


class Resolver:
    """Knows `gate.test`, and says so once it is released."""

    def __init__(self):
        self.lookups, self.released = [], threading.Event()
        self._resolve = socket.getaddrinfo

    def __call__(self, host, port, family=0, type=0, proto=0, flags=0):
        if host != "gate.test":
            return self._resolve(host, port, family, type, proto, flags)
        if flags & socket.AI_NUMERICHOST:
            raise socket.gaierror
        self.lookups.append(host)
        self.released.wait(30)
        return self._resolve("127.0.0.1", port, family, type, proto, flags)


@pytest.fixture
def resolver(monkeypatch):
    made = Resolver()
    monkeypatch.setattr(socket, "getaddrinfo", made)
    yield made
    made.released.set()


@pytest.fixture
def url(fake):
    return f"http://gate.test:{fake.server.server_port}"


def ask(gate):
    return gate.tool_call("t", "bash", {})


def test_a_resolver_that_hangs_holds_nobody_beyond_the_deadline(resolver, url):
    with Gate(url, deadline=0.2) as gate:
        assert [ask(gate).code for _ in range(2)] == ["deadline_exceeded"] * 2
        # No thread is begun for each call that waits.
        assert resolver.lookups == ["gate.test"]
    with Gate(url, deadline=20) as gate:
        resolver.released.set()
        assert ask(gate).code == "allow"


def test_a_loop_that_ended_before_its_lookup_is_not_woken(resolver, url, capfd):
    gate, over = AsyncGate(url, deadline=0.2), threading.Event()
    while not resolver.lookups:
        assert asyncio.run(ask(gate)).code == "deadline_exceeded"
    (lookup,) = gate._transport._backend._names._under_way.values()
    lookup.add_done_callback(lambda _: over.set())
    resolver.released.set()
    assert over.wait(30)
    assert asyncio.run(ask(AsyncGate(url, deadline=20))).code == "allow"
    assert "Traceback" not in capfd.readouterr().err


def test_who_gives_up_cancels_the_lookup_of_nobody(resolver, url):
    async def ask_twice():
        gate = AsyncGate(url, deadline=20)
        first, second = (asyncio.ensure_future(ask(gate)) for _ in range(2))
        while not resolver.lookups:
            await asyncio.sleep(0)
        first.cancel()
        await asyncio.wait({first})
        resolver.released.set()
        return (await second).code

    assert asyncio.run(ask_twice()) == "allow"


@pytest.mark.parametrize("face", ["sync", "async"])
def test_an_address_that_does_not_answer_leaves_time_for_the_next(fake, monkeypatch, face):
    port, resolve = fake.server.server_port, socket.getaddrinfo

    def both(host, port, family=0, type=0, proto=0, flags=0):
        if host != "gate.test":
            return resolve(host, port, family, type, proto, flags)
        if flags & socket.AI_NUMERICHOST:
            raise socket.gaierror
        return [*resolve("127.0.0.2", port, type=socket.SOCK_STREAM), *resolve("127.0.0.1", port, type=socket.SOCK_STREAM)]

    monkeypatch.setattr(socket, "getaddrinfo", both)
    url, fillers = f"http://gate.test:{port}", []
    # A listener whose queue is full answers no further connection.
    with socket.create_server(("127.0.0.2", port), backlog=0):
        for _ in range(3):
            fillers.append(socket.socket())
            fillers[-1].setblocking(False)
            fillers[-1].connect_ex(("127.0.0.2", port))
        code = ask(Gate(url, deadline=20)).code if face == "sync" else asyncio.run(ask(AsyncGate(url, deadline=20))).code
    for filler in fillers:
        filler.close()
    assert code == "allow"


HANGING = """
import asyncio, socket, threading
from tollgate import AsyncGate

def hang(host, port, family=0, type=0, proto=0, flags=0):
    if flags & socket.AI_NUMERICHOST:
        raise socket.gaierror
    asked.append(host)
    threading.Event().wait()

asked, socket.getaddrinfo = [], hang
gate = AsyncGate("http://gate.test:1", deadline=0.2)
print([asyncio.run(gate.tool_call("t", "bash", {})).code for _ in range(2)], len(asked))
"""


def test_a_resolver_that_hangs_holds_neither_the_end_of_a_loop_nor_that_of_the_process():
    ended = subprocess.run([sys.executable, "-W", "default", "-c", HANGING], capture_output=True, text=True, timeout=60)
    assert (ended.stdout, ended.returncode) == ("['deadline_exceeded', 'deadline_exceeded'] 1\n", 0)
    assert [line for line in ended.stderr.splitlines() if not line.startswith("no verdict (deadline_exceeded)")] == []


def test_a_name_that_nobody_knows_denies(monkeypatch):
    def unknown(*_, **__):
        raise socket.gaierror

    async def ask_on_loop():
        async with AsyncGate("http://gate.test", deadline=20) as gate:
            return [(await ask(gate)).code for _ in range(2)]

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    with Gate("http://gate.test", deadline=20) as gate:
        assert [ask(gate).code for _ in range(2)] == ["gate_unreachable"] * 2
    assert asyncio.run(ask_on_loop()) == ["gate_unreachable"] * 2
