"""Each guard of the hot statements is needed: without it, a test that passes with it fails."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from random import Random

import pytest
from psycopg.errors import DeadlockDetected

from services.taskdb.tests.storage.rows import insert_created
from taskyard.errors import TaskyardError
from taskyard_taskdb.domain import event as events
from taskyard_taskdb.domain.lifecycle import apply, create
from taskyard_taskdb.domain.policy import TaskPolicy
from taskyard_taskdb.domain.task import TaskState
from taskyard_taskdb.domain.words import Phase, ReleaseReason
from taskyard_taskdb.storage.claim.bounds import Bounds
from taskyard_taskdb.storage.claim.claimer import Claimer
from taskyard_taskdb.storage.claim.claims import LaneClaim, RunnerClaim, TenantClaim
from taskyard_taskdb.storage.claim.lanes import LaneKey
from taskyard_taskdb.storage.notify.bus import Bus
from taskyard_taskdb.storage.pool import Pool, Tx
from taskyard_taskdb.storage.report import reports
from taskyard_taskdb.storage.report.reports import Applied, Outcome, Report, ReportKind, ReportWriter
from taskyard_taskdb.storage.slot import slots
from taskyard_taskdb.storage.statements import statements
from taskyard_taskdb.storage.transition import write as write_module
from taskyard_taskdb.storage.transition.load import StateMoved, load_for_update
from taskyard_taskdb.storage.transition.task_rows import read_task
from taskyard_taskdb.storage.transition.write import write

RUNNER = "pull-1"
Scenario = Callable[[Pool], Awaitable[None]]


async def make(
    pool: Pool, count: int = 1, slot: str | None = None, **policy: object
) -> list[tuple[str, str]]:
    """New tasks, claimable; of a slot only the first is."""
    now = datetime.now(UTC)
    created = []
    for n in range(count):
        task = TaskState("acme", f"t{n:04}", now, class_id=1, slot=slot, policy=TaskPolicy(**policy))  # type: ignore[arg-type]
        created.append(create(task, events.Created(), now, slot_free=n == 0))
    async with pool.transaction() as tx:
        await insert_created(tx, created)
    return [("acme", transition.task.task_id) for transition in created]


async def claim(pool: Pool, count: int = 1) -> list[Report]:
    """Claimed tasks, each as the report of its success."""
    lane_claim = LaneClaim(LaneKey("acme", 1, 10, ""))
    claim = RunnerClaim(RUNNER, 0, count, timedelta(minutes=1), (TenantClaim("acme", count, (lane_claim,)),))
    (result,) = await Claimer(pool, Bus(), Bounds()).claim("s", f"claim-{random_id()}", [claim])
    return [
        Report((g.tenant_id, g.task_id), RUNNER, g.generation, g.lease_id, ReportKind.SUCCEEDED)
        for g in result.tasks
    ]


def random_id() -> str:
    return f"{Random().getrandbits(64):x}"


async def report_runs(pool: Pool, *reports: Report) -> list[Outcome]:
    return await ReportWriter(pool, Bus(), lambda old, new: new).apply(reports)


async def phase_of(pool: Pool, key: tuple[str, str]) -> Phase:
    async with pool.transaction() as tx:
        return (await load_for_update(tx, [key])).tasks[key].phase


async def another_generation_is_refused(pool: Pool) -> None:
    await make(pool)
    (report,) = await claim(pool)
    for change in (1, -1):
        forged = report._replace(generation=report.generation + change)
        outcomes = await report_runs(pool, forged._replace(kind=ReportKind.STARTED), forged)
        assert not any(isinstance(outcome, Applied) for outcome in outcomes)
        assert await phase_of(pool, report.key) is Phase.SCHEDULED


async def another_lease_id_is_refused(pool: Pool) -> None:
    await make(pool)
    (report,) = await claim(pool)
    forged = report._replace(lease_id=report.lease_id ^ 1)
    outcomes = await report_runs(pool, forged._replace(kind=ReportKind.STARTED), forged)
    assert not any(isinstance(outcome, Applied) for outcome in outcomes)
    assert await phase_of(pool, report.key) is Phase.SCHEDULED


async def an_ended_task_is_not_overwritten(pool: Pool) -> None:
    """A lease of an ended task, as a failover that lost writes may leave it."""
    await make(pool)
    (report,) = await claim(pool)
    async with pool.transaction() as tx:
        await tx.execute("UPDATE tasks SET phase = 13, end_time = now()")
    with contextlib.suppress(TaskyardError):
        await report_runs(pool, report._replace(kind=ReportKind.STARTED), report)
    async with pool.transaction() as tx:
        assert await tx.fetch("SELECT phase FROM tasks") == [(13,)]


async def a_stale_decision_is_not_written(pool: Pool) -> None:
    """What one transaction decided about a state that another has left behind."""
    (key,) = await make(pool, slot="s")
    (report,) = await claim(pool)
    async with pool.transaction() as tx:
        stale = (await load_for_update(tx, [key])).tasks[key]
    await report_runs(pool, report)
    late = apply(stale, report.event(), datetime.now(UTC), Random(0))
    with pytest.raises(StateMoved):
        async with pool.transaction() as tx:
            await write(tx, [late])


async def a_claim_by_another_generation_is_not_ended(pool: Pool) -> None:
    """A transition of the first lease must not end the second one."""
    (key,) = await make(pool, slot="s")
    (first,) = await claim(pool)
    async with pool.transaction() as tx:
        stale = (await load_for_update(tx, [key])).tasks[key]
    release = events.Released(
        runner_id=RUNNER,
        generation=first.generation,
        lease_id=first.lease_id,
        reason=ReleaseReason.NO_CAPACITY,
        actor=events.runner(RUNNER),
    )
    async with pool.transaction() as tx:
        await write(tx, [apply(stale, release, datetime.now(UTC), Random(0))])
    (second,) = await claim(pool)
    # As after a failover that rolled versions back.
    async with pool.transaction() as tx:
        await tx.execute("UPDATE leases SET version = %s", (stale.version,))
        await tx.execute("UPDATE tasks SET version = 1")
    late = apply(stale, first.event(), datetime.now(UTC), Random(0))
    with contextlib.suppress(StateMoved):
        async with pool.transaction() as tx:
            await write(tx, [late])
    async with pool.transaction() as tx:
        rows = await tx.fetch("SELECT generation, lease_id FROM leases")
    assert rows == [(second.generation, second.lease_id)]


async def a_waiter_that_arrives_while_the_slot_is_freed_is_promoted(pool: Pool) -> None:
    """The creator holds the slot's lock while the freer waits for it."""
    await make(pool, slot="s")
    (report,) = await claim(pool)
    waiter = TaskState("acme", "waiter", datetime.now(UTC), class_id=1, slot="s")
    created = create(waiter, events.Created(), datetime.now(UTC))
    async with pool.transaction() as tx:
        await slots.lock(tx, [("acme", "s")])
        await insert_created(tx, [created])
        freer = asyncio.create_task(report_runs(pool, report))
        await wait_for_locks(pool, 1)
    await freer
    assert [r.key[1] for r in await claim(pool)] == ["waiter"]


