"""LimitService: definitions of named limits."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from taskyard.errors import AlreadyExists, FieldInvalid, NotFound, ResourceVersionMismatch
from taskyard.v1 import limit_pb2, limit_service_pb2
from taskyard_kit.auth import require_tenant
from taskyard_taskdb.domain.change import ChangeEvent
from taskyard_taskdb.domain.limit import Rate, Rules
from taskyard_taskdb.domain.names import limit_name, parse_limit_name
from taskyard_taskdb.domain.task import Actor
from taskyard_taskdb.rpc import access, masks
from taskyard_taskdb.rpc.ids import Uuid7
from taskyard_taskdb.rpc.pages import read_page
from taskyard_taskdb.rpc.times import set_time
from taskyard_taskdb.rpc.validate import check_text
from taskyard_taskdb.storage.change_log.append import append_change
from taskyard_taskdb.storage.limit import limits
from taskyard_taskdb.storage.limit.book import LimitKey
from taskyard_taskdb.storage.limit.limits import LimitRow
from taskyard_taskdb.storage.notify.bus import Bus, CommitNotice
from taskyard_taskdb.storage.pool import Pool, Tx
from taskyard_taskdb.storage.tenant.tenants import TenantCache
from taskyard_taskdb.storage.transition.load import database_time

Service = limit_service_pb2
Limit = limit_pb2.Limit

MAX_LIMITS = 1000
_MUTABLE = ("description", "max_running", "max_running_per_key", "starts", "starts_per_key")


class LimitHandler:
    """LimitService."""

    def __init__(self, pool: Pool, bus: Bus, tenants: TenantCache) -> None:
        self._pool = pool
        self._bus = bus
        self._tenants = tenants
        self._ids = Uuid7()

    async def CreateLimit(
        self, request: Service.CreateLimitRequest, context: Any
    ) -> Service.CreateLimitResponse:
        key = (access.visible_tenant(request.parent), request.limit_id)
        await self._tenants.admit(key[0])
        actor = access.caller()
        rules = _checked(request.limit)

        async def work(tx: Tx) -> LimitRow:
            return await self._insert(tx, key, request.limit.description, rules, actor)

        if request.validate_only:
            return Service.CreateLimitResponse(limit=limit_message(await self._pool.rehearse(work)))
        made = await self._pool.run(work)
        self._bus.publish(CommitNotice(changed=True, limits=True))
        return Service.CreateLimitResponse(limit=limit_message(made))

    async def GetLimit(self, request: Service.GetLimitRequest, context: Any) -> Service.GetLimitResponse:
        key = _visible_limit(request.name)
        async with self._pool.reading() as tx:
            found = await limits.find(tx, key)
        if found is None:
            raise NotFound("limit", request.name)
        return Service.GetLimitResponse(limit=limit_message(found))

    async def ListLimits(
        self, request: Service.ListLimitsRequest, context: Any
    ) -> Service.ListLimitsResponse:
        tenant_id = access.visible_tenant(request.parent)
        async with self._pool.reading() as tx:

            async def read(after: tuple[str, ...], size: int) -> list[LimitRow]:
                return await limits.page(tx, tenant_id, after, size)

            found, token = await read_page(
                read,
                lambda row: (row.limit_id,),
                page_size=request.page_size,
                page_token=request.page_token,
                query=("ListLimits", request.parent),
            )
        response = Service.ListLimitsResponse(next_page_token=token)
        response.limits.extend(map(limit_message, found))
        return response

    async def UpdateLimit(
        self, request: Service.UpdateLimitRequest, context: Any
    ) -> Service.UpdateLimitResponse:
        given = request.limit
        key = _visible_limit(given.name, "limit.name")
        await self._tenants.admit(key[0])
        paths = masks.chosen_paths(request.update_mask.paths, given, _MUTABLE, "a limit")
        actor = access.caller()

        async def work(tx: Tx) -> LimitRow:
            found = await limits.lock(tx, key)
            if found is None:
                if not request.allow_missing:
                    raise NotFound("limit", given.name)
                return await self._insert(tx, key, given.description, _checked(given), actor)
            _check_version(found, given.resource_version)
            changed = limit_message(found)
            for path in paths:
                masks.copy(given, changed, path)
            row = found._replace(description=changed.description, rules=_checked(changed))
            if row == found:
                return found
            stored = await limits.update(tx, row)
            await _log(tx, ChangeEvent.LIMIT_UPDATED, stored, actor)
            return stored

        if request.validate_only:
            return Service.UpdateLimitResponse(limit=limit_message(await self._pool.rehearse(work)))
        stored = await self._pool.run(work)
        self._bus.publish(CommitNotice(changed=True, limits=True))
        return Service.UpdateLimitResponse(limit=limit_message(stored))

    async def DeleteLimit(
        self, request: Service.DeleteLimitRequest, context: Any
    ) -> Service.DeleteLimitResponse:
        key = _visible_limit(request.name)
        actor = access.caller()

        async def work(tx: Tx) -> None:
            found = await limits.lock(tx, key)
            if found is None:
                raise NotFound("limit", request.name)
            _check_version(found, request.resource_version)
            await limits.delete(tx, key)
            now = await database_time(tx)
            deleted = found._replace(version=found.version + 1, update_time=now)
            await _log(tx, ChangeEvent.LIMIT_DELETED, deleted, actor)

        await self._pool.run(work)
        self._bus.publish(CommitNotice(changed=True, limits=True))
        return Service.DeleteLimitResponse()

    async def _insert(self, tx: Tx, key: LimitKey, description: str, rules: Rules, actor: Actor) -> LimitRow:
        if await limits.count(tx, key[0], MAX_LIMITS) >= MAX_LIMITS:
            problem = f"tenant {key[0]} has {MAX_LIMITS} limits, the most that a tenant may have; delete one"
            raise FieldInvalid.of("parent", problem)
        now = await database_time(tx)
        row = LimitRow(*key, UUID(bytes=self._ids.draw()), 1, now, now, description, rules)
        made = await limits.insert(tx, row)
        if made is None:
            raise AlreadyExists("limit", limit_name(*key))
        await _log(tx, ChangeEvent.LIMIT_CREATED, made, actor)
        return made


def _visible_limit(name: str, field: str = "name") -> LimitKey:
    """Tenant and limit id. Raises FieldInvalid, or NotFound for a tenant that is not visible."""
    key = parse_limit_name(name, field)
    require_tenant(key[0], "limit", name)
    return key


def _check_version(found: LimitRow, wanted: int) -> None:
    if wanted and wanted != found.version:
        raise ResourceVersionMismatch(found.name, str(wanted), str(found.version))


def _checked(given: Limit) -> Rules:
    """The bounds. Raises FieldInvalid for a limit that has none."""
    check_text(given.description, "limit.description")
    rules = Rules(
        given.max_running,
        given.max_running_per_key,
        _rate(given.starts) if given.HasField("starts") else None,
        _rate(given.starts_per_key) if given.HasField("starts_per_key") else None,
    )
    if rules.bounds_nothing:
        problem = "bounds nothing: set max_running, max_running_per_key, starts or starts_per_key"
        raise FieldInvalid.of("limit", problem)
    return rules


def _rate(given: limit_pb2.StartRate) -> Rate:
    return Rate(given.count, given.per.ToTimedelta())


async def _log(tx: Tx, event: ChangeEvent, row: LimitRow, actor: Actor) -> None:
    await append_change(tx, event, row.tenant_id, row.limit_id, actor, row.update_time, version=row.version)


def limit_message(row: LimitRow) -> Limit:
    """A limit as callers see it."""
    message = Limit(
        name=row.name,
        uid=str(row.uid),
        resource_version=row.version,
        description=row.description,
        max_running=row.rules.max_running,
        max_running_per_key=row.rules.max_running_per_key,
        running_units=row.held,
        waiting_count=row.waiting,
    )
    set_time(message.create_time, row.create_time)
    set_time(message.update_time, row.update_time)
    for field, rate in (
        (message.starts, row.rules.starts),
        (message.starts_per_key, row.rules.starts_per_key),
    ):
        if rate is not None:
            field.count = rate.count
            field.per.FromTimedelta(rate.per)
    return message
