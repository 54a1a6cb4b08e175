"""Wraps each handler once when it is registered: tracing, authentication,
policy, deadline, validation and the translation of errors.

grpc.aio's own interceptors run a coroutine chain per call to find the handler; wrapping it beforehand leaves
one coroutine per call.
"""

from __future__ import annotations

import asyncio
import inspect
import re
import time
import uuid
from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing
from datetime import timedelta
from typing import Any

import grpc
import grpc.aio

from taskyard import status, tracing
from taskyard.errors import (
    Code,
    DeadlineExceeded,
    Internal,
    PermissionDenied,
    ServerDraining,
    TaskyardError,
    Unauthenticated,
    Unimplemented,
)
from taskyard_kit.auth import Authenticator, Kind, Policy, current_principal, set_principal
from taskyard_kit.call_limits import CallLimits
from taskyard_kit.fair_starts import FairStarts
from taskyard_kit.logs import get_log
from taskyard_kit.metric_names import RPC_DURATION, RPC_OPEN_STREAMS
from taskyard_kit.metrics import instrument
from taskyard_kit.open_calls import Streams
from taskyard_kit.validation import decoder
from taskyard_kit.values import format_duration
from taskyard_kit.writes import Writes

Context = grpc.aio.ServicerContext[Any, Any]
Behavior = Callable[[Any, Context], Awaitable[Any]]

log = get_log(__name__)

# One is converted while the database stores the other.
_HEAVY_WRITES = 2

# The form of W3C Trace Context, version 00. Anything else is ignored, as that specification asks.
_TRACEPARENT = re.compile(r"00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")


class Guard:
    """Wraps handlers; one per server."""

    def __init__(
        self,
        authenticator: Authenticator,
        policies: Mapping[str, Policy],
        call_timeout: timedelta,
        heavy_calls: int = 2,
    ) -> None:
        self.streams = Streams()
        self._writes = Writes()
        self._authenticator = authenticator
        self._policies = policies
        self._call_timeout = call_timeout
        self.starts = FairStarts()
        self._heavy_reads = CallLimits(heavy_calls)
        self._heavy_writes = CallLimits(_HEAVY_WRITES)
        # Streams that tenants open; those of runners and schedulers are never held back.
        self._paced: set[str] = set()

    def wrap(self, method: str, handler: grpc.RpcMethodHandler[Any, Any]) -> grpc.RpcMethodHandler[Any, Any]:
        """The wrapped handler; a method without an entry in the policy table is denied."""
        policy = self._policies.get(method, Policy(frozenset()))
        decode: Callable[[bytes], Any] = decoder(_deserializer(handler), method, policy)
        serialize = _serializer(handler)
        behavior = _behavior(handler, method)
        enter = self._authorizer(method, policy)
        streaming = handler.request_streaming or handler.response_streaming
        if streaming and Kind.TENANT in policy.kinds:
            self._paced.add(method)
        if streaming:
            body = _stream_body(handler, behavior, enter, decode, self.starts, self._writes)
        else:
            if policy.heavy:
                limits = self._heavy_writes if policy.scope else self._heavy_reads
                behavior, decode = _with_limit(behavior, decode, limits), _undecoded
            body = _unary_body(behavior, enter, decode, self.starts, self._limit(policy), method)
        call = _with_telemetry(method, _with_internal_errors(method, body))
        if streaming or policy.waits:
            call = _with_tracking(method, self.streams, call, authorized=not policy.open)
        call = with_error_status(call)
        # Messages of a request stream are decoded and validated when the handler reads them; a single request
        # is decoded only after the caller is authenticated.
        if handler.request_streaming:
            make = grpc.stream_stream_rpc_method_handler
            if not handler.response_streaming:
                make = grpc.stream_unary_rpc_method_handler
            return make(call, request_deserializer=decode, response_serializer=serialize)
        make = (
            grpc.unary_stream_rpc_method_handler
            if handler.response_streaming
            else grpc.unary_unary_rpc_method_handler
        )
        return make(call, response_serializer=serialize)

    def pace(self, method: str) -> asyncio.Future[None] | None:
        """What has to be awaited before the next call of this method is accepted, if anything."""
        return self.starts.accept(method) if method in self._paced else None

    async def check_keys(self) -> None:
        """End the streams whose key has been revoked or has expired.

        If the key store does not answer, no stream is ended.
        """
        for header in self.streams.headers():
            try:
                await self._authenticator.authenticate(header)
            except Unauthenticated as error:
                self.streams.end(header, error)
            except Exception as error:
                # The key store failed: the next check tries again.
                log.warning("key_not_checked", error=repr(error))

    def _limit(self, policy: Policy) -> timedelta | None:
        return None if policy.waits else policy.deadline or self._call_timeout

    def _authorizer(self, method: str, policy: Policy) -> Callable[[Context], Awaitable[str]]:
        """Sets the principal of a call; returns its tenant, empty for other keys."""
        authenticate = self._authenticator.authenticate

        async def enter(context: Context) -> str:
            if policy.open:
                return ""
            principal = await authenticate(_header(context, "authorization"))
            if principal.kind not in policy.kinds or not principal.may(policy.scope):
                raise PermissionDenied(str(principal), method, policy.needed())
            set_principal(principal)
            return principal.tenant

        return enter


