"""Presets: files of task types that a server accepts; the rules of each are tested in tests/seeds."""

from __future__ import annotations

import pytest

from services.taskdb.tests.conftest import Caller
from services.taskdb.tests.preset_tasks import create, load
from services.taskdb.tests.yard import duration
from taskyard import presets
from taskyard.v1 import task_pb2


@pytest.mark.parametrize("name", presets.NAMES)
async def test_every_preset_is_accepted(admin: Caller, name: str) -> None:
    assert await load(admin, name)


async def test_global_tasks_are_external_and_solti_tasks_are_dropped_while_one_runs(
    admin: Caller, tenant: Caller
) -> None:
    global_task, *_ = await load(admin, "global-tasks")
    task = await create(tenant, global_task)
    assert task.status.pending_reason == task_pb2.PENDING_REASON_EXTERNAL
    [solti] = await load(admin, "solti")
    command = task_pb2.Execution(command=task_pb2.CommandExecution(program="true"))
    timeout = duration(5)
    first = await create(tenant, solti, slot="s", execution=command, attempt_timeout=timeout)
    assert first.metadata.id.startswith("tsk_")
    again = await create(tenant, solti, slot="s", execution=command, attempt_timeout=timeout)
    assert again.name == first.name
