"""ApiKeyService: keys are created, listed and revoked; the secret is returned once and stored as a digest."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from importlib.metadata import version
from typing import Any

from taskyard.errors import FieldInvalid, NotFound, PermissionDenied, SignInCodeInvalid, Unauthenticated
from taskyard.v1 import api_key_pb2, api_key_service_pb2
from taskyard_kit import patterns
from taskyard_kit.auth import Kind, Principal, current_principal
from taskyard_kit.keys import ApiKey
from taskyard_taskdb.domain.change import ChangeEvent
from taskyard_taskdb.domain.names import check_id
from taskyard_taskdb.domain.task import Actor
from taskyard_taskdb.domain.words import ActorType
from taskyard_taskdb.rpc import access
from taskyard_taskdb.rpc.pages import read_page
from taskyard_taskdb.rpc.times import set_time, to_datetime
from taskyard_taskdb.rpc.validate import check_text
from taskyard_taskdb.storage.change_log.append import append_change
from taskyard_taskdb.storage.pool import Pool, Tx
from taskyard_taskdb.storage.tenant import api_keys, sign_in_codes
from taskyard_taskdb.storage.tenant.api_keys import RunnerScope, StoredKey
from taskyard_taskdb.storage.transition.load import database_time

_ID = re.compile(r"[a-z0-9]{4,32}")
# The tenant whose audit records keys that belong to no tenant.
_SYSTEM = "system"
_CREATE = "/taskyard.v1.ApiKeyService/CreateApiKey"
_CODE_VALID_FOR = timedelta(minutes=5)
_SIGN_IN_VALID_FOR = timedelta(hours=12)

_KIND_NAMES = {
    api_keys.ADMIN: "ADMIN",
    api_keys.SCHEDULER: "SCHEDULER",
    api_keys.RUNNER: "RUNNER",
    api_keys.TENANT: "TENANT",
}


class ApiKeyHandler:
    """ApiKeyService. `forget` drops a key from this replica's cache; others read it again within 5 s."""

    def __init__(self, pool: Pool, forget: Callable[[str], None]) -> None:
        self._pool = pool
        self._forget = forget

    async def CreateApiKey(
        self, request: api_key_service_pb2.CreateApiKeyRequest, context: Any
    ) -> api_key_service_pb2.CreateApiKeyResponse:
        requested = _read(request.api_key)
        _authorise(requested, current_principal())
        made = ApiKey.make()
        if request.api_key_id:
            _check_chosen_id(request.api_key_id, current_principal())
            made = ApiKey(request.api_key_id, made.secret)
        key = replace(requested, key_id=made.id, secret_hash=made.digest)
        actor = access.caller()

        async def work(tx: Tx) -> datetime:
            await _check_expiry(tx, key)
            created = await api_keys.insert_key(tx, key)
            await _log(tx, ChangeEvent.API_KEY_CREATED, key, actor, created)
            return created

        created = await self._pool.run(work)
        response = api_key_service_pb2.CreateApiKeyResponse(secret=made.text)
        fill_key(response.api_key, replace(key, create_time=created))
        return response

    async def ListApiKeys(
        self, request: api_key_service_pb2.ListApiKeysRequest, context: Any
    ) -> api_key_service_pb2.ListApiKeysResponse:
        principal = current_principal()
        tenant_id = principal.tenant if principal.kind is Kind.TENANT else None
        async with self._pool.reading(planned=True) as tx:

            async def read(after: tuple[str, ...], size: int) -> list[StoredKey]:
                return await api_keys.list_keys(tx, tenant_id, after[0] if after else "", size)

            found, token = await read_page(
                read,
                lambda key: (key.key_id,),
                page_size=request.page_size,
                page_token=request.page_token,
                query=("ListApiKeys",),
            )
        response = api_key_service_pb2.ListApiKeysResponse(next_page_token=token)
        for key in found:
            fill_key(response.api_keys.add(), key)
        return response

    async def WhoAmI(
        self, request: api_key_service_pb2.WhoAmIRequest, context: Any
    ) -> api_key_service_pb2.WhoAmIResponse:
        async with self._pool.reading() as tx:
            found = await api_keys.find_key(tx, current_principal().id)
        if found is None:
            raise Unauthenticated("the key is expired or revoked")
        response = api_key_service_pb2.WhoAmIResponse(server_version=version("taskyard-taskdb"))
        fill_key(response.api_key, found)
        return response

    async def RevokeApiKey(
        self, request: api_key_service_pb2.RevokeApiKeyRequest, context: Any
    ) -> api_key_service_pb2.RevokeApiKeyResponse:
        key_id = request.name.removeprefix("apiKeys/")
        principal = current_principal()
        actor = access.caller()

        async def work(tx: Tx) -> tuple[StoredKey, list[str]]:
            found = await api_keys.lock_key(tx, key_id)
            if found is None or not _manages(principal, found):
                raise NotFound("API key", request.name)
            if found.revoke_time is not None:
                return found, []
            revoked, sign_ins = await api_keys.revoke_key(tx, found)
            assert revoked.revoke_time is not None
            await _log(tx, ChangeEvent.API_KEY_REVOKED, revoked, actor, revoked.revoke_time)
            return revoked, sign_ins

        revoked, sign_ins = await self._pool.run(work)
        for revoked_id in (key_id, *sign_ins):
            self._forget(revoked_id)
        response = api_key_service_pb2.RevokeApiKeyResponse()
        fill_key(response.api_key, revoked)
        return response

    async def CreateSignInCode(
        self, request: api_key_service_pb2.CreateSignInCodeRequest, context: Any
    ) -> api_key_service_pb2.CreateSignInCodeResponse:
        key_id = current_principal().id
        actor = access.caller()
        code = ApiKey.make()
        valid_for = request.valid_for.ToTimedelta() if request.HasField("valid_for") else _CODE_VALID_FOR

        async def work(tx: Tx) -> datetime:
            key = await api_keys.lock_key(tx, key_id)
            if key is None or key.revoke_time is not None:
                raise Unauthenticated("the key is unknown, expired or revoked")
            expire_time = await sign_in_codes.insert_code(tx, key, code.id, code.digest, valid_for)
            details = {"expire_time": expire_time.isoformat()}
            await _log(
                tx, ChangeEvent.API_KEY_SIGN_IN_CODE_CREATED, key, actor, await database_time(tx), details
            )
            return expire_time

        expire_time = await self._pool.run(work)
        response = api_key_service_pb2.CreateSignInCodeResponse(code=code.text)
        set_time(response.expire_time, expire_time)
        return response

    async def RedeemSignInCode(
        self, request: api_key_service_pb2.RedeemSignInCodeRequest, context: Any
    ) -> api_key_service_pb2.RedeemSignInCodeResponse:
        try:
            code = ApiKey.parse(request.code)
        except ValueError:
            raise SignInCodeInvalid() from None
        made = ApiKey.make()
        valid_for = request.valid_for.ToTimedelta() if request.HasField("valid_for") else _SIGN_IN_VALID_FOR

        async def work(tx: Tx) -> StoredKey:
            expire_time = await database_time(tx) + valid_for
            key = await sign_in_codes.exchange_code(
                tx, code.id, code.matches, made.id, made.digest, expire_time
            )
            if key is None or key.create_time is None:
                raise SignInCodeInvalid()
            actor = Actor(ActorType.USER, str(key.parent_key_id))
            await _log(tx, ChangeEvent.API_KEY_CREATED, key, actor, key.create_time)
            return key

        key = await self._pool.run(work)
        response = api_key_service_pb2.RedeemSignInCodeResponse(secret=made.text)
        fill_key(response.api_key, key)
        return response