def _header(context: Context, name: str) -> str | None:
    for key, value in context.invocation_metadata() or ():
        if key == name:
            return str(value)
    return None


def _deserializer(handler: grpc.RpcMethodHandler[Any, Any]) -> Callable[[bytes], Any]:
    found: Callable[[bytes], Any] | None = handler.request_deserializer
    return found if found is not None else lambda data: data


def _serializer(handler: grpc.RpcMethodHandler[Any, Any]) -> Callable[[Any], bytes] | None:
    """Passes bytes through: a message that many streams send is serialised once."""
    found: Callable[[Any], bytes] | None = handler.response_serializer
    if found is None or not handler.response_streaming:
        return found
    serialize = found

    def serialize_once(response: Any) -> bytes:
        return response if response.__class__ is bytes else serialize(response)

    return serialize_once


def _behavior(handler: grpc.RpcMethodHandler[Any, Any], method: str) -> Callable[[Any, Context], Any]:
    found: Any = handler.stream_stream or handler.stream_unary or handler.unary_stream or handler.unary_unary
    if inspect.iscoroutinefunction(found) or inspect.isasyncgenfunction(found):
        behavior: Callable[[Any, Context], Any] = found
        return behavior

    # A method that the service does not override is the generated servicer's plain function.
    async def unimplemented(request: Any, context: Context) -> None:
        raise Unimplemented(method)

    return unimplemented


def _with_limit(behavior: Behavior, decode: Callable[[bytes], Any], limits: CallLimits) -> Behavior:
    """Decodes the request, which may be large, when the call has its turn."""

    async def call(data: bytes, context: Context) -> Any:
        principal = current_principal()
        async with limits.call(f"tenants/{principal.tenant}" if principal.tenant else str(principal)):
            return await behavior(decode(data), context)

    return call


def _undecoded(data: bytes) -> bytes:
    return data


def _unary_body(
    behavior: Behavior,
    enter: Callable[[Context], Awaitable[str]],
    decode: Callable[[bytes], Any],
    starts: FairStarts,
    limit: timedelta | None,
    method: str,
) -> Behavior:
    async def call(data: bytes, context: Context) -> Any:
        tenant = await enter(context)
        if tenant and (turn := starts.enter(tenant)) is not None:
            await turn
        return await behavior(decode(data), context)

    if limit is None:
        return call
    seconds = limit.total_seconds()

    async def call_within(data: bytes, context: Context) -> Any:
        remaining = context.time_remaining()
        if remaining is not None and remaining <= seconds:
            # gRPC cancels at the caller's own deadline; a second timer would cost 6 µs.
            return await call(data, context)
        try:
            async with asyncio.timeout(seconds) as scope:
                return await call(data, context)
        except TimeoutError:
            if not scope.expired():
                raise
            raise DeadlineExceeded(method, format_duration(limit)) from None

    return call_within


