"""What the adapters make of a host's values for the gate, and of a verdict for the agent and the user."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ._core.verdict import Verdict


def plain(value: Any) -> Any:
    """Returns a value of a host with pydantic as JSON holds it; another value stays, so that the client names what JSON cannot hold."""
    from pydantic_core import to_jsonable_python

    try:
        return to_jsonable_python(value)
    except Exception:
        return value


def guided(text: Any, verdict: Verdict) -> Any:
    """Returns a tool's result with the gate's guidance behind it, which brings its own blank line."""
    if not verdict.guidance:
        return text
    if isinstance(text, list):
        return [*text, {"type": "text", "text": verdict.guidance}]
    return f"{text}{verdict.guidance}"


def loses_calls(verdict: Verdict, has_calls: bool) -> bool:
    """Returns whether a response has to be rewritten: one that the gate suppresses, and one with calls that the gate gave no verdict on.

    A verdict on a response decides about its calls alone, so a response without calls stays as the model gave it.
    """
    is_unread = verdict.decided_by in ("client", "envelope")
    return not verdict.allows_execution and (has_calls or not is_unread)


def stop_text(verdict: Verdict) -> str:
    """Returns the text for the user whose response, call or run was stopped."""
    text = (verdict.safety or {}).get("user_message")
    return text if isinstance(text, str) and text else verdict.message or verdict.code


def safety_of(verdict: Verdict) -> Mapping[str, Any]:
    """Returns why a response was stopped; the adapter's own words if the gate gave no reason."""
    fallback = {"detector": "tollgate", "reason_field": "code", "reason_value": verdict.code, "user_message": stop_text(verdict)}
    return verdict.safety or fallback
