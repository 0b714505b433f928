"""The gate in front of the tools of Pydantic AI: `Agent(model, capabilities=[TollgateCapability()])`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pydantic_ai import RunContext, ToolDefinition
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.exceptions import AgentRunError, ApprovalRequired, CallDeferred
from pydantic_ai.messages import ModelMessagesTypeAdapter, ModelResponse, TextPart, ToolCallPart, ToolReturn
from pydantic_ai.models import ModelRequestContext

from ._adapter import Adapter, Asker, AskerSettings, inside, outer_turn, subagent
from ._answers import guided, loses_calls, plain, safety_of, stop_text
from ._core.events import Scope
from ._core.sanitise import sanitise_response
from ._core.verdict import Verdict

if TYPE_CHECKING:
    from typing_extensions import Unpack


class Halt(AgentRunError):
    """A verdict that ends the run. `verdict` says why."""

    def __init__(self, verdict: Verdict) -> None:
        super().__init__(stop_text(verdict))
        self.verdict = verdict


class TollgateCapability(Adapter, AbstractCapability[Any]):
    """Asks the gate for each response, call and result. A halt ends the run with `Halt`.

    The settings are those of `Gate`. The thread is the run's `conversation_id`; an agent that runs inside a tool of another agent is the
    thread `<thread>/<id of the call>`. Raises `ValueError` for a setting that can have no meaning.
    """

    def __init__(self, url: str | None = None, **settings: Unpack[AskerSettings]) -> None:
        self._asker = Asker(url, **settings)

    async def wrap_run(self, ctx: RunContext[Any], *, handler: Any) -> Any:
        """Runs an agent as a turn of its thread."""
        await self._asker.atell(lambda: self._turn(ctx), "turn_start")
        try:
            scope = self._turn(ctx)
        except ValueError:
            return await handler()
        try:
            with inside(scope):
                return await handler()
        finally:
            await self._asker.atell(lambda: scope, "turn_end")

    async def after_model_request(
        self, ctx: RunContext[Any], *, request_context: ModelRequestContext, response: ModelResponse
    ) -> ModelResponse:
        """Takes the calls out of a response whose calls must not run."""
        (body,) = ModelMessagesTypeAdapter.dump_python([response], mode="json")
        verdict = await self._asker.aask(
            "model_response",
            lambda: self._turn(ctx),
            response=body,
            response_id=response.provider_response_id,
            provider=response.provider_name,
        )
        if not loses_calls(verdict, any(isinstance(part, ToolCallPart) for part in response.parts)):
            return response
        safety = {name: value for name, value in safety_of(verdict).items() if name != "user_message"}
        (kept,) = ModelMessagesTypeAdapter.validate_python([sanitise_response(body, safety)])
        return replace(response, parts=[*kept.parts, TextPart(stop_text(verdict))])

    async def wrap_tool_execute(
        self, ctx: RunContext[Any], *, call: ToolCallPart, tool_def: ToolDefinition, args: dict[str, Any], handler: Any
    ) -> Any:
        """Asks before the tool runs, and for its result."""
        asking = _asking(ctx, call)
        event = {
            "tool_input": plain(args),
            "tool_call_id": call.tool_call_id,
            "response_id": asking.provider_response_id if asking else None,
        }
        asked = await self._asker.aask("tool_call", lambda: self._scope(ctx, call), call.tool_name, **event)
        if asked.should_halt:
            raise Halt(asked)
        if not asked.allows_execution:
            return asked.text_for_agent
        try:
            with subagent(call.tool_call_id):
                result = await handler(args)
        except (ApprovalRequired, CallDeferred):
            raise
        except Exception as error:
            told = await self._result(ctx, call, {**event, "failed": True}, str(error))
            if told.should_halt:
                raise Halt(told) from error
            raise
        told = await self._result(ctx, call, event, plain(result.return_value if isinstance(result, ToolReturn) else result))
        if told.should_halt:
            raise Halt(told)
        return _told(result, told)

    async def _result(self, ctx: RunContext[Any], call: ToolCallPart, event: dict[str, Any], result: Any) -> Verdict:
        return await self._asker.aask("tool_result", lambda: self._scope(ctx, call), call.tool_name, result, **event)

    def _turn(self, ctx: RunContext[Any]) -> Scope:
        """Returns the turn of a run. A name that the contract cannot hold is refused when the first call is asked for."""
        return outer_turn() or Scope(str(ctx.conversation_id), str(ctx.run_id), False, self._asker.who)

    def _scope(self, ctx: RunContext[Any], call: ToolCallPart) -> Scope:
        """Returns the turn of a call. A call that was deferred belongs to the run whose response asked for it, so that it counts once."""
        scope, asking = self._turn(ctx), _asking(ctx, call)
        return scope if scope.is_subagent or asking is None else replace(scope, turn_id=asking.run_id or scope.turn_id)


def _asking(ctx: RunContext[Any], call: ToolCallPart) -> ModelResponse | None:
    """Returns the response that asks for a call."""
    responses = (message for message in reversed(ctx.messages) if isinstance(message, ModelResponse))
    ids = ((response, {part.tool_call_id for part in response.parts if isinstance(part, ToolCallPart)}) for response in responses)
    return next((response for response, asked in ids if call.tool_call_id in asked), None)


def _told(result: Any, verdict: Verdict) -> Any:
    """Returns a result with the gate's guidance: behind a text, and beside any other value."""
    if not verdict.guidance:
        return result
    if isinstance(result, str):
        return guided(result, verdict)
    if not isinstance(result, ToolReturn):
        return ToolReturn(result, content=verdict.guidance)
    content = [result.content] if isinstance(result.content, str) else list(result.content or ())
    return replace(result, content=[*content, verdict.guidance])
