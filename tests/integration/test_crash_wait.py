"""A taskdb that is killed when a run ends to wait for its children: the wait is stored or repeated."""

from __future__ import annotations

import pytest

from services.taskdb.tests.child_calls import create as create_children
from services.taskdb.tests.child_calls import spawned, waiting
from services.taskdb.tests.yard import started, succeeded
from taskyard.errors import TaskyardError
from taskyard.status import translated
from tests.harness.taskdb_process import CrashingTaskDb


@pytest.mark.parametrize(("failpoint", "stored"), [("report.before_commit", 0), ("report.after_commit", 1)])
async def test_a_wait_survives_a_killed_taskdb(taskdb: CrashingTaskDb, failpoint: str, stored: int) -> None:
    # The first report is the start of the parent.
    await taskdb.start(f"{failpoint}=kill@2")
    yard = taskdb.yard
    (name,) = await yard.create()
    runner, _ = await yard.hello(lease_seconds=300)
    (parent,) = (await yard.claim(runner, lease_seconds=300)).assignments
    names = await create_children(yard, runner.id, parent.lease, spawned("a"), spawned("b"))
    await yard.report(runner, started(parent))
    with pytest.raises(TaskyardError), translated():
        await yard.report(runner, waiting(parent, names))
    await taskdb.killed()
    assert await taskdb.value("SELECT count(*) FROM blocked_tasks") == stored
    await taskdb.start()
    # The runner repeats what was not acknowledged.
    (result,) = await yard.report(runner, waiting(parent, names))
    assert (result.duplicate, result.error.code) == (bool(stored), 0)
    children = (await yard.claim(runner)).assignments
    assert {one.lease.task for one in children} == set(names)
    await yard.report(runner, *(report(one) for one in children for report in (started, succeeded)))
    (again,) = (await yard.claim(runner)).assignments
    assert (again.lease.task, again.attempt) == (name, 1)
    assert await create_children(yard, runner.id, again.lease, spawned("a"), spawned("b")) == names
    assert await taskdb.value("SELECT count(*) FROM tasks") == 3
