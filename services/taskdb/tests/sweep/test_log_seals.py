"""Seals of the change log: the leader makes them, and they reveal edits, deletions and truncations."""

import subprocess
import sys
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from services.taskdb.tests.watch.log_rows import change
from taskyard_taskdb.storage.audit import seals
from taskyard_taskdb.storage.audit.seals import Seal, SealFinding
from taskyard_taskdb.storage.change_log.append import insert_changes
from taskyard_taskdb.storage.pool import Pool, PoolOptions
from taskyard_taskdb.sweep.leader_election import Leadership
from taskyard_taskdb.sweep.log_seals import SealSweep
from tests.harness.json_log import JsonLog


@pytest.fixture
async def pool(database_url: str) -> Any:
    pool = Pool(database_url, PoolOptions(size=4))
    await pool.open()
    yield pool
    await pool.close()


@pytest.fixture
async def leadership(pool: Pool) -> Leadership:
    leadership = Leadership(pool, timedelta(0))
    assert await leadership.acquire()
    return leadership


async def log(pool: Pool, *versions: int) -> None:
    async with pool.transaction() as tx:
        await insert_changes(tx, [change("a", version) for version in versions])


async def sealed(pool: Pool) -> list[Seal]:
    async with pool.reading() as tx:
        rows = await tx.fetch("SELECT * FROM seals ORDER BY last_id")
        return [Seal(*row[:5], *row[6:]) for row in rows]


async def three_seals(pool: Pool, leadership: Leadership) -> list[Seal]:
    """Make a log of nine changes with three seals."""
    sweep = SealSweep(pool)
    for start in (1, 4, 7):
        await log(pool, *range(start, start + 3))
        await sweep.run(leadership)
    found = await sealed(pool)
    assert [seal.change_count for seal in found] == [3, 3, 3]
    return found


async def verify(pool: Pool) -> list[SealFinding]:
    async with pool.reading() as tx:
        return await seals.verify_seals(tx)


async def tamper(pool: Pool, statement: str, *params: object) -> None:
    async with pool.transaction() as tx:
        await tx.execute(statement, params, prepare=False)


async def test_an_unchanged_log_matches_its_seals(pool: Pool, leadership: Leadership) -> None:
    await three_seals(pool, leadership)
    assert await verify(pool) == []


async def test_a_seal_covers_committed_changes_and_no_undecided_one(
    pool: Pool, leadership: Leadership
) -> None:
    await log(pool, 1)
    async with pool.transaction() as writer:
        await insert_changes(writer, [change("b", 1)])
        await log(pool, 2)
        sweep = SealSweep(pool)
        await sweep.run(leadership)
        assert await sealed(pool) == []
    await sweep.run(leadership)
    await sweep.run(leadership)
    assert [(s.after_id, s.last_id, s.change_count) for s in await sealed(pool)] == [(0, 5, 3)]
    with pytest.raises(RuntimeError):
        async with pool.transaction() as writer:
            await insert_changes(writer, [change("b", 2)])
            raise RuntimeError
    await sweep.run(leadership)
    assert len(await sealed(pool)) == 1, "an id that was never committed is not sealed"


EDITS = (
    "time = time + interval '1 s'",
    "actor_id = 'someone else'",
    "event = 12",
    'details = \'{"reason": ""}\'',
    "phase = 10",
    "exit_code = 0",
)


@pytest.mark.parametrize("edit", EDITS)
async def test_an_edited_change_is_detected(pool: Pool, leadership: Leadership, edit: str) -> None:
    made = await three_seals(pool, leadership)
    await tamper(pool, f"UPDATE changes SET {edit} WHERE id = %s", made[1].last_id)
    [found] = await verify(pool)
    assert (found.after_id, found.last_id) == (made[1].after_id, made[1].last_id)
    assert "differs from its seal" in found.message


async def test_a_deleted_change_is_detected(pool: Pool, leadership: Leadership) -> None:
    made = await three_seals(pool, leadership)
    await tamper(pool, "DELETE FROM changes WHERE id = %s", made[0].last_id)
    [found] = await verify(pool)
    assert "1 of 3 changes" in found.message and found.last_id == made[0].last_id


