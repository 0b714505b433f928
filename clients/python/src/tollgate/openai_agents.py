"""The gate in front of the tools of the OpenAI Agents SDK: `gate.guard(agent)`, and `async with gate.turn(thread_id)` around a run."""

from __future__ import annotations

import copy
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, cast

from agents import (
    Agent,
    FunctionTool,
    Handoff,
    Model,
    ModelProvider,
    ModelResponse,
    MultiProvider,
    ToolGuardrailFunctionOutput,
    ToolInputGuardrail,
    ToolInputGuardrailData,
    ToolOutputGuardrail,
    ToolOutputGuardrailData,
    default_tool_error_function,
)
from openai.types.responses import ResponseOutputItem, ResponseOutputMessage, ResponseOutputText
from pydantic import TypeAdapter

from ._adapter import Adapter, Asker, AskerSettings, Unaskable, open_turn, subagent
from ._answers import guided, loses_calls, plain, safety_of, stop_text
from ._bodies import Body, collect_bodies, http_client
from ._core.events import Scope, Who
from ._core.sanitise import sanitise_response
from ._core.verdict import Verdict

if TYPE_CHECKING:
    from typing_extensions import Unpack

_ITEMS: TypeAdapter[list[ResponseOutputItem]] = TypeAdapter(list[ResponseOutputItem])
__all__ = ["Tollgate", "http_client"]
Allow, Reject, Halt = (getattr(ToolGuardrailFunctionOutput, name) for name in ("allow", "reject_content", "raise_exception"))


class Tollgate(Adapter):
    """Asks the gate for the responses, calls and results of guarded agents. A halt ends the run with the SDK's tripwire exception.

    The settings are those of `Gate`. Raises `ValueError` for a setting that can have no meaning.
    """

    def __init__(self, url: str | None = None, **settings: Unpack[AskerSettings]) -> None:
        self._asker = Asker(url, **settings)
        self._before: ToolInputGuardrail[Any] = ToolInputGuardrail(self._called, name="tollgate")
        self._after: ToolOutputGuardrail[Any] = ToolOutputGuardrail(self._returned, name="tollgate")

    def turn(self, thread_id: str, *, turn_id: str | None = None, who: Who | None = None) -> AbstractAsyncContextManager[Scope]:
        """Opens a turn of a thread, in which guarded agents run. Give a turn's id again to resume the turn.

        Raises `ValueError` for an id that is too long or no text.
        """
        return self._asker.aturn(thread_id, turn_id=turn_id, who=who)

    def guard(self, agent: Agent[Any], *, provider: ModelProvider | None = None, ungated: Collection[str] = ()) -> Agent[Any]:
        """Changes an agent, the agents it hands over to and those that are its tools, so that they ask the gate; returns the agent.

        `provider` gives the models that an agent names, the SDK's own if it is left out. `ungated` has the names of tools that may run
        without the gate: the SDK runs no guardrail for tools that are no functions.
        Raises `ValueError` for another tool that is no function, and for a hand-over whose agent is not known.
        """
        reached: list[Agent[Any]] = []
        _reach(agent, ungated, reached)
        # Nothing changes before all tools and hand-overs are known to be gated.
        for each in reached:
            model = each.model if isinstance(each.model, Model) else (provider or MultiProvider()).get_model(each.model)
            each.model = _GatedModel(model, self._asker)
            each.tools = [self._tool(tool) if isinstance(tool, FunctionTool) else tool for tool in each.tools]
            for server in each.mcp_servers:
                # Agents may share a server.
                if self._before not in (server.tool_input_guardrails or ()):
                    server.tool_input_guardrails = [self._before, *(server.tool_input_guardrails or ())]
                    server.tool_output_guardrails = [*(server.tool_output_guardrails or ()), self._after]
        return agent

    def _tool(self, tool: FunctionTool) -> FunctionTool:
        gated = copy.copy(tool)
        gated.tool_input_guardrails = [self._before, *(tool.tool_input_guardrails or ())]
        gated.tool_output_guardrails = [*(tool.tool_output_guardrails or ()), self._after]
        if tool._is_agent_tool:
            gated.on_invoke_tool = _as_subagent(tool.on_invoke_tool)
        return gated

    async def _called(self, data: ToolInputGuardrailData) -> ToolGuardrailFunctionOutput:
        context = data.context
        verdict = await self._asker.aask(
            "tool_call", lambda: _scope(data), context.tool_name, context.tool_arguments, tool_call_id=context.tool_call_id
        )
        if verdict.should_halt:
            return cast(ToolGuardrailFunctionOutput, Halt(verdict))
        return cast(ToolGuardrailFunctionOutput, Allow() if verdict.allows_execution else Reject(verdict.text_for_agent, verdict))

    async def _returned(self, data: ToolOutputGuardrailData) -> ToolGuardrailFunctionOutput:
        context = data.context
        failed = data.output == default_tool_error_function(context, Exception()) or None
        fields = {"tool_input": context.tool_arguments, "tool_call_id": context.tool_call_id, "failed": failed}
        verdict = await self._asker.aask("tool_result", lambda: _scope(data), context.tool_name, plain(data.output), **fields)
        if verdict.should_halt:
            return cast(ToolGuardrailFunctionOutput, Halt(verdict))
        told = Reject(guided(str(data.output), verdict), verdict) if verdict.guidance else Allow()
        return cast(ToolGuardrailFunctionOutput, told)


