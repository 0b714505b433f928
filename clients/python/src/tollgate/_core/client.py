"""The part that both faces share: settings, events of calls, what a fault means, and what is counted."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from .events import Event, Scope, Unsendable, cut, distinct, event_id, new_id
from .verdict import Fault, Ruling, Verdict, denial, permission

if TYPE_CHECKING:
    from ..kafka import Kafka

DEFAULT_URL = "http://127.0.0.1:7878"
LOG_EVERY_SECONDS = 60.0
log = logging.getLogger("tollgate")


@dataclass(frozen=True)
class ToolCall:
    """A call that a model asks for. `tool_input` is an object, or the JSON text that a provider sent.

    `tool_call_id` ties a result to its call. Left out, it is a new id, and a repeat of the call counts as another call. `response_id` names
    the response that asks for the call: equal calls of two responses count twice, though the model's server gives both the same id.
    """

    tool_name: str
    tool_input: Mapping[str, Any] | str | None = None
    tool_call_id: str | None = None
    response_id: str | None = None


@dataclass(frozen=True)
class Settings:
    """The settings of a gate.

    Raises `ValueError` for a setting that can have no meaning or no effect.
    """

    url: str
    token: str | None
    kafka: Kafka | None
    deadline: float
    on_failure: Literal["closed", "open"]
    in_flight_max: int

    def __post_init__(self) -> None:
        if not self.url.startswith(("http://", "https://")):
            raise ValueError("`url` begins with neither http:// nor https://: give the address of `tollgate serve`")
        if not _names_a_host(self.url):
            raise ValueError(
                "`url` names no host, has a port that is no number, or more than a path behind it: give an address such as http://127.0.0.1:7878"
            )
        if self.token is not None and not (self.token.isascii() and self.token.isprintable() and self.token == self.token.strip()):
            raise ValueError("`token` has a character that no HTTP header holds, such as a line break at its end: give the token alone")
        if not 0 < self.deadline <= 600:
            raise ValueError("`deadline` is not within 0 to 600: give seconds")
        if self.on_failure not in ("closed", "open"):
            raise ValueError("`on_failure` is neither `closed` nor `open`")
        if self.in_flight_max < 1:
            raise ValueError("`in_flight_max` is below 1: give the number of requests that may wait at once")


def _names_a_host(url: str) -> bool:
    # It takes a third of the package's import.
    from urllib.parse import urlsplit

    # `urlsplit` takes line breaks out, and what it reads as user, query or fragment would have no effect.
    if not (url.isascii() and url.isprintable()) or any(character in url for character in " ?#@"):
        return False
    try:
        parts = urlsplit(url)
        labels = (parts.hostname or "").removesuffix(".").split(".")
        return all(0 < len(label) < 64 for label in labels) and parts.port != 0
    except ValueError:
        return False


def settings(
    url: str | None,
    token: str | None,
    kafka: Kafka | None,
    deadline: float,
    on_failure: Literal["closed", "open"],
    in_flight_max: int,
) -> Settings:
    """Returns settings. Without `kafka`, what is left out of `url` and `token` is read from `TOLLGATE_URL` and `TOLLGATE_TOKEN`.

    Raises `ValueError` if `url` or `token` stands beside `kafka`, where they can have no effect.
    """
    if kafka is not None:
        for name, value in (("url", url), ("token", token)):
            if value is not None:
                raise ValueError(f"`{name}` stands beside `kafka`: HTTP or Kafka, leave the other out")
        return Settings(DEFAULT_URL, None, kafka, deadline, on_failure, in_flight_max)
    url = (url or os.environ.get("TOLLGATE_URL") or DEFAULT_URL).rstrip("/")
    return Settings(url, token or os.environ.get("TOLLGATE_TOKEN"), None, deadline, on_failure, in_flight_max)


class Ledger:
    """Counts what the client decided itself, by code, and logs it at most once a minute."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.counts: Counter[str] = Counter()
        self._clock = clock
        self._logged_at: float | None = None
        self._pid, self._lock = os.getpid(), threading.Lock()

    def settle(self, rulings: list[Ruling], events: list[Event], on_failure: str) -> list[Verdict]:
        """Returns the verdicts that hold: a fault of the gate allows an event if the user chose to fail open; an answer never does."""
        verdicts = [settled(ruling, event, on_failure) for ruling, event in zip(rulings, events, strict=False)]
        for verdict in verdicts:
            if verdict.decided_by == "client":
                self.count(verdict)
            elif verdict.decided_by == "envelope" and self._may_log():
                log.warning("the gate could not read an event (%s): %s", verdict.code, verdict.message)
        return verdicts

    def count(self, verdict: Verdict) -> None:
        """Counts a decision of the client."""
        how = "open" if verdict.allows_execution else "closed"
        with self._own_lock():
            self.counts[f"{how}:{verdict.code}"] += 1
            total = sum(self.counts.values())
        if self._may_log():
            log.warning("no verdict (%s), failed %s; %d so far: %s", verdict.code, how, total, verdict.message)

    def _own_lock(self) -> threading.Lock:
        """Returns this process' lock: a thread of the parent may have held the lock that a forked process inherits, for ever."""
        if self._pid != os.getpid():
            self._pid, self._lock = os.getpid(), threading.Lock()
        return self._lock

    def _may_log(self) -> bool:
        """Tells whether a line is due, and takes it for written if it is."""
        with self._own_lock():
            now = self._clock()
            if self._logged_at is not None and now - self._logged_at < LOG_EVERY_SECONDS:
                return False
            self._logged_at = now
            return True


