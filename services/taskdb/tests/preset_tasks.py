"""Presets and tasks of their types, for tests of the rules of the systems that Taskyard replaces."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

from services.taskdb.tests.conftest import Caller
from services.taskdb.tests.yard import Assignment, Yard, started
from taskyard import presets
from taskyard.cli.manifest import resources
from taskyard.v1 import lease_service_pb2, log_pb2, task_pb2, task_service_pb2, task_type_service_pb2
from taskyard.v1.lease_pb2 import LogBatch

PARENT = "tenants/default"
PROBLEM = "aiopslab.problem"
PLANNING = "execute_initial_planning"
QUESTION = {"user_question": "why", "instruction": "answer"}
PLANNER = task_pb2.EntityRef(type="planner", id="p1")
WORKER = task_pb2.EntityRef(type="worker", id="w1")


async def load(admin: Caller, name: str) -> list[str]:
    """The types of a preset, registered for everybody."""
    file = presets.path(name)
    made = []
    for resource in resources(file.read_text(), str(file)):
        request = task_type_service_pb2.CreateTaskTypeRequest(
            parent="tenants/system", task_type_id=resource.id, task_type=resource.message
        )
        made.append((await admin.task_types.CreateTaskType(request)).task_type.name.rpartition("/")[2])
    return made


async def create(caller: Caller, task_type: str, payload: Any = None, **fields: Any) -> task_pb2.Task:
    """A task of a type; `fields` are those of its spec, besides task_id."""
    task_id = fields.pop("task_id", "")
    annotations = fields.pop("annotations", {})
    request = task_service_pb2.CreateTaskRequest(parent=PARENT, task_id=task_id)
    request.task.spec.MergeFrom(task_pb2.TaskSpec(task_type=task_type, **fields))
    request.task.metadata.annotations.update(annotations)
    if payload is not None:
        request.task.spec.payload.raw = json.dumps(payload).encode()
    made: task_pb2.Task = (await caller.tasks.CreateTask(request)).task
    return made


async def problem(caller: Caller, payload: Any = None, **fields: Any) -> task_pb2.Task:
    """A task of the preset aiopslab."""
    return await create(caller, PROBLEM, payload or {"problem_id": "p1"}, **fields)


async def running(yard: Yard, runner_id: str = "worker-001-kind") -> tuple[Any, Assignment]:
    """A runner with the only claimable task, which it has started."""
    runner, _ = await yard.hello(runner_id)
    (assignment,) = (await yard.claim(runner)).assignments
    await yard.report(runner, started(assignment))
    return runner, assignment


async def append(yard: Yard, runner: Any, assignment: Assignment, *entries: log_pb2.LogEntry) -> Any:
    """The status of a batch of log entries."""
    request = lease_service_pb2.AppendLogsRequest(
        runner_id=runner.id, batches=[LogBatch(lease=assignment.lease, entries=entries)]
    )
    return (await yard.scheduler.leases.AppendLogs(request)).results[0]


async def logs(caller: Caller, name: str, **fields: Any) -> list[log_pb2.LogEntry]:
    """The log of a task."""
    request = task_service_pb2.ListTaskLogsRequest(parent=name, **fields)
    return list((await caller.tasks.ListTaskLogs(request)).entries)


async def until(holds: Callable[[], Awaitable[Any]], seconds: float = 60) -> None:
    """Returns as soon as something holds; raises TimeoutError if it does not in time."""
    async with asyncio.timeout(seconds):
        while True:
            if await holds():
                return
            await asyncio.sleep(0.05)


async def listed(caller: Caller, filter: str, **fields: Any) -> list[str]:
    """The names of the tasks that a filter finds."""
    request = task_service_pb2.ListTasksRequest(parent=PARENT, filter=filter, **fields)
    return [task.name for task in (await caller.tasks.ListTasks(request)).tasks]
