"""The gate in front of the tools of CrewAI: `gate = TollgateHooks()`, `gate.install()`, and `with gate.turn(thread_id)` around a run.

CrewAI runs a call whose hook raises, so these hooks never raise but to end a run. CrewAI shows its hooks neither why a response ended nor
the id of a call.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from crewai.hooks import register_after_tool_call_hook, register_before_llm_call_hook, register_before_tool_call_hook
from crewai.hooks.dispatch import HookAborted

from ._adapter import Adapter, Asker, AskerSettings, child_name, enter, open_turn, outer_turn
from ._answers import guided, plain, stop_text
from ._core.events import Scope, Who
from ._core.verdict import Verdict

if TYPE_CHECKING:
    from typing_extensions import Unpack


@dataclass(frozen=True)
class _Call:
    """A call between its two hooks, within the call that runs it."""

    id: str
    verdict: Verdict
    scope: Scope | None
    around: _Call | None


_call: ContextVar[_Call | None] = ContextVar("tollgate_crewai_call", default=None)


class TollgateHooks(Adapter):
    """Asks the gate for each call and result of all crews of the process. A halt ends the run with CrewAI's `HookAborted`.

    The settings are those of `Gate`. A crew or agent that runs inside a tool, as a delegation does, is the thread `<thread>/<call>`.
    Raises `ValueError` for a setting that can have no meaning.
    """

    def __init__(self, url: str | None = None, **settings: Unpack[AskerSettings]) -> None:
        self._asker = Asker(url, **settings)
        self._halts: dict[tuple[str, str | None], Verdict] = {}

    def install(self) -> None:
        """Registers the hooks for all crews that are made from now on. Install them last, so that they see the final arguments."""
        register_before_tool_call_hook(self.before_tool_call)
        register_after_tool_call_hook(self.after_tool_call)
        register_before_llm_call_hook(self.before_llm_call)

    @contextmanager
    def turn(self, thread_id: str, *, turn_id: str | None = None, who: Who | None = None) -> Iterator[Scope]:
        """Opens a turn of a thread, in which crews run; outside of a turn no tool runs.

        Raises `ValueError` for an id that is too long or no text.
        """
        with self._asker.turn(thread_id, turn_id=turn_id, who=who) as scope:
            try:
                yield scope
            finally:
                for place in [place for place in self._halts if place[1] == scope.turn_id]:
                    del self._halts[place]

    def before_tool_call(self, context: Any) -> Literal[False] | None:
        """Returns false for a call that may not run."""
        try:
            ident, scope = str(uuid.uuid4()), outer_turn()
            verdict = self._asker.ask("tool_call", _scope, context.tool_name, plain(context.tool_input), tool_call_id=ident)
            _call.set(_Call(ident, verdict, scope, _call.get()))
            if not verdict.allows_execution:
                self._note(scope, verdict)
                return False
            enter(scope.child(child_name(ident)) if scope else None)
            return None
        except Exception:
            return False

    def after_tool_call(self, context: Any) -> str | None:
        """Returns the text in place of a result: that of a call that did not run, or the result with the gate's guidance."""
        call = _call.get()
        if call is None:
            return None
        _call.set(call.around)
        enter(call.scope)
        if not call.verdict.allows_execution:
            return call.verdict.text_for_agent
        event = {"tool_input": plain(context.tool_input), "tool_call_id": call.id}
        told = self._asker.ask("tool_result", _scope, context.tool_name, context.tool_result, **event)
        self._note(call.scope, told)
        return str(guided(context.tool_result, told)) if told.guidance else None

    def before_llm_call(self, _context: Any) -> None:
        """Ends the run after a halt.

        Raises `HookAborted`, which CrewAI hands to the caller.
        """
        scope = outer_turn()
        halt = self._halts.get((scope.thread_id, scope.turn_id)) if scope else None
        if halt:
            raise HookAborted(stop_text(halt), source="tollgate")

    def _note(self, scope: Scope | None, verdict: Verdict) -> None:
        if scope and verdict.should_halt:
            self._halts[scope.thread_id, scope.turn_id] = verdict


def _scope() -> Scope:
    return open_turn()
