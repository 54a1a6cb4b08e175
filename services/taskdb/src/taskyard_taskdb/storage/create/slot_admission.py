"""Admission to slots: the live tasks that a new task meets, and their replacement by it."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from taskyard_taskdb.domain.admission import MAX_WAITING
from taskyard_taskdb.domain.event import Replaced
from taskyard_taskdb.domain.lifecycle import apply
from taskyard_taskdb.domain.task import Actor
from taskyard_taskdb.domain.words import ActorType, Admission
from taskyard_taskdb.storage import arrays
from taskyard_taskdb.storage.create.new_task import NewTask
from taskyard_taskdb.storage.notify.bus import CommitNotice
from taskyard_taskdb.storage.pool import Tx
from taskyard_taskdb.storage.slot import slots
from taskyard_taskdb.storage.slot.slots import SlotKey
from taskyard_taskdb.storage.statements import statement
from taskyard_taskdb.storage.tenant.counters import Delta
from taskyard_taskdb.storage.transition.load import StateMoved, load_for_update
from taskyard_taskdb.storage.transition.write import write


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


_rng = random.Random()


async def cancel_live(
    tx: Tx, tasks: Sequence[NewTask], delta: Delta
) -> tuple[dict[SlotKey, list[str]], CommitNotice]:
    """Cancels the live tasks of these tasks' slots, or asks their holders to; their ids by slot.

    What that changes in the counts of tenants is noted in `delta`: they are locked after slots.

    Tasks are locked before slots, so who is alive is read without a lock first; `check` looks again under it.
    """
    replacing = {(task.tenant_id, task.slot): task for task in tasks if task.slot is not None}
    if not replacing:
        return {}, CommitNotice()
    for key in sorted(replacing):
        await tx.execute(statement("take_turn"), ("/".join(key),))
    live = await read_live(tx, list(replacing))
    await _keep_heads(tx, live, replacing)
    loaded = await load_for_update(tx, [(key[0], task_id) for key, ids in live.items() for task_id in ids])
    transitions = []
    for key, ids in live.items():
        new = replacing[key]
        actor = Actor(ActorType(new.creator_type), new.creator_id)
        event = Replaced(actor=actor, by_task_id=new.task_id, grace=new.policy.stop_grace_period)
        alive = [loaded.tasks[(key[0], task_id)] for task_id in ids if (key[0], task_id) in loaded.tasks]
        transitions += [apply(task, event, loaded.now, _rng) for task in alive if not task.phase.terminal]
    changed = [transition for transition in transitions if not transition.duplicate]
    return live, await write(tx, changed, delta=delta)


async def _keep_heads(tx: Tx, live: dict[SlotKey, list[str]], replacing: Mapping[SlotKey, NewTask]) -> None:
    """Removes the heads of slots whose new task replaces waiters only; `check` looks again under a lock."""
    kept = [key for key, task in replacing.items() if task.admission is Admission.QUEUE_LATEST]
    if not kept:
        return
    for tenant_id, slot, head in await tx.fetch(statement("read_slot_heads"), _columns(kept)):
        key = (tenant_id, slot)
        live[key] = [task_id for task_id in live[key] if task_id != head]


def check(
    replaced: Mapping[SlotKey, Sequence[str]], occupied: Mapping[SlotKey, Occupancy], tasks: Sequence[NewTask]
) -> None:
    """Raises StateMoved, and so starts over, if a locked slot has a live task that should have been replaced,
    or if a task that was replaced has become a head that must be kept."""
    latest = {(task.tenant_id, task.slot) for task in tasks if task.admission is Admission.QUEUE_LATEST}
    for key, ids in replaced.items():
        head = {occupied[key].head} if key in latest else set()
        if not set(occupied[key].live) - head <= set(ids):
            raise StateMoved(f"slot {key[1]} of tenant {key[0]} has a new task")
        if head & set(ids):
            raise StateMoved(f"slot {key[1]} of tenant {key[0]} has a new head")
