"""Rows of `tasks` as transitions change them: status, edits, deletion."""

from __future__ import annotations

from collections.abc import Sequence

from taskyard_taskdb.domain.policy import TaskPolicy
from taskyard_taskdb.domain.task import TaskState
from taskyard_taskdb.storage import arrays
from taskyard_taskdb.storage.pool import Tx
from taskyard_taskdb.storage.statements import statement
from taskyard_taskdb.storage.transition.task_rows import Steps, encode_error


def status_changes(steps: Steps) -> bool:
    """Whether the task's own row changes: always without a lease, else for what a lease does not carry."""
    return steps.task.lease is None or _beside_lease(steps.before) != _beside_lease(steps.task)


def _beside_lease(task: TaskState) -> tuple[object, ...]:
    return (
        task.lease is None,
        task.retry_count,
        task.runner_loss_count,
        task.retry_delay,
        task.checkpoint_sequence,
        task.ready_time,
        task.next_attempt_time,
        task.end_time,
        task.exit_code,
        task.error,
        task.result,
    )


def edited(steps: Steps) -> bool:
    """Whether placement or policy changed."""
    return _editable(steps.before) != _editable(steps.task)


def _editable(task: TaskState) -> tuple[object, ...]:
    return task.class_id, task.priority, task.pinned_runner, task.policy, task.total_deadline


async def update(tx: Tx, changed: Sequence[Steps]) -> int:
    """Write the status; returns how many rows were still as loaded."""
    before, tasks = [steps.before for steps in changed], [steps.task for steps in changed]
    return await tx.execute(
        statement("update_tasks"),
        {
            **_keys(tasks),
            "old_versions": arrays.bigints([task.version for task in before]),
            "leased": arrays.bools([task.lease is not None for task in before]),
            "ended": arrays.bools([task.end_time is not None for task in before]),
            "versions": arrays.bigints([task.version for task in tasks]),
            "generations": arrays.bigints([task.generation for task in tasks]),
            "update_times": arrays.timestamps([task.update_time for task in tasks]),
            "ready_times": arrays.timestamps([task.ready_time for task in tasks]),
            "next_attempt_times": arrays.timestamps([task.next_attempt_time for task in tasks]),
            "schedule_times": arrays.timestamps([task.schedule_time for task in tasks]),
            "start_times": arrays.timestamps([task.start_time for task in tasks]),
            "end_times": arrays.timestamps([task.end_time for task in tasks]),
            "retry_delays": arrays.intervals([task.retry_delay for task in tasks]),
            "checkpoint_sequences": arrays.bigints([task.checkpoint_sequence for task in tasks]),
            "attempts": arrays.integers([task.attempt for task in tasks]),
            "retry_counts": arrays.integers([task.retry_count for task in tasks]),
            "runner_loss_counts": arrays.integers([task.runner_loss_count for task in tasks]),
            "exit_codes": arrays.integers([task.exit_code for task in tasks]),
            "phases": arrays.smallints([task.phase for task in tasks]),
            "pending_reasons": arrays.smallints([task.pending_reason for task in tasks]),
            "last_runner_ids": arrays.texts([task.last_runner_id for task in tasks]),
            "error_codes": arrays.texts([task.error.code if task.error else None for task in tasks]),
            "results": arrays.byteas([task.result for task in tasks]),
            "errors": arrays.byteas([encode_error(task.error) for task in tasks]),
            "progresses": arrays.byteas([task.progress for task in tasks]),
            "details": arrays.byteas([task.details for task in tasks]),
        },
    )


async def edit(tx: Tx, changed: Sequence[Steps]) -> int:
    """Write placement and policy."""
    tasks = [steps.task for steps in changed]
    policies = [task.policy for task in tasks]
    return await tx.execute(
        statement("edit_tasks"),
        {
            **_keys(tasks),
            "class_ids": arrays.bigints([task.class_id for task in tasks]),
            "priorities": arrays.smallints([task.priority for task in tasks]),
            "pinned_runners": arrays.texts([task.pinned_runner for task in tasks]),
            "policies": arrays.byteas([policy.pack() for policy in policies]),
            "max_retries": arrays.integers([policy.max_retries for policy in policies]),
            "restarts": arrays.smallints([policy.restart for policy in policies]),
            "overlaps": arrays.smallints([policy.overlap for policy in policies]),
            "runner_losts": arrays.smallints([policy.on_runner_lost for policy in policies]),
            "timed": arrays.bools([timed(policy) for policy in policies]),
            "total_deadlines": arrays.timestamps([task.total_deadline for task in tasks]),
        },
    )


def timed(policy: TaskPolicy) -> bool:
    """Whether tasks of this policy may have a timer other than that of a delay (tasks.timed)."""
    return policy.queue_timeout is not None or policy.total_timeout is not None


async def delete(tx: Tx, gone: Sequence[Steps]) -> int:
    """Delete tasks and the rows that refer to them; returns how many were still as loaded."""
    tasks = [steps.before for steps in gone]
    versions = arrays.bigints([task.version for task in tasks])
    return len(await tx.fetch(statement("delete_tasks"), {**_keys(tasks), "old_versions": versions}))


async def discard_checkpoints(tx: Tx, tasks: Sequence[TaskState]) -> None:
    """Delete the checkpoints of tasks."""
    await tx.execute(statement("discard_checkpoints"), _keys(tasks))


def _keys(tasks: Sequence[TaskState]) -> dict[str, object]:
    return {
        "tenant_ids": arrays.texts([task.tenant_id for task in tasks]),
        "task_ids": arrays.texts([task.task_id for task in tasks]),
    }
