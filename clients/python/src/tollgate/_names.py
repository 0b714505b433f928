"""Names of hosts, looked up within a deadline: the system's resolver takes none, and may hang."""

from __future__ import annotations

import asyncio
import socket
import threading
from concurrent.futures import Future
from contextlib import suppress


class Names:
    """Looks names up in a thread, which a caller leaves at its deadline. All who ask for a name meanwhile wait for the same lookup."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._under_way: dict[tuple[str, int], Future[list[str]]] = {}

    def addresses(self, host: str, port: int, seconds: float) -> list[str]:
        """Returns the addresses of a host; an address stands for itself.

        Raises `OSError` for a name that nobody knows, and `concurrent.futures.TimeoutError` if the resolver gives no answer in time.
        """
        try:
            return _found(host, port, socket.AI_NUMERICHOST)
        except socket.gaierror:
            return self._lookup(host, port).result(seconds)

    async def addresses_for_loop(self, host: str, port: int) -> list[str]:
        """Returns the addresses of a host, as `addresses` does, to a task of a loop. A loop that looks names up itself ends no earlier than
        its resolver; a lookup here goes on alone.

        Raises `OSError` for a name that nobody knows.
        """
        try:
            return _found(host, port, socket.AI_NUMERICHOST)
        except socket.gaierror:
            lookup = self._lookup(host, port)
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[None] = loop.create_future()

        def wake(_: Future[list[str]]) -> None:
            # A loop that was closed meanwhile has nobody who waits.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(_wake, waiter)

        # Not `wrap_future`: who gives up there cancels the lookup of all others.
        lookup.add_done_callback(wake)
        await waiter
        return lookup.result()

    def _lookup(self, host: str, port: int) -> Future[list[str]]:
        with self._lock:
            future = self._under_way.get((host, port))
            if future is None:
                future = Future()
                # A thread that is no daemon would hold the end of the process for as long as the resolver hangs.
                threading.Thread(target=self._look_up, args=(host, port, future), name="tollgate-names", daemon=True).start()
                self._under_way[host, port] = future
        return future

    def _look_up(self, host: str, port: int, future: Future[list[str]]) -> None:
        try:
            found = _found(host, port, 0)
        except Exception as error:
            self._over(host, port)
            future.set_exception(error)
        else:
            self._over(host, port)
            future.set_result(found)

    def _over(self, host: str, port: int) -> None:
        with self._lock:
            del self._under_way[host, port]


def _found(host: str, port: int, flags: int) -> list[str]:
    """Returns the addresses of a host as texts, with the scope that an IPv6 address of the link has."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=flags)
    return [socket.getnameinfo(entry[4], socket.NI_NUMERICHOST | socket.NI_NUMERICSERV)[0] for entry in found]


def _wake(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)
