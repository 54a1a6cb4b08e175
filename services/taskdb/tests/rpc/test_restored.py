"""A restored backup: another history of the log, and no lease of the time before is accepted."""

import subprocess
import sys
from datetime import timedelta
from typing import Any

import pytest

from services.taskdb.tests.conftest import RunningTaskDb, make_yard
from services.taskdb.tests.yard import Yard, started, succeeded
from taskyard.errors import LogEpochChanged
from taskyard.status import translated
from taskyard.v1 import lease_pb2, task_pb2, task_service_pb2
from taskyard_taskdb.storage.tenant import api_keys
from taskyard_taskdb.sweep.leader_election import Leadership
from taskyard_taskdb.sweep.lease_expiry import ExpirySweep, LeasePages

PARENT = "tenants/default"


@pytest.fixture
async def yard(quiet: RunningTaskDb) -> Yard:
    return await make_yard(quiet, await quiet.caller(api_keys.SCHEDULER), await quiet.caller())


def restored(url: str, *arguments: str) -> str:
    argv = [sys.executable, "-m", "taskyard_taskdb", "restored", "--database-url", url, *arguments]
    return subprocess.run(argv, capture_output=True, text=True, timeout=60, check=True).stdout


async def expire(taskdb: RunningTaskDb) -> None:
    leadership = Leadership(taskdb.pool, timedelta(0))
    assert await leadership.acquire()
    await ExpirySweep(taskdb.pool, LeasePages(taskdb.pool, taskdb.taskdb._after_commit)).run(leadership)


async def test_every_earlier_lease_is_rejected_and_its_task_runs_again(
    quiet: RunningTaskDb, yard: Yard
) -> None:
    [name] = await yard.create()
    runner, _ = await yard.hello()
    [assignment] = (await yard.claim(runner)).assignments
    assert (await yard.report(runner, started(assignment)))[0].error.code == 0
    assert restored(quiet.url, "--grace", "0s") == "restore epoch 2; sessions ended: 1, leases ended: 1\n"
    assert (await yard.report(runner, succeeded(assignment)))[0].error.code != 0
    assert (await yard.renew(runner)).lost
    again, hello = await yard.hello(runner, held=[assignment.lease])
    assert [verdict.action for verdict in hello.verdicts] == [lease_pb2.LEASE_ACTION_ABORT]
    await expire(quiet)
    assert (await yard.report(again, succeeded(assignment)))[0].error.code != 0
    [second] = (await yard.claim(again)).assignments
    assert second.lease.task == name and second.lease.generation == 2
    assert (await yard.report(again, started(second), succeeded(second)))[1].error.code == 0
    assert (await yard.task(name)).status.phase == task_pb2.TASK_PHASE_SUCCEEDED


@pytest.mark.covers("WatchTasks", "LOG_EPOCH_CHANGED")
async def test_open_watches_and_earlier_tokens_fail_with_a_changed_epoch(taskdb: Any, tenant: Any) -> None:
    listed = await tenant.tasks.ListTasks(task_service_pb2.ListTasksRequest(parent=PARENT))
    watch = tenant.tasks.WatchTasks(task_service_pb2.WatchTasksRequest(parent=PARENT))
    await watch.read()
    restored(taskdb.url)
    with pytest.raises(LogEpochChanged), translated():
        while True:
            await watch.read()
    again = task_service_pb2.WatchTasksRequest(parent=PARENT, resume_token=listed.resume_token)
    with pytest.raises(LogEpochChanged), translated():
        await tenant.tasks.WatchTasks(again).read()
