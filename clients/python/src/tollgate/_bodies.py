"""The answers of a provider as the provider sent them: the OpenAI Agents SDK keeps no reason why a response ended."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextvars import ContextVar
from typing import Any

from httpx2 import AsyncByteStream, Response
from openai import DefaultAsyncHttpxClient

BODY_BYTES_MAX = 16_777_216
"""A longer body is not read: the gate gets the response as the SDK holds it."""

_bodies: ContextVar[list[Body] | None] = ContextVar("tollgate_bodies", default=None)


class Body(AsyncByteStream):
    """The body of an answer, collected while the SDK reads the body."""

    def __init__(self, response: Response) -> None:
        self._headers, self._inner, self._raw = response.headers, response.stream, bytearray()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._inner:  # type: ignore[union-attr]
            if len(self._raw) <= BODY_BYTES_MAX:
                self._raw += chunk
            yield chunk

    async def aclose(self) -> None:
        """Closes the connection's stream."""
        await self._inner.aclose()  # type: ignore[union-attr]

    def read(self) -> Any:
        """Returns the body; of a stream its events, or the response that the last event holds. Returns None if it cannot be read."""
        if len(self._raw) > BODY_BYTES_MAX:
            return None
        try:
            text = Response(200, headers=self._headers, content=bytes(self._raw)).text
            if not self._headers.get("content-type", "").startswith("text/event-stream"):
                return json.loads(text)
            lines = [line[5:].strip() for line in text.splitlines() if line.startswith("data:")]
            events = [json.loads(line) for line in lines if line != "[DONE]"]
            return next((event["response"] for event in reversed(events) if isinstance(event.get("response"), dict)), events)
        except Exception:
            return None


def collect_bodies() -> list[Body]:
    """Returns a list that fills with the bodies of the requests that follow in this task."""
    bodies: list[Body] = []
    _bodies.set(bodies)
    return bodies


def http_client(**options: Any) -> DefaultAsyncHttpxClient:
    """Returns a client for `AsyncOpenAI(http_client=…)` that shows the gate the provider's answers. `options` are the client's."""
    return DefaultAsyncHttpxClient(event_hooks={"response": [_collect]}, **options)


async def _collect(response: Response) -> None:
    bodies = _bodies.get()
    if bodies is not None and response.status_code == 200:
        body = Body(response)
        response.stream = body
        bodies.append(body)
