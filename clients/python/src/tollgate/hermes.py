"""The gate in Hermes: a plugin by entry point, which `hermes plugins enable tollgate` switches on.

Hermes runs a call whose hook raises, and goes on without a plugin that cannot be loaded. So nothing here raises, and settings that have no
meaning deny every call.
"""

from __future__ import annotations

import json
import uuid
from collections import OrderedDict
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Literal

from ._adapter import Adapter, Asker, AskerSettings, Unaskable, child_name
from ._answers import guided, loses_calls, plain, safety_of, stop_text
from ._core.client import DEFAULT_URL
from ._core.events import Scope
from ._core.sanitise import sanitise_response
from ._core.verdict import Verdict, denial

if TYPE_CHECKING:
    from typing_extensions import Unpack

TEXTS = ("message", "reasoning", "text", "thinking", "redacted_thinking")
"""The types of what is no call in a response of the Responses or the Messages API."""
KEPT_MAX = 1024
"""How many turns, responses and subagents are remembered; the oldest is forgotten."""


def register(ctx: Any) -> None:
    """Registers the plugin with settings from the environment. Hermes calls this function."""
    TollgatePlugin().register(ctx)


class _Kept(OrderedDict[Any, Any]):
    """A dictionary that forgets its oldest entry."""

    def __setitem__(self, key: Any, value: Any) -> None:
        super().__setitem__(key, value)
        self.move_to_end(key)
        if len(self) > KEPT_MAX:
            self.popitem(last=False)


class TollgatePlugin(Adapter):
    """Asks the gate for each response, call and result. After a halt Hermes reads an answer without calls in place of the next response.

    The settings are those of `Gate`. The thread is the session, and a subagent is the thread `<session of the parent>/<session>`.
    """

    def __init__(self, url: str | None = None, **settings: Unpack[AskerSettings]) -> None:
        self._fault: str | None = None
        try:
            self._asker = Asker(url, **settings)
        except ValueError as error:
            self._asker, self._fault = Asker(DEFAULT_URL), str(error)
        self._parents, self._tasks = _Kept(), _Kept()
        self._halts, self._last, self._stopped = _Kept(), _Kept(), _Kept()

    def register(self, ctx: Any) -> None:
        """Registers the middleware and the hook with a context of Hermes."""
        ctx.register_middleware("tool_execution", self.tool_execution)
        ctx.register_middleware("llm_execution", self.llm_execution)
        ctx.register_hook("subagent_start", self.subagent_start)

    def subagent_start(self, parent_session_id: str | None = None, child_session_id: str | None = None, **_: Any) -> None:
        """Remembers whose subagent a session is."""
        if parent_session_id and child_session_id:
            self._parents[child_session_id] = parent_session_id

    def tool_execution(self, tool_name: str, args: Any, next_call: Any, **where: Any) -> Any:
        """Asks before a tool runs, and for its result."""
        asked = self._before(tool_name, args, where)
        if not asked.allows_execution:
            return _refusal(asked)
        try:
            result = next_call(args)
        except Exception as error:
            self._after(tool_name, args, str(error), where, True)
            raise
        told = self._after(tool_name, args, result, where, None)
        return _told(result, told)

    def llm_execution(self, request: Any, next_call: Any, **where: Any) -> Any:
        """Asks for a response, and takes the calls out of a response whose calls must not run. Ends the run after a halt."""
        turn = where.get("session_id"), where.get("turn_id")
        if turn in self._halts and turn in self._last:
            return _without_calls(self._last[turn], self._halts[turn], keeps_text=False)
        response = next_call(request)
        self._last[turn] = response
        body = _readable(response)
        asked = self._ask("model_response", where, response=body, response_id=body.get("id") if isinstance(body, dict) else None)
        if not loses_calls(asked, _has_calls(body)):
            return response
        self._stopped[where.get("session_id"), where.get("api_request_id")] = asked
        return _without_calls(response, asked, keeps_text=True)

    def _before(self, name: str, args: Any, where: dict[str, Any]) -> Verdict:
        session, turn = where.get("session_id"), where.get("turn_id")
        stopped = self._halts.get((session, turn)) or self._stopped.get((session, where.get("api_request_id")))
        if stopped and session:
            return denial({"type": "tool_call"}, stopped.code, stop_text(stopped))
        where.setdefault("tool_call_id", "")
        where["tool_call_id"] = where["tool_call_id"] or str(uuid.uuid4())
        asked = self._ask("tool_call", where, name, plain(args), **_ids(where))
        self._note(where, asked)
        return asked

    def _after(self, name: str, args: Any, result: Any, where: dict[str, Any], failed: bool | None) -> Verdict:
        event = {"tool_input": plain(args), "failed": failed, **_ids(where)}
        told = self._ask("tool_result", where, name, plain(result), **event)
        self._note(where, told)
        return told

    def _ask(
        self, kind: Literal["tool_call", "tool_result", "model_response"], where: dict[str, Any], *event: Any, **fields: Any
    ) -> Verdict:
        return self._asker.ask(kind, lambda: self._scope(where), *event, **fields)

    def _note(self, where: dict[str, Any], verdict: Verdict) -> None:
        if verdict.should_halt:
            self._halts[where.get("session_id"), where.get("turn_id")] = verdict

    def _scope(self, where: dict[str, Any]) -> Scope:
        """Returns the turn of an event. A call that a script makes carries no session, but the task of the script's own call."""
        if self._fault:
            raise Unaskable("settings_invalid", f"the gate's settings have no meaning: {self._fault}")
        session, task = where.get("session_id"), where.get("task_id")
        if not session:
            if task not in self._tasks:
                raise Unaskable("no_session", "Hermes names no session of this call")
            known: Scope = self._tasks[task]
            return known
        parent = self._parents.get(session)
        turn, who = where.get("turn_id") or None, self._asker.who
        scope = Scope(parent, turn, False, who).child(child_name(session)) if parent else Scope(session, turn, False, who)
        if task:
            self._tasks[task] = scope
        return scope


