"""Ask Tollgate before an agent's tool runs.

`Gate` is for threads, `AsyncGate` for asyncio. Both deny where the gate gives no verdict, unless they are told to fail open.
"""

from ._async import AsyncGate
from ._core.client import ToolCall
from ._core.events import Scope, Who
from ._core.sanitise import sanitise_message, sanitise_response
from ._core.verdict import Verdict
from ._sync import Gate
from ._turn import AsyncTurn, Turn

__all__ = ["AsyncGate", "AsyncTurn", "Gate", "Scope", "ToolCall", "Turn", "Verdict", "Who", "sanitise_message", "sanitise_response"]
