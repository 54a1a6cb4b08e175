"""CompleteRuns: runs in columns, completed by one call of a function, and everything that it leaves."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest

from services.taskdb.tests.conftest import Caller, RunningTaskDb
from services.taskdb.tests.rpc.test_races_leases import barrier
from services.taskdb.tests.rpc.test_reports import reason
from services.taskdb.tests.rpc.test_schema_processes import DOCUMENT, TEXT, heavy
from services.taskdb.tests.rpc.type_calls import register
from services.taskdb.tests.yard import (
    Runner,
    Yard,
    failed,
    released,
    short_runs,
    started,
    succeeded,
    with_start,
)
from taskyard.errors import FieldInvalid
from taskyard.v1 import common_pb2, lease_pb2, lease_service_pb2, task_pb2, task_service_pb2
from taskyard_taskdb.rpc.short_runs import read_runs
from tests.harness.deep_results import deep_result

SUCCEEDED = task_pb2.TASK_PHASE_SUCCEEDED
# What is stored of tasks, apart from ids and times.
STORED = {
    "tasks": (
        "SELECT to_jsonb(t) - ARRAY['task_id', 'uid', 'spec', 'run_lease_id', 'create_time', 'update_time', "
        "'ready_time', 'schedule_time', 'start_time', 'end_time', 'slot', 'total_deadline', 'class_id'] "
        "|| jsonb_build_object('spans', start_time >= schedule_time AND end_time >= start_time) "
        "FROM tasks t WHERE phase = 10 ORDER BY create_time, task_id"
    ),
    "runs": (
        "SELECT to_jsonb(r) - ARRAY['task_id', 'lease_id', 'schedule_time', 'start_time', 'end_time'] "
        "FROM ended_runs r JOIN tasks t USING (tenant_id, task_id) "
        "ORDER BY t.create_time, task_id, r.generation"
    ),
    "changes": (
        "SELECT to_jsonb(c) - ARRAY['id', 'time', 'resource_id'] FROM changes c JOIN tasks t ON "
        "t.task_id = c.resource_id WHERE c.event = 8 ORDER BY t.create_time, t.task_id"
    ),
    "runner_counts": "SELECT runner_id, completed_count, failed_count FROM runner_counts",
    "leases": "SELECT FROM leases",
    "slots": "SELECT FROM slots",
    "timers": "SELECT FROM timers",
}


def name_of(exception: lease_service_pb2.RunException) -> tuple[int, int, str]:
    result = exception.result
    reason = result.error.details[0].value.decode("latin1") if result.HasField("error") else ""
    found = next((word for word in ("STALE_GENERATION", "LEASE_NOT_HELD", "NOT_FOUND") if word in reason), "")
    return exception.holder, exception.run, found or ("duplicate" if result.duplicate else "")


async def mixed(yard: Yard, runner: Runner) -> list[lease_pb2.Assignment]:
    """Claimed tasks of all kinds: plain, with a slot, a timer or a dependent, and claimed again."""
    await yard.create(3)
    await yard.create(1, slot="press", admission=task_pb2.ADMISSION_POLICY_QUEUE)
    request = task_service_pb2.CreateTaskRequest(parent="tenants/default")
    request.task.spec.execution.command.program = "true"
    request.task.spec.total_timeout.seconds = 3600
    await yard.tenant.tasks.CreateTask(request)
    (before,) = await yard.create(1)
    (again,) = await yard.create(1)
    claimed = list((await yard.claim(runner)).assignments)
    (first,) = [one for one in claimed if one.lease.task == again]
    await yard.report(runner, released(first))
    await yard.create(1, after=[task_pb2.Dependency(task=before)])
    claimed.remove(first)
    claimed += (await yard.claim(runner)).assignments
    assert len(claimed) == 7
    return claimed


async def test_short_runs_are_stored_as_reports_are(yard: Yard, taskdb: RunningTaskDb) -> None:
    result = task_pb2.TaskResult(output=common_pb2.Payload(raw=b"42"))
    stored = []
    runner, _ = await yard.hello()
    for in_columns in (True, False):
        claimed = await mixed(yard, runner)
        if in_columns:
            results = [result.SerializeToString()] * len(claimed)
            holder = short_runs(
                "runner-1", *claimed, exit_codes=[0] * 7, results=results, log_sequences=range(7)
            )
            assert await yard.complete(holder) == []
        else:
            reports = [with_start(succeeded(one, exit_code=0, result=result)) for one in claimed]
            for n, report in enumerate(reports):
                report.log_sequence = n
            for outcome in await yard.report("runner-1", *reports):
                assert outcome.phase == SUCCEEDED and not outcome.duplicate
        stored.append({table: await taskdb.rows(query) for table, query in STORED.items()})
        for table in ("queue", "tasks", "changes", "runs", "runner_counts", "dependencies"):
            await taskdb.execute(f"DELETE FROM {table}")
    assert stored[0]["tasks"] and stored[0]["runner_counts"] == [("runner-1", 7, 0)]
    assert stored[0] == stored[1]


async def test_what_is_not_completed_is_named_by_its_place(yard: Yard) -> None:
    await yard.create(4)
    runner, _ = await yard.hello()
    plain, stale, foreign, other = (await yard.claim(runner)).assignments
    begun = short_runs(runner, plain, stale, generations=[1, 2])
    unknown = short_runs(runner, other, tasks=["tenants/default/tasks/none"])
    found = await yard.complete(short_runs("runner-2", foreign), begun, unknown)
    assert [name_of(one)[:2] for one in found] == [(0, 0), (1, 1), (2, 0)]
    assert all(one.result.HasField("error") for one in found)
    # A repeat is acknowledged, and a run that occurs twice is completed once.
    repeated = await yard.complete(short_runs(runner, plain, other, other, stale))
    assert [name_of(one) for one in repeated] == [(0, 0, "duplicate"), (0, 2, "duplicate")]


@pytest.mark.covers("CompleteRuns", "LEASE_NOT_HELD")
@pytest.mark.covers("CompleteRuns", "NOT_FOUND")
@pytest.mark.covers("CompleteRuns", "STALE_GENERATION")
@pytest.mark.covers("CompleteRuns", "TASK_TERMINAL")
async def test_each_run_is_refused_for_its_own_reason(yard: Yard) -> None:
    await yard.create(4)
    runner, _ = await yard.hello()
    foreign, stale, ended, other = (await yard.claim(runner)).assignments
    await yard.report(runner, released(stale))
    assert (await yard.claim(runner)).assignments
    await yard.report(runner, started(ended), failed(ended, permanent=True))
    unknown = short_runs(runner, other, tasks=["tenants/default/tasks/none"])
    found = await yard.complete(short_runs("runner-2", foreign), short_runs(runner, stale, ended), unknown)
    reasons = [(one.holder, one.run, reason(one.result)) for one in found]
    assert reasons == [
        (0, 0, "LEASE_NOT_HELD"),
        (1, 0, "STALE_GENERATION"),
        (1, 1, "TASK_TERMINAL"),
        (2, 0, "NOT_FOUND"),
    ]


@pytest.mark.covers("CompleteRuns", "RESULT_CHECK_PENDING")
async def test_an_expensive_result_is_checked_outside_of_the_flush(yard: Yard, tenant: Caller) -> None:
    await register(tenant, result_schema=TEXT)
    (name,) = await yard.create(1, task_type="plan")
    runner, _ = await yard.hello()
    (claimed,) = (await yard.claim(runner)).assignments
    result = task_pb2.TaskResult(output=heavy(DOCUMENT)).SerializeToString()
    holder = short_runs(runner, claimed, results=[result])
    (pending,) = await yard.complete(holder)
    assert reason(pending.result) == "RESULT_CHECK_PENDING"
    async with asyncio.timeout(60):
        while await yard.complete(holder):
            pass
    assert (await yard.task(name)).status.phase == SUCCEEDED


async def test_a_start_that_was_reported_before_does_not_matter(yard: Yard) -> None:
    (name,) = await yard.create()
    runner, _ = await yard.hello()
    (claimed,) = (await yard.claim(runner)).assignments
    await yard.report(runner, started(claimed))
    assert await yard.complete(short_runs(runner, claimed)) == []
    assert (await yard.task(name)).status.phase == SUCCEEDED


async def test_concurrent_completions_of_one_run_succeed_once(
    yard: Yard, taskdb: RunningTaskDb, database_url: str
) -> None:
    await yard.create(20)
    runner, _ = await yard.hello()
    claimed = (await yard.claim(runner)).assignments
    backwards = short_runs(runner, *reversed(claimed))
    answers = await asyncio.gather(yard.complete(short_runs(runner, *claimed)), yard.complete(backwards))
    assert sorted(len(answer) for answer in answers) == [0, 20]
    assert all(one.result.duplicate for answer in answers for one in answer)
    assert await taskdb.rows("SELECT completed_count FROM runner_counts") == [(20,)]


async def test_a_cancel_that_comes_first_does_not_hide_the_success(
    yard: Yard, database_url: str, taskdb: RunningTaskDb
) -> None:
    """The completion waits for the lease and then finds that a stop of it is requested."""
    (name,) = await yard.create()
    runner, _ = await yard.hello()
    (claimed,) = (await yard.claim(runner)).assignments
    async with barrier(database_url, "SELECT FROM leases FOR UPDATE", 2):
        cancel = yard.tenant.tasks.CancelTask(task_service_pb2.CancelTaskRequest(name=name))
        work = [asyncio.ensure_future(cancel)]
        await waiting(taskdb, 1)
        work.append(asyncio.ensure_future(yard.complete(short_runs(runner, claimed))))
    _, exceptions = await asyncio.gather(*work)
    task = await yard.task(name)
    assert task.status.phase == SUCCEEDED and exceptions == []


async def waiting(taskdb: RunningTaskDb, count: int) -> None:
    query = "SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    async with asyncio.timeout(10):
        while len(await taskdb.rows(query)) < count:
            pass


BAD: list[tuple[dict[str, Any], str, str]] = [
    ({"tasks": ["tenants/a/tasks", "b/tenants/c/tasks/d"]}, "tasks[0]", "tenants/{tenant}/tasks/{task}"),
    ({"tasks": ["tenants/a/tasks/b", "tenants/a/tasks/b c"]}, "tasks[1]", "b c"),
    ({"tasks": ["tenants/a/tasks/b", "tenants/a/tasks/" + "x" * 257]}, "tasks[1]", "tenants/{tenant}"),
    ({"tasks": ["tenants/a/tasks/b\n", "tenants/a/tasks/b"]}, "tasks[0]", "tenants/{tenant}"),
    ({"tasks": ["tenants/a/tasks/b", "tenants//tasks/b"]}, "tasks[1]", "tenants/{tenant}"),
    ({"generations": [1]}, "generations", "2 elements, one for each of tasks, not 1"),
    ({"generations": [1, 0]}, "generations[1]", "at least 1, not 0"),
    ({"lease_ids": []}, "lease_ids", "2 elements"),
    ({"exit_codes": [0, 0, 0]}, "exit_codes", "2 elements"),
    ({"start_checkpoints": [0, -1]}, "start_checkpoints[1]", "at least 0, not -1"),
    ({"log_sequences": [-5, 0]}, "log_sequences[0]", "at least 0, not -5"),
    ({"results": [b"", b"\xff"]}, "results[1]", "an encoded TaskResult"),
    ({"results": [deep_result(), b""]}, "results[0]", "an encoded TaskResult"),
]


@pytest.mark.covers("CompleteRuns", "FIELD_INVALID")
@pytest.mark.parametrize(("columns", "field", "problem"), BAD, ids=lambda value: str(value)[:30])
async def test_bad_columns_are_refused_as_a_whole(columns: dict[str, Any], field: str, problem: str) -> None:
    good = [lease_pb2.Assignment(lease=lease_pb2.LeaseRef(task="tenants/a/tasks/b", generation=1))] * 2
    request = lease_service_pb2.CompleteRunsRequest(
        holders=[short_runs("runner-0", *good), short_runs("runner-1", *good, **columns)]
    )
    with pytest.raises(FieldInvalid) as refused:
        read_runs(request)
    (violation,) = refused.value.violations
    assert violation.field == f"holders[1].runs.{field}" and problem in violation.description


async def test_times_outside_the_years_of_a_report_are_the_nearest_within() -> None:
    one = lease_pb2.Assignment(lease=lease_pb2.LeaseRef(task="tenants/a/tasks/b", generation=1))
    holder = short_runs("r", one, one, start_times=[0, 2**62], end_times=[-(2**62), 5])
    runs = read_runs(lease_service_pb2.CompleteRunsRequest(holders=[holder]))
    assert runs.report(1).start_time == datetime.max.replace(tzinfo=UTC)
    assert runs.report(0).time == datetime.min.replace(tzinfo=UTC)
    assert (runs.start_times[0], runs.end_times[1]) == (0, 5)


async def test_a_call_has_runners_and_at_most_a_thousand_runs() -> None:
    one = lease_pb2.Assignment(lease=lease_pb2.LeaseRef(task="tenants/a/tasks/b", generation=1))
    for holders, field in (
        ([], "holders"),
        ([short_runs("", one)], "holders[0].runner_id"),
        ([short_runs("r")], "holders[0].runs.tasks"),
        ([short_runs("r", *[one] * 501)] * 2, "holders"),
    ):
        with pytest.raises(FieldInvalid) as refused:
            read_runs(lease_service_pb2.CompleteRunsRequest(holders=holders))
        assert refused.value.violations[0].field == field
