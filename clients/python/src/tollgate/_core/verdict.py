"""Verdicts: how the gate's answers are read, and the denials that the client makes itself when there is no answer."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

ACTIONS = ("allow", "warn", "block", "halt", "suppress")
ALLOWING = ("allow", "warn")


class UnreadableVerdict(ValueError):
    """An answer of the gate that is no verdict. The text names the field and the shape of its value, never the value."""


@dataclass(frozen=True)
class Verdict:
    """What the gate, or the client in its place, says of one event."""

    event_id: str
    thread_id: str
    type: str
    action: str
    """`allow`, `warn`, `block`, `halt`, or `suppress` (of a model's response)."""
    allows_execution: bool
    """Whether the tool may run."""
    should_halt: bool
    """Whether the turn should end."""
    code: str
    message: str = ""
    decided_by: str = "none"
    """Which part decided; `client` if the client itself did, because the gate gave no verdict."""
    synthetic_result: str | None = None
    """The text to give to the agent in place of a result of a call that may not run."""
    guidance: str | None = None
    """The text to append to a tool's result."""
    safety: Mapping[str, Any] | None = None
    """Why a response was stopped by its provider, and which of its calls are suppressed."""
    verdict_id: str | None = None
    result_was_cut: bool = False
    """Whether the client sent only the beginning of a long result, with the hash of the whole."""
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)
    """All fields of the gate's verdict; empty if the client decided."""

    @property
    def failed_open(self) -> bool:
        """Returns whether the client allows the event only because the gate gave no verdict and the gate's user chose to fail open."""
        return self.decided_by == "client" and self.allows_execution

    @property
    def text_for_agent(self) -> str:
        """Returns the text that stands for the result of a call that may not run."""
        return self.synthetic_result or json.dumps({"error": self.message or self.code, "guardrail": {"code": self.code}})


@dataclass(frozen=True)
class Fault:
    """No verdict: `code` and `message` say why.

    A fault that `may_pass` is worth another try. A fault that `is_refusal` says that the settings are wrong, and never allows an event.
    """

    code: str
    message: str
    may_pass: bool = False
    is_refusal: bool = False


Ruling: TypeAlias = Verdict | Fault
"""What came of an event."""


def denial(event: Mapping[str, Any], code: str, message: str) -> Verdict:
    """Returns the client's own `block` for an event."""
    synthetic = json.dumps({"error": message, "guardrail": {"code": code}}) if event.get("type") == "tool_call" else None
    return _own(event, "block", code, message, synthetic)


def permission(event: Mapping[str, Any], code: str, message: str) -> Verdict:
    """Returns the client's own `allow` for an event, for users who chose to fail open."""
    return _own(event, "allow", code, message, None)


def _own(event: Mapping[str, Any], action: str, code: str, message: str, synthetic: str | None) -> Verdict:
    return Verdict(
        event_id=str(event.get("event_id", "")),
        thread_id=str(event.get("thread_id", "")),
        type=str(event.get("type", "")),
        action=action,
        allows_execution=action in ALLOWING,
        should_halt=False,
        code=code,
        message=message,
        decided_by="client",
        synthetic_result=synthetic,
    )


def parse_json(body: bytes) -> Any:
    """Reads JSON in which no member stands twice.

    Raises `UnreadableVerdict` for anything else.
    """

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        members = dict(pairs)
        if len(members) != len(pairs):
            raise UnreadableVerdict("a member of the answer stands twice")
        return members

    try:
        return json.loads(body, object_pairs_hook=once)
    except UnreadableVerdict:
        raise
    except (RecursionError, ValueError):
        # Python reads no number of more than 4,300 digits.
        raise UnreadableVerdict(f"the answer is no JSON ({len(body)} bytes)") from None


def shape(value: Any) -> str:
    """Returns what a value is, without its content."""
    if value is None:
        return "null"
    if isinstance(value, (str, bytes, list, tuple, dict, set, frozenset)):
        return f"{type(value).__name__} of length {len(value)}"
    return type(value).__name__


def read_verdict(value: Any, event: Mapping[str, Any]) -> Verdict:
    """Reads the verdict of an event.

    Raises `UnreadableVerdict` if a field is missing, contradicts another field, or belongs to another event.
    """
    if not isinstance(value, dict):
        raise UnreadableVerdict(f"the verdict is {shape(value)}, not an object")
    for name in ("event_id", "thread_id", "type"):
        if _text(value, name) != event[name]:
            raise UnreadableVerdict(f"`{name}` of the verdict is not that of the event")
    action = _text(value, "action")
    if action not in ACTIONS or (action == "suppress" and event["type"] != "model_response"):
        raise UnreadableVerdict(f"`action` is no known action of {event['type']}")
    allows = _flag(value, "allows_execution")
    if allows != (action in ALLOWING):
        raise UnreadableVerdict("`allows_execution` contradicts `action`")
    safety = value.get("safety")
    if safety is not None and not isinstance(safety, dict):
        raise UnreadableVerdict(f"`safety` is {shape(safety)}, not an object")
    return Verdict(
        event_id=event["event_id"],
        thread_id=event["thread_id"],
        type=event["type"],
        action=action,
        allows_execution=allows,
        should_halt=_flag(value, "should_halt"),
        code=_text(value, "code"),
        message=_text(value, "message"),
        decided_by=_text(value, "decided_by"),
        synthetic_result=_optional(value, "synthetic_result"),
        guidance=_optional(value, "guidance"),
        safety=safety,
        verdict_id=_optional(value, "verdict_id"),
        raw=value,
    )


def _text(value: Mapping[str, Any], name: str) -> str:
    found = value.get(name)
    if not isinstance(found, str):
        raise UnreadableVerdict(f"`{name}` is {shape(found)}, not a text")
    return found


def _optional(value: Mapping[str, Any], name: str) -> str | None:
    return None if value.get(name) is None else _text(value, name)


def _flag(value: Mapping[str, Any], name: str) -> bool:
    found = value.get(name)
    if not isinstance(found, bool):
        raise UnreadableVerdict(f"`{name}` is {shape(found)}, not true or false")
    return found