def _read(given: api_key_pb2.ApiKey) -> StoredKey:
    """The key to create, without id and secret. Raises FieldInvalid for fields that its kind lacks."""
    kind = int(given.kind)
    if (kind == api_keys.TENANT) != bool(given.tenant):
        problem = (
            "must name the tenant that it acts for" if kind == api_keys.TENANT else "is for TENANT keys only"
        )
        raise FieldInvalid.of("api_key.tenant", problem)
    if given.read_only and kind != api_keys.TENANT:
        raise FieldInvalid.of("api_key.read_only", "is for TENANT keys only")
    if given.HasField("runner_scope") and kind != api_keys.RUNNER:
        raise FieldInvalid.of("api_key.runner_scope", "is for RUNNER keys only")
    check_text(given.description, "api_key.description")
    expire_time = to_datetime(given.expire_time) if given.HasField("expire_time") else None
    if expire_time is not None and expire_time <= datetime.now(UTC):
        raise FieldInvalid.of("api_key.expire_time", f"{expire_time:%Y-%m-%dT%H:%M:%SZ} has passed")
    return StoredKey(
        "",
        kind,
        b"",
        tenant_id=given.tenant or None,
        read_only=given.read_only,
        runner_scope=_read_scope(given.runner_scope),
        description=given.description,
        expire_time=expire_time,
    )


