"""Slots: at most one task is the head, and a freed slot goes to the next waiter in the same transaction.

Creator and freer lock the slot in one statement and choose the successor in the next: in one statement the
snapshot would predate the waiter, and its wake-up would be lost.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from taskyard_taskdb.domain.task import TaskState
from taskyard_taskdb.domain.transition import FreeSlot, TakeSlot, WaitForSlot
from taskyard_taskdb.storage import arrays
from taskyard_taskdb.storage.pool import Tx
from taskyard_taskdb.storage.statements import statement
from taskyard_taskdb.storage.transition.task_rows import Steps, read_task

# Tenant and slot.
SlotKey = tuple[str, str]
SlotEffect = FreeSlot | TakeSlot | WaitForSlot


class Holder(NamedTuple):
    """A task that can be claimed or is leased, in the order of the columns of slot_holders."""

    tenant_id: str
    slot: str
    task_id: str
    # Whether its lease is in force, whether it has one at all, and whether it waits in the queue.
    active: bool
    leased: bool
    queued: bool


def slot_effects(steps: Iterable[Steps]) -> list[tuple[str, str, SlotEffect]]:
    """Tenant, task and effect, for everything that concerns a slot, in order."""
    return [
        (*step.key, effect)
        for step in steps
        for effect in step.effects()
        if isinstance(effect, FreeSlot | TakeSlot | WaitForSlot)
    ]


async def lock(tx: Tx, keys: Iterable[SlotKey]) -> dict[SlotKey, str | None]:
    """Lock slots in key order, making those that are missing; returns their heads."""
    rows = await tx.fetch(statement("lock_slots"), _arrays(sorted(set(keys))))
    return {(row[0], row[1]): row[2] for row in rows}


async def settle(tx: Tx, heads: Mapping[SlotKey, str | None], wanted: Mapping[SlotKey, str | None]) -> None:
    """Write the heads of locked slots where they changed, and remove slots without head and waiters."""
    empty = [key for key, head in wanted.items() if head is None]
    moved = [key for key, head in wanted.items() if head is not None and head != heads[key]]
    if empty:
        await tx.execute(statement("delete_slots"), _arrays(empty))
    if moved:
        head_task_ids = arrays.texts([wanted[key] for key in moved])
        await tx.execute(statement("set_heads"), _arrays(moved) | {"head_task_ids": head_task_ids})


async def leave(tx: Tx, keys: Sequence[SlotKey]) -> list[SlotKey]:
    """Remove the locked slots without waiters; returns the others."""
    gone = {(row[0], row[1]) for row in await tx.fetch(statement("leave_slots"), _arrays(keys))}
    return [key for key in keys if key not in gone]


async def choose(tx: Tx, free: Sequence[SlotKey]) -> list[TaskState]:
    """The next head of each locked slot that has none: its first waiter, now locked."""
    return [read_task(row) for row in await tx.fetch(statement("choose_heads"), _arrays(free))]


async def have_waiters(tx: Tx, keys: Sequence[SlotKey]) -> bool:
    """Whether somebody waits for one of these slots, locked or not."""
    return bool(await tx.fetch(statement("waiting_slots"), _arrays(keys)))


async def seem_held(tx: Tx, keys: Sequence[SlotKey]) -> list[tuple[str, str, str]]:
    """Tenant, slot and task of what holds these slots, locked or not."""
    return [(row[0], row[1], row[2]) for row in await tx.fetch(statement("find_slot_holders"), _arrays(keys))]


async def holders(tx: Tx, suspects: Iterable[tuple[str, str, str]]) -> list[Holder]:
    """Which of these tasks hold their locked slots; the one to keep a slot comes first."""
    wanted = sorted(set(suspects))
    params = {
        "tenant_ids": arrays.texts([tenant_id for tenant_id, _, _ in wanted]),
        "slots": arrays.texts([slot for _, slot, _ in wanted]),
        "task_ids": arrays.texts([task_id for _, _, task_id in wanted]),
    }
    return [Holder(*row) for row in await tx.fetch(statement("slot_holders"), params)]


def _arrays(keys: Sequence[SlotKey]) -> dict[str, object]:
    return {
        "tenant_ids": arrays.texts([key[0] for key in keys]),
        "slots": arrays.texts([key[1] for key in keys]),
    }
