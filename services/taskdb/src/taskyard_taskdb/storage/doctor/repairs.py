"""The repairs of RunDoctor: each locks the rows, checks them again, and corrects what is still wrong."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from random import Random

from taskyard_taskdb.domain import lifecycle
from taskyard_taskdb.domain.change import Change, ChangeEvent
from taskyard_taskdb.domain.event import LeaseExpired
from taskyard_taskdb.domain.task import Actor, TaskState
from taskyard_taskdb.domain.words import ActorType, Phase
from taskyard_taskdb.storage import arrays
from taskyard_taskdb.storage.audit import seals
from taskyard_taskdb.storage.change_log.append import ChangeRow, append_change, insert_changes
from taskyard_taskdb.storage.claim.lanes import LaneKey
from taskyard_taskdb.storage.dependency import edges
from taskyard_taskdb.storage.dependency.backlog import rejudge
from taskyard_taskdb.storage.housekeeping import leader_lock
from taskyard_taskdb.storage.housekeeping.partitions import COLUMNS, ensure_months, stray_months
from taskyard_taskdb.storage.notify.bus import CommitNotice
from taskyard_taskdb.storage.pool import Pool, Tx
from taskyard_taskdb.storage.slot import repair as slot_repair
from taskyard_taskdb.storage.statements import statement
from taskyard_taskdb.storage.tenant import counters
from taskyard_taskdb.storage.transition.load import database_time, load_for_update
from taskyard_taskdb.storage.transition.task_rows import Key, key_of
from taskyard_taskdb.storage.transition.write import change_row, write

DOCTOR = Actor(ActorType.SYSTEM, "doctor")
# How long to wait for receivers: half a minute, the time that the sender serves each.
WEBHOOK_POLLS = 300
WEBHOOK_POLL_SECONDS = 0.1
# How long to wait for the leader to handle instants: 10 s.
SCHEDULE_POLLS = 100


class RepairNotPossible(Exception):
    """The repair is unsafe or impossible at this time; the message says what to do instead."""


@dataclass(frozen=True, slots=True)
class RepairContext:
    """The dependencies of repairs: database, callback after a commit, caller, and how to run a job."""

    pool: Pool
    on_commit: Callable[[CommitNotice], None]
    actor: Actor
    run_job: Callable[[str], Awaitable[None]]


Work = Callable[[Tx, Sequence[Key]], Awaitable[CommitNotice]]
Repair = Callable[[RepairContext, Sequence[Key]], Awaitable[None]]
"""Repairs those of the findings that are still wrong. Raises RepairNotPossible."""


def in_transaction(work: Work) -> Repair:
    """Return a repair that does the work in one transaction."""

    async def repair(context: RepairContext, keys: Sequence[Key]) -> None:
        context.on_commit(await context.pool.run(lambda tx: work(tx, keys)))

    return repair


def run_statements(*names: str) -> Repair:
    """Return a repair that executes statements in this order; each checks its own conditions."""

    async def work(tx: Tx, keys: Sequence[Key]) -> CommitNotice:
        for name in names:
            await tx.execute(statement(name), params(keys))
        return CommitNotice()

    return in_transaction(work)


async def enqueue(tx: Tx, keys: Sequence[Key]) -> CommitNotice:
    """Insert the missing queue rows of claimable tasks."""
    await load_for_update(tx, keys, damaged=True)
    await tx.execute(statement("doctor_set_ready"), params(keys))
    rows = await tx.fetch(statement("doctor_enqueue"), params(keys))
    return CommitNotice(lanes={LaneKey(*row) for row in rows})


async def redistribute(tx: Tx, keys: Sequence[Key]) -> CommitNotice:
    """Requeue running tasks that have no lease."""
    before = await load_for_update(tx, keys, damaged=True)
    moved = [(row[0], row[1]) for row in await tx.fetch(statement("doctor_redistribute"), params(keys))]
    if not moved:
        return CommitNotice()
    rows = await tx.fetch(statement("doctor_enqueue"), params(moved))
    loaded = await load_for_update(tx, moved)
    changes = [
        _change(task, ChangeEvent.TASK_REDISTRIBUTED, loaded.now, before.tasks[key].phase)
        for key, task in loaded.tasks.items()
    ]
    await insert_changes(tx, changes)
    return CommitNotice(lanes={LaneKey(*row) for row in rows}, changed=True)


async def expire(tx: Tx, keys: Sequence[Key]) -> CommitNotice:
    """Expire overdue leases as the sweep does, after the grace of the leader. Raises RepairNotPossible."""
    wait = await leader_lock.seconds_until_reaping(tx)
    if wait is None:
        raise RepairNotPossible(
            "no replica leads housekeeping, so it is unknown how long runners could not renew"
        )
    if wait > 0:
        raise RepairNotPossible(f"runners may still renew their leases: try again in {wait:.0f} s")
    loaded = await load_for_update(tx, keys)
    rng = Random()
    return await write(
        tx,
        [
            lifecycle.apply(task, LeaseExpired(generation=task.generation, actor=DOCTOR), loaded.now, rng)
            for task in loaded.tasks.values()
            if task.lease is not None
        ],
    )


async def settle_slots_of(tx: Tx, keys: Sequence[Key]) -> CommitNotice:
    """Repair the slots of these tasks."""
    rows = await tx.fetch(statement("doctor_slots_of"), params(keys))
    return await slot_repair.repair(tx, [(row[0], row[1]) for row in rows])


async def settle_dependencies(tx: Tx, keys: Sequence[Key]) -> CommitNotice:
    """Judge the prerequisites of waiting tasks anew, and leave those that wait no longer to the sweep."""
    needed = await edges.of_tasks(tx, keys)
    named = [(edge.tenant_id, edge.prerequisite_id) for found in needed.values() for edge in found]
    loaded = await load_for_update(tx, [*keys, *named], damaged=True)
    phases = await edges.phases_of(tx, named, loaded)
    # A prerequisite that is gone can no longer fulfil anything.
    phases |= {key: Phase.CANCELLED for key in named if key not in phases}
    waiting = [key for key, task in loaded.tasks.items() if key in set(keys) and task.blocked]
    await edges.unblock(tx, [key for key in keys if key not in waiting])
    judged = {key: found for key in waiting if (found := rejudge(needed.get(key, []), phases)) is not None}
    await edges.mark(tx, loaded, named)
    if judged:
        await edges.reopen(tx, judged)
        # One without open prerequisites has a row as well, which the sweep finds.
        await edges.block(tx, judged)
    return CommitNotice(dependencies=True, changed=True)


async def correct_counters(tx: Tx, keys: Sequence[Key]) -> CommitNotice:
    """Set counters to their recounted values."""
    await counters.compare(tx, repair=True)
    return CommitNotice()


async def make_partitions(tx: Tx, keys: Sequence[Key]) -> CommitNotice:
    """Make the missing partitions of rows in a default partition, and move the rows."""
    for table in COLUMNS:
        await ensure_months(tx, table, await stray_months(tx, table))
    return CommitNotice()


async def settle_log(tx: Tx, keys: Sequence[Key]) -> CommitNotice:
    """Append missing changes to the log, and raise versions that the log has passed."""
    loaded = await load_for_update(tx, keys)
    rows = await tx.fetch(statement("doctor_logged_versions"), params(keys))
    logged = {(row[0], row[1]): row[2] for row in rows}
    ahead = [task for task in loaded.tasks.values() if logged[key_of(task)] > task.version]
    if ahead:
        versions = arrays.bigints([logged[key_of(task)] for task in ahead])
        await tx.execute(
            statement("doctor_raise_versions"), params([key_of(t) for t in ahead]) | {"versions": versions}
        )
    behind = [task for task in loaded.tasks.values() if logged[key_of(task)] < task.version]
    await insert_changes(tx, [_change(task, ChangeEvent.TASK_UPDATED, loaded.now) for task in behind])
    return CommitNotice(changed=bool(behind))


async def run_jobs(context: RepairContext, keys: Sequence[Key]) -> None:
    """Run jobs now; a job that fails again stays a finding."""
    for _, job in keys:
        await context.run_job(job)


async def handle_schedules(context: RepairContext, keys: Sequence[Key]) -> None:
    """Wake the leader, who handles due instants, and wait for it. Raises RepairNotPossible."""
    wanted = set(keys)
    context.on_commit(CommitNotice(changed=True))
    for _ in range(SCHEDULE_POLLS):
        async with context.pool.reading() as tx:
            overdue = await tx.fetch(statement("doctor_overdue_schedules"))
            if wanted.isdisjoint((row[0], row[1]) for row in overdue):
                return
            if await leader_lock.seconds_until_reaping(tx) is None:
                raise RepairNotPossible("no replica leads housekeeping, so that no instant is handled")
        await asyncio.sleep(WEBHOOK_POLL_SECONDS)
    raise RepairNotPossible("the leader cannot handle them; its log names the reason: pause or update them")


async def leave_to_the_operator(context: RepairContext, keys: Sequence[Key]) -> None:
    """Settings of the server are the operator's. Raises RepairNotPossible."""
    raise RepairNotPossible(
        "change the setting in PostgreSQL; docs/howto/high-availability.md has the values"
    )


