"""Responses are bounded in bytes: pages end early, batches are refused, details do not grow without end."""

from __future__ import annotations

import asyncio
from typing import Any

import grpc.aio
import pytest
from google.protobuf.struct_pb2 import Struct

from services.taskdb.tests.conftest import Caller, RunningTaskDb, make_key, new_task
from services.taskdb.tests.yard import Yard, started, succeeded
from taskyard import errors
from taskyard.status import from_status
from taskyard.v1 import common_pb2, lease_pb2, lease_service_pb2, log_pb2, task_pb2, task_service_pb2
from taskyard_taskdb.access_policy import MAX_BATCH_BYTES
from taskyard_taskdb.rpc import response_size, watch
from taskyard_taskdb.rpc.reports import MAX_DETAILS_BYTES
from taskyard_taskdb.storage.archive import archive
from taskyard_taskdb.storage.read import listing, tasks
from taskyard_taskdb.storage.tenant import api_keys

PARENT = "tenants/default"
FULL = task_service_pb2.TASK_VIEW_FULL
USUAL = 4 * 1024 * 1024


def large(size: int = 900_000) -> common_pb2.Payload:
    return common_pb2.Payload(raw=b"x" * size, content_type="text/plain")


async def create(caller: Caller, count: int, size: int = 900_000, **fields: Any) -> list[str]:
    return [(await caller.create(payload=large(size), **fields)).name for _ in range(count)]


async def pages(caller: Caller, **fields: Any) -> list[list[str]]:
    """The names on each page of a list, each of which fits a client as it is made."""
    found, token = [], None
    while token != "":
        request = task_service_pb2.ListTasksRequest(parent=PARENT, page_token=token or "", **fields)
        response = await caller.tasks.ListTasks(request)
        assert response.ByteSize() < USUAL
        found.append([task.name for task in response.tasks])
        token = response.next_page_token
    return found


@pytest.mark.parametrize("order_by", ["", "metadata.create_time", "status.end_time desc"])
async def test_a_page_of_large_tasks_ends_early_and_the_list_is_complete(
    taskdb: RunningTaskDb, tenant: Caller, order_by: str
) -> None:
    names = await create(tenant, 12)
    if order_by.startswith("status"):
        for name in names:
            await taskdb.succeed(name)
    found = await pages(tenant, view=FULL, page_size=10, order_by=order_by)
    expected = names if order_by == "metadata.create_time" else names[::-1]
    assert [name for page in found for name in page] == expected
    assert len(found) == 4


async def test_a_task_that_is_larger_than_a_page_is_listed_alone(tenant: Caller) -> None:
    body = task_pb2.ScriptExecution(interpreter=task_pb2.INTERPRETER_BASH, body=b"#" * 1_900_000)
    script = task_pb2.Execution(script=body)
    names = [(await tenant.create(payload=large(1_000_000), execution=script)).name for _ in range(3)]
    assert [len(page) for page in await pages(tenant, view=FULL)] == [1, 1, 1]
    assert sorted(name for page in await pages(tenant) for name in page) == sorted(names)


