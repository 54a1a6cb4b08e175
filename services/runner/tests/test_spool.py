"""The spool: saved reports survive a crash, in order, until they are acknowledged."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from taskyard.v1.lease_pb2 import LeaseRef, RunReport, RunStarted
from taskyard_runner.agent import spool as spool_module
from taskyard_runner.agent.spool import Spool

LIMIT = 1 << 20


def report(number: int, size: int = 0) -> RunReport:
    lease = LeaseRef(task=f"tenants/default/tasks/t{number}", generation=1, lease_id=7)
    return RunReport(lease=lease, started=RunStarted(handle="x" * size))


@pytest.fixture
async def spool(tmp_path: Path) -> AsyncIterator[Spool]:
    opened = Spool(tmp_path, LIMIT)
    writer = asyncio.create_task(opened.run())
    yield opened
    writer.cancel()


async def fill(spool: Spool, count: int, size: int = 0) -> list[int]:
    return list(await asyncio.gather(*(spool.append(report(number, size)) for number in range(count))))


def seqs(reports: list[RunReport]) -> list[int]:
    return [found.seq for found in reports]


async def test_reports_are_numbered_and_survive(spool: Spool, tmp_path: Path) -> None:
    assert await fill(spool, 5) == [1, 2, 3, 4, 5]
    again = Spool(tmp_path, LIMIT)
    assert seqs(again.recovered()) == [1, 2, 3, 4, 5]
    assert [found.lease.task[-2:] for found in again.recovered()] == ["t0", "t1", "t2", "t3", "t4"]


async def test_nothing_is_sent_before_it_is_on_disk(spool: Spool) -> None:
    waiting = spool.append(report(1))
    assert spool.take(10, 1000) == []
    await waiting
    assert seqs(spool.take(10, 1000)) == [1]


async def test_report_is_not_sent_before_it_is_synced(spool: Spool, monkeypatch: pytest.MonkeyPatch) -> None:
    synced, sync = asyncio.Event(), threading.Event()
    loop, fdatasync = asyncio.get_running_loop(), os.fdatasync

    def wait_and_sync(descriptor: int) -> None:
        loop.call_soon_threadsafe(synced.set)
        assert sync.wait(30)
        fdatasync(descriptor)

    monkeypatch.setattr(os, "fdatasync", wait_and_sync)
    waiting = spool.append(report(1))
    async with asyncio.timeout(30):
        await synced.wait()
    assert spool.take(10, 1000) == [] and not waiting.done()
    sync.set()
    await waiting
    assert seqs(spool.take(10, 1000)) == [1]


async def test_each_report_is_sent_once_a_session(spool: Spool) -> None:
    await fill(spool, 5)
    assert seqs(spool.take(2, LIMIT)) == [1, 2]
    assert seqs(spool.take(10, LIMIT)) == [3, 4, 5]
    assert spool.take(10, LIMIT) == []
    assert spool.in_flight()[0] == 5
    spool.acknowledge(3)
    assert spool.in_flight()[0] == 2
    spool.rewind()
    assert seqs(spool.take(10, LIMIT)) == [4, 5]


async def test_a_message_aims_at_its_size_but_takes_at_least_one(spool: Spool) -> None:
    await fill(spool, 3, size=200)
    assert seqs(spool.take(10, 10)) == [1]
    assert seqs(spool.take(10, 600)) == [2, 3]


async def test_acknowledged_reports_are_removed_and_numbering_continues(spool: Spool, tmp_path: Path) -> None:
    await fill(spool, 3)
    spool.acknowledge(3)
    assert spool.depth == 0
    assert await spool.append(report(9)) == 4
    assert seqs(Spool(tmp_path, LIMIT).recovered()) == [4]


async def test_segments_are_removed_with_their_last_report(
    spool: Spool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spool_module, "_SEGMENT_BYTES", 500)
    for _ in range(5):
        await fill(spool, 1, size=250)
        await fill(spool, 1, size=250)
    assert len(list(tmp_path.glob("*.spool"))) > 3
    assert seqs(spool.take(100, LIMIT)) == list(range(1, 11))
    spool.acknowledge(10)
    assert len(list(tmp_path.glob("*.spool"))) == 1


@pytest.mark.parametrize("damage", ["torn", "flipped"])
async def test_a_damaged_tail_is_dropped_and_the_rest_is_kept(
    spool: Spool, tmp_path: Path, damage: str
) -> None:
    await fill(spool, 3)
    (segment,) = tmp_path.glob("*.spool")
    data = bytearray(segment.read_bytes())
    if damage == "torn":
        del data[-3:]
    else:
        data[-1] ^= 0xFF
    segment.write_bytes(data)
    again = Spool(tmp_path, LIMIT)
    assert seqs(again.recovered()) == [1, 2]


async def test_a_full_disk_delays_a_report_and_refuses_work(
    spool: Spool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spool_module, "_RETRY_SECONDS", 0.01)
    failed = asyncio.Event()
    write, loop = os.pwrite, asyncio.get_running_loop()

    def no_room(*arguments: object) -> int:
        loop.call_soon_threadsafe(failed.set)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "pwrite", no_room)
    waiting = spool.append(report(1))
    await failed.wait()
    await asyncio.sleep(0)
    monkeypatch.setattr(os, "pwrite", write)
    assert await waiting == 1
    assert not spool.full


async def test_spool_at_its_limit_is_full(tmp_path: Path) -> None:
    small = Spool(tmp_path, 300)
    writer = asyncio.create_task(small.run())
    assert not small.full
    await fill(small, 1, size=200)
    await fill(small, 1, size=200)
    assert small.full
    small.acknowledge(2)
    assert not small.full
    writer.cancel()
