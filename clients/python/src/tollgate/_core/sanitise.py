"""Rewrites a suppressed response, so that a host can keep the response in its history: the calls go, the text stays, and the text for the
user is appended. Rust does the same in `crates/core/src/decide/safety/reading/sanitise.rs`; both run `tests/sanitiser_cases.jsonl`."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from .places import (
    MESSAGE_CALLS,
    MESSAGE_WRAPPERS,
    RECORDED,
    RESPONSE_CALLS,
    RESPONSE_WRAPPERS,
    TEXTS,
    TOP_TEXTS,
    Block,
    Calls,
    Step,
)

IsCall = Callable[[Any, Calls], bool]


def sanitise_message(message: Mapping[str, Any], safety: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a LangChain message, in any of its serialisations, without calls. `additional_kwargs.safety_termination` says why."""
    copied: dict[str, Any] = copy.deepcopy(dict(message))
    _remove_all(copied, True, _suppressed_by(safety))
    inner: Any = copied
    wrapper = next((name for name in ("kwargs", "data") if isinstance(copied.get(name), dict)), None)
    if wrapper:
        inner = copied[wrapper]
    elif copied.get("messages"):
        inner = copied["messages"][-1] if isinstance(copied["messages"], list) else None
    if not isinstance(inner, dict):
        return copied
    text = safety.get("user_message")
    if isinstance(text, str):
        inner["content"] = _appended(inner.get("content"), "typed", text)
    kwargs = inner.setdefault("additional_kwargs", {})
    if isinstance(kwargs, dict):
        kwargs["safety_termination"] = {name: safety[name] for name in RECORDED if name in safety}
    return copied


def sanitise_response(response: Any, safety: Mapping[str, Any]) -> Any:
    """Returns a provider's native body without calls. The events of a stream, and a body that has no place for text, get no text."""
    copied = copy.deepcopy(response)
    is_call = _suppressed_by(safety)
    if isinstance(copied, list):
        return [event for event in copied if not _remove_all(event, False, is_call)]
    if _remove_all(copied, False, is_call):
        return None
    text = safety.get("user_message")
    if isinstance(text, str):
        _append_to_body(copied, text)
    return copied


def _suppressed_by(safety: Mapping[str, Any]) -> IsCall:
    """Returns what tells the calls that must not run: every call, or the calls that the provider flagged."""
    flagged = set(safety.get("suppressed_tool_call_ids") or ()) if safety.get("category") == "tool_flagged" else None

    def is_call(call: Any, at: Calls) -> bool:
        if not isinstance(call, dict) or (at.types and call.get(at.type_member) not in at.types):
            return False
        if flagged is None:
            return True
        return next((call[name] for name in at.ids if isinstance(call.get(name), str) and call[name]), None) in flagged

    return is_call


def _at(is_call: IsCall, at: Calls) -> Callable[[Any], bool]:
    return lambda call: is_call(call, at)


def _remove_all(body: Any, is_message: bool, is_call: IsCall) -> bool:
    """Removes the calls of a body and of its wrappers. Returns whether the body itself was a call."""
    for at in MESSAGE_CALLS if is_message else RESPONSE_CALLS:
        if not at.path:
            if is_call(body, at):
                return True
            continue
        # LangChain's own lists stay, empty.
        _remove(body, at.path, is_message and len(at.path) == 2, _at(is_call, at))
    for wrapper in MESSAGE_WRAPPERS if is_message else RESPONSE_WRAPPERS:
        for holder in _each(body, wrapper[:-1]):
            for name, inner in _entries(holder, wrapper[-1]):
                if isinstance(inner, dict) and _remove_all(inner, is_message, is_call):
                    holder[name] = None
    return False


def _remove(value: Any, path: tuple[Step, ...], keeps_empty: bool, is_call: Callable[[Any], bool]) -> None:
    """Removes the calls at a path. An empty list of calls goes too, because APIs refuse it, unless it is to be kept."""
    first, rest = path[0], path[1:]
    if isinstance(first, str) and not rest:
        if isinstance(value, dict) and is_call(value.get(first)):
            del value[first]
    elif path == ("tool_calls", 0):
        calls = value.get("tool_calls") if isinstance(value, dict) else None
        if isinstance(calls, list):
            calls[:] = [call for call in calls if not is_call(call)]
            if not calls and not keeps_empty:
                del value["tool_calls"]
    elif path == (0,):
        if isinstance(value, list):
            value[:] = [item for item in value if not is_call(item)]
    elif first == 0 and len(rest) == 1 and isinstance(rest[0], str):
        _remove_members(value, rest[0], is_call)
    else:
        for inner in _each(value, (first,)):
            _remove(inner, rest, keeps_empty, is_call)


def _remove_members(items: Any, name: str, is_call: Callable[[Any], bool]) -> None:
    """Removes the calls that are a member of an item; an item without text goes with its call."""
    if not isinstance(items, list):
        return

    def has_call(item: Any) -> bool:
        return isinstance(item, dict) and is_call(item.get(name))

    items[:] = [item for item in items if not has_call(item) or "text" in item or "content" in item]
    for item in items:
        if has_call(item):
            del item[name]


def _entries(holder: Any, step: Step) -> list[tuple[Any, Any]]:
    """Returns the keys and values of a holder that a step leads to."""
    if isinstance(step, str):
        return [(step, holder[step])] if isinstance(holder, dict) and step in holder else []
    if not isinstance(holder, list):
        return []
    entries = list(enumerate(holder))
    return entries[-1:] if step == -1 else entries


def _each(value: Any, path: tuple[Step, ...]) -> Iterator[Any]:
    """Yields every value at a path."""
    if not path:
        yield value
        return
    for _, inner in _entries(value, path[0]):
        yield from _each(inner, path[1:])


def _append_to_body(body: Any, text: str) -> bool:
    """Appends the text for the user to a body, or to the body in its wrapper. Returns whether there was a place for the text."""
    if not isinstance(body, dict):
        return False
    for holder_path, member, block in TEXTS:
        holders = [holder for holder in _each(body, holder_path) if isinstance(holder, dict)]
        for holder in holders:
            holder[member] = _appended(holder.get(member), block, text)
        if holders:
            return True
    for member, block in TOP_TEXTS:
        if isinstance(body.get(member), (str, list)):
            body[member] = _appended(body[member], block, text)
            return True
    for path in RESPONSE_WRAPPERS:
        # Every body behind a wrapper gets the text, so the list is made before it is asked.
        done = [_append_to_body(inner, text) for inner in _each(body, path)]
        if any(done):
            return True
    return False


def _appended(content: Any, block: Block, text: str) -> Any:
    """Returns content with a text behind a blank line."""
    if content is None or content == "":
        return text
    if isinstance(content, str):
        return f"{content}\n\n{text}"
    if not isinstance(content, list):
        return content
    if block == "typed":
        return [*content, {"type": "text", "text": f"\n\n{text}"}]
    if block == "part":
        return [*content, {"text": text}]
    return [*content, {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}]
