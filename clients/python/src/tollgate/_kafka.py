"""The two faces of the link to Kafka: a thread waits at an event of its own, a task at an event of its loop."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
import weakref

from ._core.events import Event
from ._core.verdict import Ruling
from ._core.waits import rulings
from ._link import Link
from .kafka import Kafka


class KafkaTransport:
    """Requests from threads."""

    def __init__(self, kafka: Kafka, deadline: float) -> None:
        self._link = Link(kafka, deadline)
        # At the end of the program too, and for a gate that nobody closed.
        self._end = weakref.finalize(self, self._link.close)

    def ask(self, events: list[Event], until: float) -> list[Ruling]:
        """Returns what came of each event; `until` is a time of `time.monotonic`."""
        done = threading.Event()
        wait = self._link.ask(events, done.set)
        try:
            done.wait(until - time.monotonic())
        finally:
            self._link.drop(wait)
        return rulings(wait, self._link.absent)

    def close(self) -> None:
        """Sends what is left, and ends the link."""
        self._end()


class AsyncKafkaTransport:
    """Requests from tasks of any event loop."""

    def __init__(self, kafka: Kafka, deadline: float) -> None:
        self._link = Link(kafka, deadline)
        self._end = weakref.finalize(self, self._link.close)

    async def ask(self, events: list[Event], until: float) -> list[Ruling]:
        """Returns what came of each event; `until` is a time of `time.monotonic`."""
        loop, done = asyncio.get_running_loop(), asyncio.Event()

        def notify() -> None:
            # The loop may be closed before the verdict comes.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(done.set)

        wait = self._link.ask(events, notify)
        waiting = asyncio.ensure_future(done.wait())
        try:
            # `asyncio.wait_for` loses cancellations before Python 3.12.
            await asyncio.wait({waiting}, timeout=max(0.001, until - time.monotonic()))
        finally:
            self._link.drop(wait)
            # The loop may be closed.
            with contextlib.suppress(RuntimeError):
                waiting.cancel()
        return rulings(wait, self._link.absent)

    async def close(self) -> None:
        """Sends what is left, and ends the link."""
        await asyncio.to_thread(self._end)
