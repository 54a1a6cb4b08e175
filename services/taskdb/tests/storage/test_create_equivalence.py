"""What the create path writes is what the lifecycle's pure function decides."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp

from taskyard.v1 import common_pb2, task_pb2, task_service_pb2
from taskyard_taskdb.domain.event import Created
from taskyard_taskdb.domain.lifecycle import create
from taskyard_taskdb.domain.task import Actor, TaskState
from taskyard_taskdb.domain.transition import Enqueue, SetTimer, TakeSlot, Transition
from taskyard_taskdb.domain.words import ActorType
from taskyard_taskdb.storage.change_log import append as change_log
from taskyard_taskdb.storage.create import new_rows
from taskyard_taskdb.storage.transition.load import load_for_update

MakeTask = Callable[..., task_service_pb2.CreateTaskRequest]


def time(offset: timedelta) -> Timestamp:
    """That much from now."""
    made = Timestamp()
    made.FromDatetime(datetime.now(UTC) + offset)
    return made


DELAYS: list[dict[str, Any]] = [
    {},
    {"not_before": time(timedelta(hours=1))},
    {"not_before": time(-timedelta(hours=1))},
]
TIMEOUTS: list[dict[str, Any]] = [
    {},
    {"queue_timeout": Duration(seconds=60)},
    {"total_timeout": Duration(seconds=600), "queue_timeout": Duration(seconds=60)},
]
KINDS: list[dict[str, Any]] = [{}, {"external": True}, {"slot": "free"}, {"slot": "busy"}]
POLICIES: list[dict[str, Any]] = [
    {},
    {
        "retry": common_pb2.RetryPolicy(restart=common_pb2.RESTART_POLICY_ALWAYS, max_retries=9),
        "callback": task_pb2.Callback(url="https://example.com"),
        "on_runner_lost": task_pb2.RUNNER_LOST_POLICY_HOLD,
    },
]


@pytest.mark.equivalence("create", "insert_tasks")
async def test_stored_state_is_that_of_the_pure_function(
    taskdb: Any, tenant: Any, make_task: MakeTask
) -> None:
    await compare_states(taskdb, tenant, make_task)


@pytest.mark.equivalence("create", "copy_tasks")
async def test_state_of_a_large_batch_is_that_of_the_pure_function(
    taskdb: Any, tenant: Any, make_task: MakeTask, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (new_rows, change_log):
        monkeypatch.setattr(module, "COPY_FROM", 1)
    await compare_states(taskdb, tenant, make_task)


async def compare_states(taskdb: Any, tenant: Any, make_task: MakeTask) -> None:
    """Create tasks of all kinds and compare each with the decision of the lifecycle."""
    await tenant.create(slot="busy")
    combinations = list(itertools.product(KINDS, DELAYS, TIMEOUTS, POLICIES))
    random.Random(1).shuffle(combinations)
    for number, parts in enumerate(combinations):
        spec = {name: value for part in parts for name, value in part.items()}
        slot_free = spec.get("slot") == "free"
        if slot_free:
            spec["slot"] = f"free-{number}"
        made = (await tenant.tasks.CreateTask(make_task(**spec))).task
        state = await load(taskdb, made.metadata.id)
        decided = decide(state, made.metadata.creator.id, slot_free)
        assert decided.task == replace(state, update_time=decided.task.update_time), spec
        await compare_rows(taskdb, decided)


async def load(taskdb: Any, task_id: str) -> TaskState:
    """The task as it is stored."""
    async with taskdb.pool.transaction() as tx:
        key = ("default", task_id)
        return (await load_for_update(tx, [key])).tasks[key]


def decide(state: TaskState, creator: str, slot_free: bool) -> Transition:
    """The same task decided by the lifecycle at the time it was stored."""
    blank = TaskState(
        tenant_id=state.tenant_id,
        task_id=state.task_id,
        create_time=state.create_time,
        kind=state.kind,
        class_id=state.class_id,
        priority=state.priority,
        pinned_runner=state.pinned_runner,
        slot=state.slot,
        policy=state.policy,
    )
    event = Created(actor=Actor(ActorType.USER, creator))
    return create(blank, event, state.create_time, slot_free=slot_free)


async def compare_rows(taskdb: Any, decided: Transition) -> None:
    """Timers, queue row, slot and change are those of the decision."""
    task = decided.task
    timers = {(effect.kind, effect.due_time) for effect in decided.effects if isinstance(effect, SetTimer)}
    stored = await taskdb.rows("SELECT kind, due_time FROM timers WHERE task_id = %s", task.task_id)
    assert set(stored) == timers
    queued = [effect.key.ready_time for effect in decided.effects if isinstance(effect, Enqueue)]
    rows = await taskdb.rows("SELECT ready_time FROM queue WHERE task_id = %s", task.task_id)
    assert [ready for (ready,) in rows] == queued
    heads = any(isinstance(effect, TakeSlot) for effect in decided.effects)
    rows = await taskdb.rows("SELECT slot FROM slots WHERE head_task_id = %s", task.task_id)
    assert bool(rows) == heads
    (change,) = decided.changes
    rows = await taskdb.rows(
        "SELECT event, version, phase, previous_phase, pending_reason, time, next_attempt_time, "
        "actor_type, actor_id FROM change_log WHERE resource_id = %s",
        task.task_id,
    )
    assert rows == [
        (
            change.event,
            change.version,
            change.phase,
            0,
            change.pending_reason,
            change.time,
            change.next_attempt_time,
            change.actor.type,
            change.actor.id,
        )
    ]
