"""Admission REPLACE: the live tasks of a slot are cancelled, then the new one takes its turn."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

from taskyard_taskdb.domain.event import Replaced
from taskyard_taskdb.domain.lifecycle import apply
from taskyard_taskdb.domain.task import Actor
from taskyard_taskdb.domain.words import ActorType
from taskyard_taskdb.storage import occupancy
from taskyard_taskdb.storage.counters import Delta
from taskyard_taskdb.storage.newtask import NewTask
from taskyard_taskdb.storage.occupancy import Occupancy
from taskyard_taskdb.storage.pool import Tx
from taskyard_taskdb.storage.slots import SlotKey
from taskyard_taskdb.storage.statements import statement
from taskyard_taskdb.storage.transitions import StateMoved, Written, load_for_update, write

_rng = random.Random()


async def cancel_live(
    tx: Tx, tasks: Sequence[NewTask], delta: Delta
) -> tuple[dict[SlotKey, list[str]], Written]:
    """Cancels the live tasks of these tasks' slots, or asks their holders to; their ids by slot.

    What that changes in the counts of tenants is noted in `delta`: they are locked after slots.

    Tasks are locked before slots, so who is alive is read without a lock first; `check` looks again under it.
    """
    replacing = {(task.tenant_id, task.slot): task for task in tasks if task.slot is not None}
    if not replacing:
        return {}, Written()
    for key in sorted(replacing):
        await tx.execute(statement("take_turn"), ("/".join(key),))
    live = await occupancy.read_live(tx, list(replacing))
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


def check(replaced: Mapping[SlotKey, Sequence[str]], occupied: Mapping[SlotKey, Occupancy]) -> None:
    """Raises StateMoved, and so starts over, if a locked slot has a live task that was not replaced."""
    for key, ids in replaced.items():
        if not set(occupied[key].live) <= set(ids):
            raise StateMoved(f"slot {key[1]} of tenant {key[0]} has a new task")