def _stream_body(
    handler: grpc.RpcMethodHandler[Any, Any],
    behavior: Callable[[Any, Context], Any],
    enter: Callable[[Context], Awaitable[str]],
    decode: Callable[[bytes], Any],
    starts: FairStarts,
    writes: Writes,
) -> Behavior:
    generates = inspect.isasyncgenfunction(behavior)

    async def call(incoming: Any, context: Context) -> Any:
        tenant = await enter(context)
        if tenant and (turn := starts.enter(tenant)) is not None:
            await turn
        request = incoming if handler.request_streaming else decode(incoming)
        if not generates:
            return await behavior(request, context)
        async with aclosing(behavior(request, context)) as responses:
            async for response in responses:
                await writes.write(response, context)
        return None

    return call


def _with_tracking(method: str, streams: Streams, inner: Behavior, *, authorized: bool) -> Behavior:
    gauge = instrument(RPC_OPEN_STREAMS)
    labels = {"method": method.lstrip("/")}

    async def call(incoming: Any, context: Context) -> Any:
        if streams.ended:
            raise ServerDraining()
        task = streams.enter(_header(context, "authorization") if authorized else None)
        gauge.add(1, labels)
        try:
            return await inner(incoming, context)
        except asyncio.CancelledError:
            error = streams.leave(task)
            if error is None:
                raise
            task.uncancel()
            try:
                # Every call that a drain ends has the same error; its traceback is for one of them.
                raise error.with_traceback(None) from None
            finally:
                # The error keeps this frame.
                del error
        finally:
            streams.leave(task)
            gauge.add(-1, labels)

    return call


def _with_internal_errors(method: str, inner: Behavior) -> Behavior:
    """Turns unexpected exceptions into INTERNAL; the detail goes to the log only."""

    async def call(incoming: Any, context: Context) -> Any:
        try:
            return await inner(incoming, context)
        except (TaskyardError, grpc.aio.AbortError):
            raise
        except Exception:
            correlation_id = uuid.uuid4().hex
            log.exception("rpc_failed", method=method, correlation_id=correlation_id)
            raise Internal(correlation_id) from None

    return call


def _with_telemetry(method: str, inner: Behavior) -> Behavior:
    """Measures and traces a call if telemetry is enabled; otherwise only passes the traceparent on."""
    name = method.lstrip("/")
    duration = instrument(RPC_DURATION)

    async def call(incoming: Any, context: Context) -> Any:
        traceparent = _header(context, tracing.TRACEPARENT) or ""
        if traceparent and _TRACEPARENT.fullmatch(traceparent) is None:
            traceparent = ""
        if tracing.enabled() or duration.active:
            return await observed(traceparent, incoming, context)
        if traceparent:
            tracing.pass_on(traceparent)
        return await inner(incoming, context)

    async def observed(traceparent: str, incoming: Any, context: Context) -> Any:
        started, code = time.perf_counter(), Code.CANCELLED.name
        with tracing.span(name, traceparent=traceparent, kind="server", **_ATTRIBUTES) as span:
            try:
                result = await inner(incoming, context)
                code = Code.OK.name
                return result
            except TaskyardError as error:
                code = error.code.name
                raise
            except grpc.aio.AbortError:
                code = _aborted_code(context)
                raise
            finally:
                span.set_attribute("rpc.response.status_code", code)
                duration.add(time.perf_counter() - started, {"method": name, "code": code})

    return call


def _aborted_code(context: Context) -> str:
    code: Any = context.code()
    return status.CODE_NAME.get(code, Code.UNKNOWN.name)


_ATTRIBUTES = {"rpc.system.name": "grpc"}


def with_error_status(inner: Behavior) -> Behavior:
    """Ends the call with the status of the raised error.

    gRPC's call keeps the error that aborts it. The frames of that error would keep the call, its request and
    its memory in gRPC's core, until the garbage collector looks at what has lived long, which is rare.
    """

    async def call(incoming: Any, context: Context) -> Any:
        try:
            try:
                return await inner(incoming, context)
            except TaskyardError as error:
                await _fail(context, error)
        except grpc.aio.AbortError as aborted:
            del incoming, context
            aborted.__context__ = None
            raise aborted.with_traceback(None) from None

    return call


async def _fail(context: Context, error: TaskyardError) -> None:
    code = status.GRPC_CODE[error.code]
    await context.abort(code, status.clip(error.message), status.trailing_metadata(error))
