"""What the adapters of all hosts share: asking without ever raising, the open turn, and the texts for agent and user."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Literal, TypedDict, cast

from ._async import AsyncGate
from ._core.client import Ledger
from ._core.events import Scope, Who
from ._core.verdict import Verdict, denial
from ._sync import Gate
from ._turn import new_turn

if TYPE_CHECKING:
    from .kafka import Kafka

Kind = Literal["tool_call", "tool_result", "model_response"]
CHILD_BYTES_MAX = 64
_open: ContextVar[Scope | None] = ContextVar("tollgate_open_turn", default=None)


class Unaskable(RuntimeError):
    """An event that cannot be asked for. The message holds none of the host's data, and says what to do."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class AskerSettings(TypedDict, total=False):
    """The settings of an adapter besides the address: those of `Gate`, and for whom the agents act."""

    token: str | None
    kafka: Kafka | None
    deadline: float
    on_failure: Literal["closed", "open"]
    who: Who | None


class Asker:
    """Asks for one host, from threads and from event loops. What cannot be asked is denied: a host may take an error for an allowance.

    The settings are those of `Gate`. Raises `ValueError` for a setting that can have no meaning.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        token: str | None = None,
        kafka: Kafka | None = None,
        deadline: float = 2.0,
        on_failure: Literal["closed", "open"] = "closed",
        who: Who | None = None,
    ) -> None:
        self.who, self.deadline = who or Who(), deadline
        self._gate = Gate(url, token=token, kafka=kafka, deadline=deadline, on_failure=on_failure)
        self._async_gate = AsyncGate(url, token=token, kafka=kafka, deadline=deadline, on_failure=on_failure)
        self._ledger = Ledger()

    @property
    def counts(self) -> dict[str, int]:
        """Returns how often the client or the adapter decided itself, by `open:CODE` and `closed:CODE`."""
        return dict(self._ledger.counts + Counter(self._gate.counts) + Counter(self._async_gate.counts))

    def ask(self, kind: Kind, scope: Callable[[], Scope], *event: Any, **fields: Any) -> Verdict:
        """Returns the verdict of an event, whose fields are those of the method `kind` of `Gate`."""
        try:
            return cast(Verdict, getattr(self._gate, kind)(scope(), *event, **_with_own_id(kind, fields)))
        except Exception as error:
            return self._denied(kind, error)

    async def aask(self, kind: Kind, scope: Callable[[], Scope], *event: Any, **fields: Any) -> Verdict:
        """Returns the verdict of an event, whose fields are those of the method `kind` of `AsyncGate`."""
        try:
            return cast(Verdict, await getattr(self._async_gate, kind)(scope(), *event, **_with_own_id(kind, fields)))
        except Exception as error:
            return self._denied(kind, error)

    def tell(self, scope: Callable[[], Scope], kind: Literal["turn_start", "turn_end"]) -> None:
        """Publishes a boundary; the calls of a turn that has no valid name are denied later, each with its reason."""
        try:
            self._gate.boundary(scope(), kind)
        except Exception as error:
            self._denied(kind, error)

    async def atell(self, scope: Callable[[], Scope], kind: Literal["turn_start", "turn_end"]) -> None:
        """Publishes a boundary; the calls of a turn that has no valid name are denied later, each with its reason."""
        try:
            await self._async_gate.boundary(scope(), kind)
        except Exception as error:
            self._denied(kind, error)

    @contextmanager
    def turn(self, thread_id: str, *, turn_id: str | None = None, who: Who | None = None) -> Iterator[Scope]:
        """Opens a turn of a thread: all agents that run inside belong to the turn. Give a turn's id again to resume the turn.

        Raises `ValueError` for an id that is too long or no text.
        """
        scope = new_turn(thread_id, turn_id, who or self.who)
        self.tell(lambda: scope, "turn_start")
        try:
            with inside(scope):
                yield scope
        finally:
            self.tell(lambda: scope, "turn_end")

    @asynccontextmanager
    async def aturn(self, thread_id: str, *, turn_id: str | None = None, who: Who | None = None) -> AsyncIterator[Scope]:
        """Opens a turn of a thread: all agents that run inside belong to the turn. Give a turn's id again to resume the turn.

        Raises `ValueError` for an id that is too long or no text.
        """
        scope = new_turn(thread_id, turn_id, who or self.who)
        await self.atell(lambda: scope, "turn_start")
        try:
            with inside(scope):
                yield scope
        finally:
            await self.atell(lambda: scope, "turn_end")

    def _denied(self, kind: str, error: Exception) -> Verdict:
        """Returns and counts the denial of what could not be asked. Only the texts of our own errors are free of the host's data."""
        code, text = "adapter_error", f"the adapter cannot ask the gate ({type(error).__name__})"
        if isinstance(error, Unaskable):
            code, text = error.code, str(error)
        verdict = denial({"type": kind}, code, text)
        self._ledger.count(verdict)
        return verdict


def _with_own_id(kind: Kind, fields: dict[str, Any]) -> dict[str, Any]:
    """Returns the fields of an event. The id of a response gets a hash of its body: Ollama has 999 ids, other servers have one."""
    name = fields.get("response_id")
    if not name or kind != "model_response":
        return fields
    body = repr([fields.get(member) for member in ("response", "message", "error")])
    return {**fields, "response_id": f"{name}-{hashlib.sha256(body.encode('utf-8', 'replace')).hexdigest()[:16]}"}


class Adapter:
    """What the adapters of all hosts have."""

    _asker: Asker

    @property
    def counts(self) -> dict[str, int]:
        """Returns how often the client or the adapter decided itself, by `open:CODE` and `closed:CODE`."""
        return self._asker.counts


def open_turn() -> Scope:
    """Returns the scope of the turn that is open here.

    Raises `Unaskable` if no turn is open.
    """
    scope = _open.get()
    if scope is None:
        raise Unaskable("no_turn", "no turn is open: run the agent inside `turn(thread_id)`")
    return scope


@contextmanager
def subagent(name: str | None) -> Iterator[None]:
    """Runs what is inside as a subagent of the open turn, if a turn is open: its thread is `<thread>/<name>`."""
    scope = _open.get()
    if scope is None or not name:
        yield
        return
    with inside(scope.child(child_name(name))):
        yield


def child_name(name: str) -> str:
    """Returns the name of a subagent as it stands in the id of its thread: a long name becomes a hash."""
    return (
        name
        if len(name.encode("utf-8", "replace")) <= CHILD_BYTES_MAX
        else hashlib.sha256(name.encode("utf-8", "replace")).hexdigest()[:16]
    )


def outer_turn() -> Scope | None:
    """Returns the scope of the turn that is open here, if any: an agent that begins here is a subagent of that turn."""
    return _open.get()


def enter(scope: Scope | None) -> None:
    """Opens a turn until another call of this function, for hosts that call before and after what they run."""
    _open.set(scope)


@contextmanager
def inside(scope: Scope) -> Iterator[None]:
    """Opens a turn for what is inside, without publishing its boundaries."""
    token = _open.set(scope)
    try:
        yield
    finally:
        _open.reset(token)
