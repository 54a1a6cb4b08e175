"""Who is alive in a slot: what a new task has to know before it is admitted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from taskyard_taskdb.domain.admission import MAX_WAITING
from taskyard_taskdb.storage import arrays, slots
from taskyard_taskdb.storage.pool import Tx
from taskyard_taskdb.storage.slots import SlotKey
from taskyard_taskdb.storage.statements import statement


@dataclass(slots=True)
class Occupancy:
    """The head of a locked slot and its live tasks, the head first, as many as can matter."""

    head: str | None
    live: list[str]


async def lock_and_read(tx: Tx, keys: Iterable[SlotKey]) -> dict[SlotKey, Occupancy]:
    """Locks the slots, then reads who is alive in them: the snapshot of one statement for both would predate
    a task that was committed while it waited for the lock."""
    heads = await slots.lock(tx, keys)
    if not heads:
        return {}
    found = await read_live(tx, list(heads))
    return {key: Occupancy(head, found[key]) for key, head in heads.items()}


async def read_live(tx: Tx, keys: Sequence[SlotKey]) -> dict[SlotKey, list[str]]:
    """The live tasks of slots, without a lock."""
    columns = _columns(keys) | {"limit": MAX_WAITING + 2}
    rows = await tx.fetch(statement("read_slot_occupancy"), columns)
    return {(tenant, slot): live or [] for tenant, slot, live in rows}


async def set_heads(tx: Tx, heads: Sequence[tuple[SlotKey, str]]) -> None:
    """Makes each task the head of its locked slot."""
    columns = _columns([key for key, _ in heads])
    await tx.execute(
        statement("set_heads"), columns | {"head_task_ids": arrays.texts([task_id for _, task_id in heads])}
    )


def _columns(keys: Sequence[SlotKey]) -> dict[str, object]:
    return {
        "tenant_ids": arrays.texts([key[0] for key in keys]),
        "slots": arrays.texts([key[1] for key in keys]),
    }
