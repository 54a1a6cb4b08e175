"""The connections of a client: one channel per server and key, and how its calls fare over an outage."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import grpc
import grpc.aio

from taskyard import errors, tracing
from taskyard.channel import MIB, client_channel_options, open_channel, refuse_plaintext
from taskyard.context import DEFAULT_TENANT, Context, ContextError
from taskyard.failover import HEALTH_CHECK, SERVING, split_addresses
from taskyard.retry_budget import RetryBudget
from taskyard.retry_timer import RetryTimer, is_outage
from taskyard.service_config import repeatable
from taskyard.status import translated

if TYPE_CHECKING:
    from taskyard.v1.api_key_service_pb2 import WhoAmIResponse
    from taskyard.v1.api_key_service_pb2_grpc import ApiKeyServiceAsyncStub

A = TypeVar("A")
S = TypeVar("S")
T = TypeVar("T")
Server = Literal["taskdb", "admin", "scheduler"]
"""taskdb with the ordinary key, taskdb with the administrator's, or the scheduler."""

MAX_RECEIVE_BYTES = 64 * MIB
# Of many calls that fail at a time, one warning is enough.
WARNING_SECONDS = 5.0

log = logging.getLogger("taskyard")


class Channels:
    """The channels to the servers of a context. `patience` is how long a call waits out an outage.

    Without `retries` a call raises its first error, also if gRPC itself could retry it.
    """

    def __init__(
        self,
        context: Context,
        timeout: float | None = None,
        patience: float = 0.0,
        *,
        retries: bool = True,
    ) -> None:
        self.context = context
        self.patience = patience
        self._options = client_channel_options(MAX_RECEIVE_BYTES, retries=retries)
        self._timeout = timeout
        self._open: dict[tuple[str, str], grpc.aio.Channel] = {}
        self._stubs: dict[tuple[Server, Any], Any] = {}
        self._resolving = asyncio.Lock()
        self._budget = RetryBudget()
        self._next_warning = 0.0
        # Found before anything is sent, and not only by the first call.
        for address in filter(None, (context.address, context.scheduler)):
            if not context.tls_ca and "https://" not in address:
                refuse_plaintext(split_addresses(address.replace("http://", "")))

    async def tenant(self) -> str:
        """The tenant of the context; where it names none, that of the key."""
        if not self.context.tenant:
            async with self._resolving:
                if not self.context.tenant:
                    self.context = replace(self.context, tenant=await self._tenant_of_key())
        return self.context.tenant

    async def _tenant_of_key(self) -> str:
        try:
            return (await self.who_am_i()).api_key.tenant or DEFAULT_TENANT
        except errors.Unimplemented:
            # A server of before this RPC.
            return DEFAULT_TENANT

    async def who_am_i(self, server: Server = "taskdb") -> WhoAmIResponse:
        """The key of the context, or its administrator's key, as the server has it."""
        from taskyard.v1.api_key_service_pb2 import WhoAmIRequest
        from taskyard.v1.api_key_service_pb2_grpc import ApiKeyServiceStub

        stub: ApiKeyServiceAsyncStub = self.stub(server, ApiKeyServiceStub)
        return await self.call(stub.WhoAmI, WhoAmIRequest())

    def stub(self, server: Server, make: Callable[[grpc.aio.Channel], S]) -> S:
        """A stub of that server; raises ContextError if its address is not configured."""
        # Opened late because a channel belongs to the event loop that runs when it is opened.
        if (server, make) not in self._stubs:
            self._stubs[server, make] = make(self._channel(server))
        stub: S = self._stubs[server, make]
        return stub

    async def call(
        self,
        method: Callable[..., Awaitable[A]],
        request: Any,
        timeout: float | None = None,
        *,
        waits_out: bool = True,
    ) -> A:
        """The response of one call, repeated over an outage if that is safe. Raises taskyard.errors.

        `timeout` overrides service_config.json. With `waits_out` unset the first error is raised.
        """
        limit = timeout or self._timeout
        outage: RetryTimer | None = None
        while True:
            try:
                with translated():
                    answer = await (method(request, timeout=limit) if limit else method(request))
                self._budget.succeeded(retry=outage is not None)
                return answer
            except errors.TaskyardError as error:
                path = getattr(method, "method", "")
                lost = self.described(error, path)
                if not (waits_out and is_outage(error) and path in repeatable()):
                    raise lost from error.__cause__
                self._budget.failed()
                if outage is None:
                    outage = self.outage(lost)
            await outage.wait(lost)
            while not self._budget.take(time.monotonic()):
                await outage.wait(lost)

    def outage(self, error: errors.TaskyardError) -> RetryTimer:
        """The timer of an outage that begins with this error."""
        if self.patience and time.monotonic() >= self._next_warning:
            self._next_warning = time.monotonic() + WARNING_SECONDS
            log.warning("%s; trying again for up to %g s", error, self.patience)
        return RetryTimer(self.patience, f"gave up after {self.patience:g} s (the setting `patience`)")

    def described(self, error: errors.TaskyardError, path: str = "") -> errors.TaskyardError:
        """The error with a message for people, where gRPC itself made it and speaks of its own parts."""
        if error.reason or isinstance(error, errors.CertificateUntrusted):
            return error
        service = path.strip("/").partition("/")[0].rpartition(".")[2]
        scheduler = service in ("ExplainService", "RunnerLinkService", "WorkService")
        address = self.context.scheduler if scheduler else self.context.address
        if isinstance(error, errors.Unavailable):
            http = " (it speaks HTTP/1: is it the gateway?)" if "http1" in error.message.lower() else ""
            error.message = f"no server answers at {address}{http}"
        elif isinstance(error, errors.Unimplemented):
            name, variable = ("scheduler", "SCHEDULER") if scheduler else ("taskdb", "ADDRESS")
            error.message = (
                f"the server at {address} does not serve {path.rpartition('/')[2] or 'this call'}: it is not"
                f" a {name}, or one of another version; TASKYARD_{variable} is the address of {name}"
            )
        elif "larger than max" in error.message:
            error.message = f"the request is larger than the server accepts: {error.message}"
        return error

    async def serves(self, address: str) -> bool:
        """Whether the health check of the server at an address reports SERVING."""
        return await self.state(address) == "serving"

    async def state(self, address: str) -> str:
        """What the health check of the server at an address reports, in words for people."""
        async with self._open_to(address, self.context.key) as channel:
            # Two bytes do not justify another dependency.
            check: Any = channel.unary_unary(HEALTH_CHECK)
            try:
                answer = bytes(await check(b"", timeout=5.0))
            except grpc.RpcError:
                return "not reachable"
            return "serving" if answer == SERVING else "not serving"

    async def close(self) -> None:
        """Closes the connections and cancels the calls in flight."""
        channels, self._open, self._stubs = list(self._open.values()), {}, {}
        for channel in channels:
            await channel.close()

    def _channel(self, server: Server) -> grpc.aio.Channel:
        address = self.context.scheduler if server == "scheduler" else self.context.address
        if not address:
            raise ContextError(
                f"{self.context.source} names no scheduler; set TASKYARD_SCHEDULER to its host and port"
            )
        key = self.context.admin_key if server == "admin" and self.context.admin_key else self.context.key
        if (address, key) not in self._open:
            self._open[address, key] = self._open_to(address, key)
        return self._open[address, key]

    def _open_to(self, address: str, key: str) -> grpc.aio.Channel:
        tracing.enable_if_in_use()
        ca = _authority(self.context.tls_ca)
        try:
            return open_channel(
                address.replace("https://", "").replace("http://", ""),
                key=key,
                tls="https://" in address,
                tls_ca=ca,
                options=self._options,
            )
        except ContextError:
            raise
        except (ValueError, OSError) as error:
            raise ContextError(str(error)) from error


async def deferred(make: Callable[[], Awaitable[AsyncGenerator[Sequence[T]]]]) -> AsyncGenerator[Sequence[T]]:
    """The batches of a generator that takes a call to make."""
    batches = await make()
    try:
        async for batch in batches:
            yield batch
    finally:
        await batches.aclose()


def _authority(file: str) -> Path | None:
    """The file of the authority's certificates; raises ContextError if it holds none."""
    if not file:
        return None
    try:
        text = Path(file).read_bytes()
    except OSError as error:
        problem = f"TASKYARD_TLS_CA {file} cannot be read ({error.strerror}); name a PEM file"
        raise ContextError(problem) from error
    if b"-----BEGIN CERTIFICATE-----" not in text:
        raise ContextError(f"TASKYARD_TLS_CA {file} holds no certificate; name a PEM file")
    return Path(file)