def _reach(agent: Agent[Any], ungated: Collection[str], reached: list[Agent[Any]]) -> None:
    """Adds an agent and the agents that it reaches, without those that are gated already."""
    if isinstance(agent.model, _GatedModel) or any(agent is each for each in reached):
        return
    reached.append(agent)
    for tool in agent.tools:
        if not isinstance(tool, FunctionTool) and tool.name not in ungated:
            raise ValueError(f"tool `{tool.name}` is no function, so it cannot be gated: leave it out, or name it in `ungated`")
        if isinstance(tool, FunctionTool) and tool._is_agent_tool:
            _reach(tool._agent_instance, ungated, reached)
    for target in agent.handoffs:
        found = target._agent_ref() if isinstance(target, Handoff) and target._agent_ref else target
        if not isinstance(found, Agent):
            raise ValueError(f"a hand-over of agent `{agent.name}` names no agent: make it with `handoff(agent)`")
        _reach(found, ungated, reached)


def _scope(data: ToolInputGuardrailData) -> Scope:
    """Returns the open turn of a call."""
    config = data.context.run_config
    if config is not None and config.model is not None:
        text = "`RunConfig(model=…)` replaces the guarded model, whose responses the gate has to see: give the model to the agent"
        raise Unaskable("response_unseen", text)
    return open_turn()


def _as_subagent(invoke: Callable[[Any, str], Awaitable[Any]]) -> Callable[[Any, str], Awaitable[Any]]:
    async def inside(context: Any, arguments: str) -> Any:
        with subagent(context.tool_call_id):
            return await invoke(context, arguments)

    return inside


class _GatedModel(Model):
    """A model whose responses lose the calls that must not run."""

    def __init__(self, inner: Model, asker: Asker) -> None:
        self._inner, self._asker = inner, asker

    def get_retry_advice(self, request: Any) -> Any:
        return self._inner.get_retry_advice(request)

    async def close(self) -> None:
        await self._inner.close()

    async def get_response(self, *args: Any, **fields: Any) -> ModelResponse:
        bodies = collect_bodies()
        try:
            response = await self._inner.get_response(*args, **fields)
        except Exception:
            # The SDK raises for an incomplete response, which the gate has to know too.
            if bodies:
                await self._ask(bodies, {"object": "response", "output": []}, None)
            raise
        seen = {"object": "response", "status": "completed", "output": _dumped(response.output)}
        verdict = await self._ask(bodies, seen, response.response_id)
        if loses_calls(verdict, _has_calls(response.output)):
            response.output = _kept(response.output, verdict)
        return response

    async def stream_response(self, *args: Any, **fields: Any) -> AsyncIterator[Any]:
        bodies = collect_bodies()
        async for event in self._inner.stream_response(*args, **fields):
            if event.type in ("response.completed", "response.incomplete"):
                verdict = await self._ask(bodies, event.response.model_dump(mode="json"), event.response.id)
                if loses_calls(verdict, _has_calls(event.response.output)):
                    response = event.response.model_copy(update={"output": _kept(event.response.output, verdict)})
                    event = event.model_copy(update={"response": response})
            yield event

    async def _ask(self, bodies: list[Body], seen: Any, response_id: str | None) -> Verdict:
        native = bodies[-1].read() if bodies else None
        return await self._asker.aask("model_response", open_turn, response=native or seen, response_id=response_id)


def _dumped(output: list[Any]) -> list[Any]:
    return [item if isinstance(item, dict) else item.model_dump(mode="json", exclude_unset=True) for item in output]


def _has_calls(output: list[Any]) -> bool:
    """Returns whether a response has more than text. The SDK has many kinds of calls, and gets new ones."""
    kinds = (item.get("type") if isinstance(item, dict) else getattr(item, "type", None) for item in output)
    return any(kind not in ("message", "reasoning") for kind in kinds)


def _kept(output: list[Any], verdict: Verdict) -> list[Any]:
    """Returns the items of a response without calls that must not run, and with the text for the user. The SDK fills up an empty list."""
    safety = {name: value for name, value in safety_of(verdict).items() if name != "user_message"}
    items = sanitise_response({"object": "response", "output": _dumped(output)}, safety)["output"]
    text = ResponseOutputText(type="output_text", text=stop_text(verdict), annotations=[])
    message = ResponseOutputMessage(id=f"msg_{uuid.uuid4().hex}", type="message", role="assistant", status="completed", content=[text])
    return [*_ITEMS.validate_python(items), message]