async def test_an_inserted_change_is_detected(pool: Pool, leadership: Leadership) -> None:
    made = await three_seals(pool, leadership)
    await tamper(
        pool,
        "INSERT INTO changes (id, time, event, actor_type, tenant_id, resource_id)"
        " VALUES (%s, now(), 12, 4, 'default', 'a')",
        made[1].last_id,
    )
    assert "1 changes were added" in (await verify(pool))[0].message


async def test_a_truncated_log_is_detected(pool: Pool, leadership: Leadership) -> None:
    made = await three_seals(pool, leadership)
    await tamper(pool, "TRUNCATE changes")
    found = await verify(pool)
    assert len(found) == len(made) and all("3 of 3 changes" in f.message for f in found)


async def test_a_log_truncated_with_its_seals_is_detected_by_a_recorded_seal(
    pool: Pool, leadership: Leadership, json_log: JsonLog
) -> None:
    sweep = SealSweep(pool)
    await log(pool, 1)
    await sweep.run(leadership)
    json_log.clear()
    await log(pool, 2, 3)
    await sweep.run(leadership)
    [recorded] = json_log.events("audit.sealed")
    assert {"after_id", "last_id", "change_count", "previous_hash", "hash"} < recorded.keys()
    await tamper(pool, "DELETE FROM changes WHERE id > 1")
    await tamper(pool, "DELETE FROM seals WHERE last_id > 1")
    assert await verify(pool) == [], "the remaining log is consistent"
    async with pool.reading() as tx:
        [found] = await seals.check_expected_seal(tx, recorded["last_id"], bytes.fromhex(recorded["hash"]))
    assert "is missing" in found.message
    await sweep.run(leadership)
    [truncated] = json_log.events("audit.truncated")
    assert truncated["last_id"] == recorded["last_id"] and truncated["hash"] == recorded["hash"]


async def test_an_edited_or_deleted_seal_is_detected(pool: Pool, leadership: Leadership) -> None:
    made = await three_seals(pool, leadership)
    await tamper(pool, "DELETE FROM seals WHERE last_id = %s", made[1].last_id)
    [found] = await verify(pool)
    assert "does not follow" in found.message
    await tamper(pool, "UPDATE seals SET hash = sha256('x') WHERE last_id = %s", made[0].last_id)
    assert "at least one" in (await verify(pool))[0].message


async def test_rows_dropped_by_retention_are_no_findings(pool: Pool, leadership: Leadership) -> None:
    made = await three_seals(pool, leadership)
    await tamper(pool, "DELETE FROM changes WHERE id <= %s", made[1].last_id)
    assert len(await verify(pool)) == 2
    async with pool.transaction() as tx:
        await seals.record_dropped(tx, made[2].first_time)
        await seals.record_dropped(tx, datetime(2020, 1, 1, tzinfo=UTC))
    assert await verify(pool) == []


async def test_only_the_newest_seals_can_be_verified(pool: Pool, leadership: Leadership) -> None:
    made = await three_seals(pool, leadership)
    await tamper(pool, "DELETE FROM changes WHERE id = %s", made[0].last_id)
    async with pool.reading() as tx:
        assert await seals.verify_seals(tx, newest=2) == []
        assert len(await seals.verify_seals(tx, newest=3)) == 1
        assert len(await seals.verify_seals(tx, newest=9)) == 1


def audit_verify(url: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "taskyard_taskdb", "audit", "verify", "--database-url", url, *arguments]
    return subprocess.run(argv, capture_output=True, text=True, timeout=60)


async def test_audit_verify_prints_every_difference(
    pool: Pool, leadership: Leadership, database_url: str
) -> None:
    made = await three_seals(pool, leadership)
    seal = f"{made[2].last_id}:{made[2].hash.hex()}"
    fine = audit_verify(database_url, "--seal", seal)
    assert (fine.returncode, fine.stdout) == (0, "the change log matches its seals\n")
    await tamper(pool, "UPDATE changes SET actor_id = 'x' WHERE id = %s", made[1].last_id)
    bad = audit_verify(database_url)
    assert bad.returncode == 1
    assert bad.stdout.startswith(f"at least one of 3 changes from {made[0].last_id + 1} to {made[1].last_id}")
    wrong = audit_verify(database_url, "--seal", "7:abc")
    assert wrong.returncode == 2 and "64 hexadecimal digits" in wrong.stderr
