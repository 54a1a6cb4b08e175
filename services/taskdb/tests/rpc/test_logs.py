"""Logs over a real socket: appended by holders, listed by pages, followed to their end."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, timedelta
from typing import Any

import pytest

from services.taskdb.tests.conftest import RunningTaskDb, run_taskdb
from services.taskdb.tests.yard import Runner, Yard, started, succeeded
from taskyard.errors import FieldInvalid, LeaseNotHeld, NotFound, PageTokenInvalid, ResumeTokenInvalid
from taskyard.status import from_status, translated
from taskyard.v1 import lease_pb2, lease_service_pb2, log_pb2, task_service_pb2
from taskyard_taskdb.rpc import logs
from taskyard_taskdb.storage.pool import Pool

DEBUG, INFO, ERROR = log_pb2.LOG_LEVEL_DEBUG, log_pb2.LOG_LEVEL_INFO, log_pb2.LOG_LEVEL_ERROR


async def claimed(yard: Yard) -> tuple[Runner, lease_pb2.LeaseRef]:
    """A runner that holds the lease of a new task."""
    await yard.create()
    runner, _ = await yard.hello()
    return runner, (await yard.claim(runner)).assignments[0].lease


async def ended_with_three(yard: Yard, stored: int) -> tuple[Runner, lease_pb2.LeaseRef]:
    """A run that has ended and announced three entries; so many of them are stored."""
    runner, lease = await claimed(yard)
    await append(yard, runner.id, lease, 1, stored)
    outcome = succeeded(lease_pb2.Assignment(lease=lease))
    outcome.log_sequence = 3
    await yard.report(runner, outcome)
    return runner, lease


async def append(
    yard: Yard, runner_id: str, lease: lease_pb2.LeaseRef, first: int, count: int, level: int = INFO
) -> Any:
    """Append `count` lines from sequence `first` on; returns the status of the batch."""
    severity = log_pb2.LogLevel.ValueType(level)
    entries = [
        log_pb2.LogEntry(sequence=sequence, message=f"line {sequence}", level=severity)
        for sequence in range(first, first + count)
    ]
    request = lease_service_pb2.AppendLogsRequest(
        runner_id=runner_id, batches=[lease_pb2.LogBatch(lease=lease, entries=entries)]
    )
    return (await yard.scheduler.leases.AppendLogs(request)).results[0]


async def listed(yard: Yard, name: str, page_token: str = "", **fields: Any) -> list[int]:
    """The sequences of all entries, page by page."""
    found: list[int] = []
    token = page_token
    while True:
        request = task_service_pb2.ListTaskLogsRequest(parent=name, page_token=token, **fields)
        page = await yard.tenant.tasks.ListTaskLogs(request)
        found += [entry.sequence for entry in page.entries]
        token = page.next_page_token
        if not token:
            return found


async def tailed(yard: Yard, name: str, **fields: Any) -> tuple[list[int], Any]:
    """The sequences that a tail sends until it ends, and its last response."""
    found: list[int] = []
    last = None
    with translated():
        async with asyncio.timeout(15):
            async for last in yard.tenant.tasks.TailTaskLogs(
                task_service_pb2.TailTaskLogsRequest(parent=name, **fields)
            ):
                found += [entry.sequence for entry in last.entries]
    return found, last


@pytest.mark.seed("S0.89")
async def test_pages_return_every_entry_once_and_in_order(yard: Yard) -> None:
    runner, lease = await claimed(yard)
    for first in range(1, 251, 50):
        await append(yard, runner.id, lease, first, 50)
    assert await listed(yard, lease.task, page_size=30) == list(range(1, 251))
    assert await listed(yard, lease.task, page_size=70, descending=True) == list(range(250, 0, -1))


@pytest.mark.seed("S0.98")
async def test_a_batch_is_one_row_and_a_repeated_one_is_stored_once(
    yard: Yard, taskdb: RunningTaskDb
) -> None:
    runner, lease = await claimed(yard)
    for first, count in ((1, 10), (1, 10), (6, 10), (16, 2)):
        assert (await append(yard, runner.id, lease, first, count)).code == 0
    assert await listed(yard, lease.task) == list(range(1, 18))
    assert await taskdb.rows("SELECT count(*) FROM logs") == [(3,)]


@pytest.mark.seed("S0.60")
async def test_times_of_entries_lie_within_their_run(yard: Yard) -> None:
    runner, lease = await claimed(yard)
    assignment = lease_pb2.Assignment(lease=lease)
    await yard.report(runner, started(assignment))
    begin = (await yard.task(lease.task)).status.start_time.ToDatetime(UTC)
    between = begin + timedelta(microseconds=10)
    await yard.report(runner, succeeded(assignment))
    end = (await yard.task(lease.task)).status.end_time.ToDatetime(UTC)
    batch = lease_pb2.LogBatch(lease=lease)
    for number, time in enumerate((begin - timedelta(hours=1), between, end + timedelta(hours=1)), 1):
        batch.entries.add(sequence=number, message="x").time.FromDatetime(time)
    batch.entries.add(sequence=4, message="without a time")
    await yard.scheduler.leases.AppendLogs(
        lease_service_pb2.AppendLogsRequest(runner_id=runner.id, batches=[batch])
    )
    page = await yard.tenant.tasks.ListTaskLogs(task_service_pb2.ListTaskLogsRequest(parent=lease.task))
    assert [entry.time.ToDatetime(UTC) for entry in page.entries] == [begin, between, end, end]


async def test_entries_below_the_level_are_left_out(yard: Yard) -> None:
    runner, lease = await claimed(yard)
    await append(yard, runner.id, lease, 1, 3, DEBUG)
    await append(yard, runner.id, lease, 4, 2, ERROR)
    assert await listed(yard, lease.task, min_level=INFO) == [4, 5]
    assert (await tailed(yard, lease.task, min_level=INFO))[0] == [4, 5]


async def test_follower_of_a_log_without_lines_gets_a_token_to_resume_from(yard: Yard) -> None:
    runner, lease = await claimed(yard)
    request = task_service_pb2.TailTaskLogsRequest(parent=lease.task, follow=True)
    call = yard.tenant.tasks.TailTaskLogs(request)
    async with asyncio.timeout(30):
        bookmark = await call.read()
    call.cancel()
    assert not bookmark.entries and bookmark.resume_token
    await append(yard, runner.id, lease, 1, 3)
    resumed, _ = await tailed(yard, lease.task, resume_token=bookmark.resume_token)
    assert resumed == [1, 2, 3]


@pytest.mark.covers("AppendLogs", "LEASE_NOT_HELD")
async def test_only_the_holder_may_append(yard: Yard) -> None:
    runner, lease = await claimed(yard)
    with pytest.raises(LeaseNotHeld):
        raise from_status(await append(yard, "somebody-else", lease, 1, 1))
    forged = lease_pb2.LeaseRef(task=lease.task, generation=lease.generation, lease_id=lease.lease_id + 1)
    assert (await append(yard, runner.id, forged, 1, 1)).code == 9
    assert await listed(yard, lease.task) == []


@pytest.mark.covers("AppendLogs", "FIELD_INVALID")
async def test_entry_that_no_reader_can_process_refuses_its_batch_alone(yard: Yard) -> None:
    runner, lease = await claimed(yard)
    late = log_pb2.LogEntry(sequence=1, message="a")
    late.time.seconds = 2**40
    endless = log_pb2.LogEntry(sequence=1, message="a")
    endless.details.update({"n": float("inf")})
    kept = log_pb2.LogEntry(sequence=1, message="a\0b")
    batches = [lease_pb2.LogBatch(lease=lease, entries=[entry]) for entry in (late, endless, kept)]
    request = lease_service_pb2.AppendLogsRequest(runner_id=runner.id, batches=batches)
    first, second, third = (await yard.scheduler.leases.AppendLogs(request)).results
    assert "entries[0].time" in str(from_status(first))
    assert "entries[0].details" in str(from_status(second))
    assert third.code == 0 and await listed(yard, lease.task) == [1]


async def test_a_batch_of_too_many_entries_is_refused(yard: Yard) -> None:
    runner, lease = await claimed(yard)
    with pytest.raises(FieldInvalid, match="entries"), translated():
        await append(yard, runner.id, lease, 1, 1001)
    assert await listed(yard, lease.task) == []


async def test_logs_of_a_run_that_just_ended_are_accepted(yard: Yard) -> None:
    runner, lease = await claimed(yard)
    await yard.report(runner, succeeded(lease_pb2.Assignment(lease=lease)))
    assert (await append(yard, runner.id, lease, 1, 3)).code == 0
    assert await listed(yard, lease.task) == [1, 2, 3]


async def test_a_follower_gets_entries_as_they_come_and_ends_with_the_last_one_announced(yard: Yard) -> None:
    runner, lease = await claimed(yard)
    await append(yard, runner.id, lease, 1, 5)
    following = asyncio.create_task(tailed(yard, lease.task, follow=True))
    await append(yard, runner.id, lease, 6, 5)
    outcome = succeeded(lease_pb2.Assignment(lease=lease))
    outcome.log_sequence = 12
    await yard.report(runner, outcome)
    await asyncio.wait([following], timeout=0.5)
    assert not following.done(), "two announced entries are missing"
    await append(yard, runner.id, lease, 11, 2)
    found, last = await following
    assert found == list(range(1, 13))
    assert last.complete


async def test_a_follower_waits_as_long_as_announced_entries_arrive(
    yard: Yard, taskdb: RunningTaskDb
) -> None:
    runner, lease = await ended_with_three(yard, 1)
    # The runner ships a long log: the task ended longer ago than a tail waits for what does not arrive.
    await taskdb.rows("UPDATE tasks SET end_time = end_time - interval '2 minutes' RETURNING 1")
    call = yard.tenant.tasks.TailTaskLogs(
        task_service_pb2.TailTaskLogsRequest(parent=lease.task, follow=True)
    )
    found: list[int] = []
    async with asyncio.timeout(30):
        while response := await call.read():
            for entry in response.entries:
                found.append(entry.sequence)
                if entry.sequence < 3:
                    await append(yard, runner.id, lease, entry.sequence + 1, 1)
            if response.complete:
                break
    assert found == [1, 2, 3]


async def test_a_follower_of_an_old_log_that_stayed_incomplete_ends_soon(
    yard: Yard, taskdb: RunningTaskDb
) -> None:
    _, lease = await ended_with_three(yard, 1)
    await taskdb.rows("UPDATE tasks SET end_time = end_time - interval '2 minutes' RETURNING 1")
    await taskdb.rows("UPDATE logs SET time = time - interval '2 minutes' RETURNING 1")
    async with asyncio.timeout(30):
        found, last = await tailed(yard, lease.task, follow=True)
    assert found == [1] and last.complete


async def test_a_follower_that_catches_up_late_waits_for_announced_entries(
    yard: Yard, taskdb: RunningTaskDb, monkeypatch: pytest.MonkeyPatch
) -> None:
    runner, lease = await ended_with_three(yard, 1)
    await taskdb.rows("UPDATE tasks SET end_time = end_time - interval '2 minutes' RETURNING 1")
    monkeypatch.setattr(logs, "SILENCE_SECONDS", 0.0)
    following = asyncio.create_task(tailed(yard, lease.task, follow=True))
    await asyncio.wait([following], timeout=0.5)
    assert not following.done(), "entries were stored a moment ago, and two are missing"
    await append(yard, runner.id, lease, 2, 2)
    found, last = await following
    assert found == [1, 2, 3] and last.complete


async def test_a_tail_right_after_the_end_has_the_announced_entries(yard: Yard) -> None:
    runner, lease = await ended_with_three(yard, 2)
    whole = asyncio.create_task(tailed(yard, lease.task))
    end = asyncio.create_task(tailed(yard, lease.task, tail_lines=2))
    await asyncio.wait([whole, end], timeout=0.5, return_when=asyncio.FIRST_COMPLETED)
    assert not whole.done() and not end.done(), "an announced entry is missing"
    await append(yard, runner.id, lease, 3, 1)
    assert (await whole)[0] == [1, 2, 3]
    assert (await end)[0] == [2, 3]


async def test_a_tail_of_an_old_log_that_stayed_incomplete_does_not_wait(
    yard: Yard, taskdb: RunningTaskDb, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, lease = await ended_with_three(yard, 1)
    await taskdb.rows("UPDATE tasks SET end_time = end_time - interval '2 minutes' RETURNING 1")
    monkeypatch.setattr(logs, "READ_SECONDS", 100.0)
    async with asyncio.timeout(30):
        found, last = await tailed(yard, lease.task)
    assert found == [1] and last.complete


async def test_a_follower_of_a_run_without_output_does_not_wait(yard: Yard) -> None:
    runner, lease = await claimed(yard)
    outcome = succeeded(lease_pb2.Assignment(lease=lease))
    outcome.log_sequence = 0
    await yard.report(runner, outcome)
    async with asyncio.timeout(1):
        found, last = await tailed(yard, lease.task, follow=True)
    assert found == []
    assert last.complete


async def test_a_tail_resumes_behind_its_token_and_can_start_near_the_end(yard: Yard) -> None:
    runner, lease = await claimed(yard)
    await append(yard, runner.id, lease, 1, 20)
    found, last = await tailed(yard, lease.task, tail_lines=5)
    assert found == [16, 17, 18, 19, 20]
    await append(yard, runner.id, lease, 21, 3)
    assert (await tailed(yard, lease.task, resume_token=last.resume_token))[0] == [21, 22, 23]


@pytest.mark.covers("ListTaskLogs", "PAGE_TOKEN_INVALID")
@pytest.mark.covers("ListTaskLogs", "NOT_FOUND")
@pytest.mark.covers("TailTaskLogs", "RESUME_TOKEN_INVALID")
@pytest.mark.covers("TailTaskLogs", "NOT_FOUND")
async def test_tokens_of_others_and_foreign_tasks_are_refused(yard: Yard) -> None:
    _, lease = await claimed(yard)
    with pytest.raises(PageTokenInvalid):
        await listed(yard, lease.task, page_token="nonsense")
    with pytest.raises(ResumeTokenInvalid):
        await tailed(yard, lease.task, resume_token="nonsense")
    with pytest.raises(NotFound):
        await listed(yard, "tenants/default/tasks/nothing")
    with pytest.raises(NotFound):
        await tailed(yard, "tenants/other/tasks/nothing")


async def test_idle_tails_cost_no_transactions(
    taskdb: RunningTaskDb, yard: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hundred tails of a silent task wait for a notice instead of looking again."""
    _, lease = await claimed(yard)
    reading, opened = Pool.reading, []

    def counted(self: Pool, **options: Any) -> Any:
        opened.append(options)
        return reading(self, **options)

    monkeypatch.setattr(Pool, "reading", counted)
    request = task_service_pb2.TailTaskLogsRequest(parent=lease.task, follow=True)
    tails = [yard.tenant.tasks.TailTaskLogs(request) for _ in range(100)]
    for tail in tails:
        # A bookmark, from which a client resumes a log without lines.
        assert not (await tail.read()).entries
    reads = [asyncio.create_task(tail.read()) for tail in tails]
    await looked(opened, 100)
    before = len(opened)
    # Time for a hundred tails to look again every second, which is what this test forbids.
    await asyncio.sleep(3)
    assert len(opened) - before < 50
    assert not any(read.done() for read in reads)
    await append(yard, "runner-1", lease, 1, 1)
    async with asyncio.timeout(30):
        found = await asyncio.gather(*reads)
    assert all(response.entries[0].sequence == 1 for response in found)
    for tail in tails:
        tail.cancel()


