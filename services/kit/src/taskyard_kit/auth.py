"""Authentication and authorization: principals, the per-method policy table, and key verification."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Iterable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Protocol

from taskyard.channel import MAX_MESSAGE_BYTES
from taskyard.errors import NotFound, Unauthenticated
from taskyard_kit.keys import ApiKey

EVERYTHING = frozenset({"*"})


class Kind(StrEnum):
    """The four kinds of principal."""

    TENANT = "tenant"
    ADMIN = "admin"
    SCHEDULER = "scheduler"
    RUNNER = "runner"


@dataclass(frozen=True)
class Principal:
    """The caller, as recorded in the key store; no field comes from the request.

    `tenant` is set for tenants. `runner`, `tenants` and `labels` are the scope of a runner key: the runner id
    (empty if any), the tenants whose work it may claim and the labels of the runner.
    """

    kind: Kind
    id: str
    tenant: str = ""
    scopes: frozenset[str] = EVERYTHING
    runner: str = ""
    tenants: frozenset[str] = frozenset()
    labels: frozenset[tuple[str, str]] = frozenset()

    def may(self, scope: str) -> bool:
        """Whether the key has this scope; the empty scope is always granted."""
        return not scope or scope in self.scopes or "*" in self.scopes

    def sees(self, tenant: str) -> bool:
        """Whether objects of this tenant are visible to the principal."""
        if self.kind is Kind.TENANT:
            return tenant == self.tenant
        if self.kind is Kind.RUNNER:
            return tenant in self.tenants or "*" in self.tenants
        return True

    def __str__(self) -> str:
        owner = self.tenant or self.runner
        return f"{self.kind} {owner} (key {self.id})" if owner else f"{self.kind} (key {self.id})"


@dataclass(frozen=True)
class Policy:
    """The requirements of one RPC on its caller, and how the server handles it."""

    kinds: frozenset[Kind]
    scope: str = ""
    # Callable without a key, such as health checks.
    open: bool = False
    # False for internal RPCs whose caller has already validated the request.
    validate: bool = True
    # False for RPCs that carry only what another service has checked, or text as a task has written it.
    wellformed: bool = True
    # A repeated field whose items the handler checks, each with its own result.
    items: str = ""
    # A long-polling unary call has no server-side deadline; streams never have one.
    waits: bool = False
    deadline: timedelta | None = None
    # Reads or writes much: few calls of one tenant run at a time, reads and writes apart.
    heavy: bool = False
    # The largest request in bytes; the server may accept larger messages for other RPCs.
    max_bytes: int = MAX_MESSAGE_BYTES

    def needed(self) -> str:
        """The kinds of key that are allowed, for an error message."""
        kinds = " or ".join(sorted(self.kinds))
        return f"{kinds} with scope {self.scope}" if self.scope else kinds


def allow(
    *kinds: Kind,
    scope: str = "",
    validate: bool = True,
    wellformed: bool = True,
    items: str = "",
    waits: bool = False,
    deadline: timedelta | None = None,
    heavy: bool = False,
    max_bytes: int = MAX_MESSAGE_BYTES,
) -> Policy:
    """The policy that allows these kinds of principal."""
    return Policy(
        frozenset(kinds),
        scope,
        validate=validate,
        wellformed=wellformed,
        items=items,
        waits=waits,
        deadline=deadline,
        heavy=heavy,
        max_bytes=max_bytes,
    )


ANY_KEY = Policy(frozenset(Kind))
OPEN = Policy(frozenset(), open=True)

KIT_POLICIES: Mapping[str, Policy] = {
    "/grpc.health.v1.Health/Check": OPEN,
    "/grpc.health.v1.Health/List": OPEN,
    "/grpc.health.v1.Health/Watch": OPEN,
    "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo": ANY_KEY,
    "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo": ANY_KEY,
}


class PolicyError(Exception):
    """The policy table and the served RPCs differ; the server must not start."""


def check_policies(methods: Iterable[str], policies: Mapping[str, Policy]) -> None:
    """Raises PolicyError that lists every served RPC without an entry and every entry without an RPC."""
    served = set(methods)
    without = sorted(served - policies.keys())
    stale = sorted(policies.keys() - served - KIT_POLICIES.keys())
    problems = [f"RPC without a policy: {name}" for name in without]
    problems += [f"policy for an RPC that is not served: {name}" for name in stale]
    if problems:
        raise PolicyError("; ".join(problems) + "; correct the policy table")


class KeyVerifier(Protocol):
    """The key store of a server."""

    async def verify(self, key: ApiKey) -> Principal | None:
        """The principal of a valid key, None for any other key.

        Raises StorageUnavailable if the key store cannot answer now.
        """
        ...


class Authenticator:
    """Turns the authorization header into a principal, and caches the result for a short time.

    A revoked key is refused after at most `ttl`, or at once after `invalidate`. Refusals are cached for a
    second, so that a flood of calls with one wrong key does not reach the key store.
    """

    REFUSAL_TTL = 1.0

    def __init__(
        self, verifier: KeyVerifier, ttl: timedelta = timedelta(seconds=5), capacity: int = 10_000
    ) -> None:
        self._verifier = verifier
        self._ttl = ttl.total_seconds()
        self._capacity = capacity
        self._cache: dict[bytes, tuple[float, Principal | None]] = {}
        self._pending: dict[bytes, asyncio.Task[Principal | None]] = {}

    async def authenticate(self, header: str | None) -> Principal:
        """The caller's principal; raises Unauthenticated, or the verifier's error if it is unavailable."""
        if header is None:
            raise Unauthenticated()
        fingerprint = _fingerprint(header)
        found = self._cache.get(fingerprint)
        if found is None or found[0] <= time.monotonic():
            principal = await self._verify(fingerprint, header)
        else:
            principal = found[1]
        if principal is None:
            raise Unauthenticated("the key is unknown, expired or revoked")
        return principal

    def invalidate(self, key_id: str | None = None) -> None:
        """Drop the cached results of a key, or of all keys."""
        self._cache = {
            fingerprint: entry
            for fingerprint, entry in self._cache.items()
            if key_id is not None and entry[1] is not None and entry[1].id != key_id
        }

    async def _verify(self, fingerprint: bytes, header: str) -> Principal | None:
        # Concurrent callers with the same key share one verification; none of them may cancel it.
        task = self._pending.get(fingerprint)
        if task is None:
            task = asyncio.create_task(self._verifier.verify(_parse_header(header)))
            self._pending[fingerprint] = task
            task.add_done_callback(lambda done: self._store_result(fingerprint, done))
        return await asyncio.shield(task)

    def _store_result(self, fingerprint: bytes, task: asyncio.Task[Principal | None]) -> None:
        self._pending.pop(fingerprint, None)
        if task.cancelled() or task.exception() is not None:
            return
        if len(self._cache) >= self._capacity:
            self._cache.pop(next(iter(self._cache)))
        principal = task.result()
        ttl = self._ttl if principal is not None else min(self._ttl, self.REFUSAL_TTL)
        self._cache[fingerprint] = (time.monotonic() + ttl, principal)


def _fingerprint(header: str) -> bytes:
    # Keys are not kept in clear text, and the timing of the look-up reveals nothing about them.
    return hashlib.sha256(header.encode()).digest()


def _parse_header(header: str) -> ApiKey:
    scheme, _, text = header.partition(" ")
    if scheme.lower() != "bearer":
        raise Unauthenticated("the authorization header is not a Bearer token")
    try:
        return ApiKey.parse(text.strip())
    except ValueError as error:
        raise Unauthenticated(str(error)) from None


_principal: ContextVar[Principal] = ContextVar("principal")


def current_principal() -> Principal:
    """The principal of the current call; raises Unauthenticated outside of a call."""
    try:
        return _principal.get()
    except LookupError:
        raise Unauthenticated("no call is being handled") from None


def find_principal() -> Principal | None:
    """The principal of the current call; None outside of a call."""
    return _principal.get(None)


def set_principal(principal: Principal) -> None:
    """Set the principal of the running task, as the server does for each call."""
    _principal.set(principal)


def require_tenant(tenant: str, kind: str = "tenant", name: str | None = None) -> None:
    """Raises NotFound for `kind` and `name` if objects of this tenant are not visible to the caller."""
    if not current_principal().sees(tenant):
        raise NotFound(kind, name if name is not None else tenant)