async def start(pool: Pool, *reports: Report) -> None:
    """Report these runs as started, so that their successes are plain."""
    await report_runs(pool, *(report._replace(kind=ReportKind.STARTED) for report in reports))


async def a_waiter_that_arrives_during_a_plain_success_is_promoted(pool: Pool) -> None:
    """The creator holds the slot's lock while the one statement of plain successes waits for it."""
    await make(pool, slot="s")
    (report,) = await claim(pool)
    await start(pool, report)
    waiter = TaskState("acme", "waiter", datetime.now(UTC), class_id=1, slot="s")
    created = create(waiter, events.Created(), datetime.now(UTC))
    async with pool.transaction() as tx:
        await slots.lock(tx, [("acme", "s")])
        await insert_created(tx, [created])
        freer = asyncio.create_task(report_runs(pool, report))
        await wait_for_locks(pool, 1)
    await freer
    assert [r.key[1] for r in await claim(pool)] == ["waiter"]


async def a_slot_that_another_task_heads_is_left_to_it(pool: Pool) -> None:
    """As a failover that lost writes may leave it: the task that ends has lost its slot."""
    await make(pool, slot="s")
    (report,) = await claim(pool)
    await start(pool, report)
    async with pool.transaction() as tx:
        await tx.execute("UPDATE slots SET head_task_id = 'other'")
    await report_runs(pool, report)
    async with pool.transaction() as tx:
        assert await tx.fetch("SELECT slot, head_task_id FROM slots") == [("s", "other")]


