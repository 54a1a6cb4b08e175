"""Rows of `groups`: reading, closing, cancelling and deleting one, and how groups have ended."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple
from uuid import UUID

from taskyard_taskdb.domain.group import GroupState, as_prerequisite, group_of, outcome
from taskyard_taskdb.domain.names import group_name
from taskyard_taskdb.domain.task import Actor
from taskyard_taskdb.domain.words import Phase
from taskyard_taskdb.storage import arrays
from taskyard_taskdb.storage.pool import Tx
from taskyard_taskdb.storage.statements import statement
from taskyard_taskdb.storage.transition.task_rows import Key

GroupKey = tuple[str, str]
"""Tenant and group id."""


class GroupRow(NamedTuple):
    """A group, in the order of the columns of read_group."""

    tenant_id: str
    group_id: str
    uid: UUID
    create_time: datetime
    live_count: int
    succeeded_count: int
    not_succeeded_count: int
    completion_count: int
    close_time: datetime | None
    complete_time: datetime | None
    cancel_time: datetime | None
    parent_task_id: str | None
    callback: bytes | None
    awaited: bool

    @property
    def key(self) -> GroupKey:
        """Tenant and group id."""
        return self.tenant_id, self.group_id

    @property
    def name(self) -> str:
        """The resource name."""
        return group_name(*self.key)

    @property
    def state(self) -> GroupState:
        """Whether tasks may join it, and whether all have ended."""
        if self.close_time is None:
            return GroupState.OPEN
        return GroupState.CLOSED if self.complete_time is None else GroupState.COMPLETE


async def insert(tx: Tx, key: GroupKey, callback: bytes | None) -> GroupRow | None:
    """The new group; None if the id is taken, or the tenant is unknown."""
    params = {"tenant_id": key[0], "group_id": key[1], "callback": callback}
    row = await tx.fetch_row(statement("insert_group"), params)
    return None if row is None else GroupRow(*row)


async def find(tx: Tx, key: GroupKey) -> GroupRow | None:
    """The group, unlocked."""
    row = await tx.fetch_row(statement("read_group"), key)
    return None if row is None else GroupRow(*row)


async def lock(tx: Tx, key: GroupKey) -> GroupRow | None:
    """The group, locked until the end of the transaction."""
    await tx.fetch_row(statement("lock_group"), key)
    # What was committed before the lock is visible to the next statement only.
    return await find(tx, key)


async def page(tx: Tx, tenant_id: str | None, after: Sequence[str], size: int) -> list[GroupRow]:
    """Up to `size` groups behind `after`, of one tenant or of all."""
    after_tenant, after_group = after or ("", "")
    params = {"tenant_id": tenant_id, "after_tenant": after_tenant, "after_group": after_group, "size": size}
    return [GroupRow(*row) for row in await tx.fetch(statement("list_groups"), params)]


async def close(tx: Tx, key: GroupKey) -> None:
    """Close a locked group."""
    await tx.execute(statement("close_group"), key)


async def cancel(tx: Tx, key: GroupKey, actor: Actor, reason: str) -> None:
    """Close a locked group; the sweep cancels its tasks."""
    params = {"tenant_id": key[0], "group_id": key[1], "actor_type": actor.type, "actor_id": actor.id}
    await tx.execute(statement("cancel_group"), params | {"reason": reason})


async def delete(tx: Tx, key: GroupKey) -> None:
    """Delete a locked group."""
    await tx.execute(statement("delete_group"), {"tenant_id": key[0], "group_id": key[1]})


async def delete_old(tx: Tx, age: timedelta, page: int) -> int:
    """Delete a page of groups that are complete for long and whose tasks are gone; returns how many."""
    return await tx.execute(statement("delete_old_groups"), {"age": age, "page": page})


async def phases_of(tx: Tx, prerequisites: Iterable[Key]) -> dict[Key, Phase]:
    """How the groups among prerequisites have ended; PENDING while they are not complete.

    Locks them against their completion; tasks are locked before.
    """
    keys = {(tenant_id, found) for tenant_id, id in prerequisites if (found := group_of(id)) is not None}
    if not keys:
        return {}
    rows = await tx.fetch(statement("group_outcomes"), key_arrays(sorted(keys)))
    return {(row[0], as_prerequisite(row[1])): outcome(row[3]) if row[2] else Phase.PENDING for row in rows}


def key_arrays(keys: Sequence[GroupKey]) -> dict[str, object]:
    """The arrays of tenants and group ids."""
    return {
        "tenant_ids": arrays.texts([key[0] for key in keys]),
        "group_ids": arrays.texts([key[1] for key in keys]),
    }
