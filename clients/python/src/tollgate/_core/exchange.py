"""The steps of an HTTP exchange: send, perhaps wait and send again, and read the answer. The transports carry the steps out."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import Any

from .events import Event, apart, distinct, encode
from .verdict import ALLOWING, Fault, Ruling, UnreadableVerdict, denial, parse_json, read_verdict

TRIES_MAX = 5
ANSWER_BYTES_MAX = 4_194_304
RETRY_DEFAULT_SECONDS = 0.1
LEAST_SECONDS = 0.02
"""With less time than this left, the gate is not asked again."""
MARGIN_SECONDS_MAX = 0.1
GATE_WAIT_MS_MAX = 60_000
"""The gate refuses a request that asks for a longer wait; after it, the gate is asked again."""


@dataclass(frozen=True)
class Send:
    """Send the request, and give up after so many seconds."""

    seconds: float
    body: bytes

    @property
    def prefer(self) -> str:
        """Returns the header `Prefer`: the gate waits a little less than the client, so that its answer comes in time."""
        wait = int(1000 * (self.seconds - min(self.seconds / 10, MARGIN_SECONDS_MAX)))
        return f"wait={min(max(1, wait), GATE_WAIT_MS_MAX)}"


@dataclass(frozen=True)
class Pause:
    """Wait so many seconds."""

    seconds: float


@dataclass(frozen=True)
class Answer:
    """An HTTP answer. Names of headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


Steps = Generator[Send | Pause, "tuple[Answer | Fault | None, float]", "list[Ruling]"]


def late() -> Fault:
    """Returns the fault of a deadline that passed."""
    return Fault("deadline_exceeded", "the gate gave no verdict within the deadline")


def exchange(events: list[Event], deadline: float) -> Steps:
    """Yields the steps of an exchange that ends within `deadline` seconds, and returns what came of each event.

    A transport answers each step with what came (None after a pause) and with the seconds since the start: this function reads no clock.
    A gate that is overloaded, or whose own deadline passed, is asked again under the same event ids, which makes the repeat harmless.
    Some servers of models give the same id to several calls of a turn. A gate that knows an id as that of another event is asked once more.
    """
    spent, body, is_apart = 0.0, encode(events), False
    last: list[Ruling] = [late()] * len(events)
    for _ in range(TRIES_MAX):
        came, spent = yield Send(deadline - spent, body)
        wait = RETRY_DEFAULT_SECONDS
        if isinstance(came, Fault):
            last = [came] * len(events)
            if not came.may_pass:
                break
        elif came is not None:
            if came.status in (429, 503):
                last = _busy(came, events)
                wait = _seconds(came.headers.get("retry-after"))
            else:
                last = read_answer(came, events)
                wait, named = 0.0, events if is_apart else _named(came, events)
                if named != events:
                    events, body, is_apart = named, encode(named), True
                elif came.status != 504 or not any(isinstance(ruling, Fault) for ruling in last):
                    break
        if spent + wait + LEAST_SECONDS > deadline:
            break
        if wait:
            _, spent = yield Pause(wait)
    return last


def _seconds(text: str | None) -> float:
    """Returns the seconds of a `Retry-After`, which may be a date: a date counts as the default."""
    try:
        return max(RETRY_DEFAULT_SECONDS, float(text or RETRY_DEFAULT_SECONDS))
    except ValueError:
        return RETRY_DEFAULT_SECONDS


def _bodies(value: Any, events: list[Event]) -> list[Any]:
    """Returns the body of each event: its own of a list, or the one body of all."""
    return value if isinstance(value, list) and len(value) == len(events) else [value] * len(events)


def _busy(answer: Answer, events: list[Event]) -> list[Ruling]:
    """Returns what came of events of which the gate takes none now, with the gate's own code where it gives one."""
    fault = Fault("gate_overloaded", f"the gate answered {answer.status}: it takes no more events now")
    try:
        bodies = _bodies(parse_json(answer.body), events)
    except UnreadableVerdict:
        return [fault] * len(events)
    return [_busy_event(body, event, fault) for body, event in zip(bodies, events, strict=True)]


def _busy_event(body: Any, event: Event, fault: Fault) -> Ruling:
    if not isinstance(body, dict) or body.get("action") in ALLOWING:
        return fault
    code, message = body.get("code"), body.get("message")
    if not isinstance(code, str) or not isinstance(message, str):
        return fault
    # Beside an event that was not taken, a list has the verdicts of the others. A call that a verdict stops never fails open.
    return denial(event, code, message) if "verdict_id" in body else Fault(code, message)


def _named(answer: Answer, events: list[Event]) -> list[Event]:
    """Returns the events, each under a new id if the answer says that its id is that of another event."""
    if answer.status == 200:
        return events
    try:
        value = parse_json(answer.body)
    except UnreadableVerdict:
        return events
    bodies = _bodies(value, events)
    taken = [isinstance(body, dict) and (body.get("action"), body.get("code")) == ("block", "event_id_taken") for body in bodies]
    return distinct([apart(event) if is_taken else event for event, is_taken in zip(events, taken, strict=True)])


def read_answer(answer: Answer, events: list[Event]) -> list[Ruling]:
    """Reads the verdicts of an answer. An answer that is not read, and a status that is no success, never allow an event."""
    if answer.status == 202 and all(event["type"] in ("turn_start", "turn_end") for event in events):
        return []
    try:
        value = parse_json(answer.body)
        if answer.status != 200:
            return _refused(answer.status, value, events)
        values = value if isinstance(value, list) else [value]
        if len(values) != len(events):
            raise UnreadableVerdict(f"the gate gave {len(values)} verdicts for {len(events)} events")
        return [read_verdict(value, event) for value, event in zip(values, events, strict=True)]
    except UnreadableVerdict as error:
        message = f"HTTP {answer.status} of the gate, or of a proxy before the gate, cannot be read: {error}"
        return [denial(event, "verdict_unreadable", message) for event in events]


def _refused(status: int, value: Any, events: list[Event]) -> list[Ruling]:
    bodies = _bodies(value, events)
    return [_refused_event(status, body, event, bodies is value) for body, event in zip(bodies, events, strict=True)]


def _refused_event(status: int, body: Any, event: Event, is_list: bool) -> Ruling:
    if not isinstance(body, dict):
        raise UnreadableVerdict("the body is no object")
    code, message = body.get("code"), body.get("message")
    if not isinstance(code, str) or not isinstance(message, str):
        raise UnreadableVerdict("`code` or `message` is no text")
    # Beside an event that waited in vain, a list has the verdicts of the others. A status that is no success allows none of them.
    if status == 504 and (code == "deadline_exceeded" or (is_list and body.get("action") in ALLOWING)):
        return late()
    if body.get("action") != "block":
        raise UnreadableVerdict(f"`action` beside status {status} is not `block`")
    return denial(event, code, message)
