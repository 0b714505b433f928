"""Which events wait for a verdict over Kafka, and what came of them. No client of Kafka and no clock: the link hands in what it sees."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable

from .events import Event, apart, content_hash, distinct
from .verdict import Fault, Ruling, UnreadableVerdict, denial, parse_json, read_verdict

Key = bytes | tuple[bytes, bytes]
"""What a verdict is known by: the correlation id on a reply topic; the thread's and the event's id where all decisions are read."""

BOUNDARIES = ("turn_start", "turn_end")
REMEMBERED_MAX = 10_000
"""So many ids of events are remembered."""


class Wait:
    """The events of one request. `notify` is called once, from whichever thread, when something has come of every event."""

    def __init__(self, events: list[Event], keys: list[Key], notify: Callable[[], object], trace: dict[str, str]) -> None:
        self.events = events
        self.keys = keys
        self.trace = trace
        self.notify = notify
        self.came: list[bytes | Fault | None] = [None] * len(events)
        self.is_in_log = [False] * len(events)
        self.left = len(events)


class Waits:
    """The requests that wait, from any number of threads."""

    def __init__(self, has_reply_topic: bool) -> None:
        self._has_reply_topic = has_reply_topic
        self._lock = threading.Lock()
        self._of_key: dict[Key, list[tuple[Wait, int]]] = {}
        self._prefix = uuid.uuid4().hex
        self._number = 0
        self._contents: dict[tuple[str, str], str] = {}
        """The hash of each event's content by the ids of its thread and its own, oldest first."""

    def add(self, events: list[Event], notify: Callable[[], object], trace: dict[str, str]) -> Wait:
        """Returns the wait of some events. It has to be dropped when it is over."""
        with self._lock:
            events = distinct([self._named(event) for event in events])
            keys = [self._key(event) for event in events]
            wait = Wait(events, keys, notify, trace)
            for index, key in enumerate(keys):
                self._of_key.setdefault(key, []).append((wait, index))
        return wait

    def _named(self, event: Event) -> Event:
        """Returns an event, under a new id if this client has given its id to another event: over Kafka there is no server that says so."""
        content = content_hash(event)
        if self._contents.setdefault((event["thread_id"], event["event_id"]), content) != content:
            return apart(event)
        if len(self._contents) > REMEMBERED_MAX:
            del self._contents[next(iter(self._contents))]
        return event

    def _key(self, event: Event) -> Key:
        if not self._has_reply_topic:
            return event["thread_id"].encode(), event["event_id"].encode()
        self._number += 1
        return f"{self._prefix}-{self._number}".encode()

    def answer(self, key: Key, value: bytes) -> None:
        """Takes a verdict. A verdict that nobody waits for, such as a late, a double or a foreign one, changes nothing."""
        with self._lock:
            waiting = [entry for entry in self._of_key.pop(key, ()) if self._put(*entry, value)]
        for wait, _ in waiting:
            wait.notify()

    def fail(self, wait: Wait, fault: Fault, index: int | None = None) -> None:
        """Takes the fault of one event, or of every event that nothing has come of."""
        with self._lock:
            over = [self._put(wait, at, fault) for at in (range(len(wait.events)) if index is None else (index,))]
        if any(over):
            wait.notify()

    def fail_all(self, fault: Fault) -> None:
        """Ends every wait."""
        with self._lock:
            waits = {id(wait): wait for entries in self._of_key.values() for wait, _ in entries}
        for wait in waits.values():
            self.fail(wait, fault)

    def in_log(self, wait: Wait, index: int) -> None:
        """Notes that the brokers have an event. A turn's boundary waits for nothing else."""
        wait.is_in_log[index] = True
        if wait.events[index]["type"] in BOUNDARIES:
            with self._lock:
                is_over = self._put(wait, index, b"")
            if is_over:
                wait.notify()

    def drop(self, wait: Wait) -> None:
        """Forgets a wait."""
        with self._lock:
            for key in wait.keys:
                kept = [entry for entry in self._of_key.get(key, ()) if entry[0] is not wait]
                if kept:
                    self._of_key[key] = kept
                else:
                    self._of_key.pop(key, None)

    @staticmethod
    def _put(wait: Wait, index: int, found: bytes | Fault) -> bool:
        """Returns whether something has now come of every event. What came first of an event stays."""
        if wait.came[index] is not None:
            return False
        wait.came[index] = found
        wait.left -= 1
        return wait.left == 0


def rulings(wait: Wait, absent: Callable[[bool], Fault]) -> list[Ruling]:
    """Returns what came of each event of a wait. `absent` gives the fault of an event without an answer, and is told if the log has it."""
    found = [
        _ruling(event, absent(is_in_log) if came is None else came)
        for event, came, is_in_log in zip(wait.events, wait.came, wait.is_in_log, strict=True)
    ]
    return [ruling for ruling in found if ruling is not None]


def _ruling(event: Event, came: bytes | Fault) -> Ruling | None:
    if isinstance(came, Fault):
        return came
    if event["type"] in BOUNDARIES:
        return None
    try:
        value = parse_json(came)
        if isinstance(value, dict) and value.get("decided_by") == "envelope" and value.get("action") == "block":
            # A worker that cannot read an event may know neither its ids nor its type.
            value |= {name: event[name] for name in ("type", "thread_id", "event_id")}
        return read_verdict(value, event)
    except UnreadableVerdict as error:
        return denial(event, "verdict_unreadable", f"the verdict cannot be read: {error}")
