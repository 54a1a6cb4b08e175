"""A taskdb that is killed under limited work: the limits count what tasks hold, and work goes on."""

from __future__ import annotations

import asyncio
import contextlib
from random import Random

import psycopg
import pytest

from services.taskdb.tests.rpc.limit_calls import create_limit, uses
from services.taskdb.tests.yard import Yard, failed, started, succeeded
from taskyard.errors import TaskyardError
from taskyard.status import translated
from taskyard.v1 import task_pb2, task_service_pb2
from taskyard_taskdb.storage.statements import statement
from tests.harness.taskdb_process import CrashingTaskDb

TASKS = 50
TOTAL, PER_KEY = 6, 2
# Each kills the process at the hit of its number, before the work is done.
KILLS = ("claim.after_commit=kill@2", "report.before_commit=kill@4", "report.after_commit=kill@4")


@pytest.fixture
def taskdb_flags() -> tuple[str, ...]:
    # A lost lease is over when it expires, also right after a start.
    return ("--reap-grace", "0s")


def request(number: int) -> task_service_pb2.CreateTaskRequest:
    spec = task_pb2.TaskSpec(
        execution=task_pb2.Execution(command=task_pb2.CommandExecution(program="true")),
        limits=uses(f"api:k{number % 4}", *(["other"] if number % 3 == 0 else [])),
    )
    task = task_pb2.Task(spec=spec)
    return task_service_pb2.CreateTaskRequest(
        parent="tenants/default", task=task, task_id=f"t{number}", request_id=f"t{number}"
    )


async def doctor_agrees(taskdb: CrashingTaskDb) -> None:
    """The doctor's recount finds nothing, and no limit is exceeded."""
    for check in ("doctor_limits", "doctor_limited_tasks"):
        assert await taskdb.rows(statement(check)) == []
    held = await taskdb.rows("SELECT held FROM limits WHERE limit_id = 'api'")
    assert all(units <= TOTAL for (units,) in held), held
    keys = await taskdb.rows("SELECT key, held FROM limit_keys WHERE limit_id = 'api' AND held > %s", PER_KEY)
    assert keys == []


async def work(yard: Yard, taskdb: CrashingTaskDb, rng: Random) -> None:
    """Create what is missing, then run until everything has ended or taskdb is killed."""
    for number in range(await taskdb.value("SELECT count(*) FROM tasks"), TASKS):
        await yard.tenant.tasks.CreateTask(request(number))
    runner, _ = await yard.hello(f"runner-{rng.getrandbits(32):x}", lease_seconds=300)
    while await taskdb.value("SELECT count(*) FROM tasks WHERE end_time IS NULL"):
        assignments = (await yard.claim(runner, lease_seconds=2)).assignments
        for one in assignments:
            end = succeeded(one) if rng.random() < 0.8 else failed(one, permanent=True)
            await yard.report(runner, started(one), end)
        if not assignments:
            # What a killed run held is given back when its first lease has expired.
            await asyncio.sleep(0.05)


async def limit(taskdb: CrashingTaskDb) -> None:
    """Make the limits; no transaction may count more, at any moment."""
    await create_limit(taskdb.yard.tenant, "api", max_running=TOTAL, max_running_per_key=PER_KEY)
    await create_limit(taskdb.yard.tenant, "other", max_running=TOTAL)
    async with await psycopg.AsyncConnection.connect(taskdb.url, autocommit=True) as connection:
        await connection.execute(f"ALTER TABLE limits ADD CONSTRAINT exact CHECK (held <= {TOTAL})")


@pytest.mark.timeout(400)
async def test_the_doctors_recount_equals_the_counters_after_kills(taskdb: CrashingTaskDb) -> None:
    rng = Random(1)
    for kill in KILLS:
        await taskdb.expire_leadership()
        await taskdb.start(kill)
        if kill is KILLS[0]:
            await limit(taskdb)
        with contextlib.suppress(TaskyardError), translated():
            await work(taskdb.yard, taskdb, rng)
        await taskdb.killed()
        await doctor_agrees(taskdb)
    await taskdb.expire_leadership()
    await taskdb.start()
    await work(taskdb.yard, taskdb, rng)
    await doctor_agrees(taskdb)
    assert await taskdb.value("SELECT count(*) FROM tasks") == TASKS
    assert await taskdb.value("SELECT sum(held) FROM limits") == 0
    assert await taskdb.value("SELECT count(*) FROM limit_keys") == 0
