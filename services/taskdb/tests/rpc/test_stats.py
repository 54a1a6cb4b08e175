"""GetTaskStats: counts by phase, durations and the oldest waiting task; counted ahead or read, the same."""

import math
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from google.protobuf.duration_pb2 import Duration

from services.taskdb.tests.conftest import RunningTaskDb
from services.taskdb.tests.yard import Yard, failed, started, succeeded, with_start
from taskyard.errors import FieldInvalid, FilterInvalid, NotFound
from taskyard.v1 import common_pb2, task_pb2, task_service_pb2
from taskyard_taskdb.domain.change import ChangeEvent
from taskyard_taskdb.domain.event import Event, Failed
from taskyard_taskdb.domain.stats import Durations
from taskyard_taskdb.domain.task import RunError, TaskState
from taskyard_taskdb.domain.words import ErrorClass
from taskyard_taskdb.rpc import stats as stats_rpc
from taskyard_taskdb.storage.change_log import read as change_reader
from taskyard_taskdb.storage.statements import statement
from taskyard_taskdb.storage.stats import stats as task_stats

Made = Callable[..., task_service_pb2.CreateTaskRequest]
TENANT = task_service_pb2.STATS_DIMENSION_TENANT
TYPE = task_service_pb2.STATS_DIMENSION_TASK_TYPE
RUNNER = task_service_pb2.STATS_DIMENSION_RUNNER
HOUR = common_pb2.TimeRange(window=Duration(seconds=3600))


@pytest.fixture(autouse=True)
def no_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stats_rpc, "FRESH_SECONDS", 0.0)
    monkeypatch.setattr(stats_rpc, "CATCH_UP_SECONDS", 10.0)


async def stats(caller: Any, parent: str = "tenants/default", **fields: Any) -> list[Any]:
    request = task_service_pb2.GetTaskStatsRequest(parent=parent, **fields)
    return list((await caller.tasks.GetTaskStats(request)).groups)


def phases(group: task_service_pb2.TaskStats) -> dict[str, int]:
    return {
        task_pb2.TaskPhase.Name(found.phase).removeprefix("TASK_PHASE_"): found.count
        for found in group.phases
    }


async def test_statistics_of_no_task_are_one_empty_group(tenant: Any) -> None:
    [group] = await stats(tenant)
    assert group.total == 0 and not group.HasField("run_duration")


@pytest.mark.seed("S0.90")
async def test_tasks_of_the_last_day_are_counted_by_phase_with_their_durations(
    taskdb: RunningTaskDb, tenant: Any, yard: Yard
) -> None:
    names = await yard.create(6)
    runner, _ = await yard.hello()
    assignments = list((await yard.claim(runner, 4)).assignments)
    await yard.report(runner, *(started(a) for a in assignments[:3]))
    await yard.report(runner, succeeded(assignments[0]), failed(assignments[1], permanent=True))
    for _ in range(2):
        [group] = await stats(tenant)
        assert group.total == 6
        assert phases(group) == {"PENDING": 2, "SCHEDULED": 1, "RUNNING": 1, "SUCCEEDED": 1, "FAILED": 1}
        assert group.success_ratio == 0.5
        # The document's average is over all that have ended, not only over successes.
        both = [task.status for name in names if (task := await yard.task(name)).status.HasField("end_time")]
        spans = [(s.end_time.ToDatetime() - s.start_time.ToDatetime()).total_seconds() for s in both]
        assert len(spans) == 2
        average = group.ended_duration.average.ToTimedelta().total_seconds()
        assert average == pytest.approx(sum(spans) / 2, abs=1e-5)
        assert 0 < group.run_duration.average.ToTimedelta().total_seconds() < 60
        assert group.run_duration.p99.ToTimedelta() <= group.run_duration.max.ToTimedelta()
        assert group.queue_duration.max.ToTimedelta() > timedelta(0)
        assert timedelta(0) < group.oldest_pending_age.ToTimedelta() < timedelta(minutes=1)


