"""TenantService: customers with their tier, limits and pauses."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from taskyard.errors import AlreadyExists, FieldInvalid, NotEmpty, NotFound, ResourceVersionMismatch
from taskyard.v1 import tenant_pb2, tenant_service_pb2
from taskyard_kit.auth import current_principal
from taskyard_taskdb.domain.change import ChangeEvent
from taskyard_taskdb.domain.filter_fields import TENANT_FIELDS
from taskyard_taskdb.domain.names import tenant_name
from taskyard_taskdb.domain.quota import Quota, QuotaOverrides, Tier
from taskyard_taskdb.rpc import access, masks
from taskyard_taskdb.rpc.pages import read_page
from taskyard_taskdb.rpc.times import set_time
from taskyard_taskdb.rpc.validate import check_text
from taskyard_taskdb.storage.change_log.append import append_change
from taskyard_taskdb.storage.create import request_ids
from taskyard_taskdb.storage.create.request_ids import Method, Request
from taskyard_taskdb.storage.notify.bus import Bus, CommitNotice
from taskyard_taskdb.storage.pool import Pool, Tx
from taskyard_taskdb.storage.tenant import counters, tenants, usage
from taskyard_taskdb.storage.tenant.removal import TenantRemoval
from taskyard_taskdb.storage.tenant.tenants import TenantRow
from taskyard_taskdb.storage.transition.load import database_time

# The tenant of shared task types is part of every installation.
SYSTEM = "system"
_MOST_SHARES = 1000

_MUTABLE = ("display_name", "tier", "quota", "suspended", "queue_paused")
_LIMITS = (
    "max_concurrent_tasks",
    "max_queue_depth",
    "rate_limit_per_sec",
    "rate_burst",
    "weight",
    "max_storage_bytes",
)


class TenantHandler:
    """TenantService. Replicas are notified of changes; a missed notification is repaired within 2 s."""

    def __init__(self, pool: Pool, bus: Bus) -> None:
        self._pool = pool
        self._bus = bus
        self._removal = TenantRemoval(pool)

    async def CreateTenant(
        self, request: tenant_service_pb2.CreateTenantRequest, context: Any
    ) -> tenant_service_pb2.CreateTenantResponse:
        given = request.tenant
        requested = TenantRow(
            request.tenant_id,
            _display_name(given),
            _tier(given),
            _overrides(given.quota),
            given.suspended,
            given.queue_paused,
        )
        actor = access.caller()

        async def work(tx: Tx) -> TenantRow:
            if request.request_id and await _is_repeat(tx, request):
                found = await tenants.find(tx, requested.tenant_id)
                if found is not None:
                    return found
            made = await tenants.insert(tx, requested)
            if made is None:
                raise AlreadyExists("tenant", requested.name)
            if made.quota.counted:
                await counters.begin(tx, made.tenant_id, made.quota)
            assert made.create_time is not None
            await append_change(
                tx,
                ChangeEvent.TENANT_CREATED,
                made.tenant_id,
                made.tenant_id,
                actor,
                made.create_time,
                version=made.version,
                request_id=request.request_id or None,
                details=_audit_details(made),
            )
            return made

        if request.validate_only:
            made = await self._pool.rehearse(work)
            return tenant_service_pb2.CreateTenantResponse(tenant=tenant_message(made))
        made = await self._pool.run(work)
        self._bus.publish(CommitNotice.of_settings(made.tenant_id))
        return tenant_service_pb2.CreateTenantResponse(tenant=tenant_message(made))

    async def GetTenant(
        self, request: tenant_service_pb2.GetTenantRequest, context: Any
    ) -> tenant_service_pb2.GetTenantResponse:
        found = await self._find(access.visible_tenant(request.name, "name"))
        return tenant_service_pb2.GetTenantResponse(tenant=tenant_message(found))

    async def ListTenants(
        self, request: tenant_service_pb2.ListTenantsRequest, context: Any
    ) -> tenant_service_pb2.ListTenantsResponse:
        async with self._pool.reading(planned=True) as tx:

            async def read(after: tuple[str, ...], size: int) -> list[TenantRow]:
                return await tenants.page(tx, after[0] if after else "", size)

            found, token = await read_page(
                read,
                lambda tenant: (tenant.tenant_id,),
                page_size=request.page_size,
                page_token=request.page_token,
                query=("ListTenants",),
                filter_text=request.filter,
                fields=TENANT_FIELDS,
                values=_values,
            )
        return tenant_service_pb2.ListTenantsResponse(
            tenants=[tenant_message(tenant) for tenant in found], next_page_token=token
        )

    async def UpdateTenant(
        self, request: tenant_service_pb2.UpdateTenantRequest, context: Any
    ) -> tenant_service_pb2.UpdateTenantResponse:
        given = request.tenant
        tenant_id = access.visible_tenant(given.name, "tenant.name")
        paths = masks.chosen_paths(request.update_mask.paths, given, _MUTABLE, "a tenant")
        actor = access.caller()

        async def work(tx: Tx) -> TenantRow:
            before = await self._lock(tx, tenant_id, given.resource_version)
            after = _changed(before, given, paths)
            if after == before:
                return before
            if after.quota != before.quota:
                await counters.set_limits(tx, tenant_id, after.quota, counted=before.quota.counted)
            stored = await tenants.update(tx, after)
            assert stored.update_time is not None
            await append_change(
                tx,
                ChangeEvent.TENANT_UPDATED,
                tenant_id,
                tenant_id,
                actor,
                stored.update_time,
                version=stored.version,
                details=_differences(before, stored),
            )
            return stored

        if request.validate_only:
            stored = await self._pool.rehearse(work)
            return tenant_service_pb2.UpdateTenantResponse(tenant=tenant_message(stored))
        stored = await self._pool.run(work)
        self._bus.publish(CommitNotice.of_settings(tenant_id))
        return tenant_service_pb2.UpdateTenantResponse(tenant=tenant_message(stored))

    async def DeleteTenant(
        self, request: tenant_service_pb2.DeleteTenantRequest, context: Any
    ) -> tenant_service_pb2.DeleteTenantResponse:
        tenant_id = access.visible_tenant(request.name, "name")
        if tenant_id == SYSTEM:
            raise FieldInvalid.of("name", f"{request.name} holds the shared task types and is never deleted")
        actor = access.caller()

        async def check(tx: Tx) -> None:
            await self._lock(tx, tenant_id, request.resource_version)
            children = await tenants.count_children(tx, tenant_id)
            if children and not request.force:
                raise NotEmpty(request.name, children)

        await self._pool.run(check)
        await self._removal.empty(tenant_id, self._bus.publish)

        async def remove(tx: Tx) -> None:
            tenant = await tenants.lock(tx, tenant_id)
            if tenant is None:
                raise NotFound("tenant", request.name)
            children = await tenants.count_children(tx, tenant_id)
            if children and not request.force:
                raise NotEmpty(request.name, children)
            await self._removal.finish(tx, tenant_id)
            await append_change(
                tx,
                ChangeEvent.TENANT_DELETED,
                tenant_id,
                tenant_id,
                actor,
                await database_time(tx),
                version=tenant.version + 1,
                details={"force": request.force},
            )

        await self._pool.run(remove)
        self._bus.publish(CommitNotice.of_settings(tenant_id))
        return tenant_service_pb2.DeleteTenantResponse()

    async def GetTenantUsage(
        self, request: tenant_service_pb2.GetTenantUsageRequest, context: Any
    ) -> tenant_service_pb2.GetTenantUsageResponse:
        tenant = await self._find(access.visible_tenant(request.name, "name"))
        quota = tenant.quota
        async with self._pool.reading() as tx:
            found = (await counters.read(tx, [tenant.tenant_id])).get(tenant.tenant_id)
            if found is not None:
                pending, leased = found.pending, found.leased
            else:
                pending, leased = await counters.count_waiting(tx, tenant.tenant_id)
        limited = found is not None and quota.rate_limit_per_sec
        response = tenant_service_pb2.GetTenantUsageResponse(
            active_tasks=leased,
            queued_tasks=pending,
            rate_tokens=int(found.tokens) if found is not None and limited else -1,
        )
        _fill_quota(response.effective_quota, quota)
        return response

    async def ListTenantShares(
        self, request: tenant_service_pb2.ListTenantSharesRequest, context: Any
    ) -> tenant_service_pb2.ListTenantSharesResponse:
        principal = current_principal()
        async with self._pool.reading(planned=True) as tx:
            uses = await usage.read_uses(tx, usage.ALWAYS, ())
            busy = sorted(uses, key=lambda tenant_id: -uses[tenant_id].usage)[:_MOST_SHARES]
            weights = {
                tenant_id: row.quota.weight for tenant_id, row in (await tenants.find_all(tx, busy)).items()
            }
        whole = sum(use.usage for use in uses.values()) or 1.0
        weight = sum(weights.values()) or 1
        return tenant_service_pb2.ListTenantSharesResponse(
            shares=[
                tenant_service_pb2.UsedShare(
                    tenant=tenant_name(tenant_id),
                    weight=weights[tenant_id],
                    used_share=uses[tenant_id].usage / whole,
                    due_share=weights[tenant_id] / weight,
                    running_count=uses[tenant_id].leased_count,
                )
                for tenant_id in busy
                if tenant_id in weights and principal.sees(tenant_id)
            ]
        )

    async def _find(self, tenant_id: str) -> TenantRow:
        async with self._pool.reading() as tx:
            found = await tenants.find(tx, tenant_id)
        if found is None:
            raise NotFound("tenant", tenant_name(tenant_id))
        return found

    async def _lock(self, tx: Tx, tenant_id: str, version: int) -> TenantRow:
        found = await tenants.lock(tx, tenant_id)
        if found is None:
            raise NotFound("tenant", tenant_name(tenant_id))
        if version and version != found.version:
            raise ResourceVersionMismatch(found.name, str(version), str(found.version))
        return found


async def _is_repeat(tx: Tx, request: tenant_service_pb2.CreateTenantRequest) -> bool:
    body = hashlib.sha256(request.SerializeToString(deterministic=True)).digest()[:16]
    repeatable = Request(request.tenant_id, request.request_id, body, request.tenant_id)
    found = (await request_ids.claim(tx, Method.CREATE_TENANT, [repeatable])).get(repeatable.key)
    if isinstance(found, Exception):
        raise AlreadyExists("tenant", tenant_name(request.tenant_id))
    return found is not None


def _changed(before: TenantRow, given: tenant_pb2.Tenant, paths: list[masks.Path]) -> TenantRow:
    after = tenant_message(before)
    for path in paths:
        masks.copy(given, after, path)
    return replace(
        before,
        display_name=_display_name(after),
        tier=_tier(after),
        own=_overrides(after.quota),
        suspended=after.suspended,
        queue_paused=after.queue_paused,
    )


def _display_name(given: tenant_pb2.Tenant) -> str:
    if not given.display_name:
        raise FieldInvalid.of("tenant.display_name", "must not be empty")
    check_text(given.display_name, "tenant.display_name")
    return given.display_name


def _tier(given: tenant_pb2.Tenant) -> Tier:
    # Unset in a new tenant, or named by the update mask and unset.
    if given.tier == tenant_pb2.TENANT_TIER_UNSPECIFIED:
        tiers = ", ".join(tier.name for tier in Tier)
        raise FieldInvalid.of("tenant.tier", f"must be one of {tiers}, not unspecified")
    return Tier(given.tier)


def _overrides(given: tenant_pb2.TenantQuota) -> QuotaOverrides:
    quota: Any = given
    return QuotaOverrides(*(getattr(quota, name) if quota.HasField(name) else None for name in _LIMITS))


def _values(tenant: TenantRow) -> Mapping[str, Any]:
    return {"tier": int(tenant.tier), "suspended": tenant.suspended, "create_time": tenant.create_time}


def _audit_details(tenant: TenantRow) -> dict[str, object]:
    """The settings of a tenant as the audit records them."""
    own = {name: value for name in _LIMITS if (value := getattr(tenant.own, name)) is not None}
    details: dict[str, object] = {"display_name": tenant.display_name, "tier": tenant.tier.name, **own}
    return details | {"suspended": tenant.suspended, "queue_paused": tenant.queue_paused}


def _differences(before: TenantRow, after: TenantRow) -> dict[str, object]:
    old, new = _audit_details(before), _audit_details(after)
    return {name: new.get(name) for name in {**old, **new} if old.get(name) != new.get(name)}


def tenant_message(tenant: TenantRow) -> tenant_pb2.Tenant:
    """A tenant as callers see it."""
    message = tenant_pb2.Tenant(
        name=tenant.name,
        display_name=tenant.display_name,
        tier=tenant_pb2.TenantTier.ValueType(tenant.tier),
        suspended=tenant.suspended,
        queue_paused=tenant.queue_paused,
        resource_version=tenant.version,
    )
    for name in _LIMITS:
        if (value := getattr(tenant.own, name)) is not None:
            setattr(message.quota, name, value)
    _fill_quota(message.effective_quota, tenant.quota)
    _fill_time(message.create_time, tenant.create_time)
    _fill_time(message.update_time, tenant.update_time)
    return message


def _fill_quota(message: tenant_pb2.TenantQuota, quota: Quota) -> None:
    for name in _LIMITS:
        setattr(message, name, getattr(quota, name))


def _fill_time(field: Any, value: datetime | None) -> None:
    if value is not None:
        set_time(field, value)
