"""Runners with one rule broken on purpose: a runner behind a proxy that tampers with the link."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import grpc.aio

from taskyard.channel import client_channel_options, open_channel
from taskyard.v1 import runner_link_service_pb2 as link
from taskyard.v1.runner_link_service_pb2_grpc import (
    RunnerLinkServiceServicer,
    RunnerLinkServiceStub,
    add_RunnerLinkServiceServicer_to_server,
)

Request = link.ConnectRequest
Response = link.ConnectResponse


class Tampering:
    """Passes everything on as it is; subclasses break a rule."""

    def request(self, request: Request) -> Request | None:
        return request

    def response(self, response: Response) -> Response:
        return response


class ForgetfulHello(Tampering):
    """Rule 1: hello does not list what the runner has."""

    def request(self, request: Request) -> Request | None:
        request.hello.ClearField("held") if request.HasField("hello") else None
        return request


class NoSpool(Tampering):
    """Rule 7: what was sent once is not sent again."""

    def __init__(self) -> None:
        self._sent = 0

    def request(self, request: Request) -> Request | None:
        if not request.HasField("reports"):
            return request
        fresh = [r for r in request.reports.reports if not r.seq or r.seq > self._sent]
        self._sent = max([self._sent, *(report.seq for report in fresh)])
        return Request(reports=link.ReportBatch(reports=fresh)) if fresh else None


class ForgottenCheckpoint(Tampering):
    """Rule 10: what was uploaded once is not uploaded again."""

    def __init__(self) -> None:
        self._complete = 0
        self._current = 0

    def request(self, request: Request) -> Request | None:
        if not request.HasField("checkpoint_chunk"):
            return request
        chunk = request.checkpoint_chunk
        self._current = chunk.header.sequence or self._current
        repeated = self._current <= self._complete
        self._complete = self._current if chunk.last else self._complete
        return None if repeated else request


class NoWindow(Tampering):
    """Rule 11: the windows of the scheduler are ignored."""

    def response(self, response: Response) -> Response:
        if response.HasField("welcome"):
            response.welcome.ClearField("flow")
        return response


BREAKS: dict[int, Callable[[], Tampering]] = {
    1: ForgetfulHello,
    7: NoSpool,
    10: ForgottenCheckpoint,
    11: NoWindow,
}


class Proxy(RunnerLinkServiceServicer):
    """Carries the link to the scheduler, tampered with."""

    def __init__(self, stub: Any, tampering: Tampering) -> None:
        self._stub = stub
        self._tampering = tampering

    async def Connect(self, requests: AsyncIterator[Request], context: Any) -> AsyncIterator[Response]:
        key = tuple((k, v) for k, v in context.invocation_metadata() or () if k == "authorization")
        call = self._stub.Connect(metadata=key)
        sending = asyncio.create_task(self._send(requests, call))
        try:
            while (response := await call.read()) is not grpc.aio.EOF:
                yield self._tampering.response(response)
            if (code := await call.code()) is not grpc.StatusCode.OK:
                await context.abort(code, await call.details(), tuple(await call.trailing_metadata() or ()))
        except grpc.aio.AioRpcError as error:
            await context.abort(error.code(), error.details() or "", tuple(error.trailing_metadata() or ()))
        finally:
            sending.cancel()
            call.cancel()

    async def _send(self, requests: AsyncIterator[Request], call: Any) -> None:
        async for request in requests:
            if (passed := self._tampering.request(request)) is not None:
                await call.write(passed)
        await call.done_writing()


@asynccontextmanager
async def proxied(scheduler: str, tampering: Tampering) -> AsyncIterator[str]:
    """The address of a proxy to the scheduler."""
    server = grpc.aio.server()
    async with open_channel(scheduler, options=client_channel_options()) as channel:
        add_RunnerLinkServiceServicer_to_server(Proxy(RunnerLinkServiceStub(channel), tampering), server)
        port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        try:
            yield f"127.0.0.1:{port}"
        finally:
            await server.stop(None)
