"""The stream to the scheduler: connect, send hello, read and write independently, reconnect after a loss."""

from __future__ import annotations

import asyncio
import contextlib
import random
from typing import Any, Protocol

import grpc
import grpc.aio

from taskyard import errors
from taskyard.status import from_rpc_error
from taskyard.v1.runner_link_service_pb2 import ConnectRequest, ConnectResponse, ServerGoodbye
from taskyard.v1.runner_link_service_pb2_grpc import RunnerLinkServiceStub
from taskyard_kit import failpoint
from taskyard_kit.logs import get_log
from taskyard_kit.metrics import instrument
from taskyard_runner.agent.metric_names import LINKS_LOST
from taskyard_runner.agent.run import seconds
from taskyard_runner.warden.linux import boottime

_FIRST_BACKOFF = 0.5
_MAX_BACKOFF = 30.0
_WELCOME_SECONDS = 15.0
# Upper bound of the pause that a scheduler's goodbye requests.
_MAX_PAUSE = 300.0
_CLOSE_SECONDS = 10.0
# Reconnecting cannot succeed until the configuration is changed.
_LASTING = frozenset(
    (
        errors.Code.UNAUTHENTICATED,
        errors.Code.PERMISSION_DENIED,
        errors.Code.ALREADY_EXISTS,
        errors.Code.FAILED_PRECONDITION,
        errors.Code.INVALID_ARGUMENT,
        errors.Code.UNIMPLEMENTED,
    )
)

log = get_log(__name__)
_lost = instrument(LINKS_LOST)

REPORT_SENT = failpoint.declare("agent.report_sent")


class LinkLost(Exception):
    """The stream is broken; the link reconnects."""


class Refused(Exception):
    """The scheduler rejects this runner until its configuration is changed."""


class LinkHandler(Protocol):
    """Produces the messages to send and handles those received."""

    def hello(self) -> ConnectRequest: ...

    def welcome(self, response: ConnectResponse) -> None: ...

    def next_request(self) -> ConnectRequest | None:
        """The next message to send, by class; raises LinkLost if the scheduler is silent."""
        ...

    def next_due(self) -> float:
        """The boot time by which next_request must be called again."""
        ...

    def receive(self, response: ConnectResponse) -> None: ...

    @property
    def leaving(self) -> bool:
        """The last message was a goodbye."""
        ...

    @property
    def holds_work(self) -> bool: ...


class Link:
    """Keeps one stream open until the handler has sent its goodbye."""

    def __init__(self, channel: grpc.aio.Channel, handler: LinkHandler) -> None:
        self._stub: Any = RunnerLinkServiceStub(channel)
        self._handler = handler
        self._wake = asyncio.Event()
        self._failures = 0
        self._welcomed = False
        self._goodbye: ServerGoodbye | None = None
        self.connected = False

    def wake(self) -> None:
        """Check for something to send."""
        self._wake.set()

    async def run(self) -> None:
        """Returns after the handler's goodbye. Raises Refused on a lasting rejection if no work is held."""
        while not self._handler.leaving:
            delay = await self._serve_once()
            if not self._handler.leaving:
                await asyncio.sleep(delay)

    async def _serve_once(self) -> float:
        """One stream from hello to its end; how long to wait before the next."""
        self._goodbye = None
        try:
            await self._session()
        except grpc.RpcError as error:
            return self._failed(from_rpc_error(error))
        except (LinkLost, TimeoutError) as error:
            return self._failed(errors.Unavailable(message=str(error) or "no welcome in time"))
        except (Refused, failpoint.FailpointError):
            raise
        except Exception as error:
            # An invalid message of a scheduler must end neither the agent nor its tasks.
            log.exception("session_failed", error=repr(error))
            return self._failed(errors.Unavailable(message=repr(error)))
        finally:
            self.connected = False
        self._failures = 0
        return min(seconds(self._goodbye.reconnect_after), _MAX_PAUSE) if self._goodbye else _FIRST_BACKOFF

    def _failed(self, error: errors.TaskyardError) -> float:
        lasting = error.code in _LASTING
        if lasting and not self._welcomed and not self._handler.holds_work:
            raise Refused(_remedy(error))
        self._failures += 1
        _lost.add(1, {"reason": error.reason or error.code.name})
        ceiling = min(_MAX_BACKOFF, _FIRST_BACKOFF * 2 ** min(self._failures, 10))
        delay = _MAX_BACKOFF if lasting else random.uniform(0, ceiling)
        log.warning("link_lost", reason=error.reason or error.code.name, error=str(error), retry_after=delay)
        return delay

    async def _session(self) -> None:
        call = self._stub.Connect()
        try:
            await call.write(self._handler.hello())
            async with asyncio.timeout(_WELCOME_SECONDS):
                response = await call.read()
            if response is grpc.aio.EOF:
                await _raise_end(call)
                return
            self._handler.welcome(response)
            self._welcomed = self.connected = True
            self._failures = 0
            await self._exchange(call)
        finally:
            call.cancel()

    async def _exchange(self, call: Any) -> None:
        reader = asyncio.create_task(self._read(call))
        writer = asyncio.create_task(self._write(call))
        try:
            await asyncio.wait((reader, writer), return_when=asyncio.FIRST_COMPLETED)
            if writer.done():
                # Raises the writer's error; after a goodbye the scheduler answers and then ends the stream.
                writer.result()
                async with asyncio.timeout(_CLOSE_SECONDS):
                    await reader
            else:
                reader.result()
        finally:
            for task in (reader, writer):
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError, Exception):
                    await task

    async def _read(self, call: Any) -> None:
        while (response := await call.read()) is not grpc.aio.EOF:
            if response.WhichOneof("message") == "goodbye":
                self._goodbye = response.goodbye
                self._wake.set()
            else:
                self._handler.receive(response)
        await _raise_end(call)

    async def _write(self, call: Any) -> None:
        while True:
            self._wake.clear()
            request = self._handler.next_request()
            if request is not None:
                await _write_one(call, request)
                if request.WhichOneof("message") in ("reports", "short_runs"):
                    REPORT_SENT.hit()
            if self._handler.leaving or (self._goodbye is not None and request is None):
                await call.done_writing()
                return
            if request is None:
                await self._sleep()

    async def _sleep(self) -> None:
        wait = self._handler.next_due() - boottime()
        if wait > 0:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await self._wake.wait()


async def _write_one(call: Any, request: ConnectRequest) -> None:
    try:
        await call.write(request)
    except asyncio.InvalidStateError:
        # The stream has ended; its status has the reason.
        await _raise_end(call)
        raise LinkLost("the stream has ended") from None


async def _raise_end(call: Any) -> None:
    """Raise the status of an ended call, if it is an error."""
    code = await call.code()
    if code != grpc.StatusCode.OK:
        details = await call.details()
        raise grpc.aio.AioRpcError(
            code, await call.initial_metadata(), await call.trailing_metadata(), details=details
        )


def _remedy(error: errors.TaskyardError) -> str:
    """The message with what the operator of a runner can do; an API caller's advice is about headers."""
    if isinstance(error, errors.Unauthenticated):
        problem = error.message.partition(";")[0]
        return (
            f"the scheduler rejects the key: {problem}; set TASKYARD_KEY or --key to a key of kind runner"
            " (`taskyard keys create --kind runner`)"
        )
    if isinstance(error, errors.Unimplemented):
        return f"{error.message}; --scheduler must name a scheduler"
    return str(error)
