"""The gate for asyncio. Each event loop has connections of its own, so that the gate outlives a loop that was closed."""

from __future__ import annotations

import asyncio
import os
import time
import weakref
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Literal

from ._core import client as core
from ._core.client import ToolCall
from ._core.events import Event, Scope, Who, encode
from ._core.exchange import ANSWER_BYTES_MAX, Answer, Fault, Outcome, Send, exchange
from ._core.verdict import Verdict
from ._core.wire import PATH, fault_of, headers_of, too_long, trace_headers
from ._turn import AsyncTurn, new_turn

if TYPE_CHECKING:
    import httpx


class AsyncGate:
    """Asks a gate for verdicts, from any number of tasks and event loops. It denies where it gets no verdict, unless
    `on_failure` is `open`.

    `url` and `token` are read from `TOLLGATE_URL` and `TOLLGATE_TOKEN` if they are left out. `deadline` is in seconds and bounds each call.
    `in_flight_max` bounds the requests that wait at once; a further request waits for its place within its own deadline.
    Raises `ValueError` for a setting that can have no meaning.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        token: str | None = None,
        deadline: float = 2.0,
        on_failure: Literal["closed", "open"] = "closed",
        in_flight_max: int = 256,
    ) -> None:
        self._settings = core.settings(url, token, deadline, on_failure, in_flight_max)
        self._ledger = core.Ledger()
        self._is_closed = False
        self._renew()

    def _renew(self) -> None:
        self._pid = os.getpid()
        self._ledger.renew_lock()
        self._loops: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _Loop] = weakref.WeakKeyDictionary()

    @property
    def counts(self) -> dict[str, int]:
        """Returns how often the client decided itself, by `open:CODE` and `closed:CODE`."""
        return dict(self._ledger.counts)

    async def tool_call(self, thread: Scope | str, tool_name: str, tool_input: Any = None, *, tool_call_id: str | None = None) -> Verdict:
        """Returns the verdict of a call, before the call runs."""
        return (await self.tool_calls(thread, [ToolCall(tool_name, tool_input, tool_call_id)]))[0]

    async def tool_calls(self, thread: Scope | str, calls: Sequence[ToolCall]) -> list[Verdict]:
        """Returns the verdicts of the calls of one response, in order."""
        scope = core.scope_of(thread)
        return await self._ask([core.call_event(scope, call) for call in calls])

    async def tool_result(
        self,
        thread: Scope | str,
        tool_name: str,
        result: Any,
        *,
        tool_input: Any = None,
        tool_call_id: str | None = None,
        failed: bool | None = None,
    ) -> Verdict:
        """Returns the verdict of a result. A result beyond 262,144 characters is sent cut, with its hash."""
        call = ToolCall(tool_name, tool_input, tool_call_id)
        event, was_cut = core.result_event(core.scope_of(thread), call, result, failed)
        return core.mark_cut((await self._ask([event]))[0], was_cut)

    async def model_response(
        self,
        thread: Scope | str,
        *,
        response: Any = None,
        message: Any = None,
        error: Any = None,
        provider: str | None = None,
        response_id: str | None = None,
    ) -> Verdict:
        """Returns the verdict of a model's response: a native body, a LangChain message as a dict, or an API's error body.

        Raises `ValueError` unless exactly one of `response`, `message` and `error` is given.
        """
        body = {"response": response, "message": message, "error": error}
        return (await self._ask([core.response_event(core.scope_of(thread), response_id, provider, body)]))[0]

    @asynccontextmanager
    async def turn(self, thread_id: str, *, turn_id: str | None = None, who: Who | None = None) -> AsyncIterator[AsyncTurn]:
        """Publishes the turn's begin and end, and gives the turn's calls a short form."""
        scope = new_turn(thread_id, turn_id, who)
        await self.boundary(scope, "turn_start")
        try:
            yield AsyncTurn(self, scope)
        finally:
            await self.boundary(scope, "turn_end")

    async def boundary(self, scope: Scope, kind: Literal["turn_start", "turn_end"]) -> None:
        """Publishes a turn's begin or end. A fault is counted; the turn's id, which every event carries, says the same to the gate."""
        await self._ask([core.boundary_event(scope, kind)])

    async def close(self) -> None:
        """Closes the connections of the running loop; a closed loop has none. A later call raises `RuntimeError`."""
        self._is_closed = True
        kept = self._loops.pop(asyncio.get_running_loop(), None)
        if kept is not None and self._pid == os.getpid():
            await kept.http.aclose()

    async def __aenter__(self) -> AsyncGate:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _ask(self, events: list[Event | Verdict]) -> list[Verdict]:
        if self._is_closed:
            raise RuntimeError("the gate is closed")
        if self._pid != os.getpid():
            # A forked process must not share the parent's connections.
            self._renew()
        sent = core.split(events, self._ledger)
        came = self._ledger.settle(await self._run(sent), sent, self._settings.on_failure) if sent else []
        return core.joined(events, came)

    async def _run(self, events: list[Event]) -> Outcome:
        started, kept = time.monotonic(), self._of_loop()
        try:
            await asyncio.wait_for(kept.places.acquire(), self._settings.deadline)
        except (TimeoutError, asyncio.TimeoutError):
            return core.busy(events)
        try:
            body, headers = encode(events), self._settings.headers() | trace_headers()
            steps = exchange(events, self._settings.deadline)
            came: tuple[Answer | Fault | None, float] | None = None
            while True:
                try:
                    step = next(steps) if came is None else steps.send(came)
                except StopIteration as end:
                    outcome: Outcome = end.value
                    return outcome
                answer = None
                if isinstance(step, Send):
                    answer = await self._send(kept.http, body, headers, max(0.001, step.seconds))
                else:
                    await asyncio.sleep(step.seconds)
                came = answer, time.monotonic() - started
        finally:
            kept.places.release()

    def _of_loop(self) -> _Loop:
        loop = asyncio.get_running_loop()
        if loop not in self._loops:
            self._loops[loop] = _Loop(self._settings.in_flight_max)
        return self._loops[loop]

    async def _send(self, http: httpx.AsyncClient, body: bytes, headers: dict[str, str], seconds: float) -> Answer | Fault:
        import httpx

        try:
            return await asyncio.wait_for(self._exchange(http, body, headers), seconds)
        except (httpx.HTTPError, OSError, RuntimeError, httpx.InvalidURL, asyncio.TimeoutError) as error:
            return fault_of(error)

    async def _exchange(self, http: httpx.AsyncClient, body: bytes, headers: dict[str, str]) -> Answer | Fault:
        url = self._settings.url + PATH
        async with http.stream("POST", url, content=body, headers=headers, timeout=self._settings.deadline) as response:
            read = bytearray()
            async for chunk in response.aiter_bytes():
                read += chunk
                if len(read) > ANSWER_BYTES_MAX:
                    return too_long()
            return Answer(response.status_code, headers_of(response), bytes(read))


class _Loop:
    """What belongs to one event loop: its connections, and the places of its requests."""

    def __init__(self, in_flight_max: int) -> None:
        import httpx

        limits = httpx.Limits(max_connections=in_flight_max, max_keepalive_connections=64)
        # A proxy from the environment must not answer in the gate's place.
        self.http = httpx.AsyncClient(limits=limits, trust_env=False)
        self.places = asyncio.Semaphore(in_flight_max)
