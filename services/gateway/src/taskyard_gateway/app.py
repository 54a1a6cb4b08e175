"""The ASGI application: what a request means, what is refused, and what is logged and measured of it."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from google.protobuf.message import Message
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from taskyard import tracing
from taskyard.errors import Code, Internal, TaskyardError
from taskyard_gateway import connect, pages, sessions, update_batches
from taskyard_gateway.answers import JSON, Refusal, failed, refuse
from taskyard_gateway.binding import bind, resume
from taskyard_gateway.calls import LARGE_BYTES, encode, unary
from taskyard_gateway.contract import Rpc, rpcs
from taskyard_gateway.incoming import ClientGone, Incoming
from taskyard_gateway.metric_names import OPEN_STREAMS, REFUSED, REQUEST_DURATION
from taskyard_gateway.routes import Match, Routes, routes
from taskyard_gateway.sessions import Sessions
from taskyard_gateway.settings import GatewaySettings
from taskyard_gateway.streams import EventStream, Stalled
from taskyard_gateway.update_batches import UpdateBatches
from taskyard_gateway.upstream import Metadata, Upstream
from taskyard_kit.logs import get_log
from taskyard_kit.metrics import instrument

log = get_log(__name__)

Answer = Callable[[Scope, Receive, Send], Awaitable[None]]

_DURATION = instrument(REQUEST_DURATION)
_OPEN = instrument(OPEN_STREAMS)
_REFUSED = instrument(REFUSED)
# The pages about health, and whether each asks for readiness (else liveness).
_HEALTH_PAGES = {"/healthz": True, "/ready": True, "/livez": False, "/live": False}
CLIENT_GONE = 499
_CHECK_FENCE = "/taskyard.v1.TaskService/CheckFence"
_REDEEM = "/taskyard.v1.ApiKeyService/RedeemSignInCode"
_BATCH_CREATE = "/taskyard.v1.TaskService/BatchCreateTasks"
_HEADERS = ((b"x-content-type-options", b"nosniff"), (b"cache-control", b"no-store"))


class Exchange:
    """One request while it is answered, and what the log has of it at the end."""

    def __init__(self, incoming: Incoming) -> None:
        self.incoming = incoming
        self.rpc: Rpc | None = None
        self.connect = False

    @property
    def named(self) -> str:
        return self.rpc.path.lstrip("/") if self.rpc is not None else ""


class _Record:
    """What is measured and logged of a request."""

    def __init__(self, scope: Scope, send: Send, logged: bool) -> None:
        self.exchange: Exchange | None = None
        self.status = 0
        self._scope = scope
        self._send = send
        self._logged = logged
        self._began = time.perf_counter()

    async def send(self, message: MutableMapping[str, Any]) -> None:
        """Pass on a message of the answer, noting its status."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
        await self._send(message)

    def end(self) -> None:
        seconds = time.perf_counter() - self._began
        rpc = self.exchange.named if self.exchange is not None else ""
        _DURATION.add(seconds, {"rpc": rpc, "status": str(self.status)})
        if self._logged:
            client = self._scope.get("client") or ("", 0)
            log.info(
                "request",
                method=self._scope["method"],
                path=self._scope["raw_path"].decode("latin-1")[:512],
                rpc=rpc,
                status=self.status,
                milliseconds=round(seconds * 1000, 1),
                client=client[0],
            )