async def looked(opened: list[Any], count: int) -> None:
    """Wait until so many reads were made and no more follow for a while."""
    async with asyncio.timeout(60):
        seen = -1
        while seen < count or seen != len(opened):
            seen = len(opened)
            await asyncio.sleep(0.5)


@pytest.fixture
async def replica(taskdb: RunningTaskDb) -> AsyncIterator[RunningTaskDb]:
    async for running in run_taskdb(taskdb.url):
        yield running


async def test_lines_stored_by_another_replica_wake_a_tail(
    replica: RunningTaskDb, yard: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the notice of that replica: nothing else looks within the time of this test."""
    monkeypatch.setattr("taskyard_taskdb.watch.followers.POLL_SECONDS", 600.0)
    _, lease = await claimed(yard)
    watcher = await replica.caller()
    tail = watcher.tasks.TailTaskLogs(task_service_pb2.TailTaskLogsRequest(parent=lease.task, follow=True))
    assert not (await tail.read()).entries
    read = asyncio.create_task(tail.read())
    # Time for the replicas to greet each other, and for the tail to find nothing and wait.
    await asyncio.sleep(3)
    await append(yard, "runner-1", lease, 1, 1)
    async with asyncio.timeout(20):
        assert (await read).entries[0].sequence == 1
    tail.cancel()
