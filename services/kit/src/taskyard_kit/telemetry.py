"""Logs, traces and metrics of a process, set up once from its settings; logs alone without the extra."""

from __future__ import annotations

import atexit
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from taskyard import tracing
from taskyard.tracing import current_traceparent, span
from taskyard_kit import logs, metrics
from taskyard_kit.settings import Problem, Settings, setting
from taskyard_kit.startup import StartupError

__all__ = ["TelemetrySettings", "configure", "current_traceparent", "span"]

_EXTRA = "install the extra taskyard-kit[telemetry]"

# Data that is not exported by then is lost; an unavailable collector must not block the shutdown.
_FLUSH_SECONDS = 3.0

_flushes: list[Callable[[], object]] = []


class TelemetrySettings(Settings):
    """Settings for logs, traces and metrics."""

    log_format: logs.Format = setting("auto", help="json, console, or auto: console on a terminal")
    log_level: logs.Level = setting("info", help="least severe level that is logged")
    otlp_endpoint: str = setting(
        "",
        env="OTEL_EXPORTER_OTLP_ENDPOINT",
        help="OTLP/gRPC collector for traces and metrics, like http://127.0.0.1:4317",
    )
    metrics_listen: str = setting("", help="host:port of the Prometheus endpoint, like 127.0.0.1:9420")

    def check(self) -> Iterator[Problem]:
        yield from super().check()
        if self.otlp_endpoint and not self.otlp_endpoint.startswith(("http://", "https://")):
            yield Problem("otlp_endpoint", self.otlp_endpoint, "must begin with http:// or https://")
        if self.metrics_listen and not _port(self.metrics_listen).isdigit():
            yield Problem("metrics_listen", self.metrics_listen, "must be host:port, like 127.0.0.1:9420")
        if (self.otlp_endpoint or self.metrics_listen) and not installed():
            used = "otlp_endpoint" if self.otlp_endpoint else "metrics_listen"
            yield Problem(used, getattr(self, used), f"needs OpenTelemetry; {_EXTRA} or leave it empty")


def installed() -> bool:
    """Whether the telemetry extra is installed."""
    try:
        import opentelemetry.sdk  # noqa: F401
    except ImportError:
        return False
    return True


def configure(settings: TelemetrySettings) -> None:
    """Set up logs, and traces and metrics if configured; once, before the event loop."""
    logs.configure(settings.service, format=settings.log_format, level=settings.log_level)
    if not (settings.otlp_endpoint or settings.metrics_listen):
        return
    from opentelemetry.sdk.resources import Resource

    resource = Resource.create({"service.name": f"taskyard-{settings.service}"})
    if settings.otlp_endpoint:
        _configure_traces(settings.otlp_endpoint, resource)
    _configure_metrics(settings, resource)


def flush() -> None:
    """Export the remaining data before the process ends, for at most a few seconds."""
    threads = [threading.Thread(target=each, daemon=True) for each in _flushes]
    deadline = time.monotonic() + _FLUSH_SECONDS
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))


def _configure_traces(endpoint: str, resource: Any) -> None:
    from opentelemetry import trace
    from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=endpoint)))
    trace.set_tracer_provider(provider)
    _flushes.append(provider.force_flush)
    tracing.enable()


def _configure_metrics(settings: TelemetrySettings, resource: Any) -> None:
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import MetricReader, PeriodicExportingMetricReader

    readers: list[MetricReader] = []
    if settings.otlp_endpoint:
        from opentelemetry.exporter.otlp.proto.grpc.metric_exporter import OTLPMetricExporter

        readers.append(PeriodicExportingMetricReader(OTLPMetricExporter(endpoint=settings.otlp_endpoint)))
    if settings.metrics_listen:
        readers.append(_serve_prometheus(settings.metrics_listen))
    provider = MeterProvider(metric_readers=readers, resource=resource, shutdown_on_exit=False)
    _flushes.append(provider.force_flush)
    metrics.enable(provider.get_meter("taskyard"))


def _serve_prometheus(listen: str) -> Any:
    from opentelemetry.exporter.prometheus import PrometheusMetricReader

    from taskyard_kit import metrics_endpoint

    host = listen.rpartition(":")[0].strip("[]") or "127.0.0.1"
    try:
        server = metrics_endpoint.start(host, int(_port(listen)))
    except OSError as error:
        message = f"cannot serve metrics on {listen}: {error.strerror}; set another --metrics-listen"
        raise StartupError(message) from None
    atexit.register(server.shutdown)
    return PrometheusMetricReader()


def _port(listen: str) -> str:
    return listen.rpartition(":")[2]
