"""The gate in front of the tools of a LangChain agent: `create_agent(model, tools, middleware=[TollgateMiddleware()])`.

Put the middleware last in the list, so that it sees the raw response and the final arguments.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, Any, cast

from langchain.agents.middleware import AgentMiddleware, AgentState, hook_config
from langchain.agents.middleware.types import PrivateStateAttr, ToolCallRequest
from langchain_core.messages import AIMessage, ToolMessage, message_to_dict
from langgraph.config import get_config
from langgraph.errors import GraphBubbleUp
from langgraph.types import Command
from typing_extensions import NotRequired

from ._adapter import Adapter, Asker, AskerSettings
from ._answers import guided, loses_calls, safety_of, stop_text
from ._core.events import Scope
from ._core.sanitise import sanitise_message
from ._core.verdict import Verdict

if TYPE_CHECKING:
    from typing_extensions import Unpack

ToolAnswer = ToolMessage | Command[Any]


def latest(old: str | None, new: str | None) -> str | None:
    """Returns the newer of two values. Parallel calls may write in one step; an empty text clears the value."""
    return old if new is None else new


class TollgateState(AgentState[Any]):
    """The state that the middleware keeps: the thread and the turn of the run, and the text of the halt that ends the run."""

    tollgate_thread: NotRequired[Annotated[str | None, PrivateStateAttr, latest]]
    tollgate_turn: NotRequired[Annotated[str | None, PrivateStateAttr, latest]]
    tollgate_child: NotRequired[Annotated[str | None, PrivateStateAttr, latest]]
    tollgate_halt: NotRequired[Annotated[str | None, PrivateStateAttr, latest]]


class TollgateMiddleware(Adapter, AgentMiddleware[TollgateState, Any, Any]):
    """Asks the gate for each response, call and result. It denies where it gets no verdict, unless `on_failure` is `open`.

    The settings are those of `Gate`. The thread is the run's `thread_id`; an unnamed run is a thread of its own, and an agent that
    runs inside a tool of another agent is the thread `<thread>/<child>`.
    Raises `ValueError` for a setting that can have no meaning.
    """

    state_schema = TollgateState

    def __init__(self, url: str | None = None, **settings: Unpack[AskerSettings]) -> None:
        super().__init__()
        self._asker = Asker(url, **settings)

    def before_agent(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        """Begins a turn."""
        begun = self._begin(runtime)
        self._asker.tell(lambda: self._scope(begun), "turn_start")
        return begun

    async def abefore_agent(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        """Begins a turn."""
        begun = self._begin(runtime)
        await self._asker.atell(lambda: self._scope(begun), "turn_start")
        return begun

    @hook_config(can_jump_to=["end"])
    def before_model(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        """Ends the run after a halt."""
        return _end_of_run(state)

    @hook_config(can_jump_to=["end"])
    async def abefore_model(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        """Ends the run after a halt."""
        return _end_of_run(state)

    def after_model(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        """Asks for the response, and takes the calls out of a response whose calls must not run."""
        last = last_answer(state)
        seen = event_of_answer(last)
        return kept_answer(last, self._asker.ask("model_response", lambda: self._scope(state), **seen))

    async def aafter_model(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        """Asks for the response, and takes the calls out of a response whose calls must not run."""
        last = last_answer(state)
        seen = event_of_answer(last)
        return kept_answer(last, await self._asker.aask("model_response", lambda: self._scope(state), **seen))

    def wrap_tool_call(self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], ToolAnswer]) -> ToolAnswer:
        """Asks before the tool runs, and for its result."""
        call = _Call(request)
        asked = self._asker.ask("tool_call", lambda: self._scope(call.state), call.name, call.args, **call.ids)
        if not asked.allows_execution:
            return call.stopped(asked)
        try:
            answer = handler(request)
        except GraphBubbleUp:
            raise
        except Exception as error:
            self._asker.ask("tool_result", lambda: self._scope(call.state), call.name, str(error), **call.more(True))
            raise
        text, failed = call.result_of(answer)
        return call.told(answer, self._asker.ask("tool_result", lambda: self._scope(call.state), call.name, text, **call.more(failed)))

    async def awrap_tool_call(self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[ToolAnswer]]) -> ToolAnswer:
        """Asks before the tool runs, and for its result."""
        call = _Call(request)
        asked = await self._asker.aask("tool_call", lambda: self._scope(call.state), call.name, call.args, **call.ids)
        if not asked.allows_execution:
            return call.stopped(asked)
        try:
            answer = await handler(request)
        except GraphBubbleUp:
            raise
        except Exception as error:
            await self._asker.aask("tool_result", lambda: self._scope(call.state), call.name, str(error), **call.more(True))
            raise
        text, failed = call.result_of(answer)
        told = await self._asker.aask("tool_result", lambda: self._scope(call.state), call.name, text, **call.more(failed))
        return call.told(answer, told)

    def after_agent(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        """Ends the turn."""
        self._asker.tell(lambda: self._scope(state), "turn_end")
        return None

    async def aafter_agent(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        """Ends the turn."""
        await self._asker.atell(lambda: self._scope(state), "turn_end")
        return None

    def _begin(self, runtime: Any) -> dict[str, Any]:
        """Returns the state of a new turn."""
        return new_turn_state(runtime)

    def _scope(self, state: Any) -> Scope:
        scope = Scope(state["tollgate_thread"], state["tollgate_turn"], False, self._asker.who)
        return scope.child(state["tollgate_child"]) if state.get("tollgate_child") else scope


class _Call:
    """A call of a tool, and the answers that LangChain expects."""

    def __init__(self, request: ToolCallRequest) -> None:
        self.state = request.state
        self.name, self.args = request.tool_call["name"], request.tool_call["args"]
        # A call without an id still has to be tied to its result.
        self.id = request.tool_call["id"] or str(uuid.uuid4())
        asking = (
            message.id
            for message in reversed(self.state.get("messages", ()))
            if isinstance(message, AIMessage) and any(call["id"] == self.id for call in message.tool_calls)
        )
        self.ids = {"tool_call_id": self.id, "response_id": next(asking, None)}

    def more(self, failed: bool | None) -> dict[str, Any]:
        return {"tool_input": self.args, "failed": failed, **self.ids}

    def stopped(self, verdict: Verdict) -> ToolAnswer:
        """Returns the answer in place of a call that may not run."""
        message = ToolMessage(verdict.text_for_agent, tool_call_id=self.id, name=self.name, status="error")
        return Command(update={"messages": [message], "tollgate_halt": stop_text(verdict)}) if verdict.should_halt else message

    def message_of(self, answer: ToolAnswer) -> ToolMessage | None:
        """Returns the message of an answer, which may stand in a command."""
        if isinstance(answer, ToolMessage):
            return answer
        update = answer.update if isinstance(answer.update, dict) else {}
        found = [message for message in update.get("messages", ()) if isinstance(message, ToolMessage)]
        return next((message for message in found if message.tool_call_id == self.id), None)

    def result_of(self, answer: ToolAnswer) -> tuple[Any, bool | None]:
        """Returns the result as the gate reads it, and true if LangChain knows that the call failed."""
        message = self.message_of(answer)
        return (message.content, message.status == "error" or None) if message else (None, None)

    def told(self, answer: ToolAnswer, verdict: Verdict) -> ToolAnswer:
        """Returns the answer with the gate's guidance, and with the halt if the run should end."""
        message = self.message_of(answer)
        told = message.model_copy(update={"content": guided(message.content, verdict)}) if message else message
        halt = {"tollgate_halt": stop_text(verdict)} if verdict.should_halt else {}
        if isinstance(answer, Command):
            if not isinstance(answer.update, dict):
                return answer
            messages = [told if each is message else each for each in answer.update.get("messages", ())]
            update = {**answer.update, **({"messages": messages} if messages else {}), **halt}
            return Command(graph=answer.graph, update=update, resume=answer.resume, goto=answer.goto)
        return Command(update={"messages": [told], **halt}) if halt else cast(ToolMessage, told)