async def freer_and_creator_lock_slots_in_one_order(pool: Pool) -> None:
    """The tasks end in an order that is not that of their slots; a third has the slot in the middle."""
    now = datetime.now(UTC)
    made = [
        create(TaskState("acme", f"t{n}", now, class_id=1, slot=slot), events.Created(), now, slot_free=True)
        for n, slot in enumerate("zma")
    ]
    async with pool.transaction() as tx:
        await insert_created(tx, made)
    claimed = await claim(pool, 3)
    await start(pool, *claimed)
    successes = sorted(claimed, key=lambda report: report.key)

    async def free() -> None:
        async with pool.transaction() as tx:
            await reports._complete_plain(tx, successes)

    async def lock() -> None:
        async with pool.transaction() as tx:
            await slots.lock(tx, [("acme", slot) for slot in "amz"])

    async with pool.transaction() as tx:
        await tx.execute("SELECT FROM slots WHERE slot = 'm' FOR UPDATE")
        work = [asyncio.create_task(free())]
        await wait_for_locks(pool, 1)
        work.append(asyncio.create_task(lock()))
        await wait_for_locks(pool, 2)
    try:
        await asyncio.gather(*work)
    except DeadlockDetected as error:
        raise AssertionError("a deadlock") from error


async def wait_for_locks(pool: Pool, count: int) -> None:
    """Return once `count` other transactions of this database wait for locks."""
    waiting = (
        "SELECT count(*) FROM pg_stat_activity "
        "WHERE datname = current_database() AND wait_event_type = 'Lock'"
    )
    async with asyncio.timeout(10), pool.reading() as tx:
        while (row := await tx.fetch_row(waiting)) is None or row[0] < count:
            pass


async def two_that_lock_the_same_tasks_do_not_deadlock(pool: Pool) -> None:
    """If their orders differ, each has some of the tasks when it meets a third lock in their middle."""
    keys = await make(pool, 9)
    async with pool.transaction() as tx:
        # Held by a user: neither queue rows nor leases come before the tasks themselves.
        await tx.execute("UPDATE tasks SET phase = 4, pending_reason = 0")
        await tx.execute("DELETE FROM queue")

    async def lock(direction: str) -> None:
        async with pool.transaction() as tx:
            await tx.execute("SELECT set_config('taskyard.direction', %s, true)", (direction,))
            await load_for_update(tx, keys)

    async with pool.transaction() as tx:
        await tx.execute("SELECT FROM tasks WHERE task_id = %s FOR UPDATE", (keys[4][1],))
        work = [asyncio.create_task(lock(direction)) for direction in ("1", "-1")]
        await wait_for_locks(pool, 2)
    try:
        await asyncio.gather(*work)
    except DeadlockDetected as error:
        raise AssertionError("a deadlock") from error


async def one_statement_for_the_slot(monkeypatch: pytest.MonkeyPatch) -> None:
    """Choose the successor in the statement that locks the slot, as if the second were not needed."""
    chosen: list[TaskState] = []
    columns = statements()["choose_heads"].partition("FROM unnest")[0]
    combined = f"""
        WITH locked AS (
            INSERT INTO slots AS s (tenant_id, slot)
            SELECT * FROM unnest(%(tenant_ids)s::text[], %(slots)s::text[])
            ON CONFLICT (tenant_id, slot) DO UPDATE SET waiting_count = s.waiting_count
            RETURNING s.tenant_id, s.slot, s.head_task_id
        )
        {columns}, locked.head_task_id, locked.tenant_id, locked.slot
        FROM locked LEFT JOIN tasks t ON t.tenant_id = locked.tenant_id AND t.slot = locked.slot
            AND t.end_time IS NULL AND t.phase = 1 AND t.pending_reason = 4
    """

    async def lock(tx: Tx, keys: object) -> dict[slots.SlotKey, str | None]:
        wanted = sorted(set(keys))  # type: ignore[call-overload]
        rows = await tx.fetch(combined, slots._arrays(wanted))
        chosen.extend(read_task(row[:-3]) for row in rows if row[0] is not None)
        return {(row[-2], row[-1]): row[-3] for row in rows}

    async def choose(tx: Tx, free: object) -> list[TaskState]:
        return chosen

    async def no_waiters(tx: Tx, keys: object) -> bool:
        return False

    real = slots.lock
    used = [real]

    async def first_real_then_mutated(tx: Tx, keys: object) -> dict[slots.SlotKey, str | None]:
        # The test's own creator locks as it should; the freer does not.
        return await (used.pop() if used else lock)(tx, keys)  # type: ignore[arg-type]

    monkeypatch.setattr(slots, "lock", first_real_then_mutated)
    monkeypatch.setattr(slots, "choose", choose)
    monkeypatch.setattr(slots, "have_waiters", no_waiters)