async def leave_sessions_to_the_operator(context: RepairContext, keys: Sequence[Key]) -> None:
    """Sessions of others are the operator's. Raises RepairNotPossible."""
    raise RepairNotPossible(
        "end the session with pg_terminate_backend, or the prepared transaction with ROLLBACK PREPARED;"
        " set idle_in_transaction_session_timeout for the role that it belongs to"
    )


def params(keys: Sequence[Key]) -> dict[str, object]:
    """Return keys as parallel arrays."""
    return {
        "tenant_ids": arrays.texts([key[0] for key in keys]),
        "ids": arrays.texts([key[1] for key in keys]),
    }


def _change(task: TaskState, event: ChangeEvent, now: datetime, before: Phase | None = None) -> ChangeRow:
    return change_row(
        task,
        Change(
            event=event,
            actor=DOCTOR,
            time=now,
            version=task.version,
            phase=task.phase,
            previous_phase=before,
            pending_reason=task.pending_reason,
            generation=task.generation,
            attempt=task.attempt,
            retry_count=task.retry_count,
            runner_loss_count=task.runner_loss_count,
            exit_code=task.exit_code,
            details={"reason": "repaired"},
        ),
    )


Tries = list[tuple[int, int]]
"""The ids of webhooks, with their attempts."""


async def deliver_webhooks(context: RepairContext, keys: Sequence[Key]) -> None:
    """Let the leader send webhooks at once, and wait until each was tried. Raises RepairNotPossible."""
    tries = await context.pool.run(lambda tx: _expedite_webhooks(tx, keys))
    if not tries:
        return
    # Wakes the sender of the leader, on this or another replica.
    context.on_commit(CommitNotice(changed=True))
    async with context.pool.reading() as tx:
        if await leader_lock.seconds_until_reaping(tx) is None:
            raise RepairNotPossible("no replica leads housekeeping, so webhooks are not sent")
    for _ in range(WEBHOOK_POLLS):
        if not await _has_untried_webhooks(context, tries):
            return
        await asyncio.sleep(WEBHOOK_POLL_SECONDS)


