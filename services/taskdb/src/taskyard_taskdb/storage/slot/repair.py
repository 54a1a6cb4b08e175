"""Repair of slots: the holder of a slot becomes its head; a slot without a holder passes to its next waiter.

A task that can be claimed or is leased holds its slot, even if the row of the slot differs. Of several, one
whose lease is in force keeps it; those that merely wait in the queue go back behind it. Several leases in
force cannot be helped: the others stay as they are until they end.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from random import Random

from taskyard_taskdb.domain import lifecycle
from taskyard_taskdb.domain.event import PauseRequested, ResumeRequested
from taskyard_taskdb.domain.task import SYSTEM
from taskyard_taskdb.domain.transition import Transition
from taskyard_taskdb.storage.notify.bus import CommitNotice
from taskyard_taskdb.storage.pool import Tx
from taskyard_taskdb.storage.slot import slots
from taskyard_taskdb.storage.slot.slots import Holder, SlotKey
from taskyard_taskdb.storage.transition.load import Loaded, StateMoved, load_for_update
from taskyard_taskdb.storage.transition.write import fill_slots, write

_BACK = (
    PauseRequested(actor=SYSTEM, grace=timedelta(0), reason="another task holds its slot"),
    ResumeRequested(actor=SYSTEM),
)


async def repair(tx: Tx, keys: Sequence[SlotKey]) -> CommitNotice:
    """Make the holders of slots their heads; pass slots without a holder to their next waiters."""
    suspects = await slots.seem_held(tx, keys)
    # Before the slots, as everywhere. One that holds its slot alone is not touched.
    loaded = await load_for_update(tx, _rivals(suspects), damaged=True)
    heads = await slots.lock(tx, keys)
    recorded = [(*key, head) for key, head in heads.items() if head is not None]
    found = _by_slot(await slots.holders(tx, [*suspects, *recorded]))
    kept = {key: _keeper(heads[key], rivals) for key, rivals in found.items()}
    await slots.settle(tx, heads, {key: holder.task_id for key, holder in kept.items()})
    surplus = [
        holder
        for key, rivals in found.items()
        for holder in rivals
        if holder is not kept[key] and holder.queued and not holder.active
    ]
    notice = await write(tx, [_send_back(loaded, holder) for holder in surplus])
    notice.add(await fill_slots(tx, heads, [key for key in heads if key not in kept]))
    return notice


def _rivals(suspects: Sequence[tuple[str, str, str]]) -> list[tuple[str, str]]:
    """The tasks that seem to share their slot with another."""
    tasks: dict[SlotKey, set[str]] = {}
    for tenant_id, slot, task_id in suspects:
        tasks.setdefault((tenant_id, slot), set()).add(task_id)
    return [(key[0], task_id) for key, shared in tasks.items() if len(shared) > 1 for task_id in shared]


def _by_slot(holders: Sequence[Holder]) -> Mapping[SlotKey, list[Holder]]:
    found: dict[SlotKey, list[Holder]] = {}
    for holder in holders:
        found.setdefault((holder.tenant_id, holder.slot), []).append(holder)
    return found


def _keeper(head: str | None, rivals: Sequence[Holder]) -> Holder:
    """Who keeps a slot: the first, or the head it has if that runs as surely."""
    first = rivals[0]
    equals = (one for one in rivals if (one.active, one.leased) == (first.active, first.leased))
    return next((one for one in equals if one.task_id == head), first)


def _send_back(loaded: Loaded, holder: Holder) -> Transition:
    """From the queue to the waiters of its slot: as if it had been paused and resumed."""
    task = loaded.tasks.get((holder.tenant_id, holder.task_id))
    if task is None:
        raise StateMoved(f"task {holder.task_id} began to hold slot {holder.slot} meanwhile")
    return lifecycle.apply_all(task, _BACK, loaded.now, Random())
