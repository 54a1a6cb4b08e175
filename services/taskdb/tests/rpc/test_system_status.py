"""GetSystemStatus: what work depends on, and the sentences about what keeps it from proceeding."""

from __future__ import annotations

import pytest

from services.taskdb.tests.conftest import RunningTaskDb
from services.taskdb.tests.yard import Yard, started, succeeded
from taskyard.errors import PermissionDenied
from taskyard.v1 import admin_service_pb2 as admin
from taskyard.v1 import runner_pb2, runner_service_pb2, session_service_pb2, task_pb2
from taskyard_taskdb.storage.tenant import api_keys


async def status(taskdb: RunningTaskDb) -> admin.GetSystemStatusResponse:
    caller = await taskdb.caller(api_keys.ADMIN)
    found: admin.GetSystemStatusResponse = await caller.admin.GetSystemStatus(admin.GetSystemStatusRequest())
    return found


async def test_a_suite_without_runners_and_tasks_is_operational(taskdb: RunningTaskDb) -> None:
    found = await status(taskdb)
    assert found.operational and not found.problems
    assert found.database.state == admin.DATABASE_STATE_WRITABLE
    assert found.database.size_bytes > 1_000_000 and found.database.max_connection_count > 1


async def test_waiting_tasks_without_a_runner_cannot_proceed(taskdb: RunningTaskDb) -> None:
    caller = await taskdb.caller()
    await caller.create()
    found = await status(taskdb)
    assert found.queue.waiting_count == 1 and found.queue.oldest_tenant.startswith("tenants/")
    assert not found.operational
    assert list(found.problems) == [
        "no runner is healthy (none is connected), so that no task starts;"
        " start taskyard-runner, or see its log"
    ]


async def test_a_suite_without_a_leader_for_long_cannot_proceed(quiet: RunningTaskDb) -> None:
    await quiet.execute(
        "UPDATE coordinator_state SET expires_at = clock_timestamp() - interval '5 minutes'"
        " WHERE key = 'leader_lock'"
    )
    found = await status(quiet)
    assert not found.leader.held and not found.operational
    assert "no taskdb has led the housekeeping for 300 s" in found.problems[0]


async def test_only_administrators_see_the_status(taskdb: RunningTaskDb) -> None:
    caller = await taskdb.caller(api_keys.TENANT)
    with pytest.raises(PermissionDenied):
        await caller.admin.GetSystemStatus(admin.GetSystemStatusRequest())


async def test_a_closed_session_is_a_stopped_runner_and_an_expired_one_a_dead_one(
    taskdb: RunningTaskDb, yard: Yard
) -> None:
    runner, _ = await yard.hello("worker-1")
    await yard.scheduler.sessions.CloseSession(
        session_service_pb2.CloseSessionRequest(runner_id=runner.id, session_epoch=runner.epoch, release=True)
    )
    assert (await status(taskdb)).runners.stopped_count == 1
    caller = await taskdb.caller(api_keys.ADMIN)
    request = runner_service_pb2.GetRunnerRequest(name="runners/worker-1")
    assert (await caller.runners.GetRunner(request)).runner.state == runner_pb2.RUNNER_STATE_STOPPED

    await yard.hello(runner)
    assert (await status(taskdb)).runners.healthy_count == 1
    await taskdb.execute("UPDATE sessions SET expire_time = statement_timestamp() - interval '1 second'")
    found = await status(taskdb)
    assert found.runners.dead_count == 1 and list(found.runners.dead_examples) == ["runners/worker-1"]
    assert not found.operational


async def test_an_ended_task_shows_the_runner_of_its_last_run(yard: Yard) -> None:
    (name,) = await yard.create()
    runner, _ = await yard.hello("worker-1")
    (assignment,) = (await yard.claim(runner)).assignments
    await yard.report(runner, started(assignment), succeeded(assignment))
    task = await yard.task(name)
    assert task.status.phase == task_pb2.TASK_PHASE_SUCCEEDED
    assert (task.status.runner, task.status.last_runner) == ("", "runners/worker-1")