class Gateway:
    """Everything that is served on one listener."""

    help = "/docs lists what there is"

    def __init__(self, settings: GatewaySettings, upstream: Upstream) -> None:
        self._settings = settings
        self._upstream = upstream
        self._routes = Routes(routes())
        self._by_path = {rpc.path: rpc for rpc in rpcs()}
        push = (self._by_path[update_batches.SINGLE], self._by_path[update_batches.BATCH])
        self._updates = UpdateBatches(upstream, *push, settings.call_timeout.total_seconds())
        self._sessions = Sessions(
            settings.session_secret.reveal(),
            settings.session_duration.total_seconds(),
            secure=settings.tls_cert is not None,
        )
        self._requests = 0
        self._streams = 0
        self.draining = asyncio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        record = _Record(scope, send, self._settings.access_log)
        try:
            exchange = record.exchange = Exchange(Incoming(scope, receive))
            traceparent = exchange.incoming.metadata_value(b"traceparent")
        except Refusal as refusal:
            await _plain(failed(refusal))(scope, receive, record.send)
            record.end()
            return
        with tracing.span(f"HTTP {scope['method']}", traceparent=traceparent, kind="server") as span:
            try:
                await self._respond(exchange, scope, receive, record.send)
            except ClientGone:
                record.status = CLIENT_GONE
            except Stalled:
                record.status = CLIENT_GONE
                raise
            finally:
                span.set_attribute("http.response.status_code", record.status)
                record.end()

    async def _respond(self, exchange: Exchange, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            answer = await self._answer(exchange)
        except Refusal as refusal:
            answer = _plain(failed(refusal, connect=exchange.connect))
        except TaskyardError as error:
            answer = _plain(failed(Refusal.of(error), connect=exchange.connect))
        except (ClientGone, asyncio.CancelledError):
            raise
        except Exception:
            # A defect of the gateway: the caller gets INTERNAL with an id, the log the detail.
            correlation_id = uuid.uuid4().hex
            log.exception("request_failed", rpc=exchange.named, correlation_id=correlation_id)
            answer = _plain(failed(Refusal.of(Internal(correlation_id)), connect=exchange.connect))
        if isinstance(answer, EventStream):
            await self._stream(exchange, answer, scope, receive, send)
        else:
            await answer(scope, receive, send)

    async def _stream(
        self, exchange: Exchange, stream: EventStream, scope: Scope, receive: Receive, send: Send
    ) -> None:
        labels = {"rpc": exchange.named}
        self._streams += 1
        _OPEN.add(1, labels)
        try:
            await stream(scope, receive, send)
        finally:
            self._streams -= 1
            _OPEN.add(-1, labels)

    async def _answer(self, exchange: Exchange) -> Answer:
        incoming = exchange.incoming
        if (own := self._own(incoming)) is not None:
            return _plain(await own)
        if incoming.path == sessions.PATH and self._sessions.enabled:
            return await self._bounded(self._session(incoming))
        rpc = self._by_path.get(incoming.path)
        if rpc is not None:
            exchange.rpc, exchange.connect = rpc, True
            return await self._bounded(self._connect_call(exchange, rpc))
        match = self._routes.find(incoming.method, incoming.path)
        if match is None:
            raise self._nothing_there(incoming)
        exchange.rpc = match.route.rpc
        if exchange.rpc.streams:
            return await self._open_stream(exchange, match)
        return await self._bounded(self._call(exchange, match))

    async def _bounded(self, work: Any) -> Answer:
        """Do the work of a unary request unless there are too many already."""
        if self._requests >= self._settings.max_requests:
            work.close()
            raise _overloaded("requests", self._settings.max_requests)
        self._requests += 1
        try:
            found: Answer = await work
            return found
        finally:
            self._requests -= 1

    async def _call(self, exchange: Exchange, match: Match) -> Answer:
        incoming, rpc = exchange.incoming, match.route.rpc
        request = await self._request(incoming, match)
        metadata = self._metadata(incoming, rpc)
        if rpc.path == update_batches.SINGLE:
            answer = await self._updates.push(request, metadata)
        else:
            limit = self._settings.call_timeout.total_seconds()
            answer = await unary(self._upstream, rpc, request, metadata, incoming, limit)
        return _plain(Response(await encode(answer, rpc.flat), media_type=JSON))

    async def _request(self, incoming: Incoming, match: Match) -> Message:
        """The request of a call by its rule; a large body is read in a thread, so that others are served."""
        body = await self._body(incoming, match.route.rpc)
        if body:
            incoming.check_body_type(lenient=self._is_lenient(incoming))
        if len(body) > LARGE_BYTES:
            return await asyncio.to_thread(bind, match, incoming.query, body)
        return bind(match, incoming.query, body)

    async def _body(self, incoming: Incoming, rpc: Rpc | None = None) -> bytes:
        settings = self._settings
        batch = rpc is not None and rpc.path == _BATCH_CREATE
        limit = settings.max_batch_bytes if batch else settings.max_body_bytes
        return await incoming.body(limit, settings.body_timeout.total_seconds())

    async def _open_stream(self, exchange: Exchange, match: Match) -> Answer:
        if self._streams >= self._settings.max_streams:
            raise _overloaded("streams", self._settings.max_streams)
        incoming, rpc, settings = exchange.incoming, match.route.rpc, self._settings
        request = await self._request(incoming, match)
        resume(rpc, request, incoming.metadata_value(b"last-event-id"))
        call = self._upstream.call(rpc, request, self._metadata(incoming, rpc), None)
        stream = EventStream(
            rpc,
            call,
            incoming,
            self.draining,
            settings.heartbeat.total_seconds(),
            settings.stall_timeout.total_seconds(),
        )
        try:
            await stream.begin()
        except BaseException:
            stream.close()
            raise
        return stream

    async def _session(self, incoming: Incoming) -> Answer:
        """POST exchanges a key or a sign-in code for a session, DELETE ends it."""
        if incoming.method == "DELETE":
            return _plain(self._sessions.ended())
        if incoming.method != "POST":
            message = f"{sessions.PATH} takes POST, DELETE, not {incoming.method}"
            allow = {"allow": "POST, DELETE"}
            raise refuse(405, Code.UNIMPLEMENTED, "METHOD_NOT_ALLOWED", message, allow)
        incoming.check_body_type(lenient=False)
        credential = sessions.read_credential(await self._body(incoming))
        if credential.is_code:
            rpc, duration = self._by_path[_REDEEM], self._settings.session_duration
            key = await sessions.redeem(self._upstream, rpc, incoming, credential.text, duration)
        else:
            key = credential.text
            await sessions.check_key(self._upstream, self._by_path[_CHECK_FENCE], incoming, key)
        return _plain(self._sessions.begun(key))

    async def _connect_call(self, exchange: Exchange, rpc: Rpc) -> Answer:
        incoming = exchange.incoming
        limit = connect.check(incoming, rpc, self._settings.call_timeout.total_seconds())
        body = await self._body(incoming, rpc)
        request = await connect.read(incoming, rpc, body)
        answer = await unary(self._upstream, rpc, request, self._metadata(incoming, rpc), incoming, limit)
        return _plain(await connect.answer(incoming, rpc, answer))

    def _metadata(self, incoming: Incoming, rpc: Rpc) -> Metadata:
        """What goes along with a call: the caller's key and, for the flat calls, the tenant it names."""
        names = (b"authorization", b"x-tenant") if rpc.flat else (b"authorization",)
        found = [(name.decode(), incoming.metadata_value(name)) for name in names]
        if not found[0][1] and (key := self._sessions.key_of(incoming)):
            found[0] = ("authorization", f"Bearer {key}")
        return [(name, value) for name, value in found if value]

    def _is_lenient(self, incoming: Incoming) -> bool:
        """Whether a body that does not say that it is JSON is taken for it."""
        return bool(incoming.header(b"authorization"))

    def _own(self, incoming: Incoming) -> Awaitable[Response] | None:
        """The gateway's own pages: health and documentation."""
        if incoming.method != "GET":
            return None
        if incoming.path in _HEALTH_PAGES:
            return self._health(_HEALTH_PAGES[incoming.path])
        return pages.find(incoming.path, incoming.header(b"if-none-match"))

    async def _health(self, ready: bool) -> Response:
        """Whether the process lives or, to be `ready`, whether requests can be answered."""
        serving = not ready or (not self.draining.is_set() and await self._upstream.serves())
        content = b'{"status":"SERVING"}' if serving else b'{"status":"NOT_SERVING"}'
        return Response(content, 200 if serving else 503, media_type=JSON)

    def _nothing_there(self, incoming: Incoming) -> Refusal:
        methods = self._routes.methods(incoming.path)
        if methods:
            message = f"{incoming.path[:256]} takes {', '.join(methods)}, not {incoming.method}"
            allow = {"allow": ", ".join(methods)}
            return refuse(405, Code.UNIMPLEMENTED, "METHOD_NOT_ALLOWED", message, allow)
        message = f"there is nothing at {incoming.path[:256]}; {self.help}"
        return refuse(404, Code.NOT_FOUND, "NOT_FOUND", message)


def _overloaded(what: str, limit: int) -> Refusal:
    _REFUSED.add(1, {"reason": what})
    message = f"the gateway has {limit} {what} already; repeat it a moment later"
    return refuse(503, Code.UNAVAILABLE, "OVERLOADED", message, {"retry-after": "1"})


def _plain(response: Response) -> Response:
    for name, value in _HEADERS:
        if name.decode() not in response.headers:
            response.raw_headers.append((name, value))
    return response
