"""Log entries of a task as AIOpsLab has them: level, message, step, action, details, and their queries."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from services.taskdb.tests.conftest import Caller, RunningTaskDb
from services.taskdb.tests.preset_tasks import append, listed, load, logs, problem, running
from services.taskdb.tests.yard import Yard, succeeded
from taskyard import errors
from taskyard.status import from_status
from taskyard.v1 import log_pb2, task_service_pb2

WORDS = ["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"]
LEVELS = [log_pb2.LogLevel.Value(f"LOG_LEVEL_{word}") for word in WORDS]


@pytest.fixture(autouse=True)
async def preset(admin: Caller) -> None:
    await load(admin, "aiopslab")


def entry(sequence: int, **fields: object) -> log_pb2.LogEntry:
    made = log_pb2.LogEntry(sequence=sequence, message=f"line {sequence}", level=log_pb2.LOG_LEVEL_INFO)
    made.time.FromDatetime(datetime.now(UTC))
    for name, value in fields.items():
        setattr(made, name, value)
    return made


@pytest.mark.seed("S0.49", "S0.52", "S0.54-58")
async def test_an_entry_has_time_message_step_action_and_details(tenant: Caller, yard: Yard) -> None:
    task = await problem(tenant)
    runner, assignment = await running(yard)
    written = entry(1, message="scaled the deployment", step=3, action="scale")
    written.details.update({"replicas": 2, "why": {"load": "high"}})
    await append(yard, runner, assignment, written)
    (read,) = await logs(tenant, task.name)
    assert (read.message, read.step, read.action) == ("scaled the deployment", 3, "scale")
    assert read.details == written.details
    assert abs(read.time.ToDatetime(UTC) - written.time.ToDatetime(UTC)) < timedelta(milliseconds=1)


@pytest.mark.seed("S0.50", "S0.61")
async def test_an_entry_is_identified_by_task_run_and_sequence(tenant: Caller, yard: Yard) -> None:
    task = await problem(tenant)
    runner, assignment = await running(yard)
    for _ in range(2):
        # The same entries twice, as after a lost answer.
        await append(yard, runner, assignment, entry(1), entry(2))
    read = await logs(tenant, task.name)
    assert [(one.generation, one.sequence) for one in read] == [(1, 1), (1, 2)]


@pytest.mark.seed("S0.51", "S0.59")
async def test_an_entry_of_a_task_that_does_not_exist_is_refused(tenant: Caller, yard: Yard) -> None:
    await problem(tenant)
    runner, assignment = await running(yard)
    assignment.lease.task = "tenants/default/tasks/00000000-0000-0000-0000-000000000000"
    refused = await append(yard, runner, assignment, entry(1))
    assert isinstance(from_status(refused), errors.NotFound | errors.LeaseNotHeld)
    with pytest.raises(errors.NotFound):
        await logs(tenant, assignment.lease.task)


@pytest.mark.seed("S0.53")
async def test_there_are_five_levels_and_no_other(tenant: Caller, yard: Yard) -> None:
    task = await problem(tenant)
    runner, assignment = await running(yard)
    await append(yard, runner, assignment, *(entry(n, level=level) for n, level in enumerate(LEVELS, 1)))
    assert [one.level for one in await logs(tenant, task.name)] == LEVELS
    with pytest.raises(errors.InvalidArgument):
        await append(yard, runner, assignment, entry(6, level=6))


@pytest.mark.seed("S0.62")
async def test_entries_are_found_by_task_level_and_time(
    tenant: Caller, yard: Yard, taskdb: RunningTaskDb
) -> None:
    first = await problem(tenant)
    runner, assignment = await running(yard)
    # The run has taken a minute: times of entries are within it.
    await taskdb.execute(
        "UPDATE leases SET start_time = start_time - interval '1 min', "
        "schedule_time = schedule_time - interval '1 min'"
    )
    start = datetime.now(UTC) - timedelta(seconds=30)
    for number, level in enumerate(LEVELS, 1):
        one = entry(number, level=level)
        one.time.FromDatetime(start + timedelta(seconds=number))
        await append(yard, runner, assignment, one)
    second = await problem(tenant)
    assert await logs(tenant, second.name) == []
    found = await logs(tenant, first.name, min_level=log_pb2.LOG_LEVEL_ERROR)
    assert [one.sequence for one in found] == [4, 5]
    request = task_service_pb2.ListTaskLogsRequest(parent=first.name)
    request.time_range.start_time.FromDatetime(start + timedelta(seconds=2.5))
    later = await tenant.tasks.ListTaskLogs(request)
    assert [one.sequence for one in later.entries] == [3, 4, 5]


@pytest.mark.seed("S0.14", "S0.73", "S0.89", "S0.92")
async def test_a_task_has_its_entries_in_order_also_after_its_end_and_none_is_no_error(
    tenant: Caller, yard: Yard
) -> None:
    task = await problem(tenant)
    assert await logs(tenant, task.name) == []
    runner, assignment = await running(yard)
    await append(yard, runner, assignment, entry(1), entry(2))
    await append(yard, runner, assignment, entry(3))
    report = succeeded(assignment)
    await yard.report(runner, report)
    assert [one.message for one in await logs(tenant, task.name)] == ["line 1", "line 2", "line 3"]
    assert await listed(tenant, "status.phase = SUCCEEDED") == [task.name]


@pytest.mark.seed("S0.98")
async def test_a_batch_of_entries_is_stored_by_one_call_in_one_row(
    tenant: Caller, yard: Yard, taskdb: RunningTaskDb
) -> None:
    task = await problem(tenant)
    runner, assignment = await running(yard)
    await append(yard, runner, assignment, *(entry(n) for n in range(1, 501)))
    assert len(await logs(tenant, task.name, page_size=1000)) == 500
    assert await taskdb.rows("SELECT count(*) FROM logs") == [(1,)]
