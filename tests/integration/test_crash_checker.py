"""The checker of the crash tests, checked: each damage is noticed, and every failpoint is used."""

from __future__ import annotations

import hashlib
from pathlib import Path

import psycopg

from services.taskdb.tests.yard import started, succeeded
from taskyard.v1 import checkpoint_pb2, lease_service_pb2, task_pb2, task_service_pb2
from taskyard_kit import failpoint
from taskyard_taskdb import failpoints
from tests.harness.invariants import RULES, breaches
from tests.harness.taskdb_process import CrashingTaskDb, crashing_taskdb

# What a crash in a wrong place could leave behind, in the order of the rules. The tasks are named below.
DAMAGES = (
    "DELETE FROM queue WHERE task_id = 'queued'",
    "UPDATE tasks SET pending_reason = 2 WHERE task_id = 'queued'",
    "UPDATE queue SET ready_time = ready_time + interval '1 s' WHERE task_id = 'queued'",
    "INSERT INTO timers (due_time, kind, tenant_id, task_id) VALUES (now(), 3, 'default', 'done')",
    "UPDATE slots SET head_task_id = NULL",
    "UPDATE slots SET head_task_id = 'waiting'",
    "UPDATE tasks SET version = version + 1 WHERE task_id = 'queued'",
    "UPDATE changes SET previous_phase = 1 WHERE resource_id = 'done' AND event = 8",
    "UPDATE tasks SET phase = 13, run_lease_id = NULL WHERE task_id = 'done'",
    "INSERT INTO changes (time, version, generation, attempt, event, actor_type, phase, previous_phase, "
    "tenant_id, resource_id) VALUES (now(), 5, 1, 1, 12, 3, 13, 10, 'default', 'done')",
    "UPDATE tasks SET run_lease_id = NULL WHERE task_id = 'done'",
    "UPDATE leases SET attempt = attempt + 1 WHERE task_id = 'running'",
    "UPDATE changes SET attempt = 0 WHERE resource_id = 'running' AND event = 3",
    "UPDATE changes SET retry_count = 1 WHERE resource_id = 'done' AND event = 8",
    "UPDATE checkpoints SET data = 'torn'",
    "INSERT INTO idempotency_keys (method, tenant_id, request_id, task_id, body_hash) "
    "VALUES (1, 'default', 'lost', 'lost', '')",
)


async def create(taskdb: CrashingTaskDb, task_id: str, **spec: object) -> None:
    execution = task_pb2.Execution(command=task_pb2.CommandExecution(program="true"))
    task = task_pb2.Task(spec=task_pb2.TaskSpec(execution=execution, **spec))  # type: ignore[arg-type]
    request = task_service_pb2.CreateTaskRequest(parent="tenants/default", task=task, task_id=task_id)
    await taskdb.tasks.CreateTask(request)


async def populate(taskdb: CrashingTaskDb) -> None:
    """Tasks in every place: done, running with a checkpoint, queued, delayed, paused, waiting for a slot."""
    yard = taskdb.yard
    runner, _ = await yard.hello()
    await create(taskdb, "done")
    (done,) = (await yard.claim(runner)).assignments
    await yard.report(runner, started(done), succeeded(done))
    await create(taskdb, "running", slot="press")
    await create(taskdb, "waiting", slot="press", admission=task_pb2.ADMISSION_POLICY_QUEUE)
    (running,) = (await yard.claim(runner)).assignments
    await yard.report(runner, started(running))
    lease, data = running.lease, b"whole"
    header = checkpoint_pb2.CheckpointHeader(
        task=lease.task,
        generation=lease.generation,
        lease_id=lease.lease_id,
        sequence=1,
        size_bytes=len(data),
        sha256=hashlib.sha256(data).digest(),
    )
    chunk = checkpoint_pb2.CheckpointChunk(header=header, data=data, last=True)
    await taskdb.leases.WriteCheckpoint(
        iter([lease_service_pb2.WriteCheckpointRequest(runner_id=runner.id, chunk=chunk)])
    )
    await create(taskdb, "queued")
    await create(taskdb, "paused")
    await taskdb.tasks.PauseTask(task_service_pb2.PauseTaskRequest(name="tenants/default/tasks/paused"))
    await create(taskdb, "delayed", not_before={"seconds": 4_000_000_000})


async def test_the_checker_detects_each_damage(database_url: str, tmp_path: Path) -> None:
    async with crashing_taskdb(database_url, tmp_path) as taskdb:
        await taskdb.start()
        await populate(taskdb)
        taskdb.service.kill()
        with psycopg.connect(database_url, autocommit=True) as connection:
            assert list(breaches(connection)) == []
            for rule, damage in zip(RULES, DAMAGES, strict=True):
                with connection.transaction(force_rollback=True):
                    connection.execute(damage)
                    broken = [line.partition("; not so")[0] for line in breaches(connection)]
                assert rule.sentence in broken, damage


def test_every_failpoint_of_taskdb_is_used_by_a_crash_test() -> None:
    tests = "".join(path.read_text() for path in Path(__file__).parent.glob("test_crash_*.py"))
    declared = {point.name for point in vars(failpoints).values() if isinstance(point, failpoint.Failpoint)}
    assert declared
    assert {name for name in declared if name not in tests} == set()
