"""Repair of slots whose head does not hold them."""

from __future__ import annotations

from collections.abc import Sequence

from taskyard_taskdb.storage import overdue, slots
from taskyard_taskdb.storage.pool import Tx
from taskyard_taskdb.storage.slots import SlotKey
from taskyard_taskdb.storage.transitions import Written, fill_slots


async def repair(tx: Tx, keys: Sequence[SlotKey]) -> Written:
    """Give slots whose head does not hold them to their next waiter, or remove them."""
    heads = await slots.lock(tx, keys)
    told = [(key, head) for key, head in heads.items() if head is not None]
    held = await overdue.held_slots(tx, told) if told else set()
    return await fill_slots(tx, heads, [key for key in heads if key not in held])
