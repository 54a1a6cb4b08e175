"""A leader that is killed while a group becomes complete: it is complete once, and releases what waits."""

from __future__ import annotations

import pytest

from services.taskdb.tests.yard import started, succeeded
from taskyard.v1 import task_pb2, task_service_pb2
from tests.harness.taskdb_process import CrashingTaskDb

COMPLETIONS = "SELECT count(*) FROM changes WHERE event = 123"


def request(task_id: str, group: str = "", after: str = "") -> task_service_pb2.CreateTaskRequest:
    command = task_pb2.CommandExecution(program="true")
    task = task_pb2.Task(spec=task_pb2.TaskSpec(execution=task_pb2.Execution(command=command)))
    task.metadata.group = group
    if after:
        task.spec.after.add(group=after)
    return task_service_pb2.CreateTaskRequest(parent="tenants/default", task=task, task_id=task_id)


@pytest.mark.parametrize(("failpoint", "before"), [("group.before_commit", 0), ("group.after_commit", 1)])
async def test_a_group_completes_once_over_a_killed_leader(
    taskdb: CrashingTaskDb, failpoint: str, before: int
) -> None:
    await taskdb.start(f"{failpoint}=kill")
    yard = taskdb.yard
    for one in (request("a", "g"), request("b", "g"), request("join", after="g")):
        await yard.tenant.tasks.CreateTask(one)
    runner, _ = await yard.hello()
    assignments = (await yard.claim(runner)).assignments
    assert len(assignments) == 2
    await yard.report(runner, *(report(one) for one in assignments for report in (started, succeeded)))
    await taskdb.killed()
    assert await taskdb.value(COMPLETIONS) == before
    await taskdb.expire_leadership()
    await taskdb.start()
    await taskdb.until("SELECT count(*) = 1 FROM queue WHERE task_id = 'join'")
    assert await taskdb.value(COMPLETIONS) == 1
    assert await taskdb.rows("SELECT live_count, succeeded_count, completion_count FROM groups") == [
        (0, 2, 1)
    ]
    assert await taskdb.value("SELECT count(*) FROM group_deltas") == 0
