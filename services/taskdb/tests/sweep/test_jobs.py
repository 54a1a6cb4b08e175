"""Jobs: retention and archive, records, schedules, and the command `maintenance`."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
from google.protobuf.duration_pb2 import Duration

from services.taskdb.tests.conftest import Caller, RunningTaskDb, make_yard
from services.taskdb.tests.yard import started, succeeded
from taskyard.errors import NotFound
from taskyard.v1 import task_pb2, task_service_pb2
from taskyard_taskdb.domain.schedule import FIRST_NIGHT, Every, Nightly, Schedule, next_run
from taskyard_taskdb.storage.archive import archive
from taskyard_taskdb.storage.housekeeping.leader_lock import LeadershipLost
from taskyard_taskdb.storage.housekeeping.partitions import month_of
from taskyard_taskdb.storage.tenant import api_keys
from taskyard_taskdb.sweep import retention
from taskyard_taskdb.sweep.jobs import Job, JobSweep, no_guard, run_job
from taskyard_taskdb.sweep.leader_election import Leadership

DAY = timedelta(days=1)
NIGHT = datetime(2026, 3, 10, 3, tzinfo=UTC)


@pytest.fixture
async def caller(quiet: RunningTaskDb) -> Caller:
    return await quiet.caller()


async def age(quiet: RunningTaskDb, name: str, ago: timedelta) -> None:
    """Move the end of a task and its runs into the past."""
    task_id = name.rsplit("/", 1)[1]
    await quiet.execute("UPDATE tasks SET end_time = end_time - %s WHERE task_id = %s", ago, task_id)
    await quiet.execute("UPDATE runs SET end_time = end_time - %s WHERE task_id = %s", ago, task_id)


async def done(quiet: RunningTaskDb, caller: Caller, ago: timedelta, **fields: Any) -> str:
    """Make a task that succeeded some time ago; returns its name."""
    task = await caller.create(**fields)
    await quiet.succeed(task.name)
    await age(quiet, task.name, ago)
    return task.name


def days(count: float) -> Duration:
    made = Duration()
    made.FromTimedelta(DAY * count)
    return made


@pytest.mark.seed("S2.138", "S2.142", "S2.144")
async def test_ended_tasks_move_to_the_archive_of_their_month_and_are_read_there(
    quiet: RunningTaskDb, caller: Caller, jobs: dict[str, Job]
) -> None:
    old = await done(quiet, caller, 91 * DAY, labels={"a": "b"})
    young = await done(quiet, caller, 89 * DAY)
    forever = await done(quiet, caller, 1000 * DAY, retention=days(0))
    short = await done(quiet, caller, 2 * DAY, retention=days(1))
    failed = (await caller.create()).name
    await quiet.fail(failed)
    cancelled = (await caller.create()).name
    await caller.tasks.CancelTask(task_service_pb2.CancelTaskRequest(name=cancelled))
    for name in (failed, cancelled):
        await age(quiet, name, 91 * DAY)
    moved = (old, short, failed, cancelled)
    live = (await caller.create()).name
    before = {name: await caller.get(name) for name in (*moved, young, forever, live)}
    assert before[cancelled].status.phase == task_pb2.TASK_PHASE_CANCELLED
    assert await run_job(quiet.pool, jobs["retention"], no_guard) == 4
    assert await run_job(quiet.pool, jobs["retention"], no_guard) == 0
    hot = {row[0] for row in await quiet.rows("SELECT task_id FROM tasks")}
    assert hot == {name.rsplit("/", 1)[1] for name in (young, forever, live)}
    for name in moved:
        was, now = before[name], await caller.get(name)
        assert now.metadata.resource_version == was.metadata.resource_version + 1
        now.metadata.resource_version = was.metadata.resource_version
        assert now == was
    # What ended in one month lies together, and apart from other months.
    places = await quiet.rows("SELECT tableoid, array_agg(DISTINCT end_time) FROM tasks_archive GROUP BY 1")
    months = [{month_of(end.astimezone(UTC)) for end in ends} for _, ends in places]
    assert all(len(found) == 1 for found in months)
    expected = {month_of(before[name].status.end_time.ToDatetime(UTC)) for name in moved}
    assert sorted(month for found in months for month in found) == sorted(expected)
    request = task_service_pb2.ListTaskRunsRequest(parent=old)
    (run,) = (await caller.tasks.ListTaskRuns(request)).runs
    assert run.state == task_pb2.RUN_STATE_SUCCEEDED and run.generation == 1
    await caller.tasks.ListTaskLogs(task_service_pb2.ListTaskLogsRequest(parent=old))
    assert (await caller.tasks.WaitTask(task_service_pb2.WaitTaskRequest(name=old))).satisfied
    batch = task_service_pb2.BatchGetTasksRequest(parent="tenants/default", names=[old, live])
    assert [task.name for task in (await caller.tasks.BatchGetTasks(batch)).tasks] == [old, live]
    # The audit trail stays, and has the move.
    (events,) = await quiet.rows(
        "SELECT array_agg(event ORDER BY version) FROM changes WHERE resource_id = %s", old.rsplit("/", 1)[1]
    )
    assert events[0] == [1, 2, 3, 8, 22]
    assert not await quiet.rows(
        "SELECT FROM runs r WHERE NOT EXISTS (SELECT FROM tasks t WHERE t.task_id = r.task_id)"
    )


@pytest.mark.seed("S0.89", "S0.91-92", "S2.143")
async def test_logs_and_audit_outlive_the_move_to_the_archive(
    quiet: RunningTaskDb, caller: Caller, jobs: dict[str, Job]
) -> None:
    yard = await make_yard(quiet, await quiet.caller(api_keys.SCHEDULER, None), caller)
    (name,) = await yard.create()
    runner, _ = await yard.hello()
    (assignment,) = (await yard.claim(runner)).assignments
    await yard.report(runner, started(assignment))
    await yard.write(runner, assignment, "line 1", "line 2", "line 3")
    await yard.report(runner, succeeded(assignment))
    await age(quiet, name, 91 * DAY)
    before = await quiet.rows("SELECT id, event, version FROM changes ORDER BY id")
    assert await run_job(quiet.pool, jobs["retention"], no_guard) == 1
    assert not await quiet.rows("SELECT FROM tasks")
    page = await caller.tasks.ListTaskLogs(task_service_pb2.ListTaskLogsRequest(parent=name))
    assert [entry.message for entry in page.entries] == ["line 1", "line 2", "line 3"]
    after = await quiet.rows("SELECT id, event, version FROM changes ORDER BY id")
    assert after[: len(before)] == before and [row[1:] for row in after[len(before) :]] == [(22, 5)]
    # A task without logs is read with an empty list.
    bare = await done(quiet, caller, 91 * DAY)
    assert not (await caller.tasks.ListTaskLogs(task_service_pb2.ListTaskLogsRequest(parent=bare))).entries


async def test_each_archived_task_is_logged_once(
    quiet: RunningTaskDb, caller: Caller, jobs: dict[str, Job], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "PAGE", 3)
    names = [await done(quiet, caller, 91 * DAY) for _ in range(8)]
    await quiet.fail((await caller.create()).name)
    assert await run_job(quiet.pool, jobs["retention"], no_guard) == 8
    logged = await quiet.rows(
        "SELECT resource_id, version, phase, previous_phase, generation, attempt, runner_id, actor_type, "
        "actor_id FROM change_log WHERE event = 22 ORDER BY id"
    )
    assert {row[0] for row in logged} == {name.rsplit("/", 1)[1] for name in names} and len(logged) == 8
    assert {row[1:] for row in logged} == {(5, 10, 10, 1, 1, "r1", 3, "retention")}


async def test_an_archived_task_can_be_deleted(
    quiet: RunningTaskDb, caller: Caller, jobs: dict[str, Job]
) -> None:
    name = await done(quiet, caller, 91 * DAY)
    await run_job(quiet.pool, jobs["retention"], no_guard)
    request = task_service_pb2.DeleteTaskRequest(name=name)
    await caller.tasks.DeleteTask(request)
    with pytest.raises(NotFound):
        await caller.get(name)
    with pytest.raises(NotFound):
        await caller.tasks.DeleteTask(request)
    assert not await quiet.rows("SELECT FROM runs_archive")


@pytest.mark.seed("S1.58")
async def test_a_task_type_configures_whether_its_tasks_are_archived_or_deleted(
    quiet: RunningTaskDb, caller: Caller, jobs: dict[str, Job]
) -> None:
    await quiet.execute(
        "INSERT INTO task_types (tenant_id, task_type, archive, definition) "
        "VALUES ('default', 'kept', true, ''), ('default', 'gone', false, '')",
    )
    kept, gone, orphan = [await done(quiet, caller, 91 * DAY) for _ in range(3)]
    for name, task_type in ((kept, "kept"), (gone, "gone"), (orphan, "unregistered")):
        await quiet.execute(
            "UPDATE tasks SET task_type = %s, task_type_tenant = 'default' WHERE task_id = %s",
            task_type,
            name.rsplit("/", 1)[1],
        )
    assert await run_job(quiet.pool, jobs["retention"], no_guard) == 3
    for name in (kept, orphan):
        assert (await caller.get(name)).name == name
    with pytest.raises(NotFound):
        await caller.get(gone)
    assert await quiet.rows("SELECT resource_id FROM changes WHERE event = 21") == [(gone.rsplit("/", 1)[1],)]


async def test_a_task_that_was_retried_meanwhile_is_not_archived(
    quiet: RunningTaskDb, caller: Caller
) -> None:
    task = await caller.create()
    await quiet.fail(task.name)
    await age(quiet, task.name, 91 * DAY)
    async with quiet.pool.reading() as tx:
        found, _ = await archive.find_ended(tx, ("", ""), 100, 90 * DAY)
    await caller.tasks.RetryTask(task_service_pb2.RetryTaskRequest(name=task.name))
    assert len(found) == 1
    assert await quiet.pool.run(lambda tx: archive.move(tx, found)) == 0
    assert (await caller.get(task.name)).status.phase == task_pb2.TASK_PHASE_PENDING


async def test_the_archive_has_the_columns_of_the_hot_tables(quiet: RunningTaskDb) -> None:
    for table in ("tasks", "runs"):
        columns = "SELECT attname, atttypid FROM pg_attribute WHERE attrelid = %s::regclass AND attnum > 0"
        hot = await quiet.rows(columns + " AND NOT attisdropped", table)
        cold = await quiet.rows(columns + " AND NOT attisdropped", f"{table}_archive")
        assert set(hot) == set(cold), f"a migration that changes {table} changes {table}_archive as well"


async def test_a_job_is_recorded_and_not_run_again_before_it_is_due(
    quiet: RunningTaskDb, jobs: dict[str, Job]
) -> None:
    leadership = Leadership(quiet.pool, timedelta(0))
    assert await leadership.acquire()
    ended: list[tuple[str, bool]] = []
    sweep = JobSweep(
        quiet.pool, jobs["runners"], lambda job, items, seconds, *, failed: ended.append((job, failed))
    )
    assert await sweep.run(leadership) > 0
    assert await sweep.run(leadership) > 0
    assert ended == [("runners", False)]
    ((start, end, success, error),) = await quiet.rows(
        "SELECT start_time, end_time, success_time, error FROM job_runs WHERE job = 'runners'"
    )
    assert start <= end == success and error is None
    # A nightly job does not run right after the first start.
    assert await JobSweep(quiet.pool, jobs["retention"]).run(leadership) > 0
    assert not await quiet.rows("SELECT FROM job_runs WHERE job = 'retention'")


async def test_a_failing_job_is_recorded_and_a_former_leader_writes_nothing(
    quiet: RunningTaskDb, caller: Caller, jobs: dict[str, Job]
) -> None:
    name = await done(quiet, caller, 91 * DAY)
    leadership = Leadership(quiet.pool, timedelta(0))
    assert await leadership.acquire()
    await quiet.execute("UPDATE coordinator_state SET value = 'another', epoch = epoch + 1")
    with pytest.raises(LeadershipLost):
        await run_job(quiet.pool, jobs["retention"], leadership.check)
    assert await quiet.rows("SELECT FROM tasks WHERE task_id = %s", name.rsplit("/", 1)[1])

    class Failing:
        name, about = "failing", "fails"
        schedule: Schedule = Every(DAY)

        async def pages(self, guard: object) -> AsyncIterator[int]:
            yield 3
            raise RuntimeError("no disk")

    with pytest.raises(RuntimeError):
        await run_job(quiet.pool, Failing(), no_guard)
    assert await quiet.rows("SELECT item_count, error, success_time FROM job_runs WHERE job = 'failing'") == [
        (3, "RuntimeError: no disk", None)
    ]


def test_jobs_are_due_by_their_schedule() -> None:
    assert next_run(Every(DAY), NIGHT, NIGHT) == NIGHT + DAY
    assert next_run(Every(DAY), None, NIGHT) == NIGHT
    assert next_run(Nightly(3), None, NIGHT) == NIGHT + FIRST_NIGHT
    for began in (NIGHT, NIGHT + timedelta(hours=20)):
        assert next_run(Nightly(3), began, NIGHT) == NIGHT + DAY
    assert next_run(Nightly(3), NIGHT - timedelta(hours=1), NIGHT) == NIGHT


def maintenance(url: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run `taskyard-taskdb maintenance`."""
    argv = [sys.executable, "-m", "taskyard_taskdb", "maintenance", *arguments]
    environment = {**os.environ, "TASKYARD_DATABASE_URL": url}
    return subprocess.run(argv, env=environment, capture_output=True, text=True, timeout=120)


def test_the_maintenance_command_runs_a_job_and_lists_the_jobs(database_url: str) -> None:
    with psycopg.connect(database_url) as connection:
        connection.execute(
            "INSERT INTO idempotency_keys (create_time, method, tenant_id, request_id, task_id, body_hash) "
            "VALUES (now() - interval '2 days', 1, 'default', 'r', 't', '')"
        )
    assert maintenance(database_url, "--job", "request-ids", "--once").stdout == "request-ids: 1 item\n"
    shown = maintenance(database_url, "--list").stdout
    assert "request-ids" in shown and "done, 1 item" in shown and "never ran" in shown
    unknown = maintenance(database_url, "--job", "dishes", "--once")
    assert unknown.returncode == 1 and "choose one of partitions" in unknown.stderr
    assert maintenance(database_url).returncode == 2