def no_second_look_at_the_slot(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look for waiters in the statement that locks the slots, and free those where it saw none."""
    seen = (
        "head_task_id = task_id AND NOT EXISTS (SELECT FROM tasks w WHERE w.tenant_id = held.tenant_id "
        "AND w.live_slot = held.slot AND w.phase = 1 AND w.pending_reason = 4)"
    )
    without(monkeypatch, "complete_plain", "head_task_id = task_id", instead=seen)

    async def leave(tx: Tx, keys: list[slots.SlotKey]) -> list[slots.SlotKey]:
        await tx.execute(statements()["delete_slots"], slots._arrays(keys))
        return []

    monkeypatch.setattr(slots, "leave", leave)


def without(monkeypatch: pytest.MonkeyPatch, name: str, *fragments: str, instead: str = "") -> None:
    """Take fragments out of a named statement; each has to be there."""
    sql = statements()[name]
    for fragment in fragments:
        assert fragment in sql, f"{name} has no {fragment!r}"
        sql = sql.replace(fragment, instead)
    monkeypatch.setitem(statements(), name, sql)


def in_no_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each transaction locks in an order of its own."""
    own = "ORDER BY substr(k.task_id, 2)::integer * current_setting('taskyard.direction')::integer"
    key_order = 'ORDER BY k.tenant_id COLLATE "C", k.task_id COLLATE "C"'
    without(monkeypatch, "lock_tasks", key_order, instead=own)


SCENARIOS: tuple[Scenario, ...] = (
    another_generation_is_refused,
    another_lease_id_is_refused,
    an_ended_task_is_not_overwritten,
    a_stale_decision_is_not_written,
    a_claim_by_another_generation_is_not_ended,
    a_waiter_that_arrives_while_the_slot_is_freed_is_promoted,
    a_waiter_that_arrives_during_a_plain_success_is_promoted,
    a_slot_that_another_task_heads_is_left_to_it,
    freer_and_creator_lock_slots_in_one_order,
    two_that_lock_the_same_tasks_do_not_deadlock,
)

MUTATIONS: dict[str, tuple[Scenario, Callable[[pytest.MonkeyPatch], object]]] = {
    "success without the generation": (
        another_generation_is_refused,
        lambda patch: without(patch, "complete_plain", "l.generation = i.generation AND "),
    ),
    "success without the lease_id": (
        another_lease_id_is_refused,
        lambda patch: without(patch, "complete_plain", "l.lease_id = i.lease_id AND "),
    ),
    "success without the terminal guard": (
        an_ended_task_is_not_overwritten,
        lambda patch: without(patch, "complete_plain", " AND t.end_time IS NULL"),
    ),
    "a written decision without its versions and lease": (
        a_stale_decision_is_not_written,
        lambda patch: _unguarded(patch),
    ),
    "an end of a run without generation and lease_id": (
        a_claim_by_another_generation_is_not_ended,
        lambda patch: without(
            patch, "end_runs", "l.generation = c.generation AND l.lease_id = c.lease_id AND "
        ),
    ),
    "one statement for the slot": (
        a_waiter_that_arrives_while_the_slot_is_freed_is_promoted,
        one_statement_for_the_slot,
    ),
    "no second look at the slot of a plain success": (
        a_waiter_that_arrives_during_a_plain_success_is_promoted,
        no_second_look_at_the_slot,
    ),
    "a plain success that frees whatever slot it had": (
        a_slot_that_another_task_heads_is_left_to_it,
        lambda patch: without(patch, "complete_plain", "head_task_id = task_id", instead="true"),
    ),
    "slots in the order of their tasks": (
        freer_and_creator_lock_slots_in_one_order,
        lambda patch: without(patch, "complete_plain", " ORDER BY tenant_id, slot"),
    ),
    "no lock order": (two_that_lock_the_same_tasks_do_not_deadlock, in_no_order),
}


def _unguarded(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(write_module, "_expect", lambda expected, found, what: None)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
async def test_every_guard_holds(pool: Pool, scenario: Scenario) -> None:
    await scenario(pool)


@pytest.mark.parametrize("name", MUTATIONS)
async def test_each_mutation_is_caught(pool: Pool, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    scenario, mutate = MUTATIONS[name]
    outcome = mutate(monkeypatch)
    if outcome is not None:
        await outcome  # type: ignore[misc]
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        await scenario(pool)
