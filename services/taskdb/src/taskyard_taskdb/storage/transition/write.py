"""Writes what the lifecycle decided about loaded tasks, many in a few statements.

Every statement repeats in its WHERE what was loaded; a row that differs raises StateMoved, and the
transaction starts over.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from random import Random

from taskyard_taskdb.domain import lifecycle
from taskyard_taskdb.domain.change import Change
from taskyard_taskdb.domain.event import Promoted
from taskyard_taskdb.domain.rules.loss import QUARANTINED
from taskyard_taskdb.domain.task import QueueKey, TaskState
from taskyard_taskdb.domain.transition import (
    CallWebhook,
    DeleteTask,
    DiscardCheckpoints,
    FreeSlot,
    TakeSlot,
    Transition,
)
from taskyard_taskdb.domain.words import Phase
from taskyard_taskdb.storage import arrays
from taskyard_taskdb.storage.change_log.append import TASK, ChangeRow, insert_changes
from taskyard_taskdb.storage.claim.lanes import LaneKey
from taskyard_taskdb.storage.dependency import edges, release
from taskyard_taskdb.storage.dependency.release import Cause, Ended, Released
from taskyard_taskdb.storage.group import counts as group_counts
from taskyard_taskdb.storage.limit import admission as limit_admission
from taskyard_taskdb.storage.notify.bus import CommitNotice
from taskyard_taskdb.storage.pool import Tx
from taskyard_taskdb.storage.quarantine import quarantined_specs
from taskyard_taskdb.storage.runner import runners
from taskyard_taskdb.storage.slot import slots
from taskyard_taskdb.storage.slot.slots import SlotKey
from taskyard_taskdb.storage.statements import statement
from taskyard_taskdb.storage.tenant import counters
from taskyard_taskdb.storage.tenant.counters import Delta
from taskyard_taskdb.storage.tenant.usage import used
from taskyard_taskdb.storage.transition import lease_rows, task_updates, timers
from taskyard_taskdb.storage.transition.load import StateMoved, database_time, queue_arrays
from taskyard_taskdb.storage.transition.task_rows import Key, Steps, collect, key_of
from taskyard_taskdb.storage.webhook import outbox as webhook_outbox


async def write(
    tx: Tx,
    transitions: Iterable[Transition],
    *,
    log_sequences: Mapping[Key, int | None] | None = None,
    delta: Delta | None = None,
    released: Released | None = None,
) -> CommitNotice:
    """Write transitions of loaded tasks, several of one task in their order; the change log comes last.

    A slot that is freed goes to its next waiter in the same transaction. `log_sequences` are the last log
    entries of runs that end. Given a `delta`, the caller writes the counts, behind locks of its own. Tasks
    that wait for one that ends are released in the same transaction; `released` are those that the caller has
    released itself. Raises StateMoved if a row differs from the transition's `before`.
    """
    notice = CommitNotice()
    steps = collect(transitions)
    await _write_rows(tx, steps, notice, log_sequences or {})
    if released is None:
        released = await _release_dependents(tx, steps)
    if released.steps:
        await _write_rows(tx, released.steps, notice, {})
        steps = [*steps, *released.steps]
    notice.dependencies = released.left
    if grouped := group_counts.deltas_of(steps):
        await group_counts.add(tx, grouped)
    promoted = await _settle_slots(tx, steps)
    await _write_rows(tx, promoted, notice, {})
    settled = await limit_admission.settle(tx, (*steps, *promoted))
    await _write_rows(tx, settled.steps, notice, {})
    notice.limits = settled.left
    counts = Delta() if delta is None else delta
    for step in steps:
        _count(step, counts)
    if delta is None:
        notice.tenants = await counters.add(tx, counts)
    await runners.count_outcomes(tx, lease_rows.told_ends(steps))
    written = (*steps, *promoted, *settled.steps)
    changes = [change_row(step.before, change) for step in written for change in step.changes()]
    notice.changed = bool(changes)
    notice.used = [(step.before.tenant_id, used(t), 1) for step in steps for t in step.transitions]
    await insert_changes(tx, changes)
    return notice


async def _release_dependents(tx: Tx, steps: list[Steps]) -> Released:
    """Release what waits for tasks that these steps end; a task that is retried has not ended any more."""
    ended = release.ended_prerequisites(steps)
    revived = [
        Ended(step.key, step.before.phase)
        for step in steps
        if step.before.has_dependents and step.before.phase.terminal and not step.task.phase.terminal
    ]
    if revived:
        keys = [one.key for one in revived]
        await release.forget(tx, keys, Cause.ENDED)
        await group_counts.close_groups_of_children(tx, keys, closes=False)
    if ended:
        await group_counts.close_groups_of_children(tx, [one.key for one in ended], closes=True)
    return await release.release(tx, ended) if ended else Released()


def _count(step: Steps, counts: Delta) -> None:
    """Note what a task's steps change in the counts of its tenant. A promoted task waits as before."""
    deleted = any(isinstance(effect, DeleteTask) for effect in step.effects())
    waits, waited = not deleted and step.task.phase is Phase.PENDING, step.before.phase is Phase.PENDING
    held, was_held = not deleted and step.task.lease is not None, step.before.lease is not None
    counts.move(step.before.tenant_id, waits - waited, held - was_held)