async def test_a_list_that_leaves_payloads_out_holds_few_of_them(
    tenant: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    await create(tenant, 40)
    list_page = listing.list_page
    held: list[int] = []

    async def measured(*args: Any) -> listing.Page:
        page = await list_page(*args)
        held.append(sum(len(record.spec) for record in page.records))
        return page

    monkeypatch.setattr(listing, "list_page", measured)
    found = await pages(tenant, page_size=1000)
    assert sum(map(len, found)) == 40
    assert sum(held) > 40 * 900_000 and max(held) < response_size.HELD_BYTES + 1_000_000


@pytest.mark.covers("BatchGetTasks", "BATCH_TOO_LARGE")
async def test_a_batch_of_large_tasks_is_refused_with_what_fits(tenant: Caller) -> None:
    names = await create(tenant, 12)
    request = task_service_pb2.BatchGetTasksRequest(parent=PARENT, names=names, view=FULL)
    with pytest.raises(errors.BatchTooLarge, match="the first 3 names") as refused:
        await tenant.tasks.BatchGetTasks(request)
    assert refused.value.violations[0].field == "names"
    del request.names[3:]
    assert [task.name for task in (await tenant.tasks.BatchGetTasks(request)).tasks] == names[:3]
    basic = task_service_pb2.BatchGetTasksRequest(parent=PARENT, names=names)
    assert [task.name for task in (await tenant.tasks.BatchGetTasks(basic)).tasks] == names


async def test_a_batch_is_refused_before_its_tasks_are_read(
    tenant: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = await create(tenant, 12)
    monkeypatch.setattr("taskyard_taskdb.rpc.reads.MAX_READ_BYTES", 5_000_000)
    read: list[Any] = []
    monkeypatch.setattr(archive, "read_many_anywhere", lambda tx, keys: read.append(keys))
    with pytest.raises(errors.BatchTooLarge):
        await tenant.tasks.BatchGetTasks(task_service_pb2.BatchGetTasksRequest(parent=PARENT, names=names))
    assert not read


async def test_a_batch_create_may_have_16_mib(tenant: Caller) -> None:
    """As documented; a byte more, or FULL of everything, is refused."""
    requests = [new_task(payload=large(1_000_000)) for _ in range(16)]
    batch = task_service_pb2.BatchCreateTasksRequest(parent=PARENT, requests=requests)
    rest = MAX_BATCH_BYTES - batch.ByteSize() - 100
    batch.requests.append(new_task(payload=large(rest)))
    batch.requests[-1].task.spec.payload.raw += b"x" * (MAX_BATCH_BYTES - batch.ByteSize())
    assert batch.ByteSize() == MAX_BATCH_BYTES
    assert len((await tenant.tasks.BatchCreateTasks(batch)).results) == 17
    batch.view = FULL
    batch.requests[-1].task.spec.payload.raw = b"x"
    with pytest.raises(errors.BatchTooLarge, match="NAME or BASIC"):
        await tenant.tasks.BatchCreateTasks(batch)
    batch.requests[-1].task.spec.payload.raw = b"x" * rest + b"x" * 200
    with pytest.raises(errors.ResourceExhausted):
        await tenant.tasks.BatchCreateTasks(batch)


async def test_other_requests_have_4_mib(tenant: Caller) -> None:
    request = task_service_pb2.BatchGetTasksRequest(parent=PARENT, names=["x" * 5_000_000])
    with pytest.raises(errors.TooLarge, match="send less"):
        await tenant.tasks.BatchGetTasks(request)


async def watched(caller: Caller, **fields: Any) -> list[task_service_pb2.WatchTasksResponse]:
    """The responses of a snapshot."""
    return await snapshot(
        caller.tasks.WatchTasks(task_service_pb2.WatchTasksRequest(parent=PARENT, **fields))
    )


async def snapshot(call: Any) -> list[task_service_pb2.WatchTasksResponse]:
    """The responses of a stream up to the end of its snapshot."""
    found: list[task_service_pb2.WatchTasksResponse] = []
    while not found or not found[-1].snapshot_complete:
        found.append(await call.read())
        assert found[-1].ByteSize() < USUAL
    call.cancel()
    return found


async def test_snapshots_that_are_not_read_hold_few_pages(
    tenant: Caller, taskdb: RunningTaskDb, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Further streams of their tenant wait, others do not; once the pages are read, all of them go on."""
    await create(tenant, 3)
    await taskdb.add_tenant("other")
    other = await taskdb.caller(tenant_id="other")
    await other.create(parent="tenants/other")
    read_pages, held, exceeded = 0, asyncio.Event(), asyncio.Event()
    read_many = tasks.read_many

    async def counted(*args: Any) -> Any:
        nonlocal read_pages
        found = await read_many(*args)
        read_pages += 1
        if read_pages >= watch.HELD_PAGES:
            held.set()
        if read_pages >= 1.5 * watch.HELD_PAGES:
            exceeded.set()
        return found

    monkeypatch.setattr(tasks, "read_many", counted)
    request = task_service_pb2.WatchTasksRequest(parent=PARENT, snapshot=True, view=FULL)
    key = await make_key(taskdb.pool, api_keys.TENANT, "default")
    # A peer that takes 64 KiB and no more until it is read.
    options = [("grpc.http2.lookahead_bytes", 65_536), ("grpc.http2.bdp_probe", 0)]
    async with grpc.aio.insecure_channel(taskdb.address, options=options) as channel, asyncio.timeout(60):
        call: Any = channel.unary_stream(
            "/taskyard.v1.TaskService/WatchTasks",
            request_serializer=task_service_pb2.WatchTasksRequest.SerializeToString,
            response_deserializer=task_service_pb2.WatchTasksResponse.FromString,
        )
        header = (("authorization", f"Bearer {key}"),)
        unread = [call(request, metadata=header) for _ in range(2 * watch.HELD_PAGES)]
        await held.wait()
        request.parent = "tenants/other"
        seen = await snapshot(other.tasks.WatchTasks(request))
        assert len(seen[0].events) == 1
        # One of them is that of the other tenant.
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(exceeded.wait(), 1)
        found = await asyncio.gather(*map(snapshot, unread))
    assert [sum(len(response.events) for response in responses) for responses in found] == [3] * len(unread)


async def test_snapshots_of_large_tasks_come_in_parts_with_tokens(tenant: Caller) -> None:
    names = sorted(await create(tenant, 12))
    responses = await watched(tenant, snapshot=True, view=FULL)
    assert [event.task.name for response in responses for event in response.events] == names
    assert len(responses) == 5 and all(response.resume_token for response in responses)


@pytest.mark.parametrize("named", [False, True])
async def test_a_snapshot_continues_with_the_token_of_each_response(tenant: Caller, named: bool) -> None:
    """Whatever was sent before is not sent again, and changes since the snapshot began follow."""
    names = sorted(await create(tenant, 12))
    chosen: dict[str, Any] = {"names": names} if named else {}
    responses = await watched(tenant, snapshot=True, view=FULL, **chosen)
    cancel = task_service_pb2.CancelTaskRequest(name=names[0])
    await tenant.tasks.CancelTask(cancel)
    seen = 0
    for response in responses:
        seen += len(response.events)
        call = tenant.tasks.WatchTasks(
            task_service_pb2.WatchTasksRequest(
                parent=PARENT, resume_token=response.resume_token, view=FULL, **chosen
            )
        )
        rest: list[task_service_pb2.TaskEvent] = []
        while not rest or rest[-1].type == task_service_pb2.TASK_EVENT_TYPE_SNAPSHOT:
            rest += (await call.read()).events
        call.cancel()
        assert [event.task.name for event in rest] == [*names[seen:], names[0]]
        assert rest[-1].status.phase == task_pb2.TASK_PHASE_CANCELLED


async def test_changes_of_large_tasks_come_in_parts(tenant: Caller) -> None:
    request = task_service_pb2.WatchTasksRequest(parent=PARENT, view=FULL)
    first = tenant.tasks.WatchTasks(request)
    request.resume_token = (await first.read()).resume_token
    first.cancel()
    names = await create(tenant, 8)
    call = tenant.tasks.WatchTasks(request)
    found: list[str] = []
    while len(found) < 8:
        response = await call.read()
        assert response.ByteSize() < USUAL and response.resume_token
        found += [event.task.name for event in response.events]
    call.cancel()
    assert found == names


async def test_pages_and_tails_of_long_lines_are_bounded(yard: Yard, tenant: Caller) -> None:
    (name,) = await yard.create()
    runner, _ = await yard.hello()
    (assignment,) = (await yard.claim(runner)).assignments
    await yard.report(runner, started(assignment))
    lines = [f"{n} " + "x" * 60_000 for n in range(150)]
    for start in range(0, 150, 50):
        entries = [log_pb2.LogEntry(sequence=n + 1, message=lines[n]) for n in range(start, start + 50)]
        await yard.scheduler.leases.AppendLogs(append(runner.id, assignment, entries))
    await yard.report(runner, succeeded(assignment))
    for descending in (False, True):
        found, token = [], None
        while token != "":
            request = task_service_pb2.ListTaskLogsRequest(
                parent=name, page_size=1000, page_token=token or "", descending=descending
            )
            response = await tenant.tasks.ListTaskLogs(request)
            assert response.ByteSize() < USUAL
            found += [entry.message for entry in response.entries]
            token = response.next_page_token
        assert found == (lines[::-1] if descending else lines)
    tailed = []
    async for response in tenant.tasks.TailTaskLogs(task_service_pb2.TailTaskLogsRequest(parent=name)):
        assert response.ByteSize() < USUAL
        tailed += [entry.message for entry in response.entries]
    assert tailed == lines


def append(runner_id: str, assignment: Any, entries: list[log_pb2.LogEntry]) -> Any:
    batch = lease_pb2.LogBatch(lease=assignment.lease, entries=entries)
    return lease_service_pb2.AppendLogsRequest(runner_id=runner_id, batches=[batch])


def details(name: str, size: int = 60_000) -> Struct:
    made = Struct()
    made.update({name: "x" * size})
    return made


def progress(assignment: Any, given: Struct) -> lease_pb2.RunReport:
    made = lease_pb2.RunReport(lease=assignment.lease, details=given)
    made.progress.SetInParent()
    return made


@pytest.mark.covers("ReportRuns", "TOO_LARGE")
async def test_details_stop_growing_and_no_outcome_is_lost_with_them(yard: Yard) -> None:
    (name,) = await yard.create()
    runner, _ = await yard.hello()
    (assignment,) = (await yard.claim(runner)).assignments
    await yard.report(runner, started(assignment))
    results = [(await yard.report(runner, progress(assignment, details(f"d{n}"))))[0] for n in range(6)]
    assert [item.HasField("error") for item in results] == [False] * 4 + [True] * 2
    error = from_status(results[-1].error)
    assert isinstance(error, errors.TooLarge) and error.violations[0].field == "details"
    assert "replace fields" in str(error)
    # A field that is replaced takes no more room.
    assert not (await yard.report(runner, progress(assignment, details("d0"))))[0].HasField("error")
    end = succeeded(assignment)
    end.details.CopyFrom(details("last"))
    assert (await yard.report(runner, end))[0].phase == task_pb2.TASK_PHASE_SUCCEEDED
    task = await yard.task(name)
    assert task.status.phase == task_pb2.TASK_PHASE_SUCCEEDED
    assert sorted(task.status.details.fields) == ["d0", "d1", "d2", "d3"]
    assert task.status.details.ByteSize() <= MAX_DETAILS_BYTES


async def test_details_of_runners_that_are_not_json_are_refused(yard: Yard) -> None:
    (name,) = await yard.create()
    runner, _ = await yard.hello()
    (assignment,) = (await yard.claim(runner)).assignments
    poisoned = Struct()
    poisoned.fields["a"].number_value = float("nan")
    result = (await yard.report(runner, started(assignment), progress(assignment, poisoned)))[1]
    assert isinstance(from_status(result.error), errors.FieldInvalid)
    end = succeeded(assignment)
    end.details.CopyFrom(poisoned)
    assert (await yard.report(runner, end))[0].phase == task_pb2.TASK_PHASE_SUCCEEDED
    assert not (await yard.task(name)).status.HasField("details")


@pytest.mark.covers("ReportTaskStatus", "TOO_LARGE")
async def test_details_of_external_tasks_stop_growing(tenant: Caller) -> None:
    task = await tenant.create(external=True)

    async def report(name: str, **fields: Any) -> None:
        await tenant.tasks.ReportTaskStatus(
            task_service_pb2.ReportTaskStatusRequest(name=task.name, details=details(name), **fields)
        )

    for n in range(4):
        await report(f"d{n}")
    with pytest.raises(errors.TooLarge, match="details"):
        await report("d4")
    await report("d4", enqueue=True, phase=task_pb2.TASK_PHASE_SUCCEEDED)
    wait = task_service_pb2.WaitTaskRequest(name=task.name)
    ended = (await tenant.tasks.WaitTask(wait)).task
    assert ended.status.phase == task_pb2.TASK_PHASE_SUCCEEDED
    assert sorted(ended.status.details.fields) == ["d0", "d1", "d2", "d3"]
