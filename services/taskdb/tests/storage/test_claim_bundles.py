"""Claims over many lanes: SQL claims the same tasks as a comparison of all heads, also under concurrency."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from random import Random

import pytest

from taskyard_taskdb.storage.claim.bundles import Bundle, ClaimedRows, claim_bundles, waves
from taskyard_taskdb.storage.claim.claims import Amounts, LaneClaim, RunnerClaim, TenantClaim
from taskyard_taskdb.storage.claim.lanes import LaneKey
from taskyard_taskdb.storage.claim.merge import Candidate
from taskyard_taskdb.storage.pool import Pool, Tx

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
# By lane, in the order of their turn.
Rows = dict[LaneKey, list[tuple[datetime, str]]]


def lane(class_id: int, tenant: str = "acme") -> LaneKey:
    return LaneKey(tenant, class_id, 10, "")


def claim(
    lanes: Sequence[LaneClaim],
    count: int,
    *,
    runner: str = "r",
    budget: Amounts | None = None,
    tenant: str = "acme",
) -> RunnerClaim:
    return RunnerClaim(
        runner, 0, count, timedelta(minutes=1), (TenantClaim(tenant, count, tuple(lanes)),), budget
    )


async def fill(tx: Tx, rows: Rows) -> None:
    for found, waiting in rows.items():
        for ready_time, task_id in waiting:
            await tx.execute(
                "INSERT INTO queue (tenant_id, class_id, priority, pinned_runner, ready_time, task_id) "
                "VALUES (%s, %s, %s, %s, %s, %s)",
                (*found, ready_time, task_id),
            )


def draw(rng: Random) -> tuple[Rows, list[Bundle]]:
    """Lanes of very different lengths, with ties, and bundles of them for some runners."""
    rows: Rows = {}
    bundles = []
    for n in range(rng.randint(1, 3)):
        lane_claims = []
        for class_id in range(rng.choice((1, 2, 6, 20))):
            found = lane(class_id, f"tenant-{n}")
            lane_claims.append(LaneClaim(found, timedelta(seconds=rng.choice((0, 0, 5, 30)))))
            times = [BEGIN + timedelta(seconds=rng.randint(0, 60)) for _ in range(rng.choice((0, 1, 5, 60)))]
            rows[found] = sorted((time, f"{class_id}-{m}") for m, time in enumerate(times))
        claimants = [(position, rng.choice((1, 3, 20, 90))) for position in range(rng.randint(1, 3))]
        bundles.append(Bundle(tuple(lane_claims), claimants))
    return rows, bundles


def expected(rows: Rows, bundle: Bundle) -> list[Candidate]:
    """All rows of the bundle in their order, as many as are wanted."""
    turns = sorted(
        (time - lane_claim.offset, n, task_id, lane_claim.lane, time)
        for n, lane_claim in enumerate(bundle.lane_claims)
        for time, task_id in rows[lane_claim.lane]
    )
    return [
        Candidate(found, time, task_id, position)
        for position, (_, _, task_id, found, time) in zip(bundle.positions(), turns, strict=False)
    ]


@pytest.mark.parametrize("seed", range(12))
async def test_tasks_are_claimed_in_order_over_all_lanes(pool: Pool, seed: int) -> None:
    for part in range(8):
        rows, bundles = draw(Random(seed * 100 + part))
        async with pool.transaction() as tx:
            await tx.execute("DELETE FROM queue")
            await fill(tx, rows)
            taken = await claim_bundles(tx, [bundles], {})
            left = {row[0] for row in await tx.fetch("SELECT tenant_id || class_id || task_id FROM queue")}
        for bundle in bundles:
            lanes = {lane_claim.lane for lane_claim in bundle.lane_claims}
            assert [found for found in taken.rows if found.lane in lanes] == expected(rows, bundle)
        gone = {f"{c.lane.tenant_id}{c.lane.class_id}{c.task_id}" for c in taken.rows}
        every = {f"{key.tenant_id}{key.class_id}{row[1]}" for key, waiting in rows.items() for row in waiting}
        assert left == every - gone
        assert not taken.skipped
        for found in taken.empty():
            assert all(f"{found.tenant_id}{found.class_id}{row[1]}" in gone for row in rows[found])


async def test_tasks_locked_by_another_transaction_are_skipped(pool: Pool) -> None:
    """The first rows of every lane are locked, as many as are wanted: what lies behind them is taken."""
    rows = {lane(n): [(BEGIN + timedelta(seconds=m), f"{n}-{m:02}") for m in range(30)] for n in range(6)}
    async with pool.transaction() as tx:
        await fill(tx, rows)
    bundle = Bundle(tuple(LaneClaim(found) for found in rows), [(0, 12)])
    async with pool.transaction() as other:
        await other.execute(
            "SELECT FROM queue WHERE ready_time < %s FOR UPDATE", (BEGIN + timedelta(seconds=3),)
        )
        async with pool.transaction() as tx:
            taken = await claim_bundles(tx, [[bundle]], {})
    assert sorted(c.task_id for c in taken.rows) == sorted(f"{n}-{m:02}" for n in range(6) for m in (3, 4))
    assert {c.task_id for c in taken.skipped} == {f"{n}-{m:02}" for n in range(6) for m in range(3)}
    assert not taken.empty()


async def test_a_lane_whose_remaining_tasks_are_locked_is_not_reported_empty(pool: Pool) -> None:
    rows = {lane(n): [(BEGIN, f"{n}-a"), (BEGIN + timedelta(seconds=1), f"{n}-b")] for n in range(6)}
    async with pool.transaction() as tx:
        await fill(tx, rows)
    bundle = Bundle(tuple(LaneClaim(found) for found in rows), [(0, 50)])
    async with pool.transaction() as other:
        await other.execute("SELECT FROM queue WHERE task_id = '2-b' FOR UPDATE")
        async with pool.transaction() as tx:
            taken = await claim_bundles(tx, [[bundle]], {})
    assert len(taken.rows) == 11
    assert taken.empty() == {lane(n) for n in range(6) if n != 2}


@pytest.mark.parametrize(("wanted", "empty"), [(2, False), (3, True), (4, True)])
async def test_a_lane_is_reported_empty_once_its_last_task_is_claimed(
    pool: Pool, wanted: int, empty: bool
) -> None:
    """Also if no more was wanted: another claim would find nothing."""
    # They come from one flush and differ in their ids only.
    rows = {lane(1): [(BEGIN, f"1-{n}") for n in range(3)], lane(2): [(BEGIN, "2-0")]}
    async with pool.transaction() as tx:
        await fill(tx, rows)
        taken = await claim_bundles(tx, [[Bundle((LaneClaim(lane(1)),), [(0, wanted)])]], {})
    assert len(taken.rows) == min(wanted, 3)
    assert (lane(1) in taken.empty()) == empty


async def test_rows_below_the_bound_of_their_lane_are_not_read(pool: Pool) -> None:
    rows = {lane(n): [(BEGIN, f"{n}-a"), (BEGIN + timedelta(minutes=1), f"{n}-b")] for n in range(6)}
    bounds = {lane(n): BEGIN + timedelta(seconds=30) for n in range(6)}
    async with pool.transaction() as tx:
        await fill(tx, rows)
        bundle = Bundle(tuple(LaneClaim(found) for found in rows), [(0, 50)])
        taken = await claim_bundles(tx, [[bundle]], bounds)
    assert sorted(c.task_id for c in taken.rows) == [f"{n}-b" for n in range(6)]


async def test_no_task_of_a_suspended_tenant_is_claimed(pool: Pool) -> None:
    rows = {lane(n, tenant): [(BEGIN, f"{tenant}-{n}")] for n in range(6) for tenant in ("acme", "bad")}
    async with pool.transaction() as tx:
        await tx.execute(
            "INSERT INTO tenants (tenant_id, display_name, tier, suspended) VALUES ('bad', 'bad', 1, true)"
        )
        await fill(tx, rows)
        bundles = [
            Bundle(tuple(LaneClaim(found) for found in rows if found.tenant_id == tenant), [(0, 50)])
            for tenant in ("acme", "bad")
        ]
        taken: ClaimedRows = await claim_bundles(tx, [bundles], {})
    assert {c.lane.tenant_id for c in taken.rows} == {"acme"}


def test_runners_that_want_the_same_lanes_share_a_bundle() -> None:
    lane_claims = [LaneClaim(lane(n)) for n in range(3)]
    ((bundle,),) = waves([(n, claim(lane_claims, 10, runner=f"r{n}")) for n in range(5)]) or []
    assert bundle.claimants == [(n, 10) for n in range(5)]
    assert bundle.positions()[9:11] == [0, 1]


def test_bundles_with_a_common_lane_are_claimed_one_after_the_other() -> None:
    first, second, third = ([LaneClaim(lane(n)) for n in found] for found in ((1, 2), (2, 3), (4,)))
    made = waves([(0, claim(first, 10)), (1, claim(second, 10)), (2, claim(third, 10))])
    assert made is not None
    assert [[bundle.claimants[0][0] for bundle in wave] for wave in made] == [[0, 2], [1]]


def test_claims_with_too_many_bundles_are_decided_in_python() -> None:
    claims = [(n, claim([LaneClaim(lane(0)), LaneClaim(lane(n + 1))], 10)) for n in range(5)]
    assert waves(claims) is None


@pytest.mark.parametrize(
    ("costs", "budget", "count"),
    [
        # Enough for the dearest: it never binds.
        ((1, 5), 50, 10),
        # It binds, but equally whichever lane a task comes from.
        ((5, 5), 20, 4),
        # It binds, and differently.
        ((1, 5), 20, None),
        ((0, 0), 0, 10),
        ((None, None), 0, 10),
    ],
)
def test_a_budget_is_replaced_by_a_count_only_where_they_are_equivalent(
    costs: tuple[int | None, int | None], budget: int, count: int | None
) -> None:
    lane_claims = [
        LaneClaim(lane(n), cost={"cpu_millis": cost} if cost is not None else None)
        for n, cost in enumerate(costs)
    ]
    made = waves([(0, claim(lane_claims, 10, budget={"cpu_millis": budget}))])
    assert (None if made is None else made[0][0].count) == count


def test_a_lane_that_is_named_twice_is_decided_in_python() -> None:
    assert waves([(0, claim([LaneClaim(lane(1)), LaneClaim(lane(1))], 10))]) is None