def scope_of(thread: Scope | str) -> Scope:
    """Returns a scope as it is, or that of a thread's id."""
    return thread if isinstance(thread, Scope) else Scope(thread)


def _given(call: ToolCall) -> dict[str, Any]:
    """Returns the field of the arguments of a call."""
    return {"arguments" if isinstance(call.tool_input, str) else "tool_input": call.tool_input}


def call_event(scope: Scope, call: ToolCall) -> Event | Verdict:
    """Returns the event of a call, or a denial if JSON cannot hold the arguments."""
    call_id = call.tool_call_id or new_id()
    name = event_id(scope, call_id, "call", call.response_id)
    given = _given(call)
    return _event_or_denial(
        scope,
        "tool_call",
        name,
        "arguments_unsendable",
        tool_name=call.tool_name,
        tool_call_id=call_id,
        **given,
    )


def result_event(scope: Scope, call: ToolCall, result: Any, failed: bool | None) -> tuple[Event | Verdict, bool]:
    """Returns the event of a result, or a denial if JSON cannot hold the result; and whether the result was cut."""
    call_id = call.tool_call_id or new_id()
    name = event_id(scope, call_id, "result", call.response_id)
    given = _given(call)
    try:
        result, was_cut = cut(result)
    except Unsendable as error:
        stub: Event = {"type": "tool_result", "thread_id": scope.thread_id, "event_id": name}
        return denial(stub, "result_unsendable", str(error)), False
    event = _event_or_denial(
        scope,
        "tool_result",
        name,
        "result_unsendable",
        tool_name=call.tool_name,
        tool_call_id=call_id,
        result=result,
        failed=failed,
        **given,
    )
    if result is None and isinstance(event, dict):
        # A field that is None is left out, and a result has to be there.
        event["result"] = None
    return event, was_cut


def response_event(scope: Scope, response_id: str | None, provider: str | None, body: Mapping[str, Any]) -> Event | Verdict:
    """Returns the event of a model's response, or a denial if JSON cannot hold the response.

    Raises `ValueError` unless exactly one of `response`, `message` and `error` is given.
    """
    given = {name: value for name, value in body.items() if value is not None}
    if len(given) != 1:
        raise ValueError(f"give exactly one of `response`, `message` and `error`; {len(given)} are given")
    name = event_id(scope, response_id, "response")
    return _event_or_denial(scope, "model_response", name, "response_unsendable", provider=provider, **given)


def boundary_event(scope: Scope, kind: Literal["turn_start", "turn_end"]) -> Event:
    """Returns the event of a turn's begin or end."""
    return scope.event(kind, event_id(scope, kind, "boundary"))


def _event_or_denial(scope: Scope, kind: str, name: str, code: str, **fields: Any) -> Event | Verdict:
    try:
        return scope.event(kind, name, **fields)
    except Unsendable as error:
        stub: Event = {"type": kind, "thread_id": scope.thread_id, "event_id": name}
        return denial(stub, code, str(error))


def mark_cut(verdict: Verdict, was_cut: bool) -> Verdict:
    """Returns a verdict that says whether the result was sent cut."""
    return replace(verdict, result_was_cut=True) if was_cut else verdict


def settled(ruling: Ruling, event: Event, on_failure: str) -> Verdict:
    """Returns the verdict of a ruling: a fault denies, or allows if the user chose to fail open."""
    if isinstance(ruling, Verdict):
        return ruling
    decide = permission if on_failure == "open" and not ruling.is_refusal else denial
    return decide(event, ruling.code, ruling.message)


def busy(events: list[Event]) -> list[Ruling]:
    """Returns what came of events for which no place became free within the deadline."""
    return [Fault("client_busy", "too many requests wait for the gate: raise `in_flight_max` or ask less at once")] * len(events)


def split(items: list[Event | Verdict], ledger: Ledger) -> list[Event]:
    """Returns the events to send, and counts the denials among the items."""
    for item in items:
        if isinstance(item, Verdict):
            ledger.count(item)
    return distinct([item for item in items if not isinstance(item, Verdict)])


def joined(items: list[Event | Verdict], came: list[Verdict]) -> list[Verdict]:
    """Returns verdicts in the order of the items. Boundaries, which get no verdict, leave `came` empty."""
    rest = iter(came)
    return (
        [item if isinstance(item, Verdict) else next(rest) for item in items]
        if came
        else [item for item in items if isinstance(item, Verdict)]
    )
