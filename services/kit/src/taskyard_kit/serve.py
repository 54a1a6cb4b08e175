"""The gRPC server of every service: health, reflection, guarded handlers, listening and draining."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from typing import Any

import grpc
import grpc.aio
from google.protobuf import descriptor_pool
from google.protobuf.descriptor import ServiceDescriptor
from grpc_health.v1 import health, health_pb2, health_pb2_grpc

from taskyard.errors import Unimplemented
from taskyard_kit import health_state, reflection, validation
from taskyard_kit.accept import make_server
from taskyard_kit.auth import KIT_POLICIES, Authenticator, KeyVerifier, Policy, check_policies
from taskyard_kit.collector import spare_collector
from taskyard_kit.interceptors import Guard, with_error_status
from taskyard_kit.listen import ListenSettings
from taskyard_kit.logs import get_log
from taskyard_kit.options import MAX_MESSAGE_BYTES, server_options
from taskyard_kit.settings import setting
from taskyard_kit.shutdown import Shutdown
from taskyard_kit.startup import StartupError

log = get_log(__name__)

# The health service answers SERVING for this name as long as the process runs, also while it drains or its
# database is away; a supervisor that restarts what does not live checks this one.
LIVENESS = "liveness"

DrainHook = Callable[[], Awaitable[None]]


class ServeSettings(ListenSettings):
    """Settings for listening, limits and draining; a service overrides the default of `listen`."""

    max_message_bytes: int = setting(
        MAX_MESSAGE_BYTES, min=64 * 1024, max=64 * 1024 * 1024, help="largest request in bytes"
    )
    call_timeout: timedelta = setting(
        timedelta(seconds=60), min=timedelta(milliseconds=100), help="longest time for one unary call"
    )
    key_cache_ttl: timedelta = setting(
        timedelta(seconds=5), max=timedelta(minutes=5), help="how long a verified key is cached"
    )
    key_check_interval: timedelta = setting(
        timedelta(seconds=30),
        min=timedelta(milliseconds=100),
        max=timedelta(hours=1),
        help="how often the keys of open streams are verified again; streams of a revoked key end",
    )


class Server:
    """One gRPC server. Create it in the event loop, `add` servicers, then `serve`, or `start` and `drain`."""

    def __init__(
        self,
        settings: ServeSettings,
        *,
        verifier: KeyVerifier,
        policies: Mapping[str, Policy],
        heavy_calls: int = 2,
    ) -> None:
        self.draining = asyncio.Event()
        self.port = 0
        self.authenticator = Authenticator(verifier, settings.key_cache_ttl)
        self._settings = settings
        self._policies = {**KIT_POLICIES, **policies}
        self._guard = Guard(self.authenticator, self._policies, settings.call_timeout, heavy_calls)
        options = server_options(settings.max_message_bytes, reuse_port=settings.reuse_port)
        self._server = make_server(options, self._guard.pace)
        self._health = health.aio.HealthServicer()
        self._serving = True
        self._methods: list[str] = []
        self._services: list[str] = []
        self._own_services: tuple[str, ...] = ()
        self._drain_hooks: list[DrainHook] = []
        self._checking: asyncio.Task[None] | None = None

    def add(self, register: Callable[[Any, Any], None], servicer: object) -> None:
        """Serve a servicer: `server.add(add_TaskServiceServicer_to_server, TaskServicer(...))`."""
        register(servicer, _Registrar(self._register))

    def on_drain(self, hook: DrainHook) -> None:
        """Register a hook that runs when a drain begins, before new calls are refused.

        Streams that are still open when all hooks have returned end with SERVER_DRAINING.
        """
        self._drain_hooks.append(hook)

    async def start(self) -> None:
        """Start serving. Raises PolicyError for an RPC without a policy, StartupError if it cannot listen."""
        own = tuple(self._services)
        self.add(health_pb2_grpc.add_HealthServicer_to_server, self._health)
        described = reflection.ReflectionServicer((*own, health.SERVICE_NAME))
        self.add(reflection.register, described)
        self._server.add_generic_rpc_handlers((_ForeignMethods(self._settings.service, own),))
        check_policies(self._methods, self._policies)
        validation.prime(method.input_type for name in own for method in _describe(name).methods)
        self.port = self._listen()
        await self._server.start()
        self._own_services = own
        self._checking = asyncio.create_task(self._check_keys())
        await self._health.set(LIVENESS, health_pb2.HealthCheckResponse.SERVING)
        await self.set_health(serving=self._serving)
        log.info("serving", address=self.address, services=list(own))

    @property
    def rest(self) -> Callable[[], Awaitable[None]]:
        """What a handler with much work awaits between its parts, so that other calls run."""
        return self._guard.starts.rest

    @property
    def address(self) -> str:
        """The address of the server; with the chosen port if port 0 was configured."""
        listen = self._settings.listen
        return listen if listen.startswith("unix:") else f"{listen.rpartition(':')[0]}:{self.port}"

    async def serve(self, shutdown: Shutdown | None = None) -> None:
        """Start, serve until SIGTERM or SIGINT, drain. Returns when the server has stopped."""
        stop = shutdown or Shutdown()
        if shutdown is None:
            stop.install()
        await self.start()
        spare_collector()
        await stop.requested.wait()
        drain = asyncio.create_task(self.drain())
        hurry = asyncio.create_task(stop.now.wait())
        await asyncio.wait((drain, hurry), return_when=asyncio.FIRST_COMPLETED)
        if not drain.done():
            drain.cancel()
            await self.stop_now()
        hurry.cancel()

    async def set_health(self, *, serving: bool) -> None:
        """Set the health status, overall and of each service; before `start`, the one to start with.

        A drain overrides it.
        """
        self._serving = serving
        responses = health_pb2.HealthCheckResponse
        able = serving and not self.draining.is_set()
        status = responses.SERVING if able else responses.NOT_SERVING
        health_state.set_ready(able)
        for name in ("", *self._own_services):
            await self._health.set(name, status)

    async def drain(self) -> None:
        """Report NOT_SERVING, run the drain hooks, wait lame_duck, then finish calls within drain_timeout."""
        log.info("draining", streams=len(self._guard.streams))
        self.draining.set()
        await self.set_health(serving=False)
        limit = self._settings.drain_timeout.total_seconds()
        deadline = asyncio.get_running_loop().time() + limit
        hooks = asyncio.create_task(self._run_drain_hooks(limit))
        await asyncio.sleep(self._settings.lame_duck.total_seconds())
        stopping = asyncio.create_task(
            self._server.stop(max(0.0, deadline - asyncio.get_running_loop().time()))
        )
        await hooks
        self._guard.streams.end_all()
        await stopping
        self._end_checks()
        log.info("stopped")

    async def stop_now(self) -> None:
        """End every call at once."""
        self.draining.set()
        await self._server.stop(None)
        self._end_checks()
        log.info("stopped", hurried=True)

    async def _check_keys(self) -> None:
        while True:
            await asyncio.sleep(self._settings.key_check_interval.total_seconds())
            await self._guard.check_keys()

    def _end_checks(self) -> None:
        if self._checking is not None:
            self._checking.cancel()

    async def _run_drain_hooks(self, limit: float) -> None:
        try:
            async with asyncio.timeout(limit):
                results = await asyncio.gather(
                    *(hook() for hook in self._drain_hooks), return_exceptions=True
                )
        except TimeoutError:
            log.warning("drain_hooks_unfinished", limit_seconds=limit)
            return
        for result in results:
            if isinstance(result, BaseException):
                log.error("drain_hook_failed", error=repr(result))

    def _register(self, service: str, handlers: Mapping[str, Any]) -> None:
        methods = {name: f"/{service}/{name}" for name in handlers}
        self._services.append(service)
        self._methods.extend(methods.values())
        wrapped = {name: self._guard.wrap(methods[name], handler) for name, handler in handlers.items()}
        self._server.add_registered_method_handlers(service, wrapped)
        self._server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, wrapped),))

    def _listen(self) -> int:
        listen = self._settings.listen
        _probe(listen, self._settings.reuse_port)
        try:
            if self._settings.tls_cert is None or self._settings.tls_key is None:
                return self._server.add_insecure_port(listen)
            pair = (self._settings.tls_key.read_bytes(), self._settings.tls_cert.read_bytes())
            return self._server.add_secure_port(listen, grpc.ssl_server_credentials([pair]))
        except (RuntimeError, ValueError):
            raise StartupError(f"cannot listen on {listen}; check the address and the certificate") from None


# The service that serves each of the contract's, for callers that have confused their addresses.
_SERVED_BY = {
    "RunnerLinkService": "scheduler",
    "WorkService": "scheduler",
    "ExplainService": "scheduler",
}


class _ForeignMethods(grpc.GenericRpcHandler):
    """Rejects calls of Taskyard services that this server does not have, with a hint at the right address."""

    def __init__(self, service: str, served: tuple[str, ...]) -> None:
        self._service = service
        self._served = served

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> Any:
        method = handler_call_details.method
        name = method.strip("/").partition("/")[0]
        if not name.startswith("taskyard.") or name in self._served:
            return None
        right = _SERVED_BY.get(name.rpartition(".")[2], "taskdb")
        message = f"this is {self._service}, which does not serve {name}; use the address of {right}"

        async def refuse(request: Any, context: Any) -> None:
            raise Unimplemented(name, message=message)

        return grpc.unary_unary_rpc_method_handler(with_error_status(refuse))


class _Registrar:
    """Replaces the grpc server with which generated code registers handlers."""

    def __init__(self, register: Callable[[str, Mapping[str, Any]], None]) -> None:
        self._register = register

    def add_generic_rpc_handlers(self, handlers: object) -> None:
        """No-op: generated code registers the same handlers again below, with the name of the service."""

    def add_registered_method_handlers(self, service: str, handlers: Mapping[str, Any]) -> None:
        self._register(service, handlers)


def _describe(service: str) -> ServiceDescriptor:
    return descriptor_pool.Default().FindServiceByName(service)


def _probe(listen: str, reuse_port: bool) -> None:
    """Raises StartupError with the reason of the operating system, which gRPC does not report."""
    if listen.startswith("unix:"):
        return
    host, _, port = listen.rpartition(":")
    try:
        found = socket.getaddrinfo(
            host.strip("[]"), int(port), type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        for family, kind, proto, _, address in found:
            with socket.socket(family, kind, proto) as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                if reuse_port:
                    probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
                probe.bind(address)
                probe.listen(1)
    except OSError as error:
        raise StartupError(
            f"cannot listen on {listen}: {error.strerror}; stop what uses it or set another --listen"
        ) from None
