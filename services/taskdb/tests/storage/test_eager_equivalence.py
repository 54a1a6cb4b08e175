"""What a create on credit writes is what the lifecycle decides for a create, followed by a claim."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from random import Random
from typing import Any

import pytest

from services.taskdb.tests.conftest import RunningTaskDb, make_yard, new_task
from services.taskdb.tests.credit_stream import CreditStream, open_credit
from services.taskdb.tests.storage.test_create_equivalence import POLICIES, compare_rows, decide, load
from services.taskdb.tests.yard import Runner, Yard
from taskyard.v1 import task_pb2
from taskyard_taskdb.domain import event as events
from taskyard_taskdb.domain.change import Change
from taskyard_taskdb.domain.lifecycle import apply
from taskyard_taskdb.domain.task import Actor, TaskState
from taskyard_taskdb.domain.words import ActorType
from taskyard_taskdb.storage.tenant import api_keys

OVERLAPS: list[dict[str, Any]] = [{}, {"overlap": task_pb2.OVERLAP_POLICY_FORBID}]
CHANGE = (
    "SELECT event, version, generation, phase, previous_phase, pending_reason, time, actor_type, actor_id, "
    "runner_id FROM change_log WHERE resource_id = %s ORDER BY id"
)


@pytest.fixture
async def yard(quiet: RunningTaskDb) -> Yard:
    return await make_yard(quiet, await quiet.caller(api_keys.SCHEDULER), await quiet.caller())


@pytest.fixture
async def runner(yard: Yard) -> Runner:
    return (await yard.hello())[0]


@pytest.fixture
async def credit(quiet: RunningTaskDb, yard: Yard, runner: Runner) -> AsyncIterator[CreditStream]:
    made = await open_credit(quiet, yard, runner)
    yield made
    made._call.cancel()


@pytest.mark.equivalence("create", "insert_eager_tasks")
@pytest.mark.equivalence("claim", "insert_eager_tasks")
async def test_a_create_on_credit_equals_a_create_and_a_claim(
    quiet: RunningTaskDb, yard: Yard, runner: Runner, credit: CreditStream
) -> None:
    combinations = list(itertools.product(POLICIES, OVERLAPS))
    await credit.give(runner, len(combinations))
    for parts in combinations:
        spec = {name: value for part in parts for name, value in part.items()}
        made = (await yard.tenant.tasks.CreateTask(new_task(**spec))).task
        assert made.status.phase == task_pb2.TASK_PHASE_SCHEDULED
        await compare_leased(quiet, made, runner)
    # Without credit the same statement decides as an ordinary create does.
    await credit.give(runner, 1)
    await quiet.execute("UPDATE sessions SET closed = true")
    for parts in combinations:
        spec = {name: value for part in parts for name, value in part.items()}
        made = (await yard.tenant.tasks.CreateTask(new_task(**spec))).task
        state = await load(quiet, made.metadata.id)
        decided = decide(state, made.metadata.creator.id, slot_free=False)
        assert decided.task == replace(state, update_time=decided.task.update_time), spec
        await compare_rows(quiet, decided)
        await quiet.execute("DELETE FROM queue")
        await credit.send()


async def compare_leased(taskdb: RunningTaskDb, made: task_pb2.Task, runner: Runner) -> None:
    """The task, its lease and its changes are those of the lifecycle."""
    state = await load(taskdb, made.metadata.id)
    lease = state.lease
    assert lease is not None
    blank = replace(state, lease=None)
    created = decide(blank, made.metadata.creator.id, slot_free=False)
    event = events.Claimed(
        actor=Actor(ActorType.SCHEDULER, "scheduler-1"),
        runner_id=runner.id,
        claim_request_id="",
        lease_id=lease.lease_id,
        session_epoch=runner.epoch,
        expire_time=lease.schedule_time + timedelta(seconds=15),
    )
    claimed = apply(created.task, event, lease.schedule_time, Random(0))
    assert _comparable(claimed.task) == _comparable(state)
    assert await taskdb.rows("SELECT FROM queue") == []
    rows = await taskdb.rows(CHANGE, made.metadata.id)
    assert rows == [_row(change) for change in (*created.changes, *claimed.changes)]
    ((plain, timed),) = await taskdb.rows("SELECT plain, timed FROM leases WHERE task_id = %s", state.task_id)
    assert (plain, timed) == (not made.spec.HasField("callback"), False)


def _comparable(state: TaskState) -> TaskState:
    # Of the time of the last change and whether the session is current only the database knows.
    assert state.lease is not None
    return replace(state, update_time=state.create_time, lease=replace(state.lease, in_session=True))


def _row(change: Change) -> tuple[Any, ...]:
    return (
        change.event,
        change.version,
        change.generation,
        change.phase,
        change.previous_phase or 0,
        change.pending_reason or 0,
        change.time,
        change.actor.type,
        change.actor.id,
        change.runner_id,
    )