def _ids(where: dict[str, Any]) -> dict[str, str | None]:
    """Returns the ids of a call and of its response, which has the name of the request to the model."""
    return {"tool_call_id": where["tool_call_id"], "response_id": where.get("api_request_id")}


def _refusal(verdict: Verdict) -> str:
    """Returns the result of a call that may not run. Hermes shows a failure by `error`, and that of its terminal by the exit code."""
    text = verdict.text_for_agent
    return _beside(text, "exit_code", -1) or json.dumps({"error": text, "exit_code": -1}, ensure_ascii=False)


def _told(result: Any, verdict: Verdict) -> Any:
    """Returns a result with the gate's guidance. Hermes reads the objects that its tools return, so that these stay objects."""
    if not verdict.guidance or not isinstance(result, str):
        return result
    return _beside(result, "tollgate_guidance", verdict.guidance) or guided(result, verdict)


def _beside(text: str, name: str, value: Any) -> str | None:
    """Returns the text of a JSON object with a further member and all else as it was, or None for another text."""
    try:
        members = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(members, dict):
        return None
    member = json.dumps({name: value}, ensure_ascii=False)[1:]
    return f"{text.rstrip()[:-1].rstrip()}{', ' if members else ''}{member}"


def _readable(response: Any) -> Any:
    """Returns the body of a response, or None, which the client refuses to ask for."""
    try:
        return _body(response)
    except Exception:
        return None


def _body(value: Any) -> Any:
    """Returns a response as the provider gave it: an object of an SDK, or one that Hermes put together from a stream."""
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    if isinstance(value, SimpleNamespace):
        return {name: _body(inner) for name, inner in vars(value).items()}
    if isinstance(value, dict):
        return {name: _body(inner) for name, inner in value.items()}
    return [_body(inner) for inner in value] if isinstance(value, (list, tuple)) else value


def _has_calls(body: Any) -> bool:
    """Returns whether a response may have calls: all that is not known for text may be one."""
    try:
        if "choices" in body:
            return any(choice["message"].get(name) for choice in body["choices"] for name in ("tool_calls", "function_call"))
        return any(item["type"] not in TEXTS for item in body["output" if "output" in body else "content"])
    except (AttributeError, KeyError, TypeError):
        return True


def _without_calls(response: Any, verdict: Verdict, keeps_text: bool) -> Any:
    """Returns a response without its calls and with the text for the user, as if the model had ended its turn."""
    text = stop_text(verdict)
    safety = {**safety_of(verdict), "user_message": text if keeps_text else None}
    body = sanitise_response(_body(response), safety)
    if not isinstance(body, dict):
        return response
    for choice in body.get("choices") or ():
        choice["finish_reason"] = "stop"
        # Hermes reads the member of each message.
        choice["message"].setdefault("tool_calls", None)
        if not keeps_text:
            choice["message"]["content"] = text
    if "stop_reason" in body:
        body["stop_reason"] = "end_turn"
        body["content"] = body["content"] if keeps_text else [{"type": "text", "text": text}]
    if isinstance(body.get("output"), list):
        # Hermes asks again for a response that is incomplete, or has no output.
        body["status"], body["incomplete_details"] = "completed", None
        said = {"type": "message", "role": "assistant", "status": "completed", "content": [{"type": "output_text", "text": text}]}
        body["output"] = body["output"] if keeps_text else [said]
    return type(response).model_validate(body) if hasattr(response, "model_validate") else _object(body)


def _object(value: Any) -> Any:
    return json.loads(json.dumps(value), object_hook=lambda members: SimpleNamespace(**members))
