"""The gate in front of the tools of the Claude Agent SDK: `ClaudeAgentOptions(hooks=TollgateHooks().hooks)`.

Claude Code shows its hooks no response of the model, so that the gate does not see why a response ended.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from claude_agent_sdk import HookMatcher

from ._adapter import Adapter, Asker, AskerSettings, child_name
from ._answers import stop_text
from ._core.events import Scope
from ._core.verdict import Verdict

if TYPE_CHECKING:
    from typing_extensions import Unpack

TEXT_CHARACTERS_MAX = 10_000
"""Claude Code writes a longer text of a hook to a file, which the model may not read."""
MARGIN_SECONDS = 5.0
"""How much longer than the gate's deadline Claude Code waits for a hook."""

Answer = dict[str, Any]


class TollgateHooks(Adapter):
    """Asks the gate for each call and result of Claude Code, its subagents and its MCP servers. A hook that fails blocks the call.

    The settings are those of `Gate`. The thread is the session, and a subagent is the thread `<session>/<agent id>`.
    Raises `ValueError` for a setting that can have no meaning.
    """

    def __init__(self, url: str | None = None, **settings: Unpack[AskerSettings]) -> None:
        self._asker = Asker(url, **settings)
        self._timeout = self._asker.deadline + MARGIN_SECONDS

    @property
    def hooks(self) -> dict[Any, list[HookMatcher]]:
        """Returns the hooks for `ClaudeAgentOptions`. Add hooks of your own to the lists: Claude Code obeys the strictest."""
        callbacks = {
            "UserPromptSubmit": self._began,
            "PreToolUse": self._called,
            "PostToolUse": self._returned,
            "PostToolUseFailure": self._returned,
        }
        return {event: [self._matcher(callback)] for event, callback in callbacks.items()}

    def _matcher(self, callback: Any) -> HookMatcher:
        return HookMatcher(hooks=[callback], timeout=self._timeout, on_failure="block")

    async def _began(self, given: Mapping[str, Any], _call: str | None, _context: Any) -> Answer:
        await self._asker.atell(lambda: self._scope(given), "turn_start")
        return {}

    async def _called(self, given: Mapping[str, Any], _call: str | None, _context: Any) -> Answer:
        call = given.get("tool_use_id")
        verdict = await self._asker.aask(
            "tool_call", lambda: self._scope(given), given.get("tool_name"), given.get("tool_input"), tool_call_id=call
        )
        if verdict.allows_execution:
            # A plain `{}`: the decision `allow` would skip the prompt that asks the user.
            return {}
        reason = verdict.text_for_agent[:TEXT_CHARACTERS_MAX]
        denied = {"hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": reason}
        return {"hookSpecificOutput": denied, **_halt(verdict)}

    async def _returned(self, given: Mapping[str, Any], _call: str | None, _context: Any) -> Answer:
        failed = given.get("hook_event_name") == "PostToolUseFailure"
        fields = {"tool_input": given.get("tool_input"), "tool_call_id": given.get("tool_use_id"), "failed": failed or None}
        result = given.get("error") if failed else given.get("tool_response")
        verdict = await self._asker.aask("tool_result", lambda: self._scope(given), given.get("tool_name"), result, **fields)
        if not verdict.guidance:
            return _halt(verdict)
        told = {"hookEventName": given.get("hook_event_name"), "additionalContext": verdict.guidance[:TEXT_CHARACTERS_MAX]}
        return {"hookSpecificOutput": told, **_halt(verdict)}

    def _scope(self, given: Mapping[str, Any]) -> Scope:
        scope = Scope(given["session_id"], given.get("prompt_id"), False, self._asker.who)
        child = given.get("agent_id")
        return scope.child(child_name(child)) if child else scope


def _halt(verdict: Verdict) -> Answer:
    """Returns what ends the run after a halt."""
    return {"continue_": False, "stopReason": stop_text(verdict)[:TEXT_CHARACTERS_MAX]} if verdict.should_halt else {}
