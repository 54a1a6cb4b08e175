"""taskdb killed around a create: what was acknowledged exists, a repeat finds or makes one task."""

from __future__ import annotations

import asyncio
import hashlib
import os

import pytest

from taskyard.errors import RequestIdReused, Unavailable
from taskyard.v1 import common_pb2, task_pb2, task_service_pb2
from tests.harness.taskdb_process import CrashingTaskDb

PARENT = "tenants/default"
Request = task_service_pb2.CreateTaskRequest
STORED = {"create.before_commit": 0, "create.after_commit": 1, "create.after_reply": 1}


def request(request_id: str, slot: str = "") -> Request:
    """A create with a random payload."""
    execution = task_pb2.Execution(command=task_pb2.CommandExecution(program="true"))
    payload = common_pb2.Payload(raw=os.urandom(2000), content_type="application/octet-stream")
    spec = task_pb2.TaskSpec(execution=execution, payload=payload, slot=slot)
    return Request(parent=PARENT, task=task_pb2.Task(spec=spec), request_id=request_id)


def digest(task: task_pb2.Task) -> str:
    return hashlib.sha256(task.spec.payload.raw).hexdigest()


async def create(taskdb: CrashingTaskDb, wanted: Request) -> str | None:
    """The name of the task; None if the call was cut off."""
    try:
        name: str = (await taskdb.tasks.CreateTask(wanted)).task.name
        return name
    except Unavailable:
        return None


async def stored_count(taskdb: CrashingTaskDb) -> int:
    """How many tasks there are; their queue rows, changes and request ids are as many."""
    counts = await taskdb.rows(
        "SELECT (SELECT count(*) FROM tasks), (SELECT count(*) FROM queue), (SELECT count(*) FROM changes), "
        "(SELECT count(*) FROM idempotency_keys)"
    )
    assert len(set(counts[0])) == 1, counts
    return int(counts[0][0])


async def is_as_sent(taskdb: CrashingTaskDb, name: str, sent: Request) -> bool:
    found = await taskdb.tasks.GetTask(task_service_pb2.GetTaskRequest(name=name))
    return digest(found.task) == digest(sent.task)


@pytest.mark.parametrize("failpoint", STORED)
async def test_repeating_a_create_interrupted_by_a_crash_leaves_one_task(
    taskdb: CrashingTaskDb, failpoint: str
) -> None:
    await taskdb.start(f"{failpoint}=kill@3")
    sent = [request(f"create-{n}") for n in range(3)]
    answers = [await create(taskdb, wanted) for wanted in sent]
    await taskdb.killed()
    assert None not in answers[:2]
    if failpoint != "create.after_reply":
        assert answers[2] is None, "nothing is acknowledged before it is committed"
    assert await stored_count(taskdb) == 2 + STORED[failpoint]
    await taskdb.start()
    repeated = [await create(taskdb, wanted) for wanted in sent]
    for answer, name, wanted in zip(answers, repeated, sent, strict=True):
        assert name is not None and answer in (None, name)
        assert await is_as_sent(taskdb, name, wanted)
    assert len(set(repeated)) == await stored_count(taskdb) == 3
    with pytest.raises(RequestIdReused):
        await taskdb.tasks.CreateTask(request("create-2"))
    assert await stored_count(taskdb) == 3


@pytest.mark.parametrize("failpoint", ["create.before_commit", "create.after_commit"])
async def test_an_atomic_batch_interrupted_by_a_crash_is_stored_completely_or_not_at_all(
    taskdb: CrashingTaskDb, failpoint: str
) -> None:
    await taskdb.start(f"{failpoint}=kill")
    # Two of them want one slot, so that the batch takes more than inserts.
    items = [request("", slot="press" if n < 2 else "") for n in range(40)]
    batch = task_service_pb2.BatchCreateTasksRequest(parent=PARENT, requests=items, request_id="batch-1")
    with pytest.raises(Unavailable):
        await taskdb.tasks.BatchCreateTasks(batch)
    await taskdb.killed()
    count = "SELECT count(*) FROM tasks"
    assert await taskdb.value(count) == len(items) * STORED[failpoint]
    await taskdb.start()
    answers = [await taskdb.tasks.BatchCreateTasks(batch) for _ in range(2)]
    first, second = ([item.created.task.name for item in answer.results] for answer in answers)
    assert first == second and len(set(first)) == len(items)
    for name, wanted in zip(first, items, strict=True):
        assert await is_as_sent(taskdb, name, wanted)
    assert await taskdb.value(count) == len(items)


async def test_no_caller_loses_an_acknowledged_task_or_gets_two(taskdb: CrashingTaskDb) -> None:
    await taskdb.start("create.after_commit=kill@15")
    sent: dict[str, Request] = {}
    answers: dict[str, str | None] = {}

    async def call(caller: int) -> None:
        for n in range(200):
            request_id = f"caller-{caller}-{n}"
            sent[request_id] = request(request_id)
            answers[request_id] = await create(taskdb, sent[request_id])
            if answers[request_id] is None:
                return

    await asyncio.gather(*(call(caller) for caller in range(10)))
    await taskdb.killed()
    assert None in answers.values() and any(answers.values()), "the crash came in the middle"
    await taskdb.start()
    repeated = dict(
        zip(sent, await asyncio.gather(*(create(taskdb, wanted) for wanted in sent.values())), strict=True)
    )
    assert all(answers[key] in (None, repeated[key]) for key in sent)
    assert len(set(repeated.values())) == await stored_count(taskdb) == len(sent)
    for key, wanted in sent.items():
        assert await is_as_sent(taskdb, repeated[key] or "", wanted)