def _read_scope(given: api_key_pb2.RunnerScope) -> RunnerScope:
    for index, tenant_id in enumerate(given.tenants):
        check_id(tenant_id, "tenants", f"api_key.runner_scope.tenants[{index}]")
    for name, value in given.labels.items():
        check_text(name + value, f'api_key.runner_scope.labels["{name}"]')
    try:
        patterns.compile(given.runner_id_pattern)
    except patterns.PatternInvalid as error:
        raise FieldInvalid.of("api_key.runner_scope.runner_id_pattern", error.reason, "re2") from None
    return RunnerScope(
        given.runner_id,
        tuple(given.tenants),
        dict(given.labels),
        given.runner_id_pattern,
        given.backend_type_required,
    )


def _authorise(key: StoredKey, principal: Principal) -> None:
    """Raises PermissionDenied or NotFound: a tenant creates its own keys only and sees no other tenant."""
    if principal.kind is Kind.ADMIN:
        return
    if key.kind != api_keys.TENANT:
        needed = f"admin to make a key of kind {_KIND_NAMES[key.kind]}"
        raise PermissionDenied(str(principal), _CREATE, needed)
    if key.tenant_id != principal.tenant:
        raise NotFound("tenant", f"tenants/{key.tenant_id}")


def _check_chosen_id(key_id: str, principal: Principal) -> None:
    """Raises FieldInvalid. Ids are unique over all tenants: one that chose them could ask which are taken."""
    if principal.kind is not Kind.ADMIN:
        problem = "is for administrators only; leave it empty, and the server makes an id"
        raise FieldInvalid.of("api_key_id", problem)
    if not _ID.fullmatch(key_id):
        raise FieldInvalid.of("api_key_id", "must be 4 to 32 of a-z and 0-9, or empty")


async def _check_expiry(tx: Tx, key: StoredKey) -> None:
    """Raises FieldInvalid for a key that would outlive the key that creates it."""
    own = await api_keys.find_key(tx, current_principal().id)
    if own is None or own.expire_time is None:
        return
    if key.expire_time is None or key.expire_time > own.expire_time:
        limit = f"{own.expire_time:%Y-%m-%dT%H:%M:%SZ}"
        problem = f"must be {limit} at the latest, when the key that creates it expires"
        raise FieldInvalid.of("api_key.expire_time", problem)


def _manages(principal: Principal, key: StoredKey) -> bool:
    return principal.kind is Kind.ADMIN or (
        principal.kind is Kind.TENANT and key.tenant_id == principal.tenant
    )


async def _log(
    tx: Tx,
    event: ChangeEvent,
    key: StoredKey,
    actor: Actor,
    time: datetime,
    more: Mapping[str, str] | None = None,
) -> None:
    details: dict[str, object] = {"kind": _KIND_NAMES[key.kind], "read_only": key.read_only}
    if key.expire_time is not None:
        details["expire_time"] = key.expire_time.isoformat()
    if key.parent_key_id is not None:
        details["parent"] = f"apiKeys/{key.parent_key_id}"
    details.update(more or {})
    await append_change(tx, event, key.tenant_id or _SYSTEM, key.key_id, actor, time, details=details)


def fill_key(message: api_key_pb2.ApiKey, key: api_keys.StoredKey) -> None:
    """Fill in a key without its secret, of which only a digest is stored."""
    message.name = f"apiKeys/{key.key_id}"
    message.kind = api_key_pb2.PrincipalKind.ValueType(key.kind)
    message.tenant = key.tenant_id or ""
    message.read_only = key.read_only
    message.description = key.description
    if key.kind == api_keys.RUNNER:
        scope = key.runner_scope
        message.runner_scope.runner_id = scope.runner_id
        message.runner_scope.tenants.extend(scope.tenants)
        message.runner_scope.labels.update(scope.labels)
        message.runner_scope.runner_id_pattern = scope.runner_id_pattern
        message.runner_scope.backend_type_required = scope.backend_type_required
    if key.create_time is not None:
        set_time(message.create_time, key.create_time)
    if key.expire_time is not None:
        set_time(message.expire_time, key.expire_time)
    if key.revoke_time is not None:
        set_time(message.revoke_time, key.revoke_time)
    if key.parent_key_id is not None:
        message.parent = f"apiKeys/{key.parent_key_id}"