async def _write_rows(
    tx: Tx, steps: list[Steps], notice: CommitNotice, log_sequences: Mapping[Key, int | None]
) -> None:
    if not steps:
        return
    await _dequeue(tx, steps)
    await _write_leases(tx, steps, notice, log_sequences)
    await _write_tasks(tx, steps)
    await timers.write(tx, steps)
    await _write_blocked(tx, steps)
    await _enqueue(tx, steps, notice)
    called = [step.key for step in steps if any(isinstance(e, CallWebhook) for e in step.effects())]
    if called:
        await webhook_outbox.store(tx, called)
    given_up = [step.task for step in steps if _given_up(step)]
    if given_up:
        await quarantined_specs.note(tx, given_up)


def _given_up(step: Steps) -> bool:
    """Whether the task ends because it cost too many runners."""
    error = step.task.error
    ended = step.task.phase.terminal and not step.before.phase.terminal
    return ended and error is not None and error.code == QUARANTINED.code


async def _write_leases(
    tx: Tx, steps: list[Steps], notice: CommitNotice, log_sequences: Mapping[Key, int | None]
) -> None:
    ended = [ending for step in steps for ending in lease_rows.endings(step)]
    if ended:
        _expect(len(ended), await lease_rows.end_runs(tx, ended, log_sequences), "leases")
        revoked = [ending for ending in ended if not ending.by_holder]
        if revoked:
            await lease_rows.revoke(tx, revoked)
            notice.holders.update(key_of(ending.before) for ending in revoked)
    made, kept = _split_leases(steps)
    if made:
        _expect(len(made), await lease_rows.insert(tx, made), "leases")
    if kept:
        _expect(len(kept), await lease_rows.update(tx, kept), "leases")
        notice.holders.update(step.key for step in kept if step.task.requested is not step.before.requested)


def _split_leases(steps: list[Steps]) -> tuple[list[TaskState], list[Steps]]:
    """Tasks whose lease is new, and steps whose lease stays but changes."""
    made: list[TaskState] = []
    kept: list[Steps] = []
    for step in steps:
        before, after = step.before.lease, step.task.lease
        if after is not None and (before is None or before.lease_id != after.lease_id):
            made.append(step.task)
        elif after is not None:
            kept.append(step)
    return made, kept


async def _write_tasks(tx: Tx, steps: list[Steps]) -> None:
    gone = [step for step in steps if any(isinstance(effect, DeleteTask) for effect in step.effects())]
    if gone:
        _expect(len(gone), await task_updates.delete(tx, gone), "tasks")
    left = [step for step in steps if step not in gone] if gone else steps
    changed = [step for step in left if task_updates.status_changes(step)]
    if changed:
        _expect(len(changed), await task_updates.update(tx, changed), "tasks")
    edited = [step for step in left if task_updates.edited(step)]
    if edited:
        _expect(len(edited), await task_updates.edit(tx, edited), "tasks")
    discarded = [
        s.task for s in left if any(isinstance(effect, DiscardCheckpoints) for effect in s.effects())
    ]
    if discarded:
        await task_updates.discard_checkpoints(tx, discarded)


async def _write_blocked(tx: Tx, steps: list[Steps]) -> None:
    """Write which tasks wait for prerequisites, where that changes, and remove it with the tasks."""
    waited = [step for step in steps if step.before.blocked is not None or step.task.blocked]
    if not waited:
        return
    changed = [step for step in waited if step.before.blocked is not step.task.blocked]
    if changed:
        blocked = arrays.bools([bool(step.task.blocked) for step in changed])
        keys = edges.key_arrays([step.key for step in changed])
        await tx.execute(statement("set_blocked"), keys | {"blocked": blocked})
    done = [step.key for step in changed if not step.task.blocked]
    if done:
        await edges.unblock(tx, done)
    gone = [s.key for s in waited if any(isinstance(effect, DeleteTask) for effect in s.effects())]
    if gone:
        await edges.delete(tx, gone)


async def _dequeue(tx: Tx, steps: list[Steps]) -> None:
    """Delete the queue rows that were loaded and are not to stay."""
    gone = [(step.key, step.before.queue_key) for step in steps if _leaves_queue(step)]
    if gone:
        _expect(len(gone), await tx.execute(statement("delete_queue"), queue_arrays(gone)), "queue rows")


async def _enqueue(tx: Tx, steps: list[Steps], notice: CommitNotice) -> None:
    made = [step.task for step in steps if _enters_queue(step)]
    if not made:
        return
    keys = [(key_of(task), task.queue_key) for task in made]
    has_leases = arrays.bools([task.lease is not None for task in made])
    await tx.execute(statement("insert_queue"), queue_arrays(keys) | {"has_leases": has_leases})
    notice.lanes.update(LaneKey(t.tenant_id, t.class_id, t.priority, t.pinned_runner) for t in made)


