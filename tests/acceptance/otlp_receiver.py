"""An OTLP collector in this process: keeps which service made spans of which trace."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import grpc
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2, trace_service_pb2_grpc


class Receiver(trace_service_pb2_grpc.TraceServiceServicer):
    """Every span that arrived, by trace id: (service, span name)."""

    def __init__(self) -> None:
        self.traces: dict[str, set[tuple[str, str]]] = {}
        self._arrived = threading.Condition()

    def Export(self, request: Any, context: Any) -> Any:
        with self._arrived:
            for group in request.resource_spans:
                service = next(
                    a.value.string_value for a in group.resource.attributes if a.key == "service.name"
                )
                for scope in group.scope_spans:
                    for span in scope.spans:
                        self.traces.setdefault(span.trace_id.hex(), set()).add((service, span.name))
            self._arrived.notify_all()
        return trace_service_pb2.ExportTraceServiceResponse()

    def wait_for_services(self, trace: str, services: set[str], timeout: float) -> set[str]:
        """The services with spans of the trace, once they are all there or the time is up."""
        with self._arrived:
            self._arrived.wait_for(lambda: services <= self._services(trace), timeout)
            return self._services(trace)

    def _services(self, trace: str) -> set[str]:
        return {service for service, _ in self.traces.get(trace, set())}


@contextmanager
def receiving() -> Iterator[tuple[Receiver, str]]:
    """A receiver and its endpoint, for as long as the block runs."""
    receiver = Receiver()
    server = grpc.server(ThreadPoolExecutor(4))
    add: Any = trace_service_pb2_grpc.add_TraceServiceServicer_to_server
    add(receiver, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield receiver, f"http://127.0.0.1:{port}"
    finally:
        server.stop(None).wait()
