"""SQL and the pure lifecycle agree: random lives are replayed through the database and compared."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from random import Random

import pytest

from services.taskdb.tests.effect_model import EffectModel
from services.taskdb.tests.lifecycle_sequences import EPOCH, SCHEDULER, Life, draw_policy, live
from services.taskdb.tests.storage.rows import insert_created
from taskyard_taskdb.domain import event as events
from taskyard_taskdb.domain.lifecycle import apply, create
from taskyard_taskdb.domain.task import RunError, TaskState
from taskyard_taskdb.domain.transition import DeleteTask, Transition
from taskyard_taskdb.domain.words import PendingReason, RunState, TimerKind
from taskyard_taskdb.storage.change_log.read import LoggedChange, expanded
from taskyard_taskdb.storage.change_log.read import read as read_log
from taskyard_taskdb.storage.claim.bounds import Bounds
from taskyard_taskdb.storage.claim.claimer import Claimer, claim_id
from taskyard_taskdb.storage.claim.claims import LaneClaim, RunnerClaim, TenantClaim
from taskyard_taskdb.storage.claim.lanes import LaneKey
from taskyard_taskdb.storage.notify.bus import Bus
from taskyard_taskdb.storage.pool import Pool, Tx
from taskyard_taskdb.storage.report.reports import Report, ReportKind, ReportWriter
from taskyard_taskdb.storage.transition import write as write_module
from taskyard_taskdb.storage.transition.load import load_for_update
from taskyard_taskdb.storage.transition.task_rows import Steps
from taskyard_taskdb.storage.transition.write import write
from taskyard_taskdb.watch.reader import BEGINNING

LIVES = 1000
LENGTH = 25


@dataclass
class Replay:
    """A lifecycle that is replayed in the database."""

    life: Life
    task: TaskState
    model: EffectModel
    created: Transition
    step: int = 0

    @property
    def key(self) -> tuple[str, str]:
        return self.task.tenant_id, self.task.task_id


def begin(seed: int) -> Replay:
    life = live(Random(seed), LENGTH, task_id=f"t{seed}")
    # Each lifecycle has its own slot: its events decide when it is promoted.
    made = replace(life.created, task=_own_slot(life.created.task))
    model = EffectModel()
    model.write(made)
    return Replay(life, made.task, model, made)


def _own_slot(task: TaskState) -> TaskState:
    return task if task.slot is None else replace(task, slot=f"slot-{task.task_id}")


async def test_a_thousand_random_lifecycles_are_the_same_in_sql(
    pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def promote_none(tx: Tx, free: object) -> list[Steps]:
        return []

    # Promotions are events of these lives; that storage chooses successors has tests of its own.
    monkeypatch.setattr(write_module, "_promote", promote_none)
    replays = [begin(seed) for seed in range(LIVES)]
    async with pool.transaction() as tx:
        await insert_created(tx, [replay.created for replay in replays])
        await open_every_session(tx)
    rows: Counter[str] = Counter()
    going = replays
    while going := [replay for replay in going if replay.step < len(replay.life.steps)]:
        async with pool.transaction() as tx:
            rows.update(await advance(tx, going))
        async with pool.transaction() as tx:
            await compare_rows(tx, going)
    await pool.close()
    assert sum(rows.values()) >= 10_000
    assert len(rows) >= 60, sorted(rows)


async def open_every_session(tx: Tx) -> None:
    """Both sessions of each runner at once, because the lives of one batch are in different ones."""
    await tx.execute(
        "ALTER TABLE sessions DROP CONSTRAINT sessions_pkey, DROP CONSTRAINT sessions_runner_id_fkey"
    )
    await tx.execute(
        "INSERT INTO sessions (epoch, open_time, heartbeat_time, expire_time, session_id, instance_id,"
        " runner_id, scheduler_id)"
        " SELECT epoch, now(), now(), '2100-01-01', gen_random_uuid(), gen_random_uuid(), 'r' || n, 's'"
        " FROM generate_series(1, 2) epoch, generate_series(1, 4) n"
    )


async def advance(tx: Tx, going: list[Replay]) -> Counter[str]:
    """The next step of each life: what is loaded is what the pure function left; what it makes is written."""
    loaded = await load_for_update(tx, [replay.key for replay in going])
    made: list[Transition] = []
    rows: Counter[str] = Counter()
    for replay in going:
        stored = with_session(loaded.tasks[replay.key], replay.task)
        assert comparable(stored) == comparable(replay.task), (replay.key, replay.step)
        step = replay.life.steps[replay.step]
        replay.step += 1
        if step.transition is None:
            continue
        # The same event on the stored task and on the pure one: the state in memory never sees the database.
        transition = apply(stored, step.event, step.now, Random(step.seed))
        pure = apply(replay.task, step.event, step.now, Random(step.seed))
        assert transition.rows == pure.rows
        made.append(transition)
        rows.update(pure.rows)
        replay.model.write(pure)
        replay.task = pure.task
        if DeleteTask() in pure.effects:
            replay.step = len(replay.life.steps)
    await write(tx, made)
    return rows


def with_session(stored: TaskState, pure: TaskState) -> TaskState:
    """The expiry of a lease that follows a session is stored with it, and these lives have none."""
    if stored.lease is None or pure.lease is None or not stored.lease.follows_session:
        return stored
    return replace(stored, lease=replace(stored.lease, expire_time=pure.lease.expire_time))


def comparable(task: TaskState) -> TaskState:
    """Without what is stored in another form: the text of an error, the time of a change under a lease."""
    error = RunError(task.error.code) if task.error else None
    comparable = replace(task, error=error, update_time=None)
    return comparable if task.lease is None else replace(comparable, lease=task.lease)


async def compare_rows(tx: Tx, replays: list[Replay]) -> None:
    """The tables besides `tasks` equal the model of the effects."""
    queue = {
        row[0]: row[1:] for row in await tx.fetch("SELECT task_id, class_id, priority, ready_time FROM queue")
    }
    runs: dict[str, dict[int, RunState]] = {}
    for task_id, generation, state in await tx.fetch("SELECT task_id, generation, state FROM ended_runs"):
        runs.setdefault(task_id, {})[generation] = RunState(state)
    timers: dict[str, dict[TimerKind, datetime]] = {}
    for task_id, kind, due in await tx.fetch("SELECT task_id, kind, due_time FROM timers"):
        timers.setdefault(task_id, {})[TimerKind(kind)] = due
    heads = {
        row[0] for row in await tx.fetch("SELECT head_task_id FROM slots WHERE head_task_id IS NOT NULL")
    }
    for replay in replays:
        model, task_id = replay.model, replay.key[1]
        if model.deleted:
            assert task_id not in queue and task_id not in runs and task_id not in timers
            continue
        expected = {(key.class_id, key.priority, key.ready_time) for key in model.queue}
        assert ({queue[task_id]} if task_id in queue else set()) == expected, replay.key
        assert runs.get(task_id, {}) == model.runs, replay.key
        assert timers.get(task_id, {}) == model.timers, replay.key
        assert (task_id in heads) == model.head, replay.key


async def test_claims_and_plain_successes_in_sql_equal_those_of_the_lifecycle(pool: Pool) -> None:
    rng = Random(7)
    now = datetime.now(UTC)
    tasks: dict[tuple[str, str], TaskState] = {}
    made: list[Transition] = []
    for n in range(300):
        policy = replace(draw_policy(rng), not_before=None, has_callback=rng.random() < 0.1)
        task = TaskState("acme", f"t{n:04}", EPOCH, class_id=n % 3, priority=10, policy=policy)
        task = replace(task, slot=f"s{n}" if rng.random() < 0.1 else None)
        transition = create(task, events.Created(actor=SCHEDULER), now, slot_free=True)
        assert transition.task.pending_reason is PendingReason.QUEUED
        made.append(transition)
        tasks[("acme", task.task_id)] = transition.task
    async with pool.transaction() as tx:
        await insert_created(tx, made)
    bus = Bus()
    reports = ReportWriter(pool, bus, lambda old, new: new)
    claimed = await claim_all(pool, bus, tasks)
    assert claimed == len(tasks)
    # Every second one has started before its outcome comes.
    early = [key for n, key in enumerate(sorted(tasks)) if n % 2]
    await report_runs(pool, reports, tasks, early, (ReportKind.STARTED,), rng)
    await report_runs(pool, reports, tasks, early, (ReportKind.SUCCEEDED,), rng)
    late = [key for key in tasks if key not in set(early)]
    await report_runs(pool, reports, tasks, late, (ReportKind.STARTED, ReportKind.SUCCEEDED), rng)
    await pool.close()


async def claim_all(pool: Pool, bus: Bus, tasks: dict[tuple[str, str], TaskState]) -> int:
    """Claim from three lanes at once for two runners, and compare each lease with the pure claim."""
    lane_claims = tuple(LaneClaim(LaneKey("acme", class_id, 10, "")) for class_id in range(3))
    claims = [
        RunnerClaim(f"pull-{n}", 0, 200, timedelta(seconds=15), (TenantClaim("acme", 200, lane_claims),))
        for n in range(2)
    ]
    results = await Claimer(pool, bus, Bounds()).claim("scheduler-1", "claim-1", claims)
    async with pool.transaction() as tx:
        loaded = await load_for_update(tx, tasks)
    for claim, result in zip(claims, results, strict=True):
        for grant in result.tasks:
            key = (grant.tenant_id, grant.task_id)
            stored = loaded.tasks[key]
            assert stored.lease is not None
            event = events.Claimed(
                actor=SCHEDULER,
                claim_request_id=claim_id("claim-1"),
                runner_id=claim.runner_id,
                lease_id=grant.lease_id,
                session_epoch=0,
                expire_time=stored.lease.expire_time,
            )
            pure = apply(tasks[key], event, stored.lease.schedule_time, Random(0))
            assert comparable(stored) == comparable(pure.task)
            assert stored.lease.expire_time - stored.lease.schedule_time == claim.lease_duration
            tasks[key] = stored
    await compare_changes(pool, tasks)
    return sum(len(result.tasks) for result in results)


async def report_runs(
    pool: Pool,
    reports: ReportWriter,
    tasks: dict[tuple[str, str], TaskState],
    keys: list[tuple[str, str]],
    kinds: tuple[ReportKind, ...],
    rng: Random,
) -> None:
    """Report, and compare what is stored with what the pure function makes of the events at that time."""
    sent: list[Report] = []
    for key in keys:
        lease = tasks[key].lease
        assert lease is not None
        for kind in kinds:
            time = rng.choice((None, lease.schedule_time - timedelta(hours=1), datetime.now(UTC)))
            result, code = (b"42", rng.choice((None, 0))) if kind is ReportKind.SUCCEEDED else (None, None)
            sent.append(
                Report(
                    key, lease.runner_id, tasks[key].generation, lease.lease_id, kind, time, 0, result, code
                )
            )
    outcomes = await reports.apply(sent)
    async with pool.transaction() as tx:
        loaded = await load_for_update(tx, keys)
    phases = {report.key: outcome for report, outcome in zip(sent, outcomes, strict=True)}
    for key in keys:
        stored, state = loaded.tasks[key], tasks[key]
        now = stored.update_time if stored.lease is None else stored.lease.sign_time
        assert now is not None
        for report in sent:
            if report.key == key:
                state = apply(state, report.event(), now, Random(0)).task
        # Back-off is drawn at random; everything else has to agree.
        state = replace(state, retry_delay=stored.retry_delay, next_attempt_time=stored.next_attempt_time)
        assert comparable(with_session(stored, state)) == comparable(state)
        assert getattr(phases[key], "phase", None) == stored.phase
        tasks[key] = stored
    await compare_changes(pool, tasks)


async def compare_changes(pool: Pool, tasks: dict[tuple[str, str], TaskState]) -> None:
    """The newest change of each task is its state, and the versions have no gap."""
    async with pool.transaction() as tx:
        changes = expanded(await read_log(tx, 0, BEGINNING, 1_000_000))
    logged: dict[str, list[LoggedChange]] = {}
    for change in changes:
        logged.setdefault(change.resource_id, []).append(change)
    for task_id, own in logged.items():
        task = tasks[("acme", task_id)]
        assert [change.version for change in own] == list(range(2, task.version + 1))
        assert own[-1].phase == task.phase
