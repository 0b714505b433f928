"""HTTP: one exchange with `tollgate serve`, over connections that are kept.

httpcore is what httpx sends requests with. It is used by itself: it takes half of httpx's time, and its sockets can be given the time that
is left of a deadline.
"""

from __future__ import annotations

import asyncio
import ssl
import threading
import time
import weakref
from collections.abc import Iterable, Iterator
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import contextmanager, suppress
from typing import Any

import httpcore

from ._core.client import Settings
from ._core.events import Event
from ._core.exchange import ANSWER_BYTES_MAX, Answer, Pause, Send, exchange, late
from ._core.trace import trace_headers
from ._core.verdict import Fault, Ruling
from ._names import Names

CHUNK_BYTES = 65_536
IDLE_MAX = 64
FIRST_SECONDS = 0.25
"""How long an address is tried before the next one, if a host has several."""
Came = Answer | Fault
Headers = list[tuple[str, str]]


def _fault_of(error: Exception) -> Fault:
    """Returns the fault that an error stands for. Its text names the kind of the error alone."""
    if isinstance(error, (TimeoutError, httpcore.TimeoutException)):
        return late()
    kind = type(error).__name__
    # A connection that broke is worth another try: the event's id makes the repeat harmless.
    return Fault("gate_unreachable", f"the gate cannot be reached ({kind}): start `tollgate serve` or check the `url`", True)


_ERRORS = (httpcore.TimeoutException, httpcore.NetworkError, httpcore.ProtocolError, OSError, RuntimeError)


def _too_long() -> Fault:
    return Fault("verdict_unreadable", f"the answer is longer than {ANSWER_BYTES_MAX} bytes", is_refusal=True)


def _answer(response: httpcore.Response, body: bytes | bytearray) -> Answer:
    headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in response.headers}
    return Answer(response.status, headers, bytes(body))


class _Request:
    """What both faces send: where to, and the headers of every request."""

    def __init__(self, settings: Settings) -> None:
        self.url = httpcore.URL(f"{settings.url}/v1/events")
        self.fixed: Headers = [("content-type", "application/json"), ("accept", "application/json")]
        if settings.token:
            self.fixed.append(("authorization", f"Bearer {settings.token}"))

    def headers(self, send: Send, trace: Headers) -> Headers:
        return [*self.fixed, ("prefer", send.prefer), *trace]


class HttpTransport:
    """Requests from threads. Each socket operation gets no more than what is left of its request's deadline."""

    def __init__(self, settings: Settings) -> None:
        self._request = _Request(settings)
        self._clock = _Clock()
        self._pool = httpcore.ConnectionPool(
            max_connections=settings.in_flight_max, max_keepalive_connections=IDLE_MAX, network_backend=_Backend(self._clock)
        )

    def ask(self, events: list[Event], until: float) -> list[Ruling]:
        """Returns what came of each event; `until` is a time of `time.monotonic`."""
        started, trace = time.monotonic(), list(trace_headers().items())
        steps = exchange(events, until - started)
        came: tuple[Came | None, float] | None = None
        while True:
            try:
                step = next(steps) if came is None else steps.send(came)
            except StopIteration as end:
                rulings: list[Ruling] = end.value
                return rulings
            answer = None
            if isinstance(step, Send):
                answer = self._send(step.body, self._request.headers(step, trace), step.seconds)
            else:
                time.sleep(step.seconds)
            came = answer, time.monotonic() - started

    def close(self) -> None:
        """Closes the connections."""
        self._pool.close()

    def _send(self, body: bytes, headers: Headers, seconds: float) -> Came:
        self._clock.until = time.monotonic() + seconds
        timeouts = {"timeout": {"pool": seconds}}
        try:
            with self._pool.stream("POST", self._request.url, headers=headers, content=body, extensions=timeouts) as response:
                read = bytearray()
                for chunk in response.iter_stream():
                    read += chunk
                    if len(read) > ANSWER_BYTES_MAX:
                        return _too_long()
                return _answer(response, read)
        except _ERRORS as error:
            return _fault_of(error)


class _Clock(threading.local):
    """When the request of the current thread has to be over."""

    until = 0.0

    def left(self) -> float:
        left = self.until - time.monotonic()
        if left <= 0:
            raise httpcore.ReadTimeout
        return left


_NEXT = (httpcore.ConnectError, httpcore.ConnectTimeout)
"""What an address fails with where the next one is tried."""


@contextmanager
def _lookup() -> Iterator[None]:
    """Raises the faults of a lookup as the faults of a connection. The kinds of timeouts are one kind from Python 3.11 on."""
    try:
        yield
    except (TimeoutError, FutureTimeout, asyncio.TimeoutError):
        raise httpcore.ConnectTimeout from None
    except (OSError, UnicodeError) as error:
        raise httpcore.ConnectError(type(error).__name__) from None


