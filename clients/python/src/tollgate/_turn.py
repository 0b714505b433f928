"""Turns: a scope with the gate that its events go to."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ._core.client import ToolCall
from ._core.events import Scope, Who
from ._core.verdict import Verdict

if TYPE_CHECKING:
    from ._async import AsyncGate
    from ._sync import Gate


def new_turn(thread_id: str, turn_id: str | None, who: Who | None) -> Scope:
    """Returns the scope of a turn, with a new id if no id is given.

    Raises `ValueError` for an id that is too long or no text.
    """
    return Scope(thread_id, turn_id or str(uuid.uuid4()), False, who or Who())


class Turn:
    """A turn of a thread: the gate's calls without the thread's id."""

    def __init__(self, gate: Gate, scope: Scope) -> None:
        self._gate = gate
        self.scope = scope

    def subagent(self, name: str) -> Turn:
        """Returns the turn of a subagent, whose thread is `<thread>/<name>`.

        Raises `ValueError` if the id of the thread would be longer than 256 bytes.
        """
        return Turn(self._gate, self.scope.child(name))

    def tool_call(self, tool_name: str, tool_input: Any = None, **more: Any) -> Verdict:
        """Returns the verdict of a call, before the call runs. `more` is that of the gate's `tool_call`."""
        return self._gate.tool_call(self.scope, tool_name, tool_input, **more)

    def tool_calls(self, calls: Sequence[ToolCall]) -> list[Verdict]:
        """Returns the verdicts of the calls of one response, in order."""
        return self._gate.tool_calls(self.scope, calls)

    def tool_result(self, tool_name: str, result: Any, **more: Any) -> Verdict:
        """Returns the verdict of a result. `more` is that of the gate's `tool_result`."""
        return self._gate.tool_result(self.scope, tool_name, result, **more)

    def model_response(self, **body: Any) -> Verdict:
        """Returns the verdict of a model's response. `body` is that of the gate's `model_response`."""
        return self._gate.model_response(self.scope, **body)


class AsyncTurn:
    """A turn of a thread: the gate's calls without the thread's id."""

    def __init__(self, gate: AsyncGate, scope: Scope) -> None:
        self._gate = gate
        self.scope = scope

    def subagent(self, name: str) -> AsyncTurn:
        """Returns the turn of a subagent, whose thread is `<thread>/<name>`.

        Raises `ValueError` if the id of the thread would be longer than 256 bytes.
        """
        return AsyncTurn(self._gate, self.scope.child(name))

    async def tool_call(self, tool_name: str, tool_input: Any = None, **more: Any) -> Verdict:
        """Returns the verdict of a call, before the call runs. `more` is that of the gate's `tool_call`."""
        return await self._gate.tool_call(self.scope, tool_name, tool_input, **more)

    async def tool_calls(self, calls: Sequence[ToolCall]) -> list[Verdict]:
        """Returns the verdicts of the calls of one response, in order."""
        return await self._gate.tool_calls(self.scope, calls)

    async def tool_result(self, tool_name: str, result: Any, **more: Any) -> Verdict:
        """Returns the verdict of a result. `more` is that of the gate's `tool_result`."""
        return await self._gate.tool_result(self.scope, tool_name, result, **more)

    async def model_response(self, **body: Any) -> Verdict:
        """Returns the verdict of a model's response. `body` is that of the gate's `model_response`."""
        return await self._gate.model_response(self.scope, **body)
