"""A gRPC server that gives every RPC a prepared answer, and records what it was asked."""

from __future__ import annotations

import contextlib
import itertools
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc

from taskyard_gateway.contract import rpcs


@dataclass
class Asked:
    """One call: the bytes of its request and its metadata."""

    request: bytes
    metadata: dict[str, str]


@dataclass
class Echo:
    """The server; `answers` are the responses of each method, serialised, or an error."""

    address: str = ""
    answers: dict[str, list[bytes]] = field(default_factory=dict)
    asked: dict[str, Asked] = field(default_factory=dict)
    # Methods that answer for ever, or wait for ever if they are unary.
    endless: set[str] = field(default_factory=set)
    sent: int = 0
    begun: threading.Event = field(default_factory=threading.Event)
    ended: threading.Event = field(default_factory=threading.Event)

    def hold(self, method: str) -> None:
        """Let the next call of this method go on until its caller ends it."""
        self.endless = {method}
        self.sent = 0
        self.begun.clear()
        self.ended.clear()


class _Handlers(grpc.GenericRpcHandler):
    def __init__(self, echo: Echo) -> None:
        self._echo = echo
        self._streams = {rpc.path for rpc in rpcs() if rpc.streams}

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> Any:
        method = handler_call_details.method
        if not method.startswith("/taskyard."):
            return None

        def note(request: bytes, context: Any) -> list[bytes]:
            self._echo.asked[method] = Asked(request, dict(context.invocation_metadata()))
            return self._echo.answers[method]

        if method in self._echo.endless:
            return self._held(method, note)
        if method in self._streams:
            return grpc.unary_stream_rpc_method_handler(lambda request, context: iter(note(request, context)))
        return grpc.unary_unary_rpc_method_handler(lambda request, context: note(request, context)[0])

    def _held(self, method: str, note: Any) -> Any:
        echo = self._echo

        def begin(request: bytes, context: Any) -> list[bytes]:
            context.add_callback(echo.ended.set)
            answers: list[bytes] = note(request, context)
            echo.begun.set()
            return answers

        def stream(request: bytes, context: Any) -> Iterator[bytes]:
            for answer in itertools.cycle(begin(request, context)):
                yield answer
                echo.sent += 1

        def wait(request: bytes, context: Any) -> bytes:
            begin(request, context)
            echo.ended.wait(60)
            return b""

        if method in self._streams:
            return grpc.unary_stream_rpc_method_handler(stream)
        return grpc.unary_unary_rpc_method_handler(wait)


@contextlib.contextmanager
def echo_server() -> Iterator[Echo]:
    """A running server."""
    echo = Echo()
    server = grpc.server(ThreadPoolExecutor(4))
    servicer = health.HealthServicer()
    health_pb2_grpc.add_HealthServicer_to_server(servicer, server)
    servicer.set("", health_pb2.HealthCheckResponse.SERVING)
    server.add_generic_rpc_handlers((_Handlers(echo),))
    echo.address = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    server.start()
    try:
        yield echo
    finally:
        server.stop(None)
