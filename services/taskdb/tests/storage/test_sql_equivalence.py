"""What SQL decides for speed is what the lifecycle decides: twins, one moved by SQL, the other by Python.

Each test has pairs of equal tasks. One of a pair goes through the statement of the hot path, the other
through the pure function and `transitions.write` at the same time; then all rows of the two are the same.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from random import Random
from typing import Any

import pytest

from services.taskdb.tests.lifecycle_sequences import SCHEDULER, draw_policy
from services.taskdb.tests.storage.rows import insert_created, insert_session
from taskyard_taskdb.domain import event as events
from taskyard_taskdb.domain.event import Event, runner
from taskyard_taskdb.domain.lifecycle import apply, create
from taskyard_taskdb.domain.task import LeaseState, RunError, TaskState
from taskyard_taskdb.domain.transition import Transition
from taskyard_taskdb.domain.words import ErrorClass, Phase, ReleaseReason, Restart, RunnerLostPolicy
from taskyard_taskdb.storage.change_log.read import LoggedChange, expanded
from taskyard_taskdb.storage.change_log.read import read as read_log
from taskyard_taskdb.storage.claim.bounds import Bounds
from taskyard_taskdb.storage.claim.claimer import Claimer, claim_id
from taskyard_taskdb.storage.claim.claims import LaneClaim, RunnerClaim, TenantClaim
from taskyard_taskdb.storage.claim.lanes import LaneKey
from taskyard_taskdb.storage.lease import renewals
from taskyard_taskdb.storage.lease.lease import Lease
from taskyard_taskdb.storage.notify.bus import Bus, CommitNotice
from taskyard_taskdb.storage.pool import Pool, Tx
from taskyard_taskdb.storage.report.reports import Report, ReportKind, ReportWriter
from taskyard_taskdb.storage.report.short_runs import ShortRuns, ShortRunWriter
from taskyard_taskdb.storage.statements import statements
from taskyard_taskdb.storage.transition.load import database_time, load_for_update
from taskyard_taskdb.storage.transition.write import write
from taskyard_taskdb.watch.reader import BEGINNING

PAIRS = 40
CLASSES = {"sql": 1, "pure": 2}
Key = tuple[str, str]
MakeEvent = Callable[[TaskState], Event]


def key(side: str, n: int) -> Key:
    return "acme", f"{side}-{n:03}"


def keys(side: str, numbers: Sequence[int]) -> list[Key]:
    return [key(side, n) for n in numbers]


async def make_pairs(pool: Pool) -> datetime:
    """Store equal tasks with all kinds of policies; returns their create time, an hour ago."""
    async with pool.transaction() as tx:
        then = await database_time(tx) - timedelta(hours=1)
        made: list[Transition] = []
        for n in range(PAIRS):
            rng = Random(n)
            policy = replace(draw_policy(rng), not_before=None, has_callback=rng.random() < 0.2)
            policy = replace(policy, on_runner_lost=RunnerLostPolicy.WAIT, max_runner_losses=2, max_retries=2)
            for side, class_id in CLASSES.items():
                tenant_id, task_id = key(side, n)
                slot = f"slot-{task_id}" if n % 4 == 0 else None
                task = TaskState(tenant_id, task_id, then, class_id=class_id, slot=slot, policy=policy)
                made.append(create(task, events.Created(actor=SCHEDULER), then, slot_free=True))
        await insert_created(tx, made)
    return then


async def play(pool: Pool, found: Sequence[Key], event_of: MakeEvent, now: datetime) -> None:
    """Apply an event to each of these tasks in Python and store the transitions."""
    async with pool.transaction() as tx:
        loaded = await load_for_update(tx, found)
        await write(tx, [apply(loaded.tasks[k], event_of(loaded.tasks[k]), now, Random(0)) for k in found])


def claim(now: datetime, epoch: int = 0, lease_id: int = 7) -> MakeEvent:
    return lambda task: events.Claimed(
        actor=SCHEDULER,
        runner_id="r0",
        lease_id=lease_id,
        session_epoch=epoch,
        expire_time=now + timedelta(seconds=15),
    )


def report(kind: type[events.HolderEvent], **fields: Any) -> MakeEvent:
    def event_of(task: TaskState) -> Event:
        lease = held(task)
        return kind(
            actor=runner(lease.runner_id),
            runner_id=lease.runner_id,
            generation=task.generation,
            lease_id=lease.lease_id,
            **fields,
        )

    return event_of


def held(task: TaskState) -> LeaseState:
    assert task.lease is not None
    return task.lease


def both(numbers: Sequence[int]) -> list[Key]:
    return keys("sql", numbers) + keys("pure", numbers)


async def load(tx: Tx, found: Sequence[Key]) -> dict[Key, TaskState]:
    return dict((await load_for_update(tx, found)).tasks)


# What is kept of the only run of a plain success in its task's row is compared as a run.
ROWS = {
    "tasks": (
        "SELECT task_id, to_jsonb(t) - ARRAY['uid', 'class_id', 'run_lease_id', 'task_type_revision', "
        "'run_start_checkpoint', 'run_log_sequence'] FROM tasks t "
        "WHERE NOT EXISTS (SELECT FROM leases l WHERE l.task_id = t.task_id)"
    ),
    "leases": "SELECT task_id, to_jsonb(l) FROM leases l",
    "queue": "SELECT task_id, to_jsonb(q) - 'class_id' FROM queue q",
    # A claim ends the lost run one statement before it grants the lease.
    "runs": (
        "SELECT task_id, to_jsonb(r) - CASE state WHEN 7 THEN 'end_time' ELSE '' END "
        "FROM ended_runs r ORDER BY generation"
    ),
    "timers": "SELECT task_id, to_jsonb(t) FROM timers t ORDER BY kind",
    "slots": "SELECT head_task_id, to_jsonb(s) FROM slots s WHERE head_task_id IS NOT NULL",
}


async def compare(pool: Pool, numbers: Sequence[int]) -> None:
    """All rows of the two tasks of each pair are the same, but for their names."""
    async with pool.transaction() as tx:
        states = await load(tx, both(numbers))
        for n in numbers:
            sql, pure = states[key("sql", n)], states[key("pure", n)]
            named = replace(pure, task_id=sql.task_id, class_id=sql.class_id, slot=sql.slot)
            # Under a lease the time of the last change is not stored with the task.
            assert replace(sql, update_time=None) == replace(named, update_time=None), n
        for table, query in ROWS.items():
            rows: dict[str, list[str]] = {}
            for task_id, row in await tx.fetch(query):
                rows.setdefault(task_id, []).append(json.dumps(row, sort_keys=True).replace(task_id, "task"))
            for n in numbers:
                assert rows.get(f"sql-{n:03}") == rows.get(f"pure-{n:03}"), (table, n)
        logged: dict[str, list[LoggedChange]] = {}
        for change in expanded(await read_log(tx, 0, BEGINNING, 1_000_000)):
            logged.setdefault(change.resource_id, []).append(replace(change, id=0, resource_id="task"))
        for n in numbers:
            assert logged.get(f"sql-{n:03}") == logged.get(f"pure-{n:03}"), ("changes", n)


async def to_claimable(pool: Pool, then: datetime) -> None:
    """Pairs that were never claimed, released before and after the start, lost, and failed once."""
    numbers = [n for n in range(PAIRS) if n % 5]
    await play(pool, both(numbers), claim(then), then)
    await play(pool, both(numbers[::4]), report(events.Released, reason=ReleaseReason.NO_CAPACITY), then)
    started = [n for n in numbers if n not in numbers[::4]]
    await play(pool, both(started), report(events.Started, checkpoint_sequence=0), then)
    await play(pool, both(started), report(events.CheckpointStored, sequence=3, progress=b"30"), then)
    await play(pool, both(started[::3]), report(events.Released, reason=ReleaseReason.DRAINED), then)
    later = then + timedelta(seconds=16)
    lost = both(started[1::3])
    await play(pool, lost, lambda task: events.LeaseExpired(generation=task.generation), later)
    error = RunError("EXIT_NONZERO", ErrorClass.TRANSIENT, "exit code 1")
    await play(pool, both(started[2::3]), report(events.Failed, error=error, exit_code=1), later)
    due = later + timedelta(minutes=30)
    await play(pool, both(started[2::3]), lambda task: events.Due(), due)


@pytest.mark.equivalence("claim", "insert_claimed_leases")
@pytest.mark.equivalence("claim", "end_expired_leases")
async def test_a_claim_in_sql_equals_that_of_the_lifecycle(pool: Pool) -> None:
    await to_claimable(pool, await make_pairs(pool))
    async with pool.transaction() as tx:
        before = await load(tx, both(range(PAIRS)))
    claimable = [n for n in range(PAIRS) if before[key("sql", n)].claimable]
    assert {before[key("sql", n)].phase for n in claimable} == {Phase.PENDING, Phase.REDISTRIBUTING}
    assert any(before[key("sql", n)].lease for n in claimable)
    await claim_twins(pool, claimable)
    await compare(pool, claimable)
    async with pool.transaction() as tx:
        ends = await tx.fetch(
            "SELECT l.schedule_time - r.end_time FROM ended_runs r JOIN leases l USING (tenant_id, task_id) "
            "WHERE r.state = 7"
        )
    assert ends and all(timedelta(0) <= before < timedelta(minutes=1) for (before,) in ends)


@pytest.mark.equivalence("claim", "claim_tasks_v1")
async def test_a_claim_in_one_call_equals_that_of_the_lifecycle(
    pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    await to_claimable(pool, await make_pairs(pool))
    async with pool.transaction() as tx:
        await insert_session(tx, "r9", 4)
        before = await load(tx, both(range(PAIRS)))
        # Tasks that have an expired lease are for the statements to claim.
        await tx.execute("DELETE FROM queue WHERE has_lease")
    claimable = [
        n for n in range(PAIRS) if before[key("sql", n)].claimable and before[key("sql", n)].lease is None
    ]
    assert {before[key("sql", n)].attempt for n in claimable} == {0, 1}
    monkeypatch.delitem(statements(), "insert_claimed_leases")
    await claim_twins(pool, claimable, epoch=4)
    await compare(pool, claimable)


async def claim_twins(pool: Pool, numbers: Sequence[int], epoch: int = 0) -> None:
    """Claim one of each pair in SQL, then the other one in Python, with the same lease."""
    lane = LaneKey("acme", CLASSES["sql"], 10, "")
    claims = [
        RunnerClaim("r9", epoch, 100, timedelta(seconds=40), (TenantClaim("acme", 100, (LaneClaim(lane),)),)),
    ]
    (result,) = await Claimer(pool, Bus(), Bounds()).claim("scheduler-1", "claim-1", claims)
    assert {task.task_id for task in result.tasks} == {f"sql-{n:03}" for n in numbers}
    async with pool.transaction() as tx:
        loaded = await load(tx, both(numbers))
        steps = []
        for n in numbers:
            lease = held(loaded[key("sql", n)])
            event = events.Claimed(
                actor=SCHEDULER,
                runner_id="r9",
                claim_request_id=claim_id("claim-1"),
                lease_id=lease.lease_id,
                session_epoch=epoch,
                expire_time=lease.schedule_time + timedelta(seconds=40),
            )
            steps.append(apply(loaded[key("pure", n)], event, lease.schedule_time, Random(0)))
        await write(tx, steps)


@pytest.mark.equivalence("start", "complete_plain")
@pytest.mark.equivalence("succeed", "complete_plain")
async def test_a_plain_success_in_sql_equals_that_of_the_lifecycle(
    pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    then = await make_pairs(pool)
    await to_claimable(pool, then)
    async with pool.transaction() as tx:
        before = await load(tx, both(range(PAIRS)))
    numbers = plain(before)
    await play(pool, both(numbers), claim(then, lease_id=9), then + timedelta(minutes=40))
    begun, start = numbers[::2], then + timedelta(minutes=41)
    await play(pool, both(begun), report(events.Started, checkpoint_sequence=0, time=start), start)
    await play(pool, both(begun), report(events.ProgressReported, progress=b"60"), start)
    times = (None, then, start + timedelta(minutes=1), start + timedelta(days=2))
    async with pool.transaction() as tx:
        before = await load(tx, both(numbers))
    reported: dict[int, list[Report]] = {}
    for n in numbers:
        task, lease = before[key("sql", n)], held(before[key("sql", n)])
        start_report = Report(
            key("sql", n), lease.runner_id, task.generation, lease.lease_id, ReportKind.STARTED, times[n % 3]
        )
        opening = start_report._replace(checkpoint_sequence=task.checkpoint_sequence)
        code = None if n % 3 else 0
        end = start_report._replace(
            kind=ReportKind.SUCCEEDED, time=times[n % 4], result=b"42", exit_code=code
        )
        apart = [opening, end] if n % 4 == 1 else [end.after(opening)]
        reported[n] = [end] if n in begun else apart
    reports = ReportWriter(pool, Bus(), lambda old, new: new)

    async def no_python(*_: object) -> None:
        raise AssertionError("a plain success was left to Python")

    monkeypatch.setattr(reports, "_decide", no_python)
    await reports.apply([item for n in numbers for item in reported[n]])
    await report_twins(pool, reported)


def plain(before: Mapping[Key, TaskState]) -> list[int]:
    """Claimable pairs whose success is plain."""
    found = {n: before[key("sql", n)] for n in range(PAIRS)}
    return [
        n
        for n, task in found.items()
        if task.claimable and task.policy.restart is not Restart.ALWAYS and not task.policy.has_callback
    ]


async def report_twins(pool: Pool, reported: Mapping[int, Sequence[Report]]) -> None:
    """Apply to the other one of each pair in Python what was applied to one in SQL, and compare them."""
    numbers = list(reported)
    async with pool.transaction() as tx:
        loaded = await load(tx, both(numbers))
        steps = []
        for n in numbers:
            task, now = loaded[key("pure", n)], loaded[key("sql", n)].update_time
            assert now is not None
            for event in (event for item in reported[n] for event in (item.start_event(), item.event())):
                if event is not None:
                    steps.append(apply(task, event, now, Random(0)))
                    task = steps[-1].task
        await write(tx, steps)
    assert {loaded[key("sql", n)].phase for n in numbers} == {Phase.SUCCEEDED}
    await compare(pool, numbers)


@pytest.mark.equivalence("start", "complete_runs_v1")
@pytest.mark.equivalence("succeed", "complete_runs_v1")
async def test_short_runs_completed_in_columns_equal_those_of_the_lifecycle(pool: Pool) -> None:
    then = await make_pairs(pool)
    await to_claimable(pool, then)
    async with pool.transaction() as tx:
        numbers = plain(await load(tx, both(range(PAIRS))))
    await play(pool, both(numbers), claim(then, lease_id=9), then + timedelta(minutes=40))
    async with pool.transaction() as tx:
        # As after a run that failed.
        again = "(SELECT task_id FROM leases WHERE generation > 1)"
        await tx.execute(f"UPDATE tasks SET exit_code = 1 WHERE task_id IN {again}")
        await tx.execute("INSERT INTO tenants (tenant_id, display_name, tier) VALUES ('acme', '', 1)")
        await tx.execute("INSERT INTO tenant_counters VALUES (0, 100, 0, now(), 900, 0, 0, 0, 'acme')")
        before = await load(tx, both(numbers))
        simple = "SELECT task_id FROM leases WHERE slot IS NULL AND NOT timed"
        columns = {task_id for (task_id,) in await tx.fetch(simple)}
    completed = [n for n in numbers if key("sql", n)[1] in columns]
    assert {before[key("sql", n)].generation for n in completed} >= {1, 2} and len(completed) < len(numbers)
    start = then + timedelta(minutes=41)
    times = [
        int(time.timestamp() * 1_000_000)
        for time in (then, start, start + timedelta(seconds=20), start + timedelta(days=2))
    ]
    tasks = [before[key("sql", n)] for n in numbers]
    runs = ShortRuns(
        tenant_ids=["acme"] * len(tasks),
        task_ids=[task.task_id for task in tasks],
        generations=[task.generation for task in tasks],
        lease_ids=[9] * len(tasks),
        runner_ids=["r0"] * len(tasks),
        start_times=[times[n % 3] for n in numbers],
        end_times=[times[n % 4] for n in numbers],
        results=[b"42" if n % 3 else b"" for n in numbers],
        exit_codes=[
            None if task.generation > 1 or n % 3 else 0 for n, task in zip(numbers, tasks, strict=True)
        ],
        checkpoints=[task.checkpoint_sequence for task in tasks],
        log_sequences=[n if n % 5 else None for n in numbers],
    )
    bus, notices = Bus(), list[CommitNotice]()
    bus.on_commit(notices.append)
    order = Random(1).sample(range(len(runs)), len(runs))
    shuffled = ShortRuns(*([column[place] for place in order] for column in runs.columns()))
    refused = await ShortRunWriter(pool, bus).complete(shuffled)
    assert {shuffled.task_ids[place] for place in refused} == set(runs.task_ids) - columns
    reports = {n: [runs.report(place)] for place, n in enumerate(numbers) if n in completed}
    async with pool.transaction() as tx:
        assert await tx.fetch("SELECT leased FROM tenant_counters") == [(100 - len(completed),)]
        await tx.execute("DELETE FROM tenant_counters")
    (notice,) = notices
    assert notice.tenants == {"acme"} and [(u[0], u[2]) for u in notice.used] == [("acme", len(completed))]
    long = sum(
        min(max(0.0, (runs.end_times[place] - runs.start_times[place]) / 1e6), 1200.0)
        for place, n in enumerate(numbers)
        if n in completed
    )
    assert notice.used[0][1] * len(completed) == pytest.approx(long, rel=0.01)
    # The log's last entry is stored with the run alone, which the reports below do not name.
    async with pool.transaction() as tx:
        logged = await tx.fetch("SELECT task_id, log_sequence FROM ended_runs WHERE lease_id = 9")
        assert dict(logged) == {f"sql-{n:03}": n if n % 5 else None for n in completed}
        for table, column in (("runs", "log_sequence"), ("tasks", "run_log_sequence")):
            await tx.execute(f"UPDATE {table} SET {column} = NULL WHERE task_id LIKE 'sql-%'")
    await report_twins(pool, reports)


async def past_total_timeout(pool: Pool, begun: Sequence[int]) -> list[Lease]:
    """Leases of exclusive work whose total_timeout has passed: they are not renewed."""
    async with pool.transaction() as tx:
        loaded = await load(tx, keys("sql", begun))
    found = [k for k, task in sorted(loaded.items()) if task.exclusive and task.total_deadline is not None]
    assert found
    return [Lease(*k, 1, 7) for k in found]


@pytest.mark.equivalence("listed", "renew_leases")
async def test_a_renewal_of_a_pull_worker_in_sql_equals_that_of_the_lifecycle(pool: Pool) -> None:
    now = await make_pairs(pool) + timedelta(hours=1)
    numbers = list(range(PAIRS))
    await play(pool, both(numbers), claim(now), now)
    await play(pool, both(numbers[::2]), report(events.Started), now)
    async with pool.transaction() as tx:
        left = await renewals.renew_leases(
            tx, "r0", [Lease(*key("sql", n), 1, 7) for n in numbers], timedelta(seconds=90)
        )
    assert left == await past_total_timeout(pool, numbers[::2])
    async with pool.transaction() as tx:
        loaded = await load(tx, keys("sql", numbers))
    expiry = held(loaded[key("sql", 1)]).expire_time
    assert expiry > now + timedelta(seconds=60)
    returned = report(events.HolderReturned, session_epoch=0, expire_time=expiry)
    await play(pool, keys("pure", numbers), returned, now)
    await compare(pool, numbers)


@pytest.mark.equivalence("listed", "follow_sessions")
async def test_a_lease_that_follows_its_session_in_sql_equals_that_of_the_lifecycle(pool: Pool) -> None:
    now = await make_pairs(pool) + timedelta(hours=1)
    numbers = list(range(PAIRS))
    async with pool.transaction() as tx:
        await tx.execute("INSERT INTO runners (runner_id, key_id, registration) VALUES ('r0', 'k', '')")
        await tx.execute(
            "INSERT INTO sessions (epoch, open_time, heartbeat_time, expire_time, used_capacity, session_id, "
            "instance_id, runner_id, scheduler_id) VALUES (1, now(), now(), now() + interval '1 hour', 0, "
            "gen_random_uuid(), gen_random_uuid(), 'r0', 'scheduler-1')"
        )
    await play(pool, both(numbers), claim(now, epoch=1), now)
    await play(pool, both(numbers[::2]), report(events.Started), now)
    listed = tuple(Lease(*key("sql", n), 1, 7) for n in numbers)
    renewal = renewals.SessionHeartbeat("r0", 1, timedelta(seconds=90), listed)
    async with pool.transaction() as tx:
        (renewed,) = await renewals.renew_sessions(tx, [renewal])
    assert not renewed.lost and renewed.doubtful == await past_total_timeout(pool, numbers[::2])
    expiry = now + timedelta(seconds=90)
    returned = report(events.HolderReturned, session_epoch=1, expire_time=expiry)
    await play(pool, keys("pure", numbers), returned, now)
    await compare(pool, numbers)
