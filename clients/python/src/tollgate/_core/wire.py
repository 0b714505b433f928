"""What both faces ask of httpx. httpx is imported with the first request, so that importing the package stays fast."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .exchange import ANSWER_BYTES_MAX, Fault

if TYPE_CHECKING:
    import httpx

PATH = "/v1/events"


def fault_of(error: Exception) -> Fault:
    """Returns the fault that an error of httpx stands for. Its text names the kind of the error alone."""
    import asyncio

    import httpx

    if isinstance(error, (TimeoutError, asyncio.TimeoutError, httpx.TimeoutException)):
        return Fault("deadline_exceeded", "the gate gave no verdict within the deadline")
    kind = type(error).__name__
    # A connection that broke is worth another try: the event's id makes the repeat harmless.
    return Fault("gate_unreachable", f"the gate cannot be reached ({kind}): start `tollgate serve` or check the `url`", True)


def too_long() -> Fault:
    """Returns the fault of an answer beyond the bound."""
    return Fault("verdict_unreadable", f"the answer is longer than {ANSWER_BYTES_MAX} bytes")


def headers_of(response: httpx.Response) -> dict[str, str]:
    """Returns the headers of an answer, with names in lower case."""
    return {name.lower(): value for name, value in response.headers.items()}


def trace_headers() -> dict[str, str]:
    """Returns the W3C trace context of the current span, if OpenTelemetry is installed."""
    headers: dict[str, str] = {}
    try:
        from opentelemetry.propagate import inject
    except ImportError:
        return headers
    inject(headers)
    return {name: value for name, value in headers.items() if name in ("traceparent", "tracestate")}