def _leaves_queue(step: Steps) -> bool:
    return step.before.queue_key is not None and _queue_row_changes(step)


def _enters_queue(step: Steps) -> bool:
    return _queue_key(step) is not None and _queue_row_changes(step)


def _queue_row_changes(step: Steps) -> bool:
    """Whether the key changes, or the lease beside the row: an old holder may give up its late outcome."""
    leased = (step.before.lease is not None, step.task.lease is not None)
    return step.before.queue_key != _queue_key(step) or leased[0] != leased[1]


def _queue_key(step: Steps) -> QueueKey | None:
    # A deleted task is as it was, but has no rows any more.
    deleted = any(isinstance(effect, DeleteTask) for effect in step.effects())
    return None if deleted else step.task.queue_key


async def _settle_slots(tx: Tx, steps: list[Steps]) -> list[Steps]:
    """Lock the slots concerned, then, in the next statement, choose who heads those that are free."""
    effects = slots.slot_effects(steps)
    if not effects:
        return []
    heads = await slots.lock(tx, ((tenant_id, effect.slot) for tenant_id, _, effect in effects))
    wanted = dict(heads)
    for tenant_id, task_id, effect in effects:
        key = (tenant_id, effect.slot)
        if isinstance(effect, FreeSlot) and wanted[key] == task_id:
            wanted[key] = None
        elif isinstance(effect, TakeSlot) and wanted[key] in (None, task_id):
            wanted[key] = task_id
        elif isinstance(effect, TakeSlot):
            raise StateMoved(f"slot {effect.slot} of tenant {tenant_id} has a head already")
    return await _fill(tx, heads, wanted)


async def fill_slots(tx: Tx, heads: Mapping[SlotKey, str | None], free: Sequence[SlotKey]) -> CommitNotice:
    """Promote the next waiters of these locked slots; slots without waiters are removed."""
    notice, changes = await _hand_on(tx, heads, free)
    await insert_changes(tx, changes)
    return notice


async def free_slots(tx: Tx, heads: Mapping[SlotKey, str]) -> tuple[CommitNotice, list[ChangeRow]]:
    """Pass on slots whose heads have ended; an earlier statement has locked them.

    The changes are for the caller to write, with its own and behind all locks.
    """
    awaited = await slots.leave(tx, list(heads))
    return await _hand_on(tx, heads, awaited) if awaited else (CommitNotice(), [])


async def _hand_on(
    tx: Tx, heads: Mapping[SlotKey, str | None], free: Sequence[SlotKey]
) -> tuple[CommitNotice, list[ChangeRow]]:
    notice = CommitNotice()
    promoted = await _fill(tx, heads, dict.fromkeys(free))
    await _write_rows(tx, promoted, notice, {})
    notice.limits = await limit_admission.wait_untried(tx, promoted)
    notice.changed = bool(promoted)
    return notice, [change_row(step.before, change) for step in promoted for change in step.changes()]


async def _fill(
    tx: Tx, heads: Mapping[SlotKey, str | None], wanted: dict[SlotKey, str | None]
) -> list[Steps]:
    """Choose heads for the slots that are to have none, and write the heads of all."""
    promoted = await _promote(tx, [key for key, head in wanted.items() if head is None])
    wanted |= {(step.task.tenant_id, step.task.slot or ""): step.task.task_id for step in promoted}
    await slots.settle(tx, heads, wanted)
    return promoted


async def _promote(tx: Tx, free: list[SlotKey]) -> list[Steps]:
    """The steps of the tasks that now head these locked, free slots. Raises StateMoved if one is locked."""
    if not free:
        return []
    chosen = await slots.choose(tx, free)
    left = set(free) - {(task.tenant_id, task.slot) for task in chosen}
    if left and await slots.have_waiters(tx, sorted(left)):
        raise StateMoved("another transaction holds the next task of a free slot")
    now = await database_time(tx)
    return [Steps([lifecycle.apply(task, Promoted(), now, Random())]) for task in chosen]


def change_row(task: TaskState, change: Change) -> ChangeRow:
    """A change of a task as a row of the log."""
    return ChangeRow(
        time=change.time,
        version=change.version,
        generation=change.generation,
        next_attempt_time=change.next_attempt_time,
        attempt=change.attempt,
        retry_count=change.retry_count,
        runner_loss_count=change.runner_loss_count,
        exit_code=change.exit_code,
        resource_kind=TASK,
        event=change.event,
        actor_type=change.actor.type,
        phase=change.phase,
        previous_phase=change.phase if change.previous_phase is None else change.previous_phase,
        pending_reason=change.pending_reason,
        tenant_id=task.tenant_id,
        resource_id=task.task_id,
        actor_id=change.actor.id,
        runner_id=change.runner_id,
        error_code=change.error_code,
        request_id=change.request_id,
        details=json.dumps(dict(change.details)) if change.details else None,
    )


def _expect(expected: int, found: int, what: str) -> None:
    """A guard that held back a row means that what was loaded is not what is there."""
    if found != expected:
        raise StateMoved(f"{expected - found} of {expected} {what} are not as they were loaded")
