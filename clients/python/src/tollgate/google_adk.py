"""The gate in front of the tools of Google's ADK: `Runner(…, plugins=[TollgatePlugin()])`.

Put the plugin first: a plugin before it that answers in the place of a model hides the response from the gate.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from google.adk.models.llm_response import LlmResponse
from google.adk.plugins import BasePlugin
from google.adk.tools.agent_tool import AgentTool
from google.genai import types

from ._adapter import Adapter, Asker, AskerSettings, Unaskable, child_name, enter, outer_turn
from ._answers import loses_calls, plain, safety_of, stop_text
from ._core.events import Scope
from ._core.sanitise import sanitise_response
from ._core.verdict import Verdict

if TYPE_CHECKING:
    from typing_extensions import Unpack

GUIDANCE = "tollgate_guidance"
"""The member of a tool's result that holds the gate's guidance."""


class TollgatePlugin(Adapter, BasePlugin):
    """Asks the gate for each response, call and result of all agents of a runner. After a halt no model is asked again.

    The settings are those of `Gate`. The thread is the session, and the turn the invocation; an agent that is a tool is the thread
    `<session>/<id of the call>`, and a parallel branch the thread `<session>/<branch>`.
    Raises `ValueError` for a setting that can have no meaning.
    """

    def __init__(self, url: str | None = None, **settings: Unpack[AskerSettings]) -> None:
        super().__init__(name="tollgate")
        self._asker = Asker(url, **settings)
        self._halts: dict[tuple[str, str | None], Verdict] = {}
        self._calls: dict[tuple[str, str | None], Scope | None] = {}

    async def before_run_callback(self, *, invocation_context: Any) -> None:
        """Begins a turn."""
        await self._asker.atell(lambda: self._scope(invocation_context), "turn_start")

    async def after_run_callback(self, *, invocation_context: Any) -> None:
        """Ends a turn, and forgets its halts and calls."""
        await self._asker.atell(lambda: self._scope(invocation_context), "turn_end")
        kept: dict[Any, Any]
        for kept in (self._halts, self._calls):
            for key in [key for key in kept if key[0] == invocation_context.invocation_id]:
                del kept[key]

    async def on_run_error_callback(self, *, invocation_context: Any, error: Exception) -> None:
        """Ends a turn that failed."""
        await self.after_run_callback(invocation_context=invocation_context)

    async def before_model_callback(self, *, callback_context: Any, llm_request: Any) -> LlmResponse | None:
        """Ends the run after a halt."""
        halt = self._halts.get(self._place(callback_context))
        return LlmResponse(content=_says(stop_text(halt))) if halt else None

    async def after_model_callback(self, *, callback_context: Any, llm_response: LlmResponse) -> LlmResponse | None:
        """Takes the calls out of a response whose calls must not run. A part of a stream is asked for with the whole."""
        if llm_response.partial or self._place(callback_context) in self._halts:
            return None
        body = _native(llm_response)
        verdict = await self._asker.aask("model_response", lambda: self._scope(callback_context), response=body, provider="gemini")
        if not loses_calls(verdict, bool(llm_response.get_function_calls())):
            return None
        safety = {name: value for name, value in safety_of(verdict).items() if name != "user_message"}
        kept = types.Content.model_validate(sanitise_response(body, safety)["candidates"][0].get("content") or {})
        return llm_response.model_copy(update={"content": _says(stop_text(verdict), kept.parts)})

    async def before_tool_callback(self, *, tool: Any, tool_args: dict[str, Any], tool_context: Any) -> dict[str, Any] | None:
        """Asks before the tool runs."""
        call = tool_context.function_call_id
        event = {"tool_input": plain(tool_args), **_ids(tool_context)}
        asked = await self._asker.aask("tool_call", lambda: self._scope_of_call(tool, tool_context), tool.name, **event)
        if not asked.allows_execution:
            self._note(tool_context, asked)
            return {"error": asked.text_for_agent}
        self._calls[tool_context.invocation_id, call] = outer_turn()
        if isinstance(tool, AgentTool):
            enter(self._scope(tool_context).child(child_name(call or tool.name)))
        return None

    async def after_tool_callback(self, *, tool: Any, tool_args: dict[str, Any], tool_context: Any, result: Any) -> dict[str, Any] | None:
        """Asks for a result. The result of a call that did not run, or that waits for a confirmation, is none."""
        if not self._left(tool_context) or tool_context.function_call_id in tool_context.actions.requested_tool_confirmations:
            return None
        value = result["result"] if isinstance(result, dict) and set(result) == {"result"} else result
        verdict = await self._result(tool, tool_args, tool_context, plain(value), None)
        if not verdict.guidance:
            return None
        return {**(result if isinstance(result, dict) else {"result": result}), GUIDANCE: verdict.guidance}

    async def on_tool_error_callback(self, *, tool: Any, tool_args: dict[str, Any], tool_context: Any, error: BaseException) -> None:
        """Asks for the result of a call that raised. A call that was cancelled has no result."""
        if self._left(tool_context) and isinstance(error, Exception):
            await self._result(tool, tool_args, tool_context, str(error), True)

    async def _result(self, tool: Any, args: Any, context: Any, result: Any, failed: bool | None) -> Verdict:
        event = {"tool_input": plain(args), "failed": failed, **_ids(context)}
        told = await self._asker.aask("tool_result", lambda: self._scope_of_call(tool, context), tool.name, result, **event)
        self._note(context, told)
        return told

    def _left(self, context: Any) -> bool:
        """Returns whether a call ran, and leaves the subagent that it opened."""
        key = (context.invocation_id, context.function_call_id)
        if key not in self._calls:
            return False
        enter(self._calls.pop(key))
        return True

    def _note(self, context: Any, verdict: Verdict) -> None:
        if verdict.should_halt:
            self._halts[self._place(context)] = verdict

    def _place(self, context: Any) -> tuple[str, str]:
        """Returns where a halt holds: an invocation, and a branch of it."""
        return context.invocation_id, getattr(context, "branch", None) or ""

    def _scope(self, context: Any) -> Scope:
        """Returns the turn of an invocation, or of a branch of it."""
        outer = outer_turn() or Scope(context.session.id, context.invocation_id, False, self._asker.who)
        branch = getattr(context, "branch", None)
        return outer.child(child_name(branch)) if branch else outer

    def _scope_of_call(self, tool: Any, context: Any) -> Scope:
        """Returns the turn of a call. A call that waited for a confirmation belongs to the invocation that asked for it."""
        if isinstance(tool, AgentTool) and not tool.include_plugins:
            raise Unaskable("agent_ungated", "the agent that is this tool runs without plugins: set `include_plugins`")
        scope, asking = self._scope(context), _asking(context)
        return scope if scope.is_subagent or asking is None else Scope(scope.thread_id, asking.invocation_id, False, scope.who)


def _asking(context: Any) -> Any:
    """Returns the event of the session that asks for a call."""
    ident = context.function_call_id
    return next((event for event in reversed(context.session.events) if any(call.id == ident for call in event.get_function_calls())), None)


def _ids(context: Any) -> dict[str, str | None]:
    """Returns the ids of a call and of its response, which ADK names by the event of its session."""
    asking = _asking(context)
    return {"tool_call_id": context.function_call_id, "response_id": asking.id if asking else None}


def _native(response: LlmResponse) -> dict[str, Any]:
    """Returns a response as Gemini's API gives it."""
    whole = response.model_dump(mode="json", by_alias=True, exclude_none=True)
    candidate = {name: whole[name] for name in ("content", "finishReason") if name in whole}
    body: dict[str, Any] = {"candidates": [candidate]}
    if response.content is None and response.finish_reason is None and response.error_code:
        body["promptFeedback"] = {"blockReason": response.error_code}
    return body | {name: whole[name] for name in ("usageMetadata", "modelVersion") if name in whole}


def _says(text: str, parts: list[types.Part] | None = None) -> types.Content:
    return types.Content(role="model", parts=[*(parts or ()), types.Part(text=text)])
