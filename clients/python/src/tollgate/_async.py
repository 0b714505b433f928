"""The gate for asyncio. It outlives event loops: what belongs to a loop is kept by loop."""

from __future__ import annotations

import asyncio
import os
import threading
import time
import weakref
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Literal

from ._core import client as core
from ._core.client import ToolCall
from ._core.events import Event, Scope, Who
from ._core.verdict import Ruling, Verdict
from ._turn import AsyncTurn, new_turn

if TYPE_CHECKING:
    from ._http import AsyncHttpTransport
    from ._kafka import AsyncKafkaTransport
    from .kafka import Kafka


class AsyncGate:
    """Asks a gate for verdicts, from any number of tasks and event loops. It denies where it gets no verdict, unless
    `on_failure` is `open`.

    `url` and `token` are read from `TOLLGATE_URL` and `TOLLGATE_TOKEN` if they are left out. With `kafka` the gate is asked over Kafka
    instead, and `url` and `token` are left out. `deadline` is in seconds and bounds each call.
    `in_flight_max` bounds the requests that wait at once; a further request waits for its place within its own deadline.
    Raises `ValueError` for a setting that can have no meaning.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        token: str | None = None,
        kafka: Kafka | None = None,
        deadline: float = 2.0,
        on_failure: Literal["closed", "open"] = "closed",
        in_flight_max: int = 256,
    ) -> None:
        self._settings = core.settings(url, token, kafka, deadline, on_failure, in_flight_max)
        self._ledger = core.Ledger()
        self._is_closed = False
        self._renew()

    def _renew(self) -> None:
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._places: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = weakref.WeakKeyDictionary()
        self._transport: AsyncHttpTransport | AsyncKafkaTransport | None = None

    @property
    def counts(self) -> dict[str, int]:
        """Returns how often the client decided itself, by `open:CODE` and `closed:CODE`."""
        return dict(self._ledger.counts)

    async def tool_call(
        self,
        thread: Scope | str,
        tool_name: str,
        tool_input: Any = None,
        *,
        tool_call_id: str | None = None,
        response_id: str | None = None,
    ) -> Verdict:
        """Returns the verdict of a call, before the call runs."""
        return (await self.tool_calls(thread, [ToolCall(tool_name, tool_input, tool_call_id, response_id)]))[0]

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
        response_id: str | None = None,
        failed: bool | None = None,
    ) -> Verdict:
        """Returns the verdict of a result. A result beyond 262,144 characters is sent cut, with its hash."""
        call = ToolCall(tool_name, tool_input, tool_call_id, response_id)
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
        transport, self._transport = self._transport, None
        if transport is not None and self._pid == os.getpid():
            await transport.close()

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

    async def _run(self, events: list[Event]) -> list[Ruling]:
        until, places = time.monotonic() + self._settings.deadline, self._places_of_loop()
        if not await _take(self._settings.deadline, places):
            return core.busy(events)
        try:
            return await self._open().ask(events, until)
        finally:
            places.release()

    def _places_of_loop(self) -> asyncio.Semaphore:
        loop = asyncio.get_running_loop()
        if loop not in self._places:
            self._places[loop] = asyncio.Semaphore(self._settings.in_flight_max)
        return self._places[loop]

    def _open(self) -> AsyncHttpTransport | AsyncKafkaTransport:
        with self._lock:
            if self._transport is None:
                self._transport = self._new_transport()
            return self._transport

    def _new_transport(self) -> AsyncHttpTransport | AsyncKafkaTransport:
        if self._settings.kafka is not None:
            from ._kafka import AsyncKafkaTransport

            return AsyncKafkaTransport(self._settings.kafka, self._settings.deadline)
        from ._http import AsyncHttpTransport

        return AsyncHttpTransport(self._settings)


async def _take(seconds: float, places: asyncio.Semaphore) -> bool:
    """Returns whether a place became free in time. It has to be released.

    `asyncio.wait_for` loses cancellations before Python 3.12: a call would run that its agent has given up.
    """
    if not places.locked():
        # This does not wait.
        return await places.acquire()
    taking = asyncio.ensure_future(places.acquire())
    try:
        await asyncio.wait({taking}, timeout=seconds)
    except asyncio.CancelledError:
        if not taking.cancel():
            places.release()
        raise
    return not taking.cancel()
