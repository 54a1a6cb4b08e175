"""Runs that end before their start is sent, in columns to a scheduler that takes them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from services.runner.tests.conftest import StartRunner
from services.runner.tests.function_calls import APP, kinds, output
from services.runner.tests.runner_process import function
from services.runner.tests.scheduler_peer import SchedulerPeer, reports_of
from taskyard.v1.lease_pb2 import LeaseRef, RunReport, RunStarted, RunSucceeded
from taskyard.v1.task_pb2 import TaskResult
from taskyard_runner.agent.short_runs import in_columns, shape_of
from taskyard_runner.agent.spool import Spool

LIMIT = 1 << 20


def short(
    number: int = 1, *, exit_code: int | None = None, result: bytes = b"", **fields: object
) -> RunReport:
    """A report of start and success."""
    report = RunReport(
        lease=LeaseRef(task=f"tenants/default/tasks/t{number}", generation=2, lease_id=-7),
        seq=number,
        start=RunStarted(),
        succeeded=RunSucceeded(exit_code=exit_code),
        **fields,  # type: ignore[arg-type]
    )
    report.start_time.FromMicroseconds(1_700_000_000_000_001)
    report.time.FromMicroseconds(1_700_000_000_000_002)
    if result:
        report.succeeded.result.output.raw = result
    return report


@pytest.fixture
async def spool(tmp_path: Path) -> AsyncIterator[Spool]:
    opened = Spool(tmp_path, LIMIT)
    writer = asyncio.create_task(opened.run())
    yield opened
    writer.cancel()


async def test_functions_are_reported_in_columns(peer: SchedulerPeer, start_runner: StartRunner) -> None:
    peer.welcome["short_runs"] = True
    await start_runner(*APP)
    tasks = [peer.assign(function("add", {"a": number, "b": 3})) for number in range(20)]
    assert [output(await peer.outcome(task)) for task in tasks] == [number + 3 for number in range(20)]
    assert all(kinds(peer, task) == ["started", "succeeded"] for task in tasks)
    assert sum(len(block.tasks) for block in peer.session.blocks) == 20


async def test_an_older_scheduler_gets_reports(peer: SchedulerPeer, start_runner: StartRunner) -> None:
    await start_runner(*APP)
    task = peer.assign(function("add", {"a": 2, "b": 3}))
    assert output(await peer.outcome(task)) == 5 and not peer.session.blocks


async def test_a_block_is_sent_again_after_a_reconnect(
    peer: SchedulerPeer, start_runner: StartRunner
) -> None:
    peer.welcome["short_runs"] = True
    await start_runner(*APP)
    peer.ack_reports = False
    task = peer.assign(function("add", {"a": 2, "b": 3}))
    await peer.outcome(task)
    peer.session.outbox.put_nowait(None)
    await peer.next_session(2)
    await peer.until(lambda: len(peer.reports[task.key]) == 2)
    first, again = peer.reports[task.key]
    assert first == again
    # The next scheduler may be an older one.
    peer.welcome["short_runs"] = False
    peer.session.outbox.put_nowait(None)
    await peer.next_session(3)
    await peer.until(lambda: len(peer.reports[task.key]) == 3)
    assert peer.reports[task.key][2].succeeded == first.succeeded and not peer.session.blocks


def test_columns_say_what_the_reports_say() -> None:
    reports = [short(5, result=b"[1]", log_sequence=4), short(6, log_sequence=0)]
    reports[1].start.checkpoint_sequence = 3
    assert reports_of(in_columns(reports)) == reports
    codes = [short(5, exit_code=0), short(6, exit_code=2)]
    assert reports_of(in_columns(codes)) == codes


def test_a_clock_that_was_set_back_ends_no_run_before_its_start() -> None:
    report = short()
    report.time.seconds -= 60
    runs = in_columns([report])
    assert list(runs.end_times) == list(runs.start_times)


@pytest.mark.parametrize("field", ["details", "start", "start_time", "time", "progress", "empty result"])
def test_a_report_that_columns_cannot_say_stays_a_report(field: str) -> None:
    report = short()
    match field:
        case "details":
            report.details["a"] = 1
        case "empty result":
            report.succeeded.result.CopyFrom(TaskResult())
        case "progress":
            report.progress.SetInParent()
        case _:
            report.ClearField(field)  # type: ignore[arg-type]
    assert shape_of(report) is None


async def test_the_spool_gives_consecutive_reports_of_one_kind(spool: Spool, tmp_path: Path) -> None:
    started = RunReport(lease=short().lease, started=RunStarted())
    groups = [[short(), short()], [started], [short(exit_code=0)], [short(), short()]]
    saved = asyncio.get_running_loop().create_future()
    spool.append_all([report for group in groups for report in group], saved.set_result)
    await saved

    def taken(kept: Spool) -> list[list[int]]:
        return [[report.seq for report in kept.take(10, LIMIT, shape_of)] for _ in range(5)]

    expected = [[1, 2], [3], [4], [5, 6], []]
    assert taken(spool) == expected and spool.in_flight()[0] == 6
    spool.rewind()
    assert taken(spool) == taken(Spool(tmp_path, LIMIT)) == expected
