"""A leader frozen for longer than its term: another replica takes over, and it writes nothing more."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psycopg
import pytest
from google.protobuf.timestamp_pb2 import Timestamp

from taskyard.v1 import task_pb2
from tests.harness.pause import Pause
from tests.harness.taskdb_process import CrashingTaskDb, crashing_taskdb

IMPATIENT = ("--idle-in-transaction-timeout", "1s")
SWEEP = "sweep.between_select_and_update"
EPOCH = "SELECT epoch FROM coordinator_state WHERE key = 'leader_lock'"
READIED = "SELECT count(*) FROM changes WHERE event = 24"


@asynccontextmanager
async def no_leadership_checks(taskdb: CrashingTaskDb) -> AsyncIterator[None]:
    """Terms cannot be taken or renewed inside the block, which does not keep a leader from proving its own.

    So a leader that resumes here does not learn of its successor before it writes.
    """
    async with await psycopg.AsyncConnection.connect(taskdb.url) as connection:
        await connection.execute("LOCK TABLE coordinator_state IN SHARE MODE")
        yield


@pytest.fixture
async def replicas(database_url: str, tmp_path: Path) -> AsyncIterator[tuple[CrashingTaskDb, CrashingTaskDb]]:
    """Two taskdbs over one database, neither started yet."""
    async with (
        crashing_taskdb(database_url, tmp_path, *IMPATIENT, name="former") as former,
        crashing_taskdb(database_url, tmp_path, *IMPATIENT, name="latter") as latter,
    ):
        yield former, latter


async def create_delayed(taskdb: CrashingTaskDb) -> str:
    """A task that its timer makes ready in a moment."""
    moment = Timestamp()
    moment.FromDatetime(datetime.now(UTC) + timedelta(seconds=1))
    (name,) = await taskdb.yard.create(not_before=moment)
    return name


async def runs_once(taskdb: CrashingTaskDb, name: str) -> None:
    """The task became ready once and is there for one claim."""
    runner, _ = await taskdb.yard.hello()
    (claimed,) = (await taskdb.yard.claim(runner)).assignments
    assert (claimed.lease.task, claimed.lease.generation) == (name, 1)
    assert not (await taskdb.yard.claim(runner)).assignments
    assert await taskdb.value(READIED) == 1


async def test_a_leader_that_resumes_after_its_term_writes_nothing(
    replicas: tuple[CrashingTaskDb, CrashingTaskDb], tmp_path: Path
) -> None:
    former, latter = replicas
    pauses = [Pause(tmp_path / name, SWEEP) for name in ("former", "latter")]
    await former.start(pauses[0].setting)
    name = await create_delayed(former)
    await pauses[0].reached()
    assert await former.value(EPOCH) == 1
    former.service.suspend()
    await former.until("SELECT expires_at < clock_timestamp() FROM coordinator_state")
    # The new leader pauses before its write: only the lost leadership prevents the former one from writing.
    await latter.start(pauses[1].setting)
    await pauses[1].reached()
    assert await latter.value(EPOCH) == 2
    async with no_leadership_checks(latter):
        former.service.resume()
        await pauses[0].release()
        await former.wait_for_log('"sweep_ended", "sweep": "timers", "error": "term 1 of ')
    assert await latter.value(READIED) == 0, "a superseded leader has written"
    assert (await latter.yard.task(name)).status.phase == task_pb2.TASK_PHASE_PENDING
    assert await latter.value("SELECT count(*) FROM timers") == 1
    await pauses[1].release()
    await latter.until("SELECT count(*) = 1 FROM queue")
    await runs_once(latter, name)
    assert await latter.value(EPOCH) == 2


async def test_a_leader_frozen_during_a_write_is_rolled_back_and_replaced(
    replicas: tuple[CrashingTaskDb, CrashingTaskDb],
) -> None:
    former, latter = replicas
    await former.start("timer.before_commit=stop")
    name = await create_delayed(former)
    await asyncio.to_thread(former.service.wait_suspended)
    # It holds the leader row and the task; PostgreSQL ends its transaction, which does nothing any more.
    await latter.until(
        "SELECT count(*) = 0 FROM pg_stat_activity "
        "WHERE datname = current_database() AND state = 'idle in transaction'"
    )
    assert await latter.value("SELECT count(*) FROM queue") == 0
    await latter.expire_leadership()
    await latter.start()
    await latter.until("SELECT count(*) = 1 FROM queue")
    assert await latter.value(EPOCH) == 2
    former.service.resume()
    await former.wait_for_log('"sweep_failed", "sweep": "timers"')
    await runs_once(latter, name)
    assert await latter.value(EPOCH) == 2
