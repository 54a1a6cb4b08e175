"""Rows of `leases` as transitions change them: granted, updated, moved to `runs`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from taskyard_taskdb.domain.task import LeaseState, TaskState
from taskyard_taskdb.domain.transition import EndRun, Transition
from taskyard_taskdb.domain.words import ActorType, RunState
from taskyard_taskdb.storage import arrays
from taskyard_taskdb.storage.pool import Tx
from taskyard_taskdb.storage.statements import statement
from taskyard_taskdb.storage.transition.task_rows import Key, Steps, encode_error, pack_action


@dataclass(frozen=True, slots=True)
class Ending:
    """The end of a run: its holder, its last state, and the report that ended it."""

    before: TaskState
    lease: LeaseState
    effect: EndRun
    # The version and lease as they were loaded, which the guard repeats.
    version: int
    started: bool
    by_holder: bool
    revoked_for: str


def endings(steps: Steps) -> list[Ending]:
    """The runs that these steps end; only a lease that was loaded can be ended."""
    return [
        _ending(steps, transition, effect)
        for transition in steps.transitions
        for effect in transition.effects
        if isinstance(effect, EndRun)
    ]


def told_ends(steps: Iterable[Steps]) -> Iterator[tuple[str, RunState]]:
    """The runs that their holders ended: runner and state."""
    for step in steps:
        for ending in endings(step):
            if ending.by_holder:
                yield ending.lease.runner_id, ending.effect.state


def _ending(steps: Steps, transition: Transition, effect: EndRun) -> Ending:
    lease = transition.before.lease
    assert lease is not None
    # A start that is implied by the outcome is part of the same transition.
    implied = transition.starts
    actor = transition.changes[0].actor.type if transition.changes else ActorType.SYSTEM
    return Ending(
        before=transition.task if implied else transition.before,
        lease=lease,
        effect=effect,
        version=steps.before.version,
        started=implied or lease.start_time is not None,
        by_holder=actor in (ActorType.RUNNER, ActorType.SCHEDULER),
        revoked_for="TASK_TERMINAL" if transition.task.phase.terminal else "LEASE_NOT_HELD",
    )


async def end_runs(tx: Tx, ended: Sequence[Ending], log_sequences: Mapping[Key, int | None]) -> int:
    """Move leases to runs; returns how many were still as loaded."""
    tasks, leases, effects = [e.before for e in ended], [e.lease for e in ended], [e.effect for e in ended]
    return await tx.execute(
        statement("end_runs"),
        {
            **_keys(tasks),
            "generations": arrays.bigints([e.generation for e in effects]),
            "lease_ids": arrays.bigints([e.lease_id for e in effects]),
            "old_versions": arrays.bigints([e.version for e in ended]),
            "attempts": arrays.integers([e.before.attempt if e.started else 0 for e in ended]),
            "start_times": arrays.timestamps([e.before.start_time if e.started else None for e in ended]),
            "end_times": arrays.timestamps([e.end_time for e in effects]),
            "states": arrays.smallints([e.state for e in effects]),
            "exit_codes": arrays.integers([e.exit_code for e in effects]),
            "errors": arrays.byteas([encode_error(e.error) for e in effects]),
            "progresses": arrays.byteas([task.progress for task in tasks]),
            "start_checkpoints": arrays.bigints([lease.start_checkpoint for lease in leases]),
            "log_sequences": arrays.bigints([log_sequences.get((t.tenant_id, t.task_id)) for t in tasks]),
        },
    )


async def revoke(tx: Tx, ended: Sequence[Ending]) -> None:
    """Note leases for their holders, which have not ended them."""
    await tx.execute(
        statement("insert_revocations"),
        {
            **_keys([e.before for e in ended]),
            "runner_ids": arrays.texts([e.lease.runner_id for e in ended]),
            "generations": arrays.bigints([e.effect.generation for e in ended]),
            "lease_ids": arrays.bigints([e.effect.lease_id for e in ended]),
            "reasons": arrays.texts([e.revoked_for for e in ended]),
        },
    )


async def insert(tx: Tx, tasks: Sequence[TaskState]) -> int:
    """Insert the leases of tasks that had none, or whose former one has just become a run."""
    leases = [_lease(task) for task in tasks]
    return await tx.execute(
        statement("insert_leases"),
        {
            **_keys(tasks),
            **_state(tasks, leases),
            "schedule_times": arrays.timestamps([lease.schedule_time for lease in leases]),
            "task_type_revisions": arrays.bigints([lease.task_type_revision for lease in leases]),
            "runner_ids": arrays.texts([lease.runner_id for lease in leases]),
            "claim_request_ids": arrays.texts([lease.claim_request_id for lease in leases]),
        },
    )


async def update(tx: Tx, changed: Sequence[Steps]) -> int:
    """Update leases that stay; returns how many were still as loaded."""
    tasks = [steps.task for steps in changed]
    leases = [_lease(task) for task in tasks]
    return await tx.execute(
        statement("update_leases"),
        {
            **_keys(tasks),
            **_state(tasks, leases),
            "old_versions": arrays.bigints([steps.before.version for steps in changed]),
            "start_times": arrays.timestamps([lease.start_time for lease in leases]),
            "sign_times": arrays.timestamps([lease.sign_time for lease in leases]),
            "progress_times": arrays.timestamps([lease.progress_time for lease in leases]),
            "deadline_times": arrays.timestamps([lease.deadline_time for lease in leases]),
            "deadline_codes": arrays.texts([lease.deadline_code for lease in leases]),
            "requested_actions": arrays.smallints(
                [lease.action.action if lease.action else 0 for lease in leases]
            ),
            "action_deadlines": arrays.timestamps(
                [a.deadline if (a := lease.action) else None for lease in leases]
            ),
            "actions": arrays.texts([pack_action(lease.action) for lease in leases]),
            "progresses": arrays.byteas([task.progress for task in tasks]),
            "details": arrays.byteas([task.details for task in tasks]),
        },
    )


def _state(tasks: Sequence[TaskState], leases: Sequence[LeaseState]) -> dict[str, object]:
    own_expiry = [None if lease.follows_session else lease.expire_time for lease in leases]
    return {
        "generations": arrays.bigints([task.generation for task in tasks]),
        "lease_ids": arrays.bigints([lease.lease_id for lease in leases]),
        "versions": arrays.bigints([task.version for task in tasks]),
        "phases": arrays.smallints([task.phase for task in tasks]),
        "attempts": arrays.integers([task.attempt for task in tasks]),
        "epochs": arrays.bigints([lease.session_epoch for lease in leases]),
        "expire_times": arrays.timestamps(own_expiry),
        "start_checkpoints": arrays.bigints([lease.start_checkpoint for lease in leases]),
    }


def _lease(task: TaskState) -> LeaseState:
    assert task.lease is not None
    return task.lease


def _keys(tasks: Sequence[TaskState]) -> dict[str, object]:
    return {
        "tenant_ids": arrays.texts([task.tenant_id for task in tasks]),
        "task_ids": arrays.texts([task.task_id for task in tasks]),
    }
