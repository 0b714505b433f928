"""The gate for threads."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal

from ._core import client as core
from ._core.client import ToolCall
from ._core.events import Event, Scope, Who, encode
from ._core.exchange import ANSWER_BYTES_MAX, Answer, Fault, Outcome, Send, exchange
from ._core.verdict import Verdict
from ._core.wire import PATH, fault_of, headers_of, too_long, trace_headers
from ._turn import Turn, new_turn

if TYPE_CHECKING:
    import httpx


class Gate:
    """Asks a gate for verdicts, from any number of threads. It denies where it gets no verdict, unless `on_failure` is `open`.

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
        self._lock = threading.Lock()
        self._places = threading.BoundedSemaphore(self._settings.in_flight_max)
        self._http: httpx.Client | None = None

    @property
    def counts(self) -> dict[str, int]:
        """Returns how often the client decided itself, by `open:CODE` and `closed:CODE`."""
        return dict(self._ledger.counts)

    def tool_call(self, thread: Scope | str, tool_name: str, tool_input: Any = None, *, tool_call_id: str | None = None) -> Verdict:
        """Returns the verdict of a call, before the call runs."""
        return self.tool_calls(thread, [ToolCall(tool_name, tool_input, tool_call_id)])[0]

    def tool_calls(self, thread: Scope | str, calls: Sequence[ToolCall]) -> list[Verdict]:
        """Returns the verdicts of the calls of one response, in order."""
        scope = core.scope_of(thread)
        return self._ask([core.call_event(scope, call) for call in calls])

    def tool_result(
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
        return core.mark_cut(self._ask([event])[0], was_cut)

    def model_response(
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
        return self._ask([core.response_event(core.scope_of(thread), response_id, provider, body)])[0]

    @contextmanager
    def turn(self, thread_id: str, *, turn_id: str | None = None, who: Who | None = None) -> Iterator[Turn]:
        """Publishes the turn's begin and end, and gives the turn's calls a short form."""
        scope = new_turn(thread_id, turn_id, who)
        self.boundary(scope, "turn_start")
        try:
            yield Turn(self, scope)
        finally:
            self.boundary(scope, "turn_end")

    def boundary(self, scope: Scope, kind: Literal["turn_start", "turn_end"]) -> None:
        """Publishes a turn's begin or end. A fault is counted; the turn's id, which every event carries, says the same to the gate."""
        self._ask([core.boundary_event(scope, kind)])

    def close(self) -> None:
        """Closes the connections. A later call raises `RuntimeError`."""
        self._is_closed = True
        http, self._http = self._http, None
        if http is not None and self._pid == os.getpid():
            http.close()

    def __enter__(self) -> Gate:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _ask(self, events: list[Event | Verdict]) -> list[Verdict]:
        if self._is_closed:
            raise RuntimeError("the gate is closed")
        if self._pid != os.getpid():
            # A forked process must not share the parent's connections and locks.
            self._renew()
        sent = core.split(events, self._ledger)
        came = self._ledger.settle(self._run(sent), sent, self._settings.on_failure) if sent else []
        return core.joined(events, came)

    def _run(self, events: list[Event]) -> Outcome:
        started, places = time.monotonic(), self._places
        if not places.acquire(timeout=self._settings.deadline):
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
                    answer = self._send(body, headers, max(0.001, step.seconds))
                else:
                    time.sleep(step.seconds)
                came = answer, time.monotonic() - started
        finally:
            places.release()

    def _client(self) -> httpx.Client:
        with self._lock:
            if self._http is None:
                import httpx

                limits = httpx.Limits(max_connections=self._settings.in_flight_max, max_keepalive_connections=64)
                # A proxy from the environment must not answer in the gate's place.
                self._http = httpx.Client(limits=limits, trust_env=False)
            return self._http

    def _send(self, body: bytes, headers: dict[str, str], seconds: float) -> Answer | Fault:
        import httpx

        until = time.monotonic() + seconds
        try:
            stream = self._client().stream("POST", self._settings.url + PATH, content=body, headers=headers, timeout=seconds)
            with stream as response:
                read = bytearray()
                for chunk in response.iter_bytes():
                    read += chunk
                    if len(read) > ANSWER_BYTES_MAX:
                        return too_long()
                    if time.monotonic() > until:
                        raise TimeoutError
                return Answer(response.status_code, headers_of(response), bytes(read))
        except (httpx.HTTPError, OSError, RuntimeError, httpx.InvalidURL) as error:
            return fault_of(error)
