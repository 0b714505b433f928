"""Ask Tollgate before an agent's tool runs.

`Gate` is for threads, `AsyncGate` for asyncio. Both deny where the gate gives no verdict, unless they are told to fail open.
"""

from typing import TYPE_CHECKING, Any

from ._core.client import ToolCall
from ._core.events import Scope, Who
from ._core.sanitise import sanitise_message, sanitise_response
from ._core.verdict import Verdict
from ._sync import Gate
from ._turn import AsyncTurn, Turn

if TYPE_CHECKING:
    from ._async import AsyncGate

__all__ = ["AsyncGate", "AsyncTurn", "Gate", "Scope", "ToolCall", "Turn", "Verdict", "Who", "sanitise_message", "sanitise_response"]


def __getattr__(name: str) -> Any:
    """Imports the face for asyncio when it is first asked for: asyncio costs half of the import's time."""
    if name == "AsyncGate":
        from ._async import AsyncGate

        return AsyncGate
    raise AttributeError(f"module `tollgate` has no attribute `{name}`")
