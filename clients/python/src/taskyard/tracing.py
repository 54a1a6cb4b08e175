"""W3C trace context: spans through OpenTelemetry where it is in use, passed on untouched where it is not."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Literal, Protocol

TRACEPARENT = "traceparent"

SpanKind = Literal["internal", "server", "client", "producer", "consumer"]

_tracer: Any = None
_passing: ContextVar[str] = ContextVar("traceparent", default="")


class Span(Protocol):
    """The operations on a span."""

    def set_attribute(self, key: str, value: str | int | float | bool) -> None: ...


class _NoSpan:
    def set_attribute(self, key: str, value: str | int | float | bool) -> None:
        pass


_NO_SPAN = _NoSpan()


def enable() -> bool:
    """Make spans with the tracer provider that is set up; False if OpenTelemetry is not installed."""
    global _tracer
    try:
        from opentelemetry import trace
    except ImportError:
        return False
    _tracer = trace.get_tracer("taskyard")
    return True


def enable_if_in_use() -> bool:
    """Like enable, if the program that uses this client has set up a tracer provider."""
    return enabled() or (_provider_is_set() and enable())


def _provider_is_set() -> bool:
    # A program that set one up has imported the SDK; without tracing OpenTelemetry is not loaded here.
    if "opentelemetry.sdk.trace" not in sys.modules:
        return False
    from opentelemetry import trace

    return not isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider)


def enabled() -> bool:
    """Whether spans are made."""
    return _tracer is not None


def current_traceparent() -> str:
    """The traceparent of the running span, or the one that is being passed on; empty if there is none."""
    if _tracer is not None:
        from opentelemetry import trace

        running = trace.get_current_span()
        if running.get_span_context().is_valid:
            return traceparent_of(running)
    return _passing.get()


def traceparent_of(span: Any) -> str:
    """The traceparent that makes a peer's span the child of this one."""
    context = span.get_span_context()
    return f"00-{context.trace_id:032x}-{context.span_id:016x}-{int(context.trace_flags):02x}"


def pass_on(traceparent: str) -> None:
    """Make this the traceparent of the running task, where no spans are made."""
    _passing.set(traceparent)


@contextmanager
def span(
    name: str,
    *,
    traceparent: str = "",
    kind: SpanKind = "internal",
    **attributes: str | int | float | bool,
) -> Iterator[Span]:
    """A span around the code inside, child of `traceparent` or of the span it is in."""
    if _tracer is None:
        token = _passing.set(traceparent or _passing.get())
        try:
            yield _NO_SPAN
        finally:
            _passing.reset(token)
        return
    started = start_span(name, traceparent, kind, attributes)
    from opentelemetry import trace

    with trace.use_span(started, end_on_exit=True, record_exception=False, set_status_on_exception=False):
        try:
            yield started
        except BaseException as error:
            mark_failed(started, getattr(error, "reason", "") or type(error).__name__)
            raise


def start_span(name: str, traceparent: str, kind: SpanKind, attributes: dict[str, Any]) -> Any:
    """An OpenTelemetry span that the caller ends; only while spans are enabled."""
    from opentelemetry import trace
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    parent = None
    if traceparent:
        parent = TraceContextTextMapPropagator().extract({TRACEPARENT: traceparent})
    return _tracer.start_span(
        name, context=parent, kind=getattr(trace.SpanKind, kind.upper()), attributes=attributes
    )


def mark_failed(span: Any, reason: str) -> None:
    """Mark a span as failed, with the error's reason but never its text."""
    from opentelemetry.trace import StatusCode

    span.set_attribute("error.type", reason)
    span.set_status(StatusCode.ERROR, reason)