def new_turn_state(runtime: Any) -> dict[str, Any]:
    """Returns the state of a new turn. An agent inside a tool of another agent has a namespace within that of the tool."""
    info = getattr(runtime, "execution_info", None)
    configurable = get_config().get("configurable", {})
    thread = getattr(info, "thread_id", None) or configurable.get("thread_id") or str(uuid.uuid4())
    outer = str(configurable.get("checkpoint_ns", "")).rpartition("|")[0]
    child = hashlib.sha256(outer.encode()).hexdigest()[:16] if outer else ""
    return {"tollgate_thread": str(thread), "tollgate_turn": str(uuid.uuid4()), "tollgate_child": child, "tollgate_halt": ""}


def _end_of_run(state: Any) -> dict[str, Any] | None:
    """Returns the update that ends a run after a halt. The user reads why as the last answer."""
    text = state.get("tollgate_halt")
    return {"jump_to": "end", "messages": [AIMessage(text)]} if text else None


def last_answer(state: Any) -> AIMessage:
    """Returns the model's last message, which a structured answer may stand behind."""
    return next(message for message in reversed(state["messages"]) if isinstance(message, AIMessage))


def event_of_answer(last: AIMessage) -> dict[str, Any]:
    """Returns the fields of the event of a response."""
    return {"message": message_to_dict(last), "response_id": last.id}


def kept_answer(last: AIMessage, verdict: Verdict) -> dict[str, Any] | None:
    """Returns the update after a response: without the calls if they must not run."""
    if not loses_calls(verdict, bool(last.tool_calls or last.invalid_tool_calls)):
        return None
    data = message_to_dict(last)
    cleaned = sanitise_message(data, safety_of(verdict))["data"]
    changed = {name: value for name, value in cleaned.items() if name in type(last).model_fields and value != data["data"].get(name)}
    return {"messages": [last.model_copy(update=changed)]}
