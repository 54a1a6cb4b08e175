"""Races of claims, cancels, completions and expiry over two replicas; a barrier is a third party's lock."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from services.taskdb.tests.conftest import RunningTaskDb, make_yard, run_taskdb
from services.taskdb.tests.yard import Yard, failed, started, succeeded
from taskyard.errors import TaskTerminal
from taskyard.v1 import lease_pb2, task_pb2, task_service_pb2
from taskyard_taskdb.domain.task import Actor
from taskyard_taskdb.domain.words import ActorType
from taskyard_taskdb.storage.runner import admin as runner_admin
from taskyard_taskdb.storage.tenant import api_keys
from taskyard_taskdb.sweep.leader_election import Leadership
from taskyard_taskdb.sweep.lease_expiry import ExpirySweep, LeasePages
from tests.harness.logged_changes import LOGGED
from tests.harness.postgres import PostgresServer

ROUNDS = 5


@asynccontextmanager
async def barrier(url: str, lock: str, waiting: int) -> AsyncIterator[None]:
    """Holds `lock` for the block, then waits until so many wait for locks, then lets go."""
    async with (
        await psycopg.AsyncConnection.connect(url) as holder,
        await psycopg.AsyncConnection.connect(url, autocommit=True) as watcher,
    ):
        await holder.execute(lock)
        yield
        async with asyncio.timeout(10):
            while True:
                cursor = await watcher.execute(
                    "SELECT count(*) FROM pg_stat_activity "
                    "WHERE datname = current_database() AND wait_event_type = 'Lock'"
                )
                row = await cursor.fetchone()
                if row is not None and row[0] >= waiting:
                    break
        await holder.rollback()


@pytest.fixture
async def replicas(database_url: str) -> AsyncIterator[list[RunningTaskDb]]:
    """Two taskdbs on one database, without housekeeping of their own."""
    async for first in run_taskdb(database_url, housekeeping=False, lock_timeout=timedelta(seconds=10)):
        async for second in run_taskdb(database_url, housekeeping=False, lock_timeout=timedelta(seconds=10)):
            yield [first, second]


@pytest.fixture
async def yards(replicas: list[RunningTaskDb]) -> list[Yard]:
    return [
        await make_yard(
            taskdb, await taskdb.caller(api_keys.SCHEDULER), await taskdb.caller(), f"scheduler-{n}"
        )
        for n, taskdb in enumerate(replicas)
    ]


@pytest.mark.seed("S0.83", "S0.87", "S1.46")
async def test_two_replicas_never_claim_the_same_task(yards: list[Yard]) -> None:
    names = await yards[0].create(60)
    runners = [(await yard.hello(f"r{n}"))[0] for n, yard in enumerate(yards)]
    lanes = await yards[0].lane_claims()
    popped = await asyncio.gather(
        *(yards[n % 2].claim(runners[n % 2], 10, lanes=lanes) for n in range(12)),
    )
    while not all(name in {a.lease.task for r in popped for a in r.assignments} for name in names):
        popped.append(await yards[0].claim(runners[0], 10, lanes=lanes))
    claimed = [a.lease.task for result in popped for a in result.assignments]
    assert sorted(claimed) == sorted(names)


@pytest.mark.parametrize("first", ["pop", "cancel"])
async def test_a_pop_against_a_cancel(
    replicas: list[RunningTaskDb], yards: list[Yard], database_url: str, first: str
) -> None:
    """In either order: a cancelled task is never claimed, a claimed task is asked to stop."""
    runner, _ = await yards[0].hello()
    (name,) = await yards[0].create()
    lanes = await yards[0].lane_claims()
    request = task_service_pb2.CancelTaskRequest(name=name)
    if first == "cancel":
        # The cancel waits for the task's row and holds its queue row: the pop skips it.
        async with barrier(database_url, "SELECT FROM tasks FOR UPDATE", 1):
            cancel = asyncio.create_task(yards[1].tenant.tasks.CancelTask(request))
            await somebody_waits(replicas[0], "tasks")
            result = await yards[0].claim(runner, lanes=lanes)
            assert not result.assignments
            assert not cancel.done()
        await cancel
        assert (await yards[0].task(name)).status.phase == task_pb2.TASK_PHASE_CANCELLED
        return
    # The pop holds the queue row while it waits to insert its lease: the cancel waits for the pop.
    async with barrier(database_url, "LOCK TABLE leases IN SHARE MODE", 2):
        pop = asyncio.create_task(yards[0].claim(runner, lanes=lanes))
        await somebody_waits(replicas[1], "leases")
        cancel = asyncio.create_task(yards[1].tenant.tasks.CancelTask(request))
    (assignment,) = (await pop).assignments
    await cancel
    task = await yards[0].task(name)
    assert task.status.phase == task_pb2.TASK_PHASE_SCHEDULED
    assert task.status.requested_action.action == task_pb2.TASK_ACTION_CANCEL
    (verdict,) = (await yards[0].renew(runner)).verdicts
    assert verdict.lease == assignment.lease


async def somebody_waits(taskdb: RunningTaskDb, table: str) -> None:
    """Return once a transaction that uses the table waits for a lock."""
    async with asyncio.timeout(5):
        while not await taskdb.rows(
            "SELECT FROM pg_locks l WHERE l.relation = %s::regclass AND EXISTS ("
            "SELECT FROM pg_locks w WHERE w.pid = l.pid AND NOT w.granted)",
            table,
        ):
            pass


async def test_a_completion_against_the_expiry_of_its_lease(
    replicas: list[RunningTaskDb], yards: list[Yard], database_url: str
) -> None:
    """One of them comes first; the outcome is stored exactly once and stays."""
    leadership = Leadership(replicas[1].pool, timedelta(0))
    assert await leadership.acquire()
    expiry = ExpirySweep(replicas[1].pool, LeasePages(replicas[1].pool, replicas[1].taskdb._after_commit))
    for n in range(ROUNDS):
        runner, _ = await yards[0].hello(f"runner-{n}")
        (name,) = await yards[0].create()
        (assignment,) = (await yards[0].claim(runner)).assignments
        await yards[0].report(runner, started(assignment))
        async with replicas[0].pool.transaction() as tx:
            await tx.execute("UPDATE sessions SET expire_time = now() - interval '1 second'")
        async with barrier(database_url, "SELECT FROM leases FOR UPDATE", 2):
            work = [
                asyncio.create_task(expiry.run(leadership)),
                asyncio.create_task(yards[0].report(runner, succeeded(assignment))),
            ]
            if n % 2:
                work.reverse()
        results = await asyncio.gather(*work)
        ((outcome,),) = [result for result in results if isinstance(result, list)]
        assert outcome.phase == task_pb2.TASK_PHASE_SUCCEEDED
        task = await yards[1].task(name)
        assert task.status.phase == task_pb2.TASK_PHASE_SUCCEEDED
        assert task.status.runner_loss_count == 0
        rows = await replicas[0].rows(
            "SELECT state FROM ended_runs WHERE task_id = %s", name.rpartition("/")[2]
        )
        assert rows == [(3,)]
        assert not await replicas[0].rows("SELECT FROM queue")
        ended = await replicas[0].rows(
            "SELECT count(*) FROM changes WHERE resource_id = %s AND phase = 10", name.rpartition("/")[2]
        )
        assert ended == [(1,)]


async def test_a_session_is_renewed_that_changed_while_its_lock_was_waited_for(
    replicas: list[RunningTaskDb], yards: list[Yard], database_url: str
) -> None:
    """That a stream broke may be noted while a heartbeat is on its way; after a takeover it is late."""
    for change, lost in (("disconnect_time = now()", False), ("epoch = epoch + 1", True)):
        runner, _ = await yards[0].hello(f"runner-{lost}")
        async with await psycopg.AsyncConnection.connect(database_url) as other:
            await other.execute(f"UPDATE sessions SET {change} WHERE runner_id = '{runner.id}'")
            renewal = asyncio.create_task(yards[0].renew(runner, lease_seconds=600))
            await somebody_waits(replicas[1], "sessions")
            await other.commit()
        assert (await renewal).lost is lost
        ((renewed, disconnected),) = await replicas[0].rows(
            "SELECT expire_time > now() + interval '5 minutes', disconnect_time IS NOT NULL FROM sessions "
            "WHERE runner_id = %s",
            runner.id,
        )
        assert (renewed, disconnected) == (not lost, False)


@pytest.fixture
async def patient_database(postgres_server: PostgresServer, database_url: str) -> str:
    """A database that never resolves a deadlock: who is in one fails with a lock timeout."""
    async with await psycopg.AsyncConnection.connect(postgres_server.admin_url, autocommit=True) as admin:
        name = sql.Identifier(str(conninfo_to_dict(database_url)["dbname"]))
        await admin.execute(sql.SQL("ALTER DATABASE {} SET deadlock_timeout = '10min'").format(name))
    return database_url


@pytest.mark.parametrize("outcome", [succeeded, failed])
@pytest.mark.parametrize("other", ["hello", "delete"])
async def test_outcome_is_counted_while_its_runner_reconnects_or_is_deleted(
    patient_database: str,
    replicas: list[RunningTaskDb],
    yards: list[Yard],
    outcome: Callable[..., lease_pb2.RunReport],
    other: str,
) -> None:
    """Both lock the runner before its leases, the outcome has locked a lease when it counts."""
    runner, _ = await yards[0].hello()
    await yards[0].create()
    (assignment,) = (await yards[0].claim(runner)).assignments
    async with barrier(patient_database, "SELECT FROM tasks FOR UPDATE", 2):
        report = asyncio.create_task(yards[0].report(runner, started(assignment), outcome(assignment)))
        await somebody_waits(replicas[1], "leases")
        meanwhile: asyncio.Future[object]
        if other == "hello":
            meanwhile = asyncio.ensure_future(yards[1].hello(runner, held=[assignment.lease]))
        else:
            meanwhile = asyncio.ensure_future(_delete(replicas[1], runner.id))
    (_, result), _ = await asyncio.gather(report, meanwhile)
    assert result.phase != task_pb2.TASK_PHASE_RUNNING and not result.HasField("error")
    ((completed, broken),) = await replicas[0].rows("SELECT completed_count, failed_count FROM runner_counts")
    assert (completed, broken) == ((1, 0) if outcome is succeeded else (0, 1))


async def _delete(taskdb: RunningTaskDb, runner_id: str) -> None:
    actor = Actor(ActorType.USER, "admin")
    await taskdb.pool.run(lambda tx: runner_admin.delete(tx, runner_id, actor, force=True))


async def test_two_creators_and_a_freer_of_one_slot(
    replicas: list[RunningTaskDb], yards: list[Yard], database_url: str
) -> None:
    """Whatever their order, all tasks of the slot run, one at a time, and none is forgotten."""
    for n in range(ROUNDS):
        slot = f"slot-{n}"
        runner, _ = await yards[0].hello(f"runner-{n}")
        (head,) = await yards[0].create(slot=slot)
        (assignment,) = (await yards[0].claim(runner)).assignments
        await yards[0].report(runner, started(assignment))
        async with barrier(database_url, f"SELECT FROM slots WHERE slot = '{slot}' FOR UPDATE", 3):
            creates = [asyncio.create_task(yard.create(slot=slot)) for yard in yards]
            freer = asyncio.create_task(yards[n % 2].report(runner, succeeded(assignment)))
        made = [name for names in await asyncio.gather(*creates) for name in names]
        (freed,) = await freer
        assert freed.phase == task_pb2.TASK_PHASE_SUCCEEDED
        seen = {head}
        for _ in made:
            (next_one,) = (await yards[0].claim(runner)).assignments
            seen.add(next_one.lease.task)
            await yards[0].report(runner, started(next_one), succeeded(next_one))
        assert seen == {head, *made}
    assert not await replicas[0].rows("SELECT FROM slots")


async def test_slots_that_are_freed_while_waiters_arrive_are_handed_on_once(
    replicas: list[RunningTaskDb], yards: list[Yard]
) -> None:
    """Each success is reported to both replicas, which create waiters of every slot meanwhile."""
    names = [name for n in range(10) for name in await yards[0].create(slot=f"slot-{n}")]
    runner, _ = await yards[0].hello()
    assignments = (await yards[0].claim(runner)).assignments
    assert sorted(a.lease.task for a in assignments) == sorted(names)
    reports = [report for a in assignments for report in (started(a), succeeded(a))]
    made, outcomes = await asyncio.gather(
        asyncio.gather(*(yards[n % 2].create(slot=f"slot-{n % 10}") for n in range(30))),
        asyncio.gather(*(yards[n % 2].report(runner, *reports) for n in range(4))),
    )
    assert all(not result.error.code for results in outcomes for result in results)
    assert sum(not result.duplicate for results in outcomes for result in results[1::2]) == len(names)
    waiting = {name for created in made for name in created}
    while waiting:
        claimed = list((await yards[0].claim(runner)).assignments)
        slots = await replicas[0].rows("SELECT slot, count(*) FROM leases GROUP BY slot")
        assert claimed and all(count == 1 for _, count in slots), "one task of a slot at a time"
        waiting -= {a.lease.task for a in claimed}
        await yards[1].report(runner, *(report for a in claimed for report in (started(a), succeeded(a))))
    assert not await replicas[0].rows("SELECT FROM slots")
    odd = (
        f"SELECT FROM {LOGGED} WHERE resource_id IN (SELECT task_id FROM tasks) GROUP BY resource_id "
        "HAVING count(*) <> max(version) OR count(*) FILTER (WHERE phase = 10) <> 1"
    )
    assert not await replicas[0].rows(odd), "no version is logged twice, and each task ends once"


async def test_a_report_repeated_on_both_replicas_counts_once(
    replicas: list[RunningTaskDb], yards: list[Yard]
) -> None:
    names = await yards[0].create(20)
    runner, _ = await yards[0].hello()
    assignments = (await yards[0].claim(runner)).assignments
    reports = [report for a in assignments for report in (started(a), succeeded(a))]
    responses = await asyncio.gather(*(yards[n % 2].report(runner, *reports) for n in range(4)))
    assert all(not result.error.code for results in responses for result in results)
    applied = [sum(not result.duplicate for result in results[1::2]) for results in responses]
    assert sum(applied) == len(names)
    versions = {(await yards[0].task(name)).metadata.resource_version for name in names}
    assert versions == {4}
    assert await replicas[0].rows("SELECT count(*) FROM ended_runs") == [(20,)]


async def test_a_cancel_after_the_end_changes_nothing(yards: list[Yard]) -> None:
    (name,) = await yards[0].create()
    runner, _ = await yards[0].hello()
    (assignment,) = (await yards[0].claim(runner)).assignments
    await yards[0].report(runner, started(assignment), succeeded(assignment))
    with pytest.raises(TaskTerminal):
        await yards[1].tenant.tasks.CancelTask(task_service_pb2.CancelTaskRequest(name=name))
    assert (await yards[0].task(name)).status.phase == task_pb2.TASK_PHASE_SUCCEEDED
