"""Who is alive in a slot: what a new task has to know before it is admitted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from taskyard_taskdb.storage import arrays
from taskyard_taskdb.storage.pool import Tx
from taskyard_taskdb.storage.statements import statement

SlotKey = tuple[str, str]
"""Tenant and slot."""

MAX_WAITING = 100


@dataclass(slots=True)
class Occupancy:
    """The live tasks of a locked slot; `live` is one of them, the head if there is one. Counted up to a limit."""

    head: str | None
    live: str | None
    live_count: int

    @property
    def waiting_count(self) -> int:
        """Live tasks that are not the head."""
        return self.live_count - (1 if self.head is not None else 0)


async def lock_slots(tx: Tx, keys: Iterable[SlotKey]) -> dict[SlotKey, str | None]:
    """Locks the slots in key order, making those that do not exist; the head of each, or None.

    Who chooses a successor does so in a later statement: the snapshot of this one may predate a waiter.
    """
    rows = await tx.fetch(statement("lock_slots"), _columns(sorted(set(keys))))
    return {(tenant, slot): head for tenant, slot, head in rows}


async def read_occupancy(tx: Tx, heads: Mapping[SlotKey, str | None]) -> dict[SlotKey, Occupancy]:
    """Who is alive in these slots, which the transaction has locked in an earlier statement."""
    keys = list(heads)
    rows = await tx.fetch(statement("read_slot_occupancy"), _columns(keys) | {"limit": MAX_WAITING + 2})
    found = {(tenant, slot): (first, count) for tenant, slot, first, count in rows}
    return {key: Occupancy(heads[key], heads[key] or found[key][0], found[key][1]) for key in keys}


async def set_heads(tx: Tx, heads: Sequence[tuple[SlotKey, str]]) -> None:
    """Makes each task the head of its locked slot."""
    columns = _columns([key for key, _ in heads])
    await tx.execute(
        statement("set_heads"), columns | {"head_task_ids": arrays.texts([task_id for _, task_id in heads])}
    )


def _columns(keys: Sequence[SlotKey]) -> dict[str, object]:
    return {"tenant_ids": arrays.texts([key[0] for key in keys]), "slots": arrays.texts([key[1] for key in keys])}
