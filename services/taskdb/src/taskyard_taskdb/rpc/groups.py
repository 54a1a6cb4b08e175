"""GroupService: groups of tasks."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from taskyard.errors import AlreadyExists, NotEmpty, NotFound
from taskyard.v1 import group_pb2, group_service_pb2
from taskyard_kit.auth import require_tenant
from taskyard_taskdb.domain.change import ChangeEvent
from taskyard_taskdb.domain.filter_fields import GROUP_FIELDS
from taskyard_taskdb.domain.group import GroupState
from taskyard_taskdb.domain.names import group_name, parse_group_name, tenant_name
from taskyard_taskdb.domain.task import Actor
from taskyard_taskdb.rpc import access
from taskyard_taskdb.rpc.access import visible_scope
from taskyard_taskdb.rpc.group_messages import group_message
from taskyard_taskdb.rpc.pages import read_page
from taskyard_taskdb.rpc.spec import SpecReader
from taskyard_taskdb.rpc.validate import check_text
from taskyard_taskdb.rpc.webhooks import check_callback
from taskyard_taskdb.storage.change_log.append import append_change
from taskyard_taskdb.storage.create import request_ids
from taskyard_taskdb.storage.create.request_ids import Method, Request
from taskyard_taskdb.storage.group import groups
from taskyard_taskdb.storage.group.groups import GroupKey, GroupRow
from taskyard_taskdb.storage.notify.bus import Bus, CommitNotice
from taskyard_taskdb.storage.pool import Pool, Tx
from taskyard_taskdb.storage.tenant.tenants import TenantCache
from taskyard_taskdb.storage.transition.load import database_time
from taskyard_taskdb.watch.hub import Hub

Service = group_service_pb2

WAIT_SECONDS = 30.0
# The leader completes groups twice a second.
POLL_SECONDS = 0.25

Change = Callable[[Tx, GroupRow], Awaitable[ChangeEvent | None]]
"""Changes a locked group; returns what happened, or None."""


class GroupHandler:
    """GroupService."""

    def __init__(self, pool: Pool, bus: Bus, hub: Hub, tenants: TenantCache, specs: SpecReader) -> None:
        self._pool = pool
        self._bus = bus
        self._hub = hub
        self._tenants = tenants
        self._specs = specs

    async def CreateGroup(
        self, request: Service.CreateGroupRequest, context: Any
    ) -> Service.CreateGroupResponse:
        key = (access.visible_tenant(request.parent), request.group_id)
        await self._tenants.admit(key[0])
        callback = None
        if request.group.HasField("callback"):
            check_callback(request.group.callback, "group.callback", self._specs.egress)
            callback = request.group.callback.SerializeToString()
        actor = access.caller()

        async def work(tx: Tx) -> GroupRow:
            if request.request_id and await _is_repeat(tx, request, key):
                found = await groups.find(tx, key)
                if found is not None:
                    return found
            made = await groups.insert(tx, key, callback)
            if made is None:
                if await groups.find(tx, key) is None:
                    raise NotFound("tenant", tenant_name(key[0]))
                raise AlreadyExists("group", group_name(*key))
            await _log(tx, ChangeEvent.GROUP_CREATED, key, actor, request.request_id)
            return made

        made = await self._pool.run(work)
        self._bus.publish(CommitNotice(changed=True))
        return Service.CreateGroupResponse(group=group_message(made))

    async def GetGroup(self, request: Service.GetGroupRequest, context: Any) -> Service.GetGroupResponse:
        return Service.GetGroupResponse(group=group_message(await self._find(_visible_group(request.name))))

    async def ListGroups(
        self, request: Service.ListGroupsRequest, context: Any
    ) -> Service.ListGroupsResponse:
        tenant_id = visible_scope(request.parent)
        async with self._pool.reading(planned=True) as tx:
            found, token = await read_page(
                lambda after, size: groups.page(tx, tenant_id, after, size),
                lambda row: row.key,
                page_size=request.page_size,
                page_token=request.page_token,
                query=("ListGroups", request.parent),
                key_size=2,
                filter_text=request.filter,
                fields=GROUP_FIELDS,
                values=_values,
            )
        return Service.ListGroupsResponse(groups=map(group_message, found), next_page_token=token)

    async def CloseGroup(
        self, request: Service.CloseGroupRequest, context: Any
    ) -> Service.CloseGroupResponse:
        async def close(tx: Tx, group: GroupRow) -> ChangeEvent | None:
            if group.state is not GroupState.OPEN:
                return None
            await groups.close(tx, group.key)
            return ChangeEvent.GROUP_CLOSED

        return Service.CloseGroupResponse(group=await self._change(request.name, close))

    async def CancelGroup(
        self, request: Service.CancelGroupRequest, context: Any
    ) -> Service.CancelGroupResponse:
        check_text(request.reason, "reason")
        actor = access.caller()

        async def cancel(tx: Tx, group: GroupRow) -> ChangeEvent | None:
            if group.state is GroupState.COMPLETE:
                return None
            await groups.cancel(tx, group.key, actor, request.reason)
            return ChangeEvent.GROUP_CANCELLED

        return Service.CancelGroupResponse(group=await self._change(request.name, cancel, request.reason))

    async def DeleteGroup(
        self, request: Service.DeleteGroupRequest, context: Any
    ) -> Service.DeleteGroupResponse:
        key, actor = _visible_group(request.name), access.caller()

        async def work(tx: Tx) -> None:
            group = await groups.lock(tx, key)
            if group is None:
                raise NotFound("group", request.name)
            if group.live_count or (group.awaited and group.state is not GroupState.COMPLETE):
                problem = (
                    f"{group.name} has {group.live_count} live tasks, or tasks that wait for it;"
                    " wait for it or cancel it"
                )
                raise NotEmpty(group.name, group.live_count, message=problem)
            await groups.delete(tx, key)
            await _log(tx, ChangeEvent.GROUP_DELETED, key, actor)

        await self._pool.run(work)
        self._bus.publish(CommitNotice(changed=True))
        return Service.DeleteGroupResponse()

    async def WaitGroup(self, request: Service.WaitGroupRequest, context: Any) -> Service.WaitGroupResponse:
        """Wait until the group is complete or the time is up."""
        key = _visible_group(request.name)
        seconds = (
            request.timeout.ToTimedelta().total_seconds() if request.HasField("timeout") else WAIT_SECONDS
        )
        left = context.time_remaining()
        deadline = time.monotonic() + (min(seconds, max(left - 1, 0)) if left is not None else seconds)
        await self._hub.ready()
        # It receives nothing; it counts as a stream and ends with the server.
        subscription = self._hub.subscribe(key[0], frozenset({(key[0], "")}))
        try:
            while True:
                group = await self._find(key)
                satisfied = group.state is GroupState.COMPLETE
                left = deadline - time.monotonic()
                if satisfied or left <= 0 or self._hub.closing:
                    return Service.WaitGroupResponse(group=group_message(group), satisfied=satisfied)
                await subscription.next(min(left, POLL_SECONDS))
        finally:
            self._hub.unsubscribe(subscription)

    async def _find(self, key: GroupKey) -> GroupRow:
        async with self._pool.reading() as tx:
            found = await groups.find(tx, key)
        if found is None:
            raise NotFound("group", group_name(*key))
        return found

    async def _change(self, name: str, change: Change, reason: str = "") -> group_pb2.Group:
        key, actor = _visible_group(name), access.caller()

        async def work(tx: Tx) -> GroupRow:
            found = await groups.lock(tx, key)
            if found is None:
                raise NotFound("group", name)
            event = await change(tx, found)
            if event is None:
                return found
            await _log(tx, event, key, actor, reason=reason)
            return await groups.find(tx, key) or found

        changed = await self._pool.run(work)
        self._bus.publish(CommitNotice(changed=True))
        return group_message(changed)


def _visible_group(name: str) -> GroupKey:
    """Tenant id and group id. Raises FieldInvalid, or NotFound for a tenant that is not visible."""
    key = parse_group_name(name)
    require_tenant(key[0], "group", name)
    return key


def _values(row: GroupRow) -> Mapping[str, Any]:
    return {"id": row.group_id, "state": int(row.state), "create_time": row.create_time}


async def _is_repeat(tx: Tx, request: Service.CreateGroupRequest, key: GroupKey) -> bool:
    body = hashlib.sha256(request.SerializeToString(deterministic=True)).digest()[:16]
    repeatable = Request(key[0], request.request_id, body, key[1])
    found = (await request_ids.claim(tx, Method.CREATE_GROUP, [repeatable])).get(repeatable.key)
    if isinstance(found, Exception):
        raise AlreadyExists("group", group_name(*key))
    return found is not None


async def _log(
    tx: Tx, event: ChangeEvent, key: GroupKey, actor: Actor, request_id: str = "", reason: str = ""
) -> None:
    now = await database_time(tx)
    details = {"reason": reason} if reason else None
    await append_change(tx, event, *key, actor, now, request_id=request_id or None, details=details)
