"""Events: what the client sends, checked before it is sent."""

from __future__ import annotations

import hashlib
import json
import math
import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .verdict import shape

DEPTH_MAX = 64
INTEGER_BITS_MAX = 14_000
"""Python writes no number of more than 4,300 digits."""
EVENT_ID_BYTES_MAX = 128
CONTENT = ("arguments", "error", "failed", "message", "response", "result", "tool_input", "tool_name")
"""The fields that tell two events of one type and one call id apart."""
THREAD_ID_BYTES_MAX = 256
RESULT_CHARACTERS_MAX = 262_144
"""A longer result is sent cut, with the hash of the whole, so that equal results stay equal and others stay different."""
RESULT_BYTES_MAX = 786_432
"""What a result may take as JSON in UTF-8: with the rest of its event it fits into a record of Kafka's default size."""

SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
Event = dict[str, Any]


class Unsendable(ValueError):
    """A value that JSON cannot hold. The text names the path and the shape of the value, never the value."""


@dataclass(frozen=True)
class Who:
    """For whom an agent acts. Fields that are None are left out of events."""

    agent_id: str | None = None
    user_id: str | None = None
    user_role: str | None = None
    tenant_id: str | None = None
    run_id: str | None = None
    attended: bool | None = None
    """Whether a person watches this run."""


@dataclass(frozen=True)
class Scope:
    """Where events belong: a thread, a turn of the thread, and for whom.

    Raises `ValueError` if `thread_id` is no text of 1 to 256 bytes, or `turn_id` no text of up to 256 bytes.
    """

    thread_id: str
    turn_id: str | None = None
    is_subagent: bool = False
    who: Who = Who()

    def __post_init__(self) -> None:
        for name, value, least in (("thread_id", self.thread_id, 1), ("turn_id", self.turn_id, 0)):
            if value is None and name == "turn_id":
                continue
            size = len(value.encode("utf-8", "surrogatepass")) if isinstance(value, str) else -1
            if not least <= size <= THREAD_ID_BYTES_MAX:
                raise ValueError(f"`{name}` is {shape(value)}: give a text of {least} to {THREAD_ID_BYTES_MAX} bytes")

    def child(self, name: str) -> Scope:
        """Returns the scope of a subagent, which is a thread of its own.

        Raises `ValueError` if the thread's id would be longer than 256 bytes.
        """
        return Scope(f"{self.thread_id}/{name}", self.turn_id, True, self.who)

    def event(self, kind: str, event_id: str, **fields: Any) -> Event:
        """Returns an event of this scope, without the fields that are None.

        Raises `Unsendable` if JSON cannot hold a field.
        """
        event: Event = {"type": kind, "thread_id": self.thread_id, "event_id": event_id}
        attribution = {"turn_id": self.turn_id, "is_subagent": self.is_subagent or None, **vars(self.who)}
        event.update((name, value) for name, value in {**attribution, **fields}.items() if value is not None)
        for name, value in event.items():
            check(value, name)
        _check_escapes(event.get("arguments", ""))
        if not isinstance(event.get("tool_input", {}), Mapping):
            # The gate would decide about a call without arguments.
            raise Unsendable(f"`tool_input` is {shape(event['tool_input'])}: give an object, or its JSON text")
        return event


def new_id() -> str:
    """Returns an id that no other call has."""
    return str(uuid.uuid4())


def event_id(scope: Scope, name: str | None, suffix: str, response_id: str | None = None) -> str:
    """Returns the id of an event: the same for a repeat of the same call of the same response in the same turn, else a new id."""
    if not name:
        return f"{new_id()}/{suffix}"
    of_response = f"{response_id}/" if response_id else ""
    return _shortened(f"{scope.turn_id or ''}/{of_response}{name}/{suffix}")


