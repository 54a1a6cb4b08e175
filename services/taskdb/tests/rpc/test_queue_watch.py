"""WatchQueue: which lanes a scheduler receives, when, and at what cost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

import psycopg
import pytest

from services.taskdb.tests.conftest import RunningTaskDb, make_yard, run_taskdb
from services.taskdb.tests.yard import Yard
from taskyard.v1 import lease_service_pb2
from taskyard_taskdb.storage.claim.lanes import LaneKey
from taskyard_taskdb.storage.notify.bus import CommitNotice
from taskyard_taskdb.storage.notify.replicas import CHANNEL, EVICT_SECONDS, Peers, decode, encode
from taskyard_taskdb.storage.tenant import api_keys


class Board:
    """The lanes that a watch has sent so far: the backlog of each lane that has work."""

    def __init__(self, yard: Yard) -> None:
        request = lease_service_pb2.WatchQueueRequest(scheduler_id=yard.scheduler_id)
        self._call = yard.scheduler.leases.WatchQueue(request)
        self.backlogs: dict[tuple[int, int], int] = {}

    async def receive(self, until: Callable[[dict[tuple[int, int], int]], bool]) -> None:
        """Read responses until the backlogs fulfil a condition."""
        async with asyncio.timeout(15):
            while True:
                step = await self._call.read()
                if step.full:
                    self.backlogs.clear()
                for lane in step.lanes:
                    self.backlogs[(lane.key.class_id, lane.key.priority)] = lane.backlog
                    if not lane.HasField("head_ready_time"):
                        del self.backlogs[(lane.key.class_id, lane.key.priority)]
                if until(self.backlogs):
                    return

    def close(self) -> None:
        self._call.cancel()


@pytest.fixture
async def yard(quiet: RunningTaskDb) -> Yard:
    return await make_yard(quiet, await quiet.caller(api_keys.SCHEDULER), await quiet.caller())


@pytest.fixture
async def board(yard: Yard) -> AsyncIterator[Board]:
    made = Board(yard)
    await made.receive(lambda backlogs: backlogs == {})
    yield made
    made.close()


async def test_a_full_response_carries_the_epoch_of_the_log(yard: Yard, quiet: RunningTaskDb) -> None:
    async def full_response() -> lease_service_pb2.WatchQueueResponse:
        request = lease_service_pb2.WatchQueueRequest(scheduler_id=yard.scheduler_id)
        call = yard.scheduler.leases.WatchQueue(request)
        response: lease_service_pb2.WatchQueueResponse = await call.read()
        call.cancel()
        return response

    [(stored,)] = await quiet.rows("SELECT value FROM facts WHERE starts_with(key, 'log_epoch/')")
    response = await full_response()
    assert response.full and response.log_epoch == int(stored)
    # As after a failover, before a replica has given the new log its number.
    await quiet.execute("UPDATE facts SET value = '2' WHERE key = 'restore_epoch'")
    response = await full_response()
    assert response.full and response.log_epoch == 0


async def test_new_tasks_add_to_the_backlog_that_was_sent(yard: Yard, board: Board) -> None:
    await yard.create(2)
    await board.receive(lambda backlogs: list(backlogs.values()) == [2])
    await yard.create(3)
    await board.receive(lambda backlogs: list(backlogs.values()) == [5])
    await yard.create(1, priority=90)
    await board.receive(lambda backlogs: sorted(backlogs.values()) == [1, 5])


async def test_lane_is_sent_again_after_its_tasks_were_claimed(yard: Yard, board: Board) -> None:
    runner, _ = await yard.hello()
    await yard.create(3)
    await board.receive(lambda backlogs: list(backlogs.values()) == [3])
    lanes = await yard.lane_claims()
    await yard.claim(runner, 2, lanes=lanes)
    await board.receive(lambda backlogs: list(backlogs.values()) == [1])
    await yard.claim(runner, 2, lanes=lanes)
    await board.receive(lambda backlogs: backlogs == {})
    await yard.create(1)
    await board.receive(lambda backlogs: list(backlogs.values()) == [1])


async def test_watch_of_the_first_replica_receives_tasks_of_a_later_one(database_url: str) -> None:
    async for first in run_taskdb(database_url, housekeeping=False):
        yards = [await make_yard(first, await first.caller(api_keys.SCHEDULER), await first.caller())]
        async for second in run_taskdb(database_url, housekeeping=False):
            yards.append(
                await make_yard(second, await second.caller(api_keys.SCHEDULER), await second.caller())
            )
            boards = [Board(yard) for yard in yards]
            for board, other in zip(boards, reversed(yards), strict=True):
                await board.receive(lambda backlogs: True)
                before = sum(board.backlogs.values())
                await other.create(1)
                await board.receive(lambda backlogs, more=before + 1: sum(backlogs.values()) == more)  # type: ignore[misc]
            for board in boards:
                board.close()


async def test_single_replica_sends_no_notifications(quiet: RunningTaskDb, yard: Yard) -> None:
    async with await psycopg.AsyncConnection.connect(quiet.url, autocommit=True) as listener:
        # Listening like a replica, but not saying so.
        await listener.execute(f"LISTEN {CHANNEL}")
        for _ in range(20):
            await yard.create(1)
            received = [decode(notice.payload)[1] async for notice in listener.notifies(timeout=0.3)]
            # Until it listens itself, a replica must assume other replicas.
            if not any(notice.lanes for notice in received):
                return
    raise AssertionError("it goes on notifying")


def test_news_survive_the_way_to_another_replica() -> None:
    lane, shrunk = LaneKey("default", 7, 10, ""), LaneKey("default", 8, 10, "r1")
    notice = CommitNotice(
        lanes={lane}, shrunk={shrunk}, holders={("default", "t")}, runners={"r"}, tenants={"a"}
    )
    notice.settings, notice.changed = {"b"}, True
    (payload,) = encode("me", notice)
    assert decode(payload) == ("me", notice)
    (bare,) = encode("me", CommitNotice())
    assert decode(bare) == ("me", CommitNotice())


def test_silent_replica_is_forgotten_and_peers_are_assumed_before_the_first_round() -> None:
    peers = Peers()
    assert peers.any(0.0)
    peers.found()
    assert not peers.any(0.0)
    assert peers.note("other", 1.0)
    assert not peers.note("other", 2.0)
    assert peers.any(EVICT_SECONDS)
    assert not peers.any(EVICT_SECONDS + 3)
    assert peers.note("other", EVICT_SECONDS + 4)
    peers.lost()
    assert peers.any(10 * EVICT_SECONDS)
