"""Claims in one call: the same tasks as the statements claim, and what is left to the statements."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from random import Random

import pytest

from services.taskdb.tests.storage.rows import insert_session
from services.taskdb.tests.storage.test_claim_bundles import BEGIN, Rows, draw, fill, lane
from taskyard_taskdb.storage.claim.bounds import Bounds
from taskyard_taskdb.storage.claim.claimer import Claimer
from taskyard_taskdb.storage.claim.claims import MAX_BYTES, ClaimResult, LaneClaim, RunnerClaim, TenantClaim
from taskyard_taskdb.storage.claim.one_call import OneCalls
from taskyard_taskdb.storage.notify.bus import Bus
from taskyard_taskdb.storage.pool import Pool, PoolOptions
from taskyard_taskdb.storage.statements import statements

TASK = """
INSERT INTO tasks (tenant_id, task_id, phase, class_id, create_time, update_time, max_retries, kind, priority,
    creator_type, spec, task_type, task_type_tenant)
VALUES (%s, %s, 1, %s, now(), now(), 0, 1, 10, 1, %s, %s, %s)
"""
# The call with its statements, and what the statements alone do.
WAYS = ("one call", "statements")


async def store(pool: Pool, rows: Rows, *, spec: bytes = b"", task_type: str = "") -> None:
    """Tasks with their queue rows; ids are made unique over lanes."""
    async with pool.transaction() as tx:
        await fill(tx, rows)
        for found, waiting in rows.items():
            for _, task_id in waiting:
                home = found.tenant_id if task_type else None
                await tx.execute(TASK, (found.tenant_id, task_id, found.class_id, spec, task_type, home))


def claim(runner: str, count: int, lanes: Sequence[LaneClaim], epoch: int = 1) -> RunnerClaim:
    tenants: dict[str, list[LaneClaim]] = {}
    for found in lanes:
        tenants.setdefault(found.lane.tenant_id, []).append(found)
    wants = tuple(TenantClaim(tenant, count, tuple(listed)) for tenant, listed in tenants.items())
    return RunnerClaim(runner, epoch, count * len(wants), timedelta(seconds=15), wants)


@dataclass
class Counting:
    """Which statements of claims were sent."""

    sent: list[str]

    @classmethod
    def statements(cls, monkeypatch: pytest.MonkeyPatch) -> Counting:
        made = cls([])
        found = statements()

        class Recording(dict[str, str]):
            def __getitem__(self, name: str) -> str:
                made.sent.append(name)
                return found[name]

        monkeypatch.setattr("taskyard_taskdb.storage.statements.statements", lambda: Recording(found))
        return made


class Declining(OneCalls):
    """Leaves every claim to the statements."""

    async def claim(self, *_: object) -> None:
        return None


def claimer(pool: Pool, way: str = "one call") -> Claimer:
    made = Claimer(pool, Bus(), Bounds())
    if way == "statements":
        made._one_calls = Declining(pool, Bus(), Bounds())
    return made


def ids(results: Iterable[ClaimResult]) -> list[list[str]]:
    return [[task.task_id for task in result.tasks] for result in results]


@pytest.mark.parametrize("seed", range(12))
async def test_one_call_claims_what_the_statements_claim(pool: Pool, seed: int) -> None:
    """Of a bundle of many lanes it may claim less than is wanted, but in the same order."""
    rng = Random(seed)
    rows, bundles = draw(rng)
    wants = [found for bundle in bundles for found in bundle.lane_claims]
    claims = [claim(f"r{n}", rng.choice((1, 7, 40)), wants) for n in range(rng.randint(1, 3))]
    async with pool.transaction() as tx:
        for n in range(len(claims)):
            await insert_session(tx, f"r{n}", 1)
    await store(pool, rows)
    claimed = {}
    for way in WAYS:
        results = await claimer(pool, way).claim("scheduler-1", f"claim by {way}", claims)
        async with pool.transaction() as tx:
            left = {row[:2] for row in await tx.fetch("SELECT tenant_id, task_id FROM queue")}
            leases = await tx.fetch("SELECT tenant_id, task_id, runner_id, lease_id FROM leases")
            # The other way finds everything as it was.
            await tx.execute("DELETE FROM leases")
            await tx.execute("DELETE FROM queue")
            await fill(tx, rows)
        assert {row[:3] for row in leases} == {
            (task.tenant_id, task.task_id, f"r{n}")
            for n, result in enumerate(results)
            for task in result.tasks
        }
        assert len({row[3] for row in leases}) == len(leases)
        assert left == {(found.tenant_id, row[1]) for found, waiting in rows.items() for row in waiting} - {
            row[:2] for row in leases
        }
        for result in results:
            for found in result.drained:
                assert all((found.tenant_id, row[1]) not in left for row in rows[found]), found
        claimed[way] = [
            {
                tenant.tenant_id: [
                    task.task_id for task in result.tasks if task.tenant_id == tenant.tenant_id
                ]
                for tenant in one.tenants
            }
            for result, one in zip(results, claims, strict=True)
        ]
    for tenant in claimed["one call"][0]:
        # Over the runners, in the order in which they are served.
        fast = [task for result in claimed["one call"] for task in result[tenant]]
        slow = [task for result in claimed["statements"] for task in result[tenant]]
        assert fast == slow[: len(fast)]
        assert bool(fast) == bool(slow)


async def test_a_claim_is_one_exchange(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    async with pool.transaction() as tx:
        await insert_session(tx, "r", 1)
    await store(pool, {lane(1): [(BEGIN, "a")]})
    counting = Counting.statements(monkeypatch)
    (result,) = await claimer(pool).claim("scheduler-1", "1", [claim("r", 5, [LaneClaim(lane(1))])])
    assert ids([result]) == [["a"]] and result.drained == [lane(1)]
    assert counting.sent == ["claim_tasks"]


@pytest.mark.parametrize("lanes", [1, 3])
async def test_tasks_behind_locked_ones_are_claimed(pool: Pool, lanes: int) -> None:
    """As many as are wanted are locked in every lane: the statements look behind them."""
    rows = {lane(n): [(BEGIN + timedelta(seconds=m), f"{n}-{m}") for m in range(9)] for n in range(lanes)}
    async with pool.transaction() as tx:
        await insert_session(tx, "r", 1)
    await store(pool, rows)
    wants = [LaneClaim(found) for found in rows]
    async with pool.transaction() as other:
        before = BEGIN + timedelta(seconds=1)
        await other.execute("SELECT FROM queue WHERE ready_time < %s FOR UPDATE", (before,))
        (result,) = await claimer(pool).claim("scheduler-1", "1", [claim("r", 1, wants)])
    assert ids([result]) == [["0-1"]]


async def test_a_claim_of_a_superseded_session_is_refused(pool: Pool) -> None:
    async with pool.transaction() as tx:
        await insert_session(tx, "r", 2)
        await insert_session(tx, "s", 1)
    await store(pool, {lane(1): [(BEGIN, "a")]})
    claims = [claim("r", 5, [LaneClaim(lane(1))]), claim("s", 5, [LaneClaim(lane(1))])]
    late, current = await claimer(pool).claim("scheduler-1", "1", claims)
    assert late.error is not None and not late.tasks
    assert ids([current]) == [["a"]]


async def test_a_runner_gets_no_task_of_a_tenant_beyond_its_scope(pool: Pool) -> None:
    async with pool.transaction() as tx:
        await insert_session(tx, "r", 1, "acme", "other")
    await store(pool, {lane(1): [(BEGIN, "a")], lane(1, "foreign"): [(BEGIN, "b")]})
    wants = [LaneClaim(lane(1)), LaneClaim(lane(1, "foreign"))]
    assert ids(await claimer(pool).claim("scheduler-1", "1", [claim("r", 5, wants)])) == [["a"]]


async def test_tasks_of_a_paused_type_stay_in_the_queue(pool: Pool) -> None:
    async with pool.transaction() as tx:
        await insert_session(tx, "r", 1)
        await tx.execute("INSERT INTO tenants (tenant_id, display_name, tier) VALUES ('acme', '', 1)")
        await tx.execute(
            "INSERT INTO task_types (tenant_id, task_type, queue_paused, definition) "
            "VALUES ('acme', 'shy', true, '')"
        )
    await store(pool, {lane(1): [(BEGIN, "a")]}, task_type="shy")
    await store(pool, {lane(1): [(BEGIN + timedelta(seconds=1), "b")]})
    made = claimer(pool)
    (result,) = await made.claim("scheduler-1", "1", [claim("r", 5, [LaneClaim(lane(1))])])
    assert ids([result]) == [["b"]] and result.drained == []
    async with pool.transaction() as tx:
        assert await tx.fetch("SELECT task_id FROM queue") == [("a",)]
    # Reading the lane begins before the task that was passed over.
    assert made._bounds.by_lane[lane(1)] < BEGIN


@pytest.mark.parametrize(
    "gate",
    [
        "INSERT INTO tenant_counters (tenant_id, max_concurrent_tasks, max_queue_depth, rate_limit_per_sec, "
        "rate_burst, tokens, pending, leased) VALUES ('acme', 1, 0, 0, 0, 1, 2, 0)",
        "INSERT INTO quarantines (tenant_id, digest, runner_loss_count, example_task_id) "
        "VALUES ('acme', 'd', 3, 'x')",
    ],
)
async def test_tenants_with_limits_or_quarantines_are_left_to_the_statements(
    pool: Pool, monkeypatch: pytest.MonkeyPatch, gate: str
) -> None:
    async with pool.transaction() as tx:
        await insert_session(tx, "r", 1)
        await tx.execute("INSERT INTO tenants (tenant_id, display_name, tier) VALUES ('acme', '', 1)")
        await tx.execute(gate)
    rows = {lane(1, tenant): [(BEGIN, f"{tenant}-{n}") for n in range(2)] for tenant in ("acme", "free")}
    await store(pool, rows)
    counting = Counting.statements(monkeypatch)
    made = claimer(pool)

    async def claims(request: str, tenant: str, count: int = 1) -> list[list[str]]:
        wants = [LaneClaim(lane(1, tenant))]
        return ids(await made.claim("scheduler-1", request, [claim("r", count, wants)]))

    assert await claims("1", "acme") == [["acme-0"]]
    assert counting.sent[0] == "claim_tasks" and "insert_claimed_leases" in counting.sent
    counting.sent.clear()
    # The tenant is remembered; that of another one is a call still.
    await claims("2", "acme")
    assert "claim_tasks" not in counting.sent
    counting.sent.clear()
    assert await claims("3", "free", 5) == [["free-0", "free-1"]]
    assert counting.sent == ["claim_tasks"]


async def test_a_repeat_returns_the_leases_of_the_first_call(pool: Pool) -> None:
    async with pool.transaction() as tx:
        await insert_session(tx, "r", 1)
    await store(pool, {lane(1): [(BEGIN, "a"), (BEGIN, "b")]})
    claims = [claim("r", 1, [LaneClaim(lane(1))])]
    (first,) = await claimer(pool).claim("scheduler-1", "1", claims)
    (second,) = await claimer(pool).claim("scheduler-1", "1", claims)
    assert [(task.task_id, task.lease_id) for task in second.tasks] == [
        (task.task_id, task.lease_id) for task in first.tasks
    ]


async def test_a_call_whose_connection_broke_is_repeated_by_the_statements(database_url: str) -> None:
    """PostgreSQL has ended the connections of the pool: no error reaches the scheduler."""
    pool = Pool(database_url, PoolOptions(size=2))
    await pool.open()
    async with pool.transaction() as tx:
        await insert_session(tx, "r", 1)
    await store(pool, {lane(1): [(BEGIN, "a")]})
    async with pool.transaction(reserve=True) as tx:
        await tx.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
    found = await claimer(pool).claim("scheduler-1", "1", [claim("r", 1, [LaneClaim(lane(1))])])
    assert ids(found) == [["a"]]
    await pool.close()


async def test_an_answer_that_is_full_gets_no_more_by_the_statements(pool: Pool) -> None:
    """A runner for which nothing fitted claims with its next request; a larger answer would reach nobody."""
    async with pool.transaction() as tx:
        await insert_session(tx, "r", 1)
        await insert_session(tx, "s", 1)
    await store(pool, {lane(1): [(BEGIN, f"{n}") for n in range(8)]}, spec=b"x" * 1_000_000)
    claims = [claim(runner, 4, [LaneClaim(lane(1))]) for runner in ("r", "s")]
    results = await claimer(pool).claim("scheduler-1", "1", claims)
    assert results[0].tasks
    assert sum(len(task.spec) for result in results for task in result.tasks) <= MAX_BYTES


async def test_a_repeat_that_returns_much_claims_less_for_others(pool: Pool) -> None:
    """The first call found nothing for one runner, and its answer was lost."""
    async with pool.transaction() as tx:
        await insert_session(tx, "r", 1)
        await insert_session(tx, "s", 1)
    claims = [claim("r", 4, [LaneClaim(lane(1))]), claim("s", 4, [LaneClaim(lane(2))])]
    await store(pool, {lane(1): [(BEGIN, f"a{n}") for n in range(3)]}, spec=b"x" * 1_000_000)
    first = await claimer(pool).claim("scheduler-1", "1", claims)
    assert [len(result.tasks) for result in first] == [3, 0]
    await store(pool, {lane(2): [(BEGIN, f"b{n}") for n in range(3)]}, spec=b"x" * 1_000_000)
    again = await claimer(pool).claim("scheduler-1", "1", claims)
    assert ids(again)[0] == ids(first)[0]
    assert sum(len(task.spec) for result in again for task in result.tasks) <= MAX_BYTES