def _shortened(found: str) -> str:
    """Returns an id as it is, or, if the contract does not allow so long an id, its hash with its last part behind it."""
    written = found.encode("utf-8", "surrogatepass")
    if len(written) <= EVENT_ID_BYTES_MAX:
        return found
    return f"{hashlib.sha256(written).hexdigest()}/{found.rpartition('/')[2]}"


def content_hash(event: Event) -> str:
    """Returns a short hash of what tells an event apart from another event under the same id."""
    content = {name: event[name] for name in CONTENT if name in event}
    return hashlib.sha256(_json(content)).hexdigest()[:16]


def apart(event: Event) -> Event:
    """Returns an event whose id is that of another event, under an id that follows from its content: a repeat gets the same id again."""
    return {**event, "event_id": _shortened(f"{event['event_id']}/{content_hash(event)}")}


def distinct(events: list[Event]) -> list[Event]:
    """Returns events of one request, each under an id of its own: calls of one response may share an id too."""
    found: dict[str, Event] = {}
    for event in events:
        name = event["event_id"]
        content = content_hash(event) if name in found else ""
        while name in found:
            name = _shortened(f"{name}/{content}")
        found[name] = {**event, "event_id": name}
    return list(found.values())


def cut(result: Any) -> tuple[Any, bool]:
    """Returns a result as it is sent, and whether it was cut.

    Raises `Unsendable` if JSON cannot hold the result.
    """
    if isinstance(result, (bytes, bytearray)):
        result = bytes(result).decode("utf-8", "replace")
    check(result, "result")
    if result is None:
        return None, False
    text = result if isinstance(result, str) else json.dumps(result, ensure_ascii=False, separators=(",", ":"), default=dict)
    kept = text[:RESULT_CHARACTERS_MAX]
    while len(kept) * 6 > RESULT_BYTES_MAX and len(json.dumps(kept, ensure_ascii=False).encode()) > RESULT_BYTES_MAX:
        kept = kept[: len(kept) // 2]
    if len(kept) == len(text):
        return result, False
    digest = hashlib.sha256(text.encode()).hexdigest()
    return f"{kept}\n[cut: {len(text)} characters, sha256:{digest}]", True


def check(value: Any, path: str, depth: int = 0) -> None:
    """Checks that JSON can hold a value.

    Raises `Unsendable` with the path of the first part that JSON cannot hold.
    """
    if depth > DEPTH_MAX:
        raise Unsendable(f"a value is nested deeper than {DEPTH_MAX} levels, or holds itself")
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            raise Unsendable(f"`{path}` is a text with a lone surrogate: give valid Unicode") from None
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise Unsendable(f"`{path}` is a number that is not finite: give a finite number or null")
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            if not isinstance(name, str):
                raise Unsendable(f"`{path}` has a key that is {shape(name)}: give texts as keys")
            check(name, f"{path}, a key")
            check(inner, f"{path}.{name}", depth + 1)
    elif isinstance(value, (list, tuple)):
        for index, inner in enumerate(value):
            check(inner, f"{path}[{index}]", depth + 1)
    elif isinstance(value, int):
        if value.bit_length() > INTEGER_BITS_MAX:
            raise Unsendable(f"`{path}` is a number of more than {INTEGER_BITS_MAX} bits: give a text")
    elif value is not None:
        raise Unsendable(f"`{path}` is {shape(value)}: give a text, number, list, object, true, false or null")


def _check_escapes(arguments: str) -> None:
    """Checks that a text of arguments has no escape of a lone surrogate: tools would read different characters in its place.

    Raises `Unsendable` with the path of the first such escape.
    """
    if not SURROGATE.search(arguments):
        return
    try:
        value = json.loads(arguments)
    except (ValueError, RecursionError):
        # The gate says what a text is worth that is no JSON.
        return
    check(value, "arguments")


def encode(events: list[Event]) -> bytes:
    """Returns the body of a request: an event alone as an object, several events as a list."""
    return _json(events[0] if len(events) == 1 else events)


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=dict).encode()