async def _expedite_webhooks(tx: Tx, keys: Sequence[Key]) -> Tries:
    locked = await tx.fetch(statement("doctor_lock_webhooks"), params(keys))
    tries = [(row[0], row[1]) for row in locked]
    await tx.execute(statement("doctor_expedite_webhooks"), {"ids": arrays.bigints([id for id, _ in tries])})
    return tries


async def _has_untried_webhooks(context: RepairContext, tries: Tries) -> bool:
    params = {
        "ids": arrays.bigints([id for id, _ in tries]),
        "attempts": arrays.integers([attempt for _, attempt in tries]),
    }
    async with context.pool.reading() as tx:
        return bool(await tx.fetch(statement("doctor_untried_webhooks"), params))


# The newest ranges of the log are compared with their seals; `audit verify` compares all of them.
NEWEST = 1000
OWNER = "system"


async def find(tx: Tx) -> list[Key]:
    """Return the ranges that differ from their seals."""
    found = await seals.verify_seals(tx, newest=NEWEST)
    return list(dict.fromkeys((OWNER, f"{one.after_id + 1}-{one.last_id}") for one in found))


async def acknowledged(tx: Tx, found: Sequence[Key]) -> set[Key]:
    """Return the damaged ranges whose present state is acknowledged."""
    if not found:
        return set()
    ranges = arrays.texts([key[1] for key in found])
    event = int(ChangeEvent.AUDIT_DAMAGE_ACKNOWLEDGED)
    rows = await tx.fetch(statement("doctor_acknowledgements"), {"ranges": ranges, "event": event})
    acknowledged_now = {(row[0], row[1]) for row in rows}
    return {key for key in found if (key[1], await _fingerprint(tx, *_limits(key))) in acknowledged_now}


async def acknowledge(context: RepairContext, keys: Sequence[Key]) -> None:
    """Append an acknowledgement of each damaged range to the log."""

    async def work(tx: Tx) -> CommitNotice:
        notice = CommitNotice()
        for key in keys:
            after, last = _limits(key)
            messages = [one.message for one in await seals.verify_seals(tx, after, last)]
            if messages:
                details = {"found": messages, "fingerprint": await _fingerprint(tx, after, last)}
                event, now = ChangeEvent.AUDIT_DAMAGE_ACKNOWLEDGED, await database_time(tx)
                await append_change(tx, event, OWNER, key[1], context.actor, now, details=details)
                notice.changed = True
        return notice

    context.on_commit(await context.pool.run(work))


def _limits(key: Key) -> tuple[int, int]:
    """Return the id before the range and its last id."""
    first, _, last = key[1].partition("-")
    return int(first) - 1, int(last)


async def _fingerprint(tx: Tx, after: int, last: int) -> str:
    """Return a hash of the present changes and seals of a range."""
    params = {"after": after, "until": last}
    rows = await tx.fetch_row(statement(f"digest_changes_{seals.FORM}"), params)
    chain = await tx.fetch_row(statement("doctor_digest_seals"), params)
    assert rows is not None and chain is not None
    return sha256(bytes(rows[3]) + bytes(chain[0])).hexdigest()
