"""The trace that an event belongs to."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import Any

Inject = Callable[[dict[str, str]], Any]


def trace_headers() -> dict[str, str]:
    """Returns the W3C trace context of the current span, if OpenTelemetry is installed."""
    headers: dict[str, str] = {}
    inject = _inject()
    if inject is not None:
        # A tracer that fails must not decide about a call.
        with suppress(Exception):
            inject(headers)
    return {
        name: value for name, value in headers.items() if name in ("traceparent", "tracestate") and value.isascii() and value.isprintable()
    }


@cache
def _inject() -> Inject | None:
    # Python looks for a module that is not installed anew each time.
    try:
        from opentelemetry.propagate import inject
    except ImportError:
        return None
    return inject
