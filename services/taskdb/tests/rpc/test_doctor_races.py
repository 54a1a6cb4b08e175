"""Repairs of RunDoctor on healthy tasks: each repair checks its tasks again and does not change them."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from random import Random
from typing import Any

import psycopg
import pytest
from google.protobuf.duration_pb2 import Duration

from services.taskdb.tests.conftest import Caller, RunningTaskDb
from services.taskdb.tests.doctoring import run_doctor
from services.taskdb.tests.yard import Assignment, Runner, Yard, failed, released, started, succeeded
from taskyard.errors import PhaseConflict, TaskTerminal
from taskyard.v1 import task_service_pb2
from taskyard_taskdb.domain.names import parse_task_name
from taskyard_taskdb.domain.task import Actor
from taskyard_taskdb.domain.words import ActorType
from taskyard_taskdb.storage.change_log.append import LOG_LOCK
from taskyard_taskdb.storage.doctor import checks as doctor_checks
from taskyard_taskdb.storage.doctor import repairs
from taskyard_taskdb.storage.doctor.checks import Check
from taskyard_taskdb.storage.doctor.repairs import RepairContext, RepairNotPossible
from taskyard_taskdb.storage.pool import Params, Row, Tx
from taskyard_taskdb.storage.statements import statement
from taskyard_taskdb.storage.transition.task_rows import Key
from taskyard_taskdb.sweep.lease_expiry import ExpirySweep, LeasePages
from taskyard_taskdb.sweep.small_sweeps import QuarantineSweep, SlotSweep
from taskyard_taskdb.sweep.sweeper import Sweep
from taskyard_taskdb.sweep.timers import TimerSweep
from tests.harness.invariants import assert_invariants

TASKS = 48
SLOTS = ("a", "b", "c")
ROUNDS = 6
RETRY = {"backoff": {"initial": Duration(nanos=20_000_000), "jitter": 1}}


def repair_context(taskdb: RunningTaskDb) -> RepairContext:
    """The repair context of RunDoctor."""
    parts = taskdb.taskdb
    return RepairContext(
        taskdb.pool, parts._after_commit, Actor(ActorType.USER, "admin"), parts.housekeeping.run_job
    )


async def keys_of(taskdb: RunningTaskDb, check: Check) -> list[Key]:
    """Everything that a check could have found."""
    if check.name == "jobs":
        return [("system", "request-ids")]
    if check.name == "seals":
        return [("system", "1-5")]
    if check.name == "slot-without-head":
        return [("default", slot) for slot in SLOTS]
    return [(row[0], row[1]) for row in await taskdb.rows("SELECT tenant_id, task_id FROM tasks")]


class Work:
    """Users, runners and sweeps beside the doctor; runners notice if a slot is given to two of them."""

    def __init__(self, yard: Yard, taskdb: RunningTaskDb, rng: Random) -> None:
        self._yard = yard
        self._taskdb = taskdb
        self._rng = rng
        self._holders: dict[str, str] = {}
        self.names: list[str] = []
        self.outcomes: Counter[str] = Counter()
        self._all_created = False

    async def create(self) -> None:
        for number in range(TASKS):
            slot: dict[str, Any] = {"slot": self._rng.choice(SLOTS)} if number % 2 else {}
            self.names += await self._yard.create(retry=RETRY, total_timeout=Duration(seconds=300), **slot)
        self._all_created = True

    async def steer(self) -> None:
        """A user cancels, pauses and resumes."""
        for _ in range(TASKS):
            await asyncio.sleep(0)
            if not self.names:
                continue
            name, tasks = self._rng.choice(self.names), self._yard.tenant.tasks
            with suppress(PhaseConflict, TaskTerminal):
                if self._rng.random() < 0.2:
                    await tasks.CancelTask(task_service_pb2.CancelTaskRequest(name=name))
                else:
                    await tasks.PauseTask(task_service_pb2.PauseTaskRequest(name=name))
                    await tasks.ResumeTask(task_service_pb2.ResumeTaskRequest(name=name))

    async def run(self, runner: Runner) -> None:
        while not await self._ended():
            for assignment in (await self._yard.claim(runner, 4)).assignments:
                await self._run_one(runner, assignment)

    async def _run_one(self, runner: Runner, assignment: Assignment) -> None:
        slot, name = assignment.spec.slot, assignment.lease.task
        if slot:
            assert slot not in self._holders, f"{name} and {self._holders[slot]} hold slot {slot}"
            self._holders[slot] = name
        await self._yard.report(runner, started(assignment))
        end = self._rng.choice((succeeded, succeeded, failed, released))
        self.outcomes[end.__name__] += 1
        self._holders.pop(slot, None)
        await self._yard.report(runner, end(assignment))

    async def sweep(self, sweep: Sweep) -> None:
        while not await self._ended():
            await sweep.run(self._taskdb.taskdb.housekeeping.leadership)
            await asyncio.sleep(0)

    async def _ended(self) -> bool:
        return self._all_created and not await self._taskdb.rows("SELECT FROM tasks WHERE end_time IS NULL")


async def operate(taskdb: RunningTaskDb, rounds: int) -> None:
    """Repair everything, again and again."""
    for _ in range(rounds):
        for check in doctor_checks.CHECKS:
            with suppress(RepairNotPossible):
                await doctor_checks.repair_pages(check, repair_context(taskdb), await keys_of(taskdb, check))


@pytest.mark.parametrize("seed", [1, 2])
async def test_repairs_of_every_check_race_with_work_and_sweeps(
    taskdb: RunningTaskDb, yard: Yard, admin: Caller, seed: int
) -> None:
    work = Work(yard, taskdb, Random(seed))
    runners = [(await yard.hello(f"runner-{number}"))[0] for number in range(3)]
    on_commit = taskdb.taskdb._after_commit
    sweeps: tuple[Sweep, ...] = (
        SlotSweep(taskdb.pool, on_commit),
        TimerSweep(taskdb.pool, on_commit),
        QuarantineSweep(taskdb.pool, on_commit),
        ExpirySweep(taskdb.pool, LeasePages(taskdb.pool, on_commit)),
    )
    async with asyncio.timeout(120), asyncio.TaskGroup() as group:
        group.create_task(work.create())
        group.create_task(work.steer())
        for runner in runners:
            group.create_task(work.run(runner))
        for sweep in sweeps:
            group.create_task(work.sweep(sweep))
        for _ in range(2):
            group.create_task(operate(taskdb, ROUNDS))
    assert_invariants(taskdb.url)
    assert set(work.outcomes) == {"succeeded", "failed", "released"}
    answer = await run_doctor(admin)
    assert answer.healthy, [found for found in answer.findings if found.count]
    # Nothing was repaired that was not broken.
    assert not await taskdb.rows("SELECT FROM changes WHERE actor_id = 'doctor' OR event = 96")


async def test_repairs_do_not_change_healthy_tasks(taskdb: RunningTaskDb, yard: Yard, admin: Caller) -> None:
    await yard.create(5)
    await yard.create(2, slot="a")
    runner, _ = await yard.hello()
    assignments = (await yard.claim(runner, 4)).assignments
    await yard.report(runner, *(started(a) for a in assignments))
    await yard.report(runner, succeeded(assignments[0]))
    tables = ("tasks", "leases", "queue", "slots", "timers", "changes")
    before = [await taskdb.rows(f"SELECT * FROM {table} ORDER BY 1, 2, 3") for table in tables]
    await operate(taskdb, 1)
    assert [await taskdb.rows(f"SELECT * FROM {table} ORDER BY 1, 2, 3") for table in tables] == before
    assert (await run_doctor(admin)).healthy
    assert_invariants(taskdb.url)


class InterleavedTx(Tx):
    """A transaction that lets something else happen before its first statement of a given name."""

    __slots__ = ("_before",)

    def __init__(self, tx: Tx, before: dict[str, Callable[[], Awaitable[object]]]) -> None:
        super().__init__(tx.connection)
        self._before = before

    async def fetch(self, sql: str, params: Params = None, *, prepare: bool = True) -> list[Row]:
        for name in [name for name in self._before if statement(name) == sql]:
            await self._before.pop(name)()
        return await super().fetch(sql, params, prepare=prepare)


async def until_waiting(taskdb: RunningTaskDb, locktypes: tuple[str, ...]) -> None:
    """Returns once somebody waits for a lock of these kinds."""
    sql = "SELECT FROM pg_locks WHERE NOT granted AND locktype = ANY (%s)"
    async with asyncio.timeout(30):
        while not await taskdb.rows(sql, list(locktypes)):
            pass


async def test_a_task_claimed_while_its_queue_row_is_looked_for_stays_out_of_the_queue(
    taskdb: RunningTaskDb, yard: Yard
) -> None:
    """The repair finds no queue row; then the task is released, and a claim that is not committed has it."""
    (name,) = await yard.create()
    runner, _ = await yard.hello()
    (assignment,) = (await yard.claim(runner)).assignments
    claims: list[asyncio.Task[Any]] = []
    async with await psycopg.AsyncConnection.connect(taskdb.url, autocommit=True) as other:

        async def begin_claim() -> None:
            await other.execute("SELECT pg_advisory_lock(%s)", (LOG_LOCK,))
            claims.append(asyncio.create_task(yard.claim(runner)))
            await until_waiting(taskdb, ("advisory",))
            claims.append(asyncio.create_task(let_it_commit()))

        async def let_it_commit() -> None:
            await until_waiting(taskdb, ("transactionid", "tuple"))
            await other.execute("SELECT pg_advisory_unlock(%s)", (LOG_LOCK,))

        before: dict[str, Callable[[], Awaitable[object]]] = {
            "lock_leases": lambda: yard.report(runner, released(assignment)),
            "lock_tasks": begin_claim,
        }
        await taskdb.pool.run(lambda tx: repairs.enqueue(InterleavedTx(tx, before), [parse_task_name(name)]))
        await asyncio.gather(*claims)
    assert not before
    assert_invariants(taskdb.url)
    assert not await taskdb.rows("SELECT FROM queue")
