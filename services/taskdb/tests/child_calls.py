"""Calls about children of running tasks that several tests make."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from services.taskdb.tests.yard import Assignment, Yard
from taskyard.status import translated
from taskyard.v1 import lease_pb2, lease_service_pb2, task_pb2


def child(key: str = "k", program: str = "true", **metadata: str) -> lease_pb2.ChildTask:
    command = task_pb2.CommandExecution(program=program)
    task = task_pb2.Task(spec=task_pb2.TaskSpec(execution=task_pb2.Execution(command=command)))
    task.metadata.labels["of"] = "parent"
    for name, value in metadata.items():
        setattr(task.metadata, name, value)
    return lease_pb2.ChildTask(task=task, key=key)


async def create(
    yard: Yard, runner_id: str, lease: lease_pb2.LeaseRef, *children: lease_pb2.ChildTask
) -> list[str]:
    request = lease_service_pb2.CreateChildTasksRequest(runner_id=runner_id, lease=lease, children=children)
    with translated():
        return list((await yard.scheduler.leases.CreateChildTasks(request)).tasks)


def spawned(key: str, program: str = "true", **spec: Any) -> lease_pb2.ChildTask:
    made = child(key, program)
    made.spawned = True
    made.task.spec.MergeFrom(task_pb2.TaskSpec(**spec))
    return made


def waiting(assignment: Assignment, names: Sequence[str]) -> lease_pb2.RunReport:
    report = lease_pb2.RunReport(lease=assignment.lease)
    report.released.reason = lease_pb2.RELEASE_REASON_WAITING
    report.released.wait_for.extend(names)
    return report
