"""What tenants have used: sampled from the leases, each second worth half after five minutes."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator
from datetime import UTC, datetime

import pytest

from taskyard_taskdb.storage import shares, usage
from taskyard_taskdb.storage.pool import Pool


@pytest.fixture
async def pool(database_url: str) -> AsyncIterator[Pool]:
    made = Pool(database_url)
    await made.open()
    yield made
    await made.close()


def decay(used: float, held: int, seconds: float) -> float:
    """Use after some time in which so many leases were held."""
    kept: float = 0.5 ** (seconds / 300)
    return used * kept + held * (1 - kept) * 300 / math.log(2)


async def hold(pool: Pool, tenant_id: str, count: int) -> None:
    """Make the tenant hold so many leases."""
    async with pool.transaction() as tx:
        await tx.execute("DELETE FROM leases WHERE tenant_id = %s", (tenant_id,))
        await tx.execute(
            "INSERT INTO leases (generation, lease_id, version, schedule_time, attempt, phase, overlap, "
            "on_runner_lost, tenant_id, task_id, runner_id, claim_request_id) "
            "SELECT 1, n, 1, now(), 0, 2, 1, 1, %s, 't' || n, 'r', 'c' FROM generate_series(1, %s) n",
            (tenant_id, count),
        )


async def sample_after(pool: Pool, seconds: float) -> tuple[float, int]:
    """Usage and held count of "default" in a sample so long after the last one."""
    async with pool.transaction() as tx:
        await tx.execute(
            "UPDATE tenant_usage SET sample_time = sample_time - make_interval(secs => %s)", (seconds,)
        )
        await usage.sample(tx)
        row = await tx.fetch_row("SELECT usage, held FROM tenant_usage WHERE tenant_id = 'default'")
    assert row is not None
    return row[0], row[1]


async def test_use_grows_with_what_is_held_and_halves_in_five_minutes(pool: Pool) -> None:
    await hold(pool, "default", 10)
    assert await sample_after(pool, 0.0) == (0.0, 10)
    used, held = await sample_after(pool, 60.0)
    assert held == 10
    assert used == pytest.approx(decay(0.0, 10, 60.0), rel=0.02)
    await hold(pool, "default", 0)
    after, held = await sample_after(pool, 0.0)
    assert held == 0
    assert after == pytest.approx(used, rel=0.02)
    assert (await sample_after(pool, 300.0))[0] == pytest.approx(after, rel=0.02), "read as it decays"


async def test_a_share_tells_use_as_of_now_and_what_is_held(pool: Pool) -> None:
    await hold(pool, "default", 4)
    await sample_after(pool, 0.0)
    used, _ = await sample_after(pool, 100.0)
    async with pool.transaction() as tx:
        await tx.execute("UPDATE tenant_usage SET sample_time = sample_time - interval '30 seconds'")
    async with pool.reading() as tx:
        (share,) = [found for found in await shares.read_shares(tx) if found.tenant_id == "default"]
    assert share.leased_count == 4
    assert share.usage == pytest.approx(decay(used, 4, 30.0), rel=0.02)


async def test_only_tenants_sampled_since_are_told_again(pool: Pool) -> None:
    await hold(pool, "default", 1)
    await sample_after(pool, 0.0)
    async with pool.reading() as tx:
        told = await usage.sampled_since(tx, datetime(2000, 1, 1, tzinfo=UTC))
        assert list(told) == ["default"]
        assert await usage.sampled_since(tx, told["default"]) == {}


async def test_a_tenant_that_used_nothing_for_hours_is_forgotten(pool: Pool) -> None:
    await hold(pool, "default", 1)
    await sample_after(pool, 0.0)
    await hold(pool, "default", 0)
    await sample_after(pool, 0.0)
    async with pool.transaction() as tx:
        assert await usage.forget(tx) == 0
        await tx.execute("UPDATE tenant_usage SET sample_time = now() - interval '5 hours'")
        assert await usage.forget(tx) == 1
