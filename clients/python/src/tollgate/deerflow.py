"""The gate in DeerFlow, by class path: `tollgate.deerflow:TollgateMiddleware` as an extension, or `tollgate.deerflow:TollgateProvider`.

The middleware is the whole gate. The provider is asked for calls alone: it sees no results, finds no loops and ends no run.
"""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Annotated, Any, Literal

from langchain.agents.middleware.types import PrivateStateAttr
from langchain_core.messages import AIMessage
from typing_extensions import NotRequired

from ._adapter import Adapter, Asker, Unaskable
from ._core.events import Scope, Who
from ._core.verdict import Verdict
from .langchain import TollgateMiddleware as LangChainMiddleware
from .langchain import TollgateState, event_of_answer, kept_answer, latest, new_turn_state

CHILD = "subagent"
"""The name of every subagent to the provider, which DeerFlow does not tell which subagent asks."""

ATTRIBUTES = ("user_id", "user_role", "run_id")
_shared = lru_cache(maxsize=16)(Asker)
"""DeerFlow makes a provider for each agent and subagent: providers with the same settings share their connections."""


@dataclass(frozen=True)
class Reason:
    """Why a call may not run, as DeerFlow reads it."""

    code: str
    message: str


@dataclass(frozen=True)
class Decision:
    """Whether a call may run, as DeerFlow reads it."""

    allow: bool
    reasons: list[Reason] = field(default_factory=list)
    policy_id: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict)


class TollgateProvider(Adapter):
    """A guardrail provider of DeerFlow. It never raises, so that `fail_closed: false` does not let a call run.

    The settings are those of `Gate`; DeerFlow gives `framework` besides. Raises `ValueError` for a setting that can have no meaning.
    """

    name = "tollgate"

    def __init__(
        self,
        url: str | None = None,
        *,
        token: str | None = None,
        deadline: float = 2.0,
        on_failure: Literal["closed", "open"] = "closed",
        tenant_id: str | None = None,
        framework: str | None = None,
    ) -> None:
        self._asker = _shared(url, token=token, deadline=deadline, on_failure=on_failure)
        self._tenant_id = tenant_id

    def evaluate(self, request: Any) -> Decision:
        """Returns whether a call may run."""
        return _decision(self._asker.ask("tool_call", lambda: self._scope(request), *_call(request), tool_call_id=_id(request)))

    async def aevaluate(self, request: Any) -> Decision:
        """Returns whether a call may run."""
        return _decision(await self._asker.aask("tool_call", lambda: self._scope(request), *_call(request), tool_call_id=_id(request)))

    def _scope(self, request: Any) -> Scope:
        if not request.thread_id:
            raise Unaskable("no_thread", "DeerFlow names no thread of this call: run the agent with a `thread_id` in its context")
        known = {name: getattr(request, name, None) for name in ATTRIBUTES}
        scope = Scope(request.thread_id, known["run_id"], False, Who(agent_id=request.agent_id, tenant_id=self._tenant_id, **known))
        return scope.child(CHILD) if request.is_subagent else scope


class DeerFlowState(TollgateState):
    """The state that the middleware keeps besides: for whom the run is."""

    tollgate_who: NotRequired[Annotated[dict[str, str] | None, PrivateStateAttr, latest]]


class TollgateMiddleware(LangChainMiddleware):
    """Asks the gate for each response, call and result of DeerFlow's lead and its subagents. A halt ends the run.

    Responses are asked for before DeerFlow's own middleware for safety stops rewrites them. Each run of a subagent is a thread
    `<thread>/<child>`. The settings are those of `Gate`; DeerFlow gives none, so that they stand in the environment.
    """

    state_schema = DeerFlowState

    def after_model(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        """Does nothing: `wrap_model_call` asked for the response."""
        return None

    async def aafter_model(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        """Does nothing: `awrap_model_call` asked for the response."""
        return None

    def wrap_model_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        """Asks for the response, and takes the calls out of a response whose calls must not run."""
        response = handler(request)
        last = _last(response)
        if last is None:
            return response
        asked = self._asker.ask("model_response", lambda: self._scope(request.state), **event_of_answer(last))
        return _with(response, last, asked)

    async def awrap_model_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        """Asks for the response, and takes the calls out of a response whose calls must not run."""
        response = await handler(request)
        last = _last(response)
        if last is None:
            return response
        asked = await self._asker.aask("model_response", lambda: self._scope(request.state), **event_of_answer(last))
        return _with(response, last, asked)

    def _begin(self, runtime: Any) -> dict[str, Any]:
        context = runtime.context if isinstance(runtime.context, dict) else {}
        begun = new_turn_state(runtime)
        begun["tollgate_thread"] = str(context.get("thread_id") or begun["tollgate_thread"])
        if context.get("is_subagent") and not begun["tollgate_child"]:
            begun["tollgate_child"] = uuid.uuid4().hex[:16]
        return {**begun, "tollgate_who": {name: context[name] for name in ATTRIBUTES if isinstance(context.get(name), str)}}

    def _scope(self, state: Any) -> Scope:
        scope = super()._scope(state)
        return replace(scope, who=replace(scope.who, **(state.get("tollgate_who") or {})))


def _call(request: Any) -> tuple[str, Any]:
    return request.tool_name, request.tool_input


def _id(request: Any) -> str | None:
    """Returns the id of a call, which older versions of DeerFlow do not tell."""
    return getattr(request, "tool_call_id", None)


def _decision(verdict: Verdict) -> Decision:
    reasons = verdict.raw.get("reasons")
    # A provider that raises lets the call run with `fail_closed: false`.
    first = reasons[0] if isinstance(reasons, list) and reasons else None
    policy = first.get("policy_id") if isinstance(first, dict) else None
    # DeerFlow puts a full stop behind the message.
    return Decision(verdict.allows_execution, [Reason(verdict.code, verdict.message.removesuffix("."))], policy)


def _last(response: Any) -> AIMessage | None:
    """Returns the answer in a response of a model, which other middleware may have made a message."""
    messages = [response] if isinstance(response, AIMessage) else getattr(response, "result", [])
    return next((message for message in reversed(messages) if isinstance(message, AIMessage)), None)


def _with(response: Any, last: AIMessage, verdict: Verdict) -> Any:
    """Returns a response whose answer has no calls that must not run."""
    kept = kept_answer(last, verdict)
    if kept is None:
        return response
    answer = kept["messages"][0]
    if response is last:
        return answer
    return replace(response, result=[answer if message is last else message for message in response.result])