class _Backend(httpcore.NetworkBackend):
    def __init__(self, clock: _Clock) -> None:
        self._clock = clock
        self._inner = httpcore.SyncBackend()
        self._names = Names()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        with _lookup():
            addresses = self._names.addresses(host, port, self._clock.left())
        for address in addresses[:-1]:
            with suppress(*_NEXT):
                seconds = min(FIRST_SECONDS, self._clock.left())
                return _Stream(self._inner.connect_tcp(address, port, seconds, local_address, socket_options), self._clock)
        return _Stream(self._inner.connect_tcp(addresses[-1], port, self._clock.left(), local_address, socket_options), self._clock)


class _Stream(httpcore.NetworkStream):
    def __init__(self, inner: httpcore.NetworkStream, clock: _Clock) -> None:
        self._inner = inner
        self._clock = clock
        self.close = inner.close  # type: ignore[method-assign]
        self.get_extra_info = inner.get_extra_info  # type: ignore[method-assign]

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._inner.read(max_bytes, self._clock.left())

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        for at in range(0, len(buffer), CHUNK_BYTES):
            self._inner.write(buffer[at : at + CHUNK_BYTES], self._clock.left())

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        return _Stream(self._inner.start_tls(ssl_context, server_hostname, self._clock.left()), self._clock)


class _AsyncBackend(httpcore.AnyIOBackend):
    def __init__(self) -> None:
        self._names = Names()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        started = time.monotonic()
        with _lookup():
            addresses = await asyncio.wait_for(self._names.addresses_for_loop(host, port), timeout)
        for address in addresses[:-1]:
            with suppress(*_NEXT):
                return await super().connect_tcp(address, port, FIRST_SECONDS, local_address, socket_options)
        left = None if timeout is None else max(0.0, timeout - (time.monotonic() - started))
        return await super().connect_tcp(addresses[-1], port, left, local_address, socket_options)


class AsyncHttpTransport:
    """Requests from tasks. Each event loop has connections of its own, so that the gate outlives a loop that was closed."""

    def __init__(self, settings: Settings) -> None:
        self._request = _Request(settings)
        self._connections_max = settings.in_flight_max
        self._backend = _AsyncBackend()
        self._pools: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, httpcore.AsyncConnectionPool] = weakref.WeakKeyDictionary()
        # A loop keeps no task alive.
        self._asking: set[asyncio.Task[Came]] = set()

    async def ask(self, events: list[Event], until: float) -> list[Ruling]:
        """Returns what came of each event; `until` is a time of `time.monotonic`."""
        started, trace = time.monotonic(), list(trace_headers().items())
        steps = exchange(events, until - started)
        came: tuple[Came | None, float] | None = None
        while True:
            try:
                step: Send | Pause = next(steps) if came is None else steps.send(came)
            except StopIteration as end:
                rulings: list[Ruling] = end.value
                return rulings
            answer = None
            if isinstance(step, Send):
                answer = await self._send(step.body, self._request.headers(step, trace), step.seconds)
            else:
                await asyncio.sleep(step.seconds)
            came = answer, time.monotonic() - started

    async def close(self) -> None:
        """Closes the connections of the running loop; a closed loop has none."""
        pool = self._pools.pop(asyncio.get_running_loop(), None)
        if pool is not None:
            await pool.aclose()

    def _pool(self) -> httpcore.AsyncConnectionPool:
        loop = asyncio.get_running_loop()
        if loop not in self._pools:
            self._pools[loop] = httpcore.AsyncConnectionPool(
                max_connections=self._connections_max, max_keepalive_connections=IDLE_MAX, network_backend=self._backend
            )
        return self._pools[loop]

    async def _send(self, body: bytes, headers: Headers, seconds: float) -> Came:
        # A cancelled request can cost the pool a connection for good (httpcore 1.0.9). So it goes on alone, within httpcore's bounds.
        asking = asyncio.ensure_future(self._exchange(body, headers, seconds))
        self._asking.add(asking)
        asking.add_done_callback(self._asking.discard)
        await asyncio.wait({asking}, timeout=seconds)
        return asking.result() if asking.done() else late()

    async def _exchange(self, body: bytes, headers: Headers, seconds: float) -> Came:
        timeouts = {"timeout": dict.fromkeys(("connect", "pool", "read", "write"), seconds)}
        try:
            async with self._pool().stream("POST", self._request.url, headers=headers, content=body, extensions=timeouts) as response:
                read = bytearray()
                async for chunk in response.aiter_stream():
                    read += chunk
                    if len(read) > ANSWER_BYTES_MAX:
                        return _too_long()
                return _answer(response, read)
        except _ERRORS as error:
            return _fault_of(error)
