"""Queries of the sweeps: overdue leases, sessions, timers and slots, a page at a time."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import NamedTuple

from taskyard_taskdb.storage import arrays
from taskyard_taskdb.storage.pool import Tx
from taskyard_taskdb.storage.slot.slots import SlotKey
from taskyard_taskdb.storage.statements import statement
from taskyard_taskdb.storage.transition.task_rows import Key
from taskyard_taskdb.storage.transition.timers import Timer

BEFORE_ALL: Key = ("", "")


class OverdueLease(NamedTuple):
    """An overdue lease, with the generation that it had when it was found."""

    key: Key
    generation: int


async def leases(
    tx: Tx, name: str, after: Key, page: int, patience: timedelta | None = None
) -> list[OverdueLease]:
    """Return a page of expired_leases, disconnected_leases, overdue_runs or overdue_actions."""
    params: dict[str, object] = {"after_tenant": after[0], "after_task": after[1], "page": page}
    if patience is not None:
        params["patience"] = patience
    rows = await tx.fetch(statement(name), params)
    return [OverdueLease((tenant_id, task_id), generation) for tenant_id, task_id, generation in rows]


async def lease_events(tx: Tx, patience: timedelta) -> tuple[bool, float | None]:
    """Return whether a lease or session is due, and in how many seconds the next one is."""
    row = await tx.fetch_row(statement("lease_events"), {"patience": patience})
    assert row is not None
    return row[0], row[1]


async def next_timer(tx: Tx) -> float | None:
    """Return in how many seconds the next timer is due."""
    row = await tx.fetch_row(statement("next_timer"))
    return row[0] if row else None


async def miss_heartbeats(tx: Tx, page: int) -> list[str]:
    """Note sessions whose heartbeat is overdue; returns the runners of those not noted before."""
    return [row[0] for row in await tx.fetch(statement("miss_heartbeats"), {"page": page})]


async def expire_sessions(tx: Tx, page: int) -> list[str]:
    """Close expired sessions; returns their runners."""
    return [row[0] for row in await tx.fetch(statement("expire_sessions"), {"page": page})]


async def delete_timers(tx: Tx, timers: Sequence[Timer]) -> None:
    """Delete timers that have not changed since they were read."""
    params = {
        "tenant_ids": arrays.texts([timer.tenant_id for timer in timers]),
        "task_ids": arrays.texts([timer.task_id for timer in timers]),
        "kinds": arrays.smallints([timer.kind for timer in timers]),
        "due_times": arrays.timestamps([timer.due_time for timer in timers]),
    }
    await tx.execute(statement("delete_fired_timers"), params)


async def slots_without_holder(tx: Tx, after: SlotKey, page: int) -> list[SlotKey]:
    """Return slots whose head does not hold them."""
    params = {"after_tenant": after[0], "after_task": after[1], "page": page}
    return [(row[0], row[1]) for row in await tx.fetch(statement("slots_without_holder"), params)]


async def awaited_slots_without_row(tx: Tx, page: int) -> list[SlotKey]:
    """Return slots that tasks wait for and that have no row."""
    return [
        (row[0], row[1]) for row in await tx.fetch(statement("awaited_slots_without_row"), {"page": page})
    ]


async def delete_old_revocations(tx: Tx) -> int:
    """Delete revocations that are too old to be sent."""
    return await tx.execute(statement("delete_old_revocations"))


async def delete_old_request_ids(tx: Tx, age: timedelta, page: int) -> int:
    """Delete request ids older than `age`; returns how many."""
    return await tx.execute(statement("delete_old_request_ids"), {"age": age, "page": page})


async def excess_checkpoints(tx: Tx, after: Key, page: int) -> tuple[list[Key], Key | None]:
    """Return the next tasks that have too many checkpoints or are deleted, and the key to continue after."""
    params = {"after_tenant": after[0], "after_task": after[1], "page": page}
    rows = await tx.fetch(statement("excess_checkpoints"), params)
    last = (rows[-1][0], rows[-1][1]) if len(rows) == page else None
    return [(row[0], row[1]) for row in rows if row[2]], last


async def trim_checkpoints(tx: Tx, keys: Sequence[Key]) -> int:
    """Delete the excess checkpoints of these tasks; returns how many."""
    params = {
        "tenant_ids": arrays.texts([key[0] for key in keys]),
        "task_ids": arrays.texts([key[1] for key in keys]),
    }
    return await tx.execute(statement("trim_checkpoints"), params)
