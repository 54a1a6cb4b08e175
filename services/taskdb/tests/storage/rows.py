"""Tasks put into the database in any state, for tests of what storage does to them."""

from __future__ import annotations

from collections.abc import Sequence

from taskyard_taskdb.domain.task import TaskState
from taskyard_taskdb.domain.transition import SetTimer, Transition
from taskyard_taskdb.storage.pool import Tx
from taskyard_taskdb.storage.tenant.api_keys import RunnerScope
from taskyard_taskdb.storage.transition.task_updates import timed

INSERT = """
INSERT INTO tasks (tenant_id, task_id, version, phase, pending_reason, class_id, create_time, update_time,
    ready_time, next_attempt_time, total_deadline, uid, max_retries, kind, priority, creator_type, restart,
    overlap, on_runner_lost, timed, pinned_runner, slot, policy, callback, spec)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, gen_random_uuid(), %s, %s, %s, 4, %s, %s, %s, %s, %s,
    %s, %s, %s, '')
"""


async def insert_created(tx: Tx, created: Sequence[Transition]) -> None:
    """Store new tasks with their queue rows, timers and slots, row by row."""
    for transition in created:
        task = transition.task
        await tx.execute(INSERT, _values(task))
        if task.blocked:
            key = (task.tenant_id, task.task_id)
            await tx.execute("UPDATE tasks SET blocked = true WHERE tenant_id = %s AND task_id = %s", key)
            await tx.execute("INSERT INTO blocked_tasks VALUES (1, NULL, %s, %s, NULL)", key)
        if task.limited is not None:
            await _insert_limits(tx, task)
        if task.queue_key is not None:
            await tx.execute(
                "INSERT INTO queue (tenant_id, task_id, class_id, priority, pinned_runner, ready_time) "
                "VALUES (%s, %s, %s, %s, %s, %s)",
                (
                    task.tenant_id,
                    task.task_id,
                    task.class_id,
                    task.priority,
                    task.pinned_runner,
                    task.ready_time,
                ),
            )
        if task.heads_slot:
            await tx.execute(
                "INSERT INTO slots (tenant_id, slot, head_task_id) VALUES (%s, %s, %s)",
                (task.tenant_id, task.slot, task.task_id),
            )
        for effect in transition.effects:
            if isinstance(effect, SetTimer):
                await tx.execute(
                    "INSERT INTO timers (tenant_id, task_id, kind, due_time) VALUES (%s, %s, %s, %s)",
                    (task.tenant_id, task.task_id, effect.kind.value, effect.due_time),
                )


async def _insert_limits(tx: Tx, task: TaskState) -> None:
    """A limit of its own that never has room: the test itself admits the task."""
    key = (task.tenant_id, task.task_id)
    update = "UPDATE tasks SET limited = %s WHERE tenant_id = %s AND task_id = %s"
    await tx.execute(update, (task.limited, *key))
    tenant = "INSERT INTO tenants (tenant_id, display_name, tier) VALUES (%s, '', 1) ON CONFLICT DO NOTHING"
    await tx.execute(tenant, (task.tenant_id,))
    await tx.execute(
        "INSERT INTO limits (tenant_id, limit_id, uid, max_running, held) "
        "VALUES (%s, 'full', gen_random_uuid(), 1, 1) ON CONFLICT DO NOTHING",
        (task.tenant_id,),
    )
    await tx.execute(
        "INSERT INTO task_limits (tenant_id, task_id, limit_id, key, units, wait_time) "
        "VALUES (%s, %s, 'full', '', 1, CASE WHEN %s THEN now() END)",
        (*key, task.awaits_limits),
    )


def _values(task: TaskState) -> tuple[object, ...]:
    policy = task.policy
    return (
        task.tenant_id,
        task.task_id,
        task.version,
        task.phase.value,
        task.pending_reason.value,
        task.class_id,
        task.create_time,
        task.update_time,
        task.ready_time,
        task.next_attempt_time,
        task.total_deadline,
        policy.max_retries,
        task.kind.value,
        task.priority,
        policy.restart.value,
        policy.overlap.value,
        policy.on_runner_lost.value,
        timed(policy),
        task.pinned_runner,
        task.slot,
        policy.pack(),
        b"x" if policy.has_callback else None,
    )


async def insert_session(tx: Tx, runner_id: str, epoch: int, *tenants: str) -> None:
    """Store a runner, whose key covers these tenants or all, and its session, which lasts an hour."""
    await tx.execute(
        "INSERT INTO runners (runner_id, key_id, registration, scope) VALUES (%s, 'k', '', %s)",
        (runner_id, RunnerScope(tenants=tenants).pack()),
    )
    await tx.execute(
        "INSERT INTO sessions (epoch, open_time, heartbeat_time, expire_time, session_id, instance_id, "
        "runner_id, scheduler_id) VALUES (%s, now(), now(), now() + interval '1 hour', gen_random_uuid(), "
        "gen_random_uuid(), %s, 'scheduler-1')",
        (epoch, runner_id),
    )