@pytest.mark.seed("S2.153")
async def test_folded_statistics_equal_a_scan_of_the_tasks(
    taskdb: RunningTaskDb, tenant: Any, admin: Any, make_task: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(task_stats, "PAGE", 3)
    await taskdb.add_tenant("other")
    other = await taskdb.caller(tenant_id="other")

    def broken(task: TaskState, now: datetime) -> Event:
        assert task.lease is not None
        return Failed(
            runner_id="r1",
            generation=task.generation,
            lease_id=task.lease.lease_id,
            error=RunError("BROKEN", ErrorClass.TRANSIENT, "it broke"),
        )

    for index in range(12):
        caller, parent = (tenant, "tenants/default") if index % 3 else (other, "tenants/other")
        made = make_task(parent, task_type=f"type-{index % 2}", retry={"max_retries": 3})
        name = (await caller.tasks.CreateTask(made)).task.name
        if index % 4 == 1:
            await taskdb.succeed(name)
        if index % 4 == 2:
            await taskdb.fail(name)
            await caller.tasks.RetryTask(task_service_pb2.RetryTaskRequest(name=name))
        if index % 4 == 3:
            await taskdb.start(name)
            await taskdb.apply(name, broken)
        if index == 8:
            await caller.tasks.PauseTask(task_service_pb2.PauseTaskRequest(name=name))
        if index % 5 == 0:
            await stats(tenant)
    async with taskdb.pool.reading() as tx:
        end = await change_reader.settled(tx)
    while not await task_stats.fold(taskdb.pool, end, 1000):
        continue
    for group_by in ((), (TENANT,), (TYPE,), (TENANT, TYPE)):
        counted = await stats(admin, "tenants/-", group_by=group_by)
        read = await stats(admin, "tenants/-", group_by=group_by, time_range=HOUR)
        assert {str(dict(g.group)): phases(g) for g in counted} == {
            str(dict(g.group)): phases(g) for g in read
        }
        assert sum(g.retry_count for g in counted) == sum(g.retry_count for g in read) == 3
        for one, two in zip(counted, read, strict=True):
            assert one.run_duration == two.run_duration
            assert one.HasField("oldest_pending_age") == two.HasField("oldest_pending_age")
    assert sum(g.total for g in counted) == 12


async def test_a_start_that_came_with_its_success_is_counted(taskdb: RunningTaskDb, yard: Yard) -> None:
    await yard.create(3)
    runner, _ = await yard.hello()
    taken = (await yard.claim(runner)).assignments
    await yard.report(runner, *(with_start(succeeded(a)) for a in taken[:2]), started(taken[2]))
    async with taskdb.pool.transaction() as tx:
        # The leader may have counted them before, and waits for this lock now.
        await tx.execute("SELECT FROM task_stats_place FOR UPDATE")
        await tx.execute("DELETE FROM task_minutes")
        values = {"after": 0, "until": await change_reader.last_id(tx)}
        counts: dict[int, int] = dict(await tx.fetch(statement("fold_changes"), values))
    assert (counts[ChangeEvent.TASK_STARTED], counts[ChangeEvent.TASK_SUCCEEDED]) == (3, 2)
    counted = await taskdb.rows("SELECT sum(started)::int, sum(succeeded)::int FROM task_minutes")
    assert counted == [(3, 2)]


async def test_statistics_are_filtered_and_grouped_by_runner(tenant: Any, yard: Yard) -> None:
    await yard.create(2, task_type="a")
    await yard.create(1, task_type="b")
    runner, _ = await yard.hello("host-7")
    assignments = list((await yard.claim(runner)).assignments)
    await yard.report(runner, *(started(a) for a in assignments), *(succeeded(a) for a in assignments[:2]))
    [group] = await stats(tenant, filter='spec.task_type = "a"')
    assert group.total == 2
    groups = await stats(tenant, group_by=[RUNNER, TYPE])
    assert {(g.group["runner"], g.group["task_type"]): g.total for g in groups} == {
        ("host-7", "a"): 2,
        ("host-7", "b"): 1,
    }


async def test_tasks_of_another_time_are_not_counted(taskdb: RunningTaskDb, tenant: Any, yard: Yard) -> None:
    await yard.create(2)
    async with taskdb.pool.transaction() as tx:
        await tx.execute("SELECT FROM task_stats_place FOR UPDATE")
        await tx.execute(
            "UPDATE tasks SET create_time = create_time - interval '2 days'"
            " WHERE task_id = (SELECT min(task_id) FROM tasks)"
        )
        # The leader may have counted them before.
        await tx.execute("DELETE FROM task_counts")
        await tx.execute("UPDATE task_stats_place SET last_id = 0")
    assert [g.total for g in await stats(tenant)] == [1]
    assert [g.total for g in await stats(tenant, time_range=HOUR)] == [1]
    two_days = common_pb2.TimeRange(window=Duration(seconds=3 * 86400))
    assert [g.total for g in await stats(tenant, time_range=two_days)] == [2]


async def test_response_is_cached_for_a_second(
    tenant: Any, yard: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stats_rpc, "FRESH_SECONDS", 60.0)
    assert [g.total for g in await stats(tenant)] == [0]
    await yard.create(1)
    assert [g.total for g in await stats(tenant)] == [0]
    assert [g.total for g in await stats(tenant, group_by=[TYPE])] == [1], "another question"


@pytest.mark.covers("GetTaskStats", "FILTER_INVALID")
async def test_invalid_statistics_queries_are_rejected(
    taskdb: RunningTaskDb, tenant: Any, yard: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(FilterInvalid):
        await stats(tenant, filter="nonsense = 1")
    with pytest.raises(NotFound):
        await stats(tenant, "tenants/other")
    backwards = common_pb2.TimeRange()
    backwards.start_time.FromJsonString("2026-01-02T00:00:00Z")
    backwards.end_time.FromJsonString("2026-01-01T00:00:00Z")
    with pytest.raises(FieldInvalid):
        await stats(tenant, time_range=backwards)
    await yard.create(3)
    monkeypatch.setattr(task_stats, "MOST_TASKS", 2)
    with pytest.raises(FilterInvalid, match="shorter time_range"):
        await stats(tenant, filter="status.phase = PENDING")
    assert [g.total for g in await stats(tenant, time_range=HOUR)] == [3], "from the counts instead"


def test_percentiles_are_right_to_a_tenth() -> None:
    found = Durations()
    for milliseconds in range(1, 1001):
        seconds = milliseconds / 1000
        found.add(int(4 * math.log2(milliseconds)), 1, seconds, seconds)
    assert found.average == pytest.approx(0.5005)
    for part in (0.5, 0.95, 0.99):
        assert found.percentile(part) == pytest.approx(part, rel=0.1)
