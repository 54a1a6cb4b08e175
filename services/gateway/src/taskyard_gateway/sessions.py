"""Sessions of browsers, whose EventSource sends no header: a key is exchanged for a cookie that seals it.

Instead of a key a browser may send a sign-in code, which taskdb exchanges once for a key of the session.
The seal is AES-256-GCM with a key that all replicas share; nothing is stored here. A session ends with its
cookie, with its time, or with the API key, which taskdb checks at every call as ever.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import time
from dataclasses import dataclass, field
from datetime import timedelta
from http.cookies import CookieError, SimpleCookie

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from starlette.responses import Response

from taskyard.errors import Code, FieldInvalid, NotFound, Unauthenticated
from taskyard.status import from_status
from taskyard.v1 import api_key_service_pb2, task_service_pb2
from taskyard_gateway.answers import JSON, Refusal, refuse
from taskyard_gateway.calls import unary
from taskyard_gateway.contract import Rpc
from taskyard_gateway.incoming import Incoming
from taskyard_gateway.upstream import Upstream

PATH = "/session"
_COOKIE = "taskyard_session"
_NONCE_BYTES = 12
_SAFE = frozenset({"GET", "HEAD"})
# A call that any key may make, which says who may not call at all.
_PROBE = task_service_pb2.CheckFenceRequest(name="tenants/default/tasks/session", fencing_token="0.0")
_PROBE_SECONDS = 10.0
# taskdb gives no key for longer; a session that is meant to last longer needs the key itself.
_LONGEST = timedelta(hours=24)


class Sessions:
    """Makes and opens sessions. Without a secret there are none."""

    def __init__(self, secret: str, seconds: float, *, secure: bool) -> None:
        self._seal = AESGCM(hashlib.sha256(secret.encode()).digest()) if secret else None
        self._seconds = int(seconds)
        self._secure = secure

    @property
    def enabled(self) -> bool:
        return self._seal is not None

    def key_of(self, incoming: Incoming) -> str:
        """The API key of the session that a request belongs to; empty if it has none. Raises Refusal.

        The browser sends a cookie whichever page caused the request: what changes something has to come from
        this very origin. The cookie is SameSite=Strict as well, which subdomains do not count against.
        """
        value = _cookie(incoming.header(b"cookie"))
        if self._seal is None or not value:
            return ""
        if incoming.method not in _SAFE and not _is_same_origin(incoming):
            message = "a session is used from its own origin only; send the key in the authorization header"
            raise refuse(403, Code.PERMISSION_DENIED, "PERMISSION_DENIED", message)
        return self._open(self._seal, value)

    def _open(self, seal: AESGCM, value: str) -> str:
        try:
            data = base64.urlsafe_b64decode(value + "=" * (-len(value) % 4))
            opened = seal.decrypt(data[:_NONCE_BYTES], data[_NONCE_BYTES:], _COOKIE.encode())
            expiry, key = json.loads(opened)
        except (ValueError, InvalidTag):
            raise Refusal.of(
                Unauthenticated("the session is not one of this gateway; sign in again")
            ) from None
        if expiry <= time.time():
            raise Refusal.of(Unauthenticated("the session is over; sign in again"))
        return str(key)

    def begun(self, key: str) -> Response:
        """The answer that begins a session with a key that was accepted."""
        assert self._seal is not None, "there are sessions"
        nonce = os.urandom(_NONCE_BYTES)
        content = json.dumps([int(time.time()) + self._seconds, key]).encode()
        sealed = base64.urlsafe_b64encode(nonce + self._seal.encrypt(nonce, content, _COOKIE.encode()))
        return self._with_cookie(sealed.decode().rstrip("="), self._seconds)

    def ended(self) -> Response:
        """The answer that ends a session."""
        return self._with_cookie("", 0)

    def _with_cookie(self, value: str, seconds: int) -> Response:
        response = Response(b"{}", media_type=JSON)
        response.set_cookie(
            _COOKIE, value, max_age=seconds, path="/", secure=self._secure, httponly=True, samesite="strict"
        )
        return response


@dataclass(frozen=True)
class Credential:
    """What a browser signs in with: an API key, or a sign-in code."""

    text: str = field(repr=False)
    is_code: bool


def read_credential(body: bytes) -> Credential:
    """The key or the code of a request for a session. Raises FieldInvalid."""
    try:
        members = json.loads(body)
    except (ValueError, RecursionError):
        members = None
    if not isinstance(members, dict) or len(members.keys() & {"key", "code"}) != 1:
        raise FieldInvalid.of("body", 'must be JSON like {"key": "ty_…"} or {"code": "ty_…"}')
    name = "code" if "code" in members else "key"
    text = members[name]
    if not isinstance(text, str) or not text.isascii() or not text.isprintable():
        raise FieldInvalid.of(name, "must have the form ty_<id>_<secret>")
    return Credential(text, name == "code")


async def redeem(upstream: Upstream, rpc: Rpc, incoming: Incoming, code: str, valid_for: timedelta) -> str:
    """The key that taskdb gives for a sign-in code. Raises Refusal."""
    request = api_key_service_pb2.RedeemSignInCodeRequest(code=code)
    request.valid_for.FromTimedelta(min(valid_for, _LONGEST))
    answer = await unary(upstream, rpc, request, [], incoming, _PROBE_SECONDS)
    return str(answer.secret)


async def check_key(upstream: Upstream, probe: Rpc, incoming: Incoming, key: str) -> None:
    """Raises Refusal unless taskdb accepts the key."""
    metadata = [("authorization", f"Bearer {key}")]
    try:
        await unary(upstream, probe, _PROBE, metadata, incoming, _PROBE_SECONDS)
    except Refusal as refusal:
        if not isinstance(from_status(refusal.status), NotFound):
            raise


def _cookie(header: str) -> str:
    try:
        found = SimpleCookie(header).get(_COOKIE)
    except CookieError:
        return ""
    return "" if found is None else found.value


def _is_same_origin(incoming: Incoming) -> bool:
    origin, host = incoming.header(b"origin"), incoming.header(b"host")
    if origin:
        return bool(host) and origin.partition("://")[2].lower() == host.lower()
    return incoming.header(b"sec-fetch-site") in ("same-origin", "none")
