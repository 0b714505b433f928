"""The steps of an exchange: send, perhaps wait and send again, and read the answer. The faces carry the steps out."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import Any

from .events import Event
from .verdict import UnreadableVerdict, Verdict, denial, parse_json, read_verdict

TRIES_MAX = 5
ANSWER_BYTES_MAX = 4_194_304
RETRY_DEFAULT_SECONDS = 0.1


@dataclass(frozen=True)
class Send:
    """Send the request, and give up after so many seconds."""

    seconds: float


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


@dataclass(frozen=True)
class Fault:
    """No answer: `code` says why. A fault that `may_pass` is worth another try."""

    code: str
    message: str
    may_pass: bool = False


@dataclass(frozen=True)
class Outcome:
    """What came of an exchange: a verdict for each event, or the fault because of which there are no verdicts."""

    verdicts: list[Verdict]
    fault: Fault | None = None


Steps = Generator[Send | Pause, "tuple[Answer | Fault | None, float]", Outcome]


def exchange(events: list[Event], deadline: float) -> Steps:
    """Yields the steps of an exchange that ends within `deadline` seconds, and returns the outcome.

    A face answers each step with what came (None after a pause) and with the seconds since the start, so that this function reads no clock.
    """
    spent = 0.0
    last = Fault("deadline_exceeded", "the gate gave no verdict within the deadline")
    for _ in range(TRIES_MAX):
        came, spent = yield Send(deadline - spent)
        wait = RETRY_DEFAULT_SECONDS
        if isinstance(came, Fault):
            last = came
            if not came.may_pass:
                break
        elif came is not None:
            if came.status not in (429, 503):
                return read_answer(came, events)
            last = Fault("gate_overloaded", f"the gate answered {came.status}: it takes no more events now")
            wait = _seconds(came.headers.get("retry-after"))
        if spent + wait >= deadline:
            break
        _, spent = yield Pause(wait)
    return Outcome([denial(event, last.code, last.message) for event in events], last)


def _seconds(text: str | None) -> float:
    """Returns the seconds of a `Retry-After`, which may be a date: a date counts as the default."""
    try:
        return max(RETRY_DEFAULT_SECONDS, float(text or RETRY_DEFAULT_SECONDS))
    except ValueError:
        return RETRY_DEFAULT_SECONDS


def read_answer(answer: Answer, events: list[Event]) -> Outcome:
    """Reads the verdicts of an answer. An answer that is not read, and a status that is no success, never allow an event."""
    if answer.status == 202 and all(event["type"] in ("turn_start", "turn_end") for event in events):
        return Outcome([])
    try:
        value = parse_json(answer.body)
        if answer.status != 200:
            return _refused(answer.status, value, events)
        values = value if isinstance(value, list) else [value]
        if len(values) != len(events):
            raise UnreadableVerdict(f"the gate gave {len(values)} verdicts for {len(events)} events")
        return Outcome([read_verdict(value, event) for value, event in zip(values, events, strict=True)])
    except UnreadableVerdict as error:
        message = f"HTTP {answer.status} of the gate, or of a proxy before the gate, cannot be read: {error}"
        return Outcome([denial(event, "verdict_unreadable", message) for event in events])


def _refused(status: int, value: Any, events: list[Event]) -> Outcome:
    bodies = value if isinstance(value, list) and len(value) == len(events) else [value] * len(events)
    verdicts = []
    for body, event in zip(bodies, events, strict=True):
        if not isinstance(body, dict):
            raise UnreadableVerdict("the body is no object")
        code, message = body.get("code"), body.get("message")
        if not isinstance(code, str) or not isinstance(message, str):
            raise UnreadableVerdict("`code` or `message` is no text")
        if body.get("action") != "block":
            raise UnreadableVerdict(f"`action` beside status {status} is not `block`")
        verdicts.append(denial(event, code, message))
    fault = Fault("deadline_exceeded", "the gate gave no verdict within the deadline") if status == 504 else None
    return Outcome(verdicts, fault)
