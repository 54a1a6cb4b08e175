"""The Global tasks DB for callers without a key: its six paths, as one tenant, for this machine only.

Whatever runs on the machine can use it. What must not is a web page that a user of the machine has open: it
could send requests here, so requests of web pages, and for names that are not this machine's, are refused.
"""

from __future__ import annotations

from taskyard.errors import Code
from taskyard_gateway.answers import Refusal, refuse
from taskyard_gateway.app import Answer, Exchange, Gateway
from taskyard_gateway.contract import Rpc
from taskyard_gateway.incoming import Incoming
from taskyard_gateway.routes import Routes, routes
from taskyard_gateway.sessions import Sessions
from taskyard_gateway.settings import GatewaySettings
from taskyard_gateway.upstream import Metadata, Upstream

LOCAL_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]"})
_WRITES = frozenset({"POST", "PUT"})


class KeylessGateway(Gateway):
    """Serves the flat calls alone, with a key of its own in place of the caller's."""

    help = "this address serves the Global tasks DB and nothing else"

    def __init__(self, settings: GatewaySettings, upstream: Upstream) -> None:
        super().__init__(settings, upstream)
        self._routes = Routes(route for route in routes() if route.rpc.flat)
        self._by_path = {}
        self._sessions = Sessions("", 0, secure=False)
        self._key = settings.keyless_key.reveal()
        self._tenant = settings.keyless_tenant

    async def _answer(self, exchange: Exchange) -> Answer:
        incoming = exchange.incoming
        _check_host(incoming)
        if incoming.header(b"origin") or incoming.header(b"sec-fetch-site") not in ("", "none"):
            raise _forbidden("web pages may not call this address")
        if incoming.method in _WRITES:
            # A page can send anything but JSON to another origin without being asked, an empty body too.
            incoming.check_body_type(lenient=False)
        return await super()._answer(exchange)

    def _own(self, incoming: Incoming) -> None:
        return None

    def _is_lenient(self, incoming: Incoming) -> bool:
        return False

    def _metadata(self, incoming: Incoming, rpc: Rpc) -> Metadata:
        return [("authorization", f"Bearer {self._key}"), ("x-tenant", self._tenant)]


def _check_host(incoming: Incoming) -> None:
    """Raises Refusal for a name that somebody else's DNS may have pointed here."""
    name, colon, port = incoming.header(b"host").lower().rpartition(":")
    host = name if colon and port.isdigit() else incoming.header(b"host").lower()
    if host not in LOCAL_NAMES:
        raise _forbidden(f"the Host header is {host[:64]!r}; call localhost")


def _forbidden(message: str) -> Refusal:
    return refuse(403, Code.PERMISSION_DENIED, "PERMISSION_DENIED", message)
