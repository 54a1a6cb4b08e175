"""The composition root: settings in, a serving gateway out."""

from __future__ import annotations

import asyncio
import resource

from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp

from taskyard_gateway.app import Gateway
from taskyard_gateway.keyless import KeylessGateway
from taskyard_gateway.listener import Limits, Listener
from taskyard_gateway.metric_names import CONNECTIONS
from taskyard_gateway.settings import GatewaySettings
from taskyard_gateway.upstream import Upstream
from taskyard_kit.collector import spare_collector
from taskyard_kit.logs import get_log
from taskyard_kit.metrics import observe
from taskyard_kit.shutdown import Shutdown

log = get_log(__name__)


def limits_of(settings: GatewaySettings) -> Limits:
    return Limits(
        connections=settings.max_connections,
        header_bytes=settings.max_header_bytes,
        header_seconds=settings.header_timeout.total_seconds(),
        stall_seconds=settings.stall_timeout.total_seconds(),
        keep_alive_seconds=settings.keep_alive.total_seconds(),
    )


def with_cors(app: ASGIApp, origins: tuple[str, ...]) -> ASGIApp:
    """Let pages of these origins call; without any, browsers keep all pages of other origins out."""
    if not origins:
        return app
    return CORSMiddleware(
        app,
        allow_origins=list(origins),
        allow_methods=["GET", "POST", "PUT", "PATCH", "DELETE"],
        allow_headers=[
            "authorization",
            "content-type",
            "last-event-id",
            "connect-protocol-version",
            "x-tenant",
        ],
        expose_headers=["retry-after"],
    )


class GatewayServer:
    """A gateway in the running event loop: `start`, then `drain`."""

    def __init__(self, settings: GatewaySettings) -> None:
        self._settings = settings
        self._upstream = Upstream(settings)
        self.app = Gateway(settings, self._upstream)
        pair = (settings.tls_cert, settings.tls_key)
        tls = None if pair[0] is None else (str(pair[0]), str(pair[1]))
        app = with_cors(self.app, settings.cors_origins)
        self.listener = Listener(
            app, settings.listen, limits_of(settings), reuse_port=settings.reuse_port, tls=tls
        )
        self.keyless: Listener | None = None
        self._apps = [self.app]
        if settings.keyless_tenant:
            keyless = KeylessGateway(settings, self._upstream)
            self._apps.append(keyless)
            self.keyless = Listener(keyless, settings.keyless_listen, limits_of(settings))

    async def start(self) -> None:
        """Listen and answer. Raises StartupError."""
        for listener in self._listeners():
            await listener.start()
        observe(CONNECTIONS, lambda: [(sum(each.connections for each in self._listeners()), {})])
        log.info("serving", address=self.listener.address)
        if self.keyless is not None:
            # Whatever runs on this machine acts for the tenant there.
            tenant = self._settings.keyless_tenant
            log.warning("serving_without_keys", address=self.keyless.address, tenant=tenant)

    async def drain(self) -> None:
        """NOT_SERVING, a last moment for new requests, then those in flight up to drain_timeout."""
        log.info("draining", connections=self.listener.connections)
        for app in self._apps:
            app.draining.set()
        await asyncio.sleep(self._settings.lame_duck.total_seconds())
        await self.stop(self._settings.drain_timeout.total_seconds())

    def _listeners(self) -> list[Listener]:
        return [self.listener] if self.keyless is None else [self.listener, self.keyless]

    async def stop(self, seconds: float) -> None:
        await asyncio.gather(*(listener.stop(seconds) for listener in self._listeners()))
        await self._upstream.close()
        log.info("stopped")


async def serve(settings: GatewaySettings) -> None:
    """Serve until SIGTERM or SIGINT, then drain; a second signal hurries."""
    _raise_descriptor_limit()
    server = GatewayServer(settings)
    stop = Shutdown()
    stop.install()
    await server.start()
    spare_collector()
    await stop.requested.wait()
    drain = asyncio.create_task(server.drain())
    hurry = asyncio.create_task(stop.now.wait())
    await asyncio.wait((drain, hurry), return_when=asyncio.FIRST_COMPLETED)
    if not drain.done():
        drain.cancel()
        await asyncio.gather(drain, return_exceptions=True)
        log.info("stopped", hurried=True)
    hurry.cancel()


def _raise_descriptor_limit() -> None:
    """A connection takes a descriptor; the limit of the process is meant for programs that use select."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
