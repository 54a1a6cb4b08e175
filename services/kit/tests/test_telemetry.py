"""Logs, traces and metrics as an operator receives them: a real OTLP collector, a real Prometheus page."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import re
import socket
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent import futures
from pathlib import Path
from typing import Any

import grpc
import pytest
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2, metrics_service_pb2_grpc
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2, trace_service_pb2_grpc
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

from services.kit.tests.echo_service import SERVICE, pb, rpc
from services.kit.tests.test_process import Launch, connect, launch
from taskyard import tracing
from taskyard.errors import Overloaded, StorageUnavailable
from taskyard_kit import logs
from taskyard_kit.metric_names import RPC_DURATION, catalogue

__all__ = ["launch"]


class Collector:
    """An OTLP collector that keeps what it gets; on threads, because exporters block."""

    def __init__(self) -> None:
        self.spans: list[tuple[str, Any]] = []
        self.metrics: set[str] = set()
        self._server = grpc.server(futures.ThreadPoolExecutor(4))
        add_traces: Any = trace_service_pb2_grpc.add_TraceServiceServicer_to_server
        add_metrics: Any = metrics_service_pb2_grpc.add_MetricsServiceServicer_to_server
        add_traces(self, self._server)
        add_metrics(Metrics(self.metrics), self._server)
        self.endpoint = f"http://127.0.0.1:{self._server.add_insecure_port('127.0.0.1:0')}"
        self._server.start()

    def Export(self, request: Any, context: Any) -> Any:
        for resource in request.resource_spans:
            named = {a.key: a.value.string_value for a in resource.resource.attributes}
            found = [(named["service.name"], span) for scope in resource.scope_spans for span in scope.spans]
            self.spans.extend(found)
        return trace_service_pb2.ExportTraceServiceResponse()

    def stop(self) -> None:
        self._server.stop(None)


class Metrics:
    def __init__(self, names: set[str]) -> None:
        self._names = names

    def Export(self, request: Any, context: Any) -> Any:
        for resource in request.resource_metrics:
            self._names.update(m.name for scope in resource.scope_metrics for m in scope.metrics)
        return metrics_service_pb2.ExportMetricsServiceResponse()


@pytest.fixture
def collector() -> Iterator[Collector]:
    made = Collector()
    yield made
    made.stop()


@pytest.fixture
def traced(collector: Collector, monkeypatch: pytest.MonkeyPatch) -> TracerProvider:
    """Spans of this process go to the collector, as in a program that uses the client with OpenTelemetry."""
    provider = TracerProvider(resource=Resource.create({"service.name": "client"}))
    provider.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter(endpoint=collector.endpoint)))
    monkeypatch.setattr(tracing, "_tracer", provider.get_tracer("test"))
    return provider


async def test_one_trace_reaches_from_the_client_into_the_service(
    launch: Launch, collector: Collector, traced: TracerProvider, tmp_path: Path
) -> None:
    address = f"unix:{tmp_path}/echo.sock"
    service = await launch("--listen", address, OTEL_EXPORTER_OTLP_ENDPOINT=collector.endpoint)
    await service.event("serving")
    async with connect(address) as channel:
        stub = rpc.EchoServiceStub(channel)
        with tracing.span("submit"):
            sent = tracing.current_traceparent()
            seen = (await stub.Echo(pb.EchoRequest(text="trace"))).text
            _ = [answer async for answer in stub.Count(pb.EchoRequest())]
    service.process.terminate()
    assert await service.end() == 0

    trace_id = sent.split("-")[1]
    assert seen.split("-")[1] == trace_id
    spans = {(name, span.name): span for name, span in collector.spans if span.trace_id.hex() == trace_id}
    for method in (f"{SERVICE}/Echo", f"{SERVICE}/Count"):
        server, client = spans["taskyard-echo", method], spans["client", method]
        assert server.parent_span_id == client.span_id
        assert client.parent_span_id == spans["client", "submit"].span_id
    assert "taskyard.rpc.duration" in collector.metrics


async def test_a_failed_call_marks_its_spans_without_the_text_of_the_error(
    launch: Launch, collector: Collector, traced: TracerProvider, tmp_path: Path
) -> None:
    address = f"unix:{tmp_path}/echo.sock"
    service = await launch("--listen", address, OTEL_EXPORTER_OTLP_ENDPOINT=collector.endpoint)
    await service.event("serving")
    async with connect(address) as channel:
        with pytest.raises(grpc.RpcError):
            await rpc.EchoServiceStub(channel).Echo(pb.EchoRequest(text="crash"))
    service.process.terminate()
    await service.end()
    (server,) = [span for name, span in collector.spans if name == "taskyard-echo"]
    attributes = {a.key: a.value.string_value for a in server.attributes}
    assert (attributes["rpc.response.status_code"], attributes["error.type"]) == ("INTERNAL", "INTERNAL")
    assert "hunter2" not in str(server)


async def test_a_stream_that_its_reader_ends_is_not_a_failed_span(
    launch: Launch, collector: Collector, traced: TracerProvider, tmp_path: Path
) -> None:
    address = f"unix:{tmp_path}/echo.sock"
    service = await launch("--listen", address)
    await service.event("serving")
    async with connect(address) as channel:
        call = rpc.EchoServiceStub(channel).Count(pb.EchoRequest())
        async for _ in call:
            break
        call.cancel()
        async with asyncio.timeout(20):
            while not collector.spans:  # noqa: ASYNC110 (a collector on threads)
                await asyncio.sleep(0.02)
    (ended,) = [span for name, span in collector.spans if name == "client"]
    assert ended.status.code == 0, "unset, as OpenTelemetry has it for what did not fail"


async def test_missing_collector_does_not_block_shutdown(launch: Launch, tmp_path: Path) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        endpoint = f"http://127.0.0.1:{unused.getsockname()[1]}"
        service = await launch("--listen", f"unix:{tmp_path}/e.sock", OTEL_EXPORTER_OTLP_ENDPOINT=endpoint)
        await service.event("serving")
        async with connect(f"unix:{tmp_path}/e.sock") as channel:
            await rpc.EchoServiceStub(channel).Echo(pb.EchoRequest(text="x"))
        service.process.terminate()
        async with asyncio.timeout(10):
            assert await service.end() == 0


async def test_prometheus_reads_the_metrics_on_a_port_of_their_own(launch: Launch, tmp_path: Path) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    address = f"unix:{tmp_path}/echo.sock"
    service = await launch("--listen", address, "--metrics-listen", f"127.0.0.1:{port}")
    await service.event("serving")
    async with connect(address) as channel:
        await rpc.EchoServiceStub(channel).Echo(pb.EchoRequest(text="x"))
    page = await asyncio.to_thread(_read, f"http://127.0.0.1:{port}/metrics")
    buckets = [
        line for line in page.splitlines() if "rpc_duration_seconds_bucket" in line and 'Echo"' in line
    ]
    counts = {re.findall(r'le="([^"]+)"', line)[0]: float(line.rpartition(" ")[2]) for line in buckets}
    assert [float(bound) for bound in counts] == [*RPC_DURATION.buckets, float("inf")]
    assert RPC_DURATION.buckets[0] <= 0.001 and counts["60.0"] == 1.0
    assert await asyncio.to_thread(_read, f"http://127.0.0.1:{port}/ready") == "ready\n"
    with pytest.raises(urllib.error.HTTPError, match="404"):
        await asyncio.to_thread(_read, f"http://127.0.0.1:{port}/elsewhere")
    assert f'taskyard_rpc_duration_seconds_count{{code="OK",method="{SERVICE}/Echo"' in page


async def test_metrics_without_a_host_are_for_this_host_only(launch: Launch, tmp_path: Path) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    service = await launch("--listen", f"unix:{tmp_path}/echo.sock", "--metrics-listen", f":{port}")
    await service.event("serving")
    assert await asyncio.to_thread(_read, f"http://127.0.0.1:{port}/live") == "live\n"
    # An endpoint of all addresses would answer here too.
    with pytest.raises(urllib.error.URLError, match="refused"):
        await asyncio.to_thread(_read, f"http://127.0.0.2:{port}/live")


def _read(url: str) -> str:
    with urllib.request.urlopen(url, timeout=10) as response:
        return str(response.read().decode())


async def test_a_metrics_port_in_use_is_one_line(launch: Launch) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        listen = f"127.0.0.1:{taken.getsockname()[1]}"
        service = await launch("--listen", "unix:/x", "--metrics-listen", listen)
        _, err = await service.process.communicate()
    assert service.process.returncode == 1
    message = f"cannot serve metrics on {listen}: Address already in use; set another --metrics-listen"
    assert err.decode() == f"taskyard-echo: {message}\n"


def test_an_event_is_a_json_object_with_its_fields() -> None:
    out = io.StringIO()
    with _logging(out, "json"), logs.bound(tenant="acme"):
        logs.get_log("test").info("task_created", task="t1", size=3)
    line = json.loads(out.getvalue())
    assert {k: line[k] for k in ("level", "service", "event", "tenant", "task", "size")} == {
        "level": "info",
        "service": "echo",
        "event": "task_created",
        "tenant": "acme",
        "task": "t1",
        "size": 3,
    }


def test_fields_of_any_logger_reach_the_line_and_none_replaces_another() -> None:
    out = io.StringIO()
    with _logging(out, "json"):
        logging.getLogger("library").warning("third_party", extra={"attempt": 3})
        logs.get_log("test").info("named", service="other", time=5)
    first, second = map(json.loads, out.getvalue().splitlines())
    assert first["attempt"] == 3
    assert (second["service"], second["service_"], second["time_"]) == ("echo", "other", 5)


def test_an_outage_of_the_database_is_logged_by_its_owner_alone() -> None:
    out = io.StringIO()
    with _logging(out, "json"):
        log = logs.get_log("test")
        log.failure("sweep_postponed", StorageUnavailable("not applied"), sweep="timers")
        log.failure("sweep_postponed", Overloaded("the database", "8"), sweep="timers")
    (line,) = map(json.loads, out.getvalue().splitlines())
    assert line["level"] == "warning" and line["sweep"] == "timers" and "error" in line


def test_an_event_is_a_readable_line_on_a_terminal() -> None:
    out = io.StringIO()
    with _logging(out, "console"):
        logs.get_log("test").warning("task_lost", task="t1", why="runner went away")
    assert out.getvalue().rstrip()[13:] == 'warn task_lost task=t1 why="runner went away"'


def test_an_event_within_a_trace_names_it() -> None:
    out = io.StringIO()
    with _logging(out, "json"), tracing.span("x", traceparent=f"00-{'a' * 32}-{'b' * 16}-01"):
        logs.get_log("test").info("inside")
    assert json.loads(out.getvalue())["trace_id"] == "a" * 32


class _logging:
    """Logging as a service configures it, undone at the end."""

    def __init__(self, stream: io.StringIO, format: logs.Format) -> None:
        self._stream, self._format = stream, format

    def __enter__(self) -> None:
        root = logging.getLogger()
        self._saved = root.handlers[:], root.level
        logs.configure("echo", format=self._format, stream=self._stream)

    def __exit__(self, *exc_info: object) -> None:
        root = logging.getLogger()
        root.handlers[:], level = self._saved
        root.setLevel(level)


def test_metric_names_are_unique_and_begin_with_the_product() -> None:
    names = [metric.name for metric in catalogue()]
    assert len(names) == len(set(names))
    assert all(name.startswith("taskyard.") for name in names)
