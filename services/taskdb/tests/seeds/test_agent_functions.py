"""The preset agent-functions: the registry of functions, their entities, payloads, retries and clean-up."""

from __future__ import annotations

import uuid
from datetime import timedelta
from random import Random
from typing import Any

import psycopg
import pytest

from services.taskdb.tests.conftest import Caller, RunningTaskDb
from services.taskdb.tests.preset_tasks import (
    PLANNER,
    PLANNING,
    QUESTION,
    WORKER,
    create,
    listed,
    load,
    running,
    until,
)
from services.taskdb.tests.rpc.type_calls import get
from services.taskdb.tests.yard import Yard, failed, started, succeeded
from taskyard import errors
from taskyard.convert import from_payload
from taskyard.status import from_status
from taskyard.v1 import common_pb2, lease_pb2, task_pb2, task_service_pb2
from taskyard_taskdb.domain.policy import TaskPolicy
from taskyard_taskdb.domain.retry import delay
from taskyard_taskdb.domain.words import Jitter

P = task_pb2
PLANNER_FUNCTIONS = [PLANNING, "execute_task_creation", "execute_synthesis"]
WORKER_FUNCTIONS = ["worker_initialisation", "execute_standard_worker", "execute_sql_worker"]


@pytest.fixture(autouse=True)
async def names(admin: Caller) -> list[str]:
    return await load(admin, "agent-functions")


async def plan(tenant: Caller, payload: Any = None, **fields: Any) -> task_pb2.Task:
    return await create(tenant, PLANNING, payload or QUESTION, **{"entity": PLANNER, **fields})


@pytest.mark.seed("S1.3", "S1.19", "S1.61")
async def test_an_id_is_32_hexadecimal_digits_made_or_given_and_used_once(tenant: Caller) -> None:
    made = await plan(tenant)
    assert uuid.UUID(made.metadata.id).hex == made.metadata.id
    given = await plan(tenant, task_id="0" * 31 + "1")
    assert given.metadata.id == "0" * 31 + "1"
    with pytest.raises(errors.AlreadyExists):
        await plan(tenant, task_id="0" * 31 + "1")
    with pytest.raises(errors.FieldInvalid):
        await plan(tenant, task_id=str(uuid.uuid4()))


@pytest.mark.seed("S1.4", "S1.20", "S1.62")
async def test_an_entity_is_a_planner_or_a_worker(tenant: Caller, names: list[str]) -> None:
    for entity in (P.EntityRef(type="router", id="x"), WORKER):
        with pytest.raises(errors.FieldInvalid) as refused:
            await plan(tenant, entity=entity)
        assert refused.value.violations[0].field == "task.spec.entity.type"
    assert (await plan(tenant)).spec.entity.type == "planner"
    assert (await create(tenant, "execute_sql_worker", entity=WORKER)).spec.entity.type == "worker"


@pytest.mark.seed("S1.5")
async def test_an_entity_is_required_with_its_id(tenant: Caller) -> None:
    assert (await plan(tenant)).spec.entity.id == "p1"
    with pytest.raises(errors.FieldInvalid):
        await create(tenant, PLANNING, QUESTION)
    with pytest.raises(errors.FieldInvalid):
        await plan(tenant, entity=P.EntityRef(type="planner"))


@pytest.mark.seed("S1.6", "S1.30", "S1.34")
async def test_a_function_that_is_not_registered_is_refused(tenant: Caller) -> None:
    assert (await plan(tenant)).spec.execution.function.function == PLANNING
    with pytest.raises(errors.TaskTypeUnknown):
        await create(tenant, "execute_nothing", QUESTION, entity=PLANNER)
    with pytest.raises(errors.FieldInvalid):
        await create(tenant, "", QUESTION, entity=PLANNER)


@pytest.mark.seed("S1.27", "S1.28", "S1.29")
async def test_there_are_three_functions_of_planners_and_three_of_workers(
    tenant: Caller, names: list[str]
) -> None:
    assert names == PLANNER_FUNCTIONS + WORKER_FUNCTIONS
    for functions, mine, other in ((PLANNER_FUNCTIONS, PLANNER, WORKER), (WORKER_FUNCTIONS, WORKER, PLANNER)):
        for name in functions:
            await create(tenant, name, QUESTION, entity=mine)
            with pytest.raises(errors.FieldInvalid):
                await create(tenant, name, QUESTION, entity=other)


@pytest.mark.seed("S1.7", "S1.32")
async def test_initial_planning_needs_a_question_and_an_instruction(tenant: Caller) -> None:
    made = await plan(tenant)
    assert from_payload((await tenant.get(made.name)).spec.payload) == QUESTION
    for missing in QUESTION:
        with pytest.raises(errors.PayloadSchemaViolation) as refused:
            await plan(tenant, {key: value for key, value in QUESTION.items() if key != missing})
        assert refused.value.violations[0].field == f"task.spec.payload.raw.{missing}"


@pytest.mark.seed("S1.7", "S1.33")
async def test_the_other_five_functions_need_no_payload(tenant: Caller) -> None:
    for name in (PLANNER_FUNCTIONS + WORKER_FUNCTIONS)[1:]:
        made = await create(tenant, name, entity=PLANNER if name in PLANNER_FUNCTIONS else WORKER)
        assert not made.spec.HasField("payload")


@pytest.mark.seed("S1.8", "S1.10", "S1.12", "S1.13", "S1.35")
async def test_a_new_task_is_pending_without_retries_or_an_error_and_has_its_times(tenant: Caller) -> None:
    task = await plan(tenant)
    assert task.status.phase == P.TASK_PHASE_PENDING
    assert task.status.retry_count == 0 and not task.status.HasField("error")
    assert task.metadata.create_time.seconds > 0
    assert task.metadata.update_time == task.metadata.create_time


@pytest.mark.seed("S1.11", "S1.23")
async def test_three_attempts_by_default_and_no_negative_number(tenant: Caller) -> None:
    assert (await plan(tenant)).spec.retry.max_retries == 2
    assert (await plan(tenant, retry=common_pb2.RetryPolicy(max_retries=0))).spec.retry.max_retries == 0
    with pytest.raises(errors.FieldInvalid):
        await plan(tenant, retry=common_pb2.RetryPolicy(max_retries=-1))


@pytest.mark.seed("S1.18", "S1.36", "S1.51")
async def test_a_claim_and_each_report_refresh_the_time_of_the_update(tenant: Caller, yard: Yard) -> None:
    task = await plan(tenant)
    runner, _ = await yard.hello()
    (assignment,) = (await yard.claim(runner)).assignments
    claimed = await tenant.get(task.name)
    assert claimed.status.phase == P.TASK_PHASE_SCHEDULED
    await yard.report(runner, started(assignment))
    begun = await tenant.get(task.name)
    assert begun.status.phase == P.TASK_PHASE_RUNNING
    await yard.report(runner, succeeded(assignment))
    ended = await tenant.get(task.name)
    times = [one.metadata.update_time.ToNanoseconds() for one in (task, claimed, begun, ended)]
    assert times == sorted(set(times))


@pytest.mark.seed("S1.37")
async def test_a_function_that_returns_completes_its_task_and_its_result_is_kept(
    tenant: Caller, yard: Yard
) -> None:
    task = await plan(tenant)
    runner, assignment = await running(yard)
    result = P.TaskResult(output=common_pb2.Payload(raw=b'{"plan": [1, 2]}'))
    await yard.report(runner, succeeded(assignment, result=result))
    status = (await tenant.get(task.name)).status
    assert (status.phase, from_payload(status.result.output)) == (P.TASK_PHASE_SUCCEEDED, {"plan": [1, 2]})
    assert await listed(tenant, 'spec.entity.id = "p1" AND status.phase = SUCCEEDED') == [task.name]


async def fail(yard: Yard, runner: Any, message: str = "") -> lease_pb2.Assignment:
    """One attempt that fails; the next is due at once."""
    assignment: lease_pb2.Assignment
    (assignment,) = (await yard.claim(runner)).assignments
    report = failed(assignment)
    report.failed.error.message = message
    await yard.report(runner, started(assignment), report)
    return assignment


@pytest.mark.seed("S1.9", "S1.25", "S1.38", "S1.49")
async def test_a_failure_fills_the_error_and_raises_the_count(tenant: Caller, yard: Yard) -> None:
    task = await plan(tenant)
    runner, _ = await yard.hello()
    await fail(yard, runner, "ValueError: no plan")
    status = (await tenant.get(task.name)).status
    assert (status.error.message, status.retry_count) == ("ValueError: no plan", 1)


@pytest.mark.seed("S1.24", "S1.39", "S1.40", "S1.52")
async def test_a_task_is_retried_until_its_attempts_are_used_up(
    tenant: Caller, yard: Yard, taskdb: RunningTaskDb
) -> None:
    task = await plan(tenant)
    runner, _ = await yard.hello()
    for attempt in (1, 2, 3):
        await fail(yard, runner, "again")
        status = (await tenant.get(task.name)).status
        if attempt < 3:
            assert (status.phase, status.retry_count) == (P.TASK_PHASE_PENDING, attempt)
            await make_due(taskdb)
    assert (status.phase, status.retry_count) == (P.TASK_PHASE_EXHAUSTED, 2)
    assert not (await yard.claim(runner)).assignments


async def make_due(taskdb: RunningTaskDb) -> None:
    """Lets the back-off of the only task be over."""
    await taskdb.execute("UPDATE timers SET due_time = now() - interval '1 second'")
    await until(lambda: taskdb.rows("SELECT FROM queue"))


@pytest.mark.seed("S1.54", "S1.55")
async def test_a_retry_waits_twice_as_long_each_time_up_to_five_minutes(tenant: Caller, yard: Yard) -> None:
    task = await plan(tenant)
    runner, _ = await yard.hello()
    await fail(yard, runner)
    after = await tenant.get(task.name)
    wait = after.status.next_attempt_time.ToDatetime() - after.metadata.update_time.ToDatetime()
    assert wait == timedelta(seconds=2)
    backoff = task.spec.retry.backoff
    assert (backoff.factor, backoff.max.seconds, backoff.jitter) == (2, 300, common_pb2.JITTER_POLICY_NONE)
    assert not (await yard.claim(runner)).assignments


@pytest.mark.seed("S1.50")
async def test_a_success_after_a_failure_clears_the_error(
    tenant: Caller, yard: Yard, taskdb: RunningTaskDb
) -> None:
    task = await plan(tenant)
    runner, _ = await yard.hello()
    await fail(yard, runner, "first")
    await make_due(taskdb)
    (assignment,) = (await yard.claim(runner)).assignments
    await yard.report(runner, started(assignment), succeeded(assignment))
    status = (await tenant.get(task.name)).status
    assert status.phase == P.TASK_PHASE_SUCCEEDED and not status.HasField("error")


@pytest.mark.seed("S1.41", "S1.42", "S1.48")
async def test_a_completed_task_has_no_way_out(tenant: Caller, yard: Yard) -> None:
    task = await plan(tenant)
    runner, assignment = await running(yard)
    await yard.report(runner, succeeded(assignment))
    (refused,) = await yard.report(runner, failed(assignment))
    assert "SUCCEEDED" in from_status(refused.error).message
    for call, request in (
        (tenant.tasks.RetryTask, task_service_pb2.RetryTaskRequest(name=task.name)),
        (tenant.tasks.PauseTask, task_service_pb2.PauseTaskRequest(name=task.name)),
        (tenant.tasks.CancelTask, task_service_pb2.CancelTaskRequest(name=task.name)),
    ):
        with pytest.raises(errors.FailedPrecondition):
            await call(request)
    assert not (await yard.claim(runner)).assignments


@pytest.mark.seed("S1.21", "S1.42", "S1.63")
async def test_a_status_that_is_no_phase_is_not_stored(
    tenant: Caller, yard: Yard, taskdb: RunningTaskDb
) -> None:
    await plan(tenant)
    # Each is a number between those of two phases, so that no other rule of an ended task refuses it.
    for phase in (0, 6):
        with pytest.raises(psycopg.IntegrityError):
            await taskdb.execute(f"UPDATE tasks SET phase = {phase}")
    with pytest.raises(errors.FilterInvalid):
        await listed(tenant, "status.phase = INVALID_STATUS")


@pytest.mark.seed("S1.22", "S1.24", "S1.64")
@pytest.mark.parametrize("count", [-1, 3])
async def test_a_count_of_retries_is_neither_negative_nor_above_its_maximum(
    tenant: Caller, taskdb: RunningTaskDb, count: int
) -> None:
    await plan(tenant)
    with pytest.raises(psycopg.IntegrityError):
        await taskdb.execute(f"UPDATE tasks SET retry_count = {count}")


@pytest.mark.seed("S1.43", "S1.44", "S1.45")
async def test_tasks_of_one_entity_run_one_after_the_other_and_others_beside_them(
    tenant: Caller, yard: Yard
) -> None:
    first, second = await plan(tenant), await plan(tenant)
    other = await plan(tenant, entity=P.EntityRef(type="planner", id="p2"))
    namesake = await create(tenant, "execute_sql_worker", entity=P.EntityRef(type="worker", id="p1"))
    assert first.spec.slot == "planner.p1"
    runner, _ = await yard.hello()
    claimed = {one.lease.task: one for one in (await yard.claim(runner)).assignments}
    assert claimed.keys() == {first.name, other.name, namesake.name}
    await yard.report(runner, started(claimed[first.name]))
    assert not (await yard.claim(runner)).assignments
    await yard.report(runner, succeeded(claimed[first.name]))
    assert [one.lease.task for one in (await yard.claim(runner)).assignments] == [second.name]


@pytest.mark.seed("S1.47")
async def test_an_update_of_an_unknown_task_is_an_error_with_its_id(tenant: Caller, yard: Yard) -> None:
    await plan(tenant)
    runner, assignment = await running(yard)
    assignment.lease.task = "tenants/default/tasks/" + "f" * 32
    (refused,) = await yard.report(runner, succeeded(assignment))
    assert "f" * 32 in from_status(refused.error).message


@pytest.mark.seed("S1.60")
async def test_a_batch_is_all_or_nothing_in_order_with_ids_and_defaults(tenant: Caller) -> None:
    def item(name: str, entity: task_pb2.EntityRef) -> task_service_pb2.CreateTaskRequest:
        request = task_service_pb2.CreateTaskRequest(parent="tenants/default")
        request.task.spec.CopyFrom(P.TaskSpec(task_type=name, entity=entity))
        return request

    batch = task_service_pb2.BatchCreateTasksRequest(
        parent="tenants/default",
        mode=common_pb2.BATCH_MODE_ATOMIC,
        requests=[item(name, WORKER) for name in WORKER_FUNCTIONS],
        view=task_service_pb2.TASK_VIEW_FULL,
    )
    results = (await tenant.tasks.BatchCreateTasks(batch)).results
    assert [one.created.task.spec.task_type for one in results] == WORKER_FUNCTIONS
    assert all(len(one.created.task.metadata.id) == 32 for one in results)
    assert {one.created.task.spec.retry.max_retries for one in results} == {2}
    batch.requests.append(item("execute_sql_worker", PLANNER))
    with pytest.raises(errors.FieldInvalid):
        await tenant.tasks.BatchCreateTasks(batch)
    assert len(await listed(tenant, 'spec.entity.type = "worker"')) == 3


@pytest.mark.seed("S1.2", "S1.15", "S1.16", "S1.17")
async def test_tasks_are_found_by_entity_function_and_status(tenant: Caller, yard: Yard) -> None:
    first = await plan(tenant)
    await running(yard)
    second = await create(tenant, "execute_sql_worker", entity=WORKER)
    assert await listed(tenant, 'spec.entity.type = "worker" AND spec.entity.id = "w1"') == [second.name]
    assert await listed(tenant, f'spec.task_type = "{PLANNING}"') == [first.name]
    assert await listed(tenant, "status.phase = RUNNING") == [first.name]


@pytest.mark.seed("S1.58")
async def test_ended_tasks_are_deleted_after_seven_days_and_not_archived(
    tenant: Caller, yard: Yard, admin: Caller
) -> None:
    task = await plan(tenant)
    runner, assignment = await running(yard)
    await yard.report(runner, succeeded(assignment))
    ended = await tenant.get(task.name)
    kept = ended.metadata.expire_time.ToDatetime() - ended.status.end_time.ToDatetime()
    assert kept == timedelta(days=7)
    for name in PLANNER_FUNCTIONS + WORKER_FUNCTIONS:
        made = await get(admin, f"tenants/system/taskTypes/{name}")
        assert (made.archive, made.retention.seconds) == (False, 7 * 86400), name


def test_the_delays_of_the_document_are_those_of_the_default_policy() -> None:
    policy = TaskPolicy(jitter=Jitter.NONE)
    waits = [delay(policy, number, None, Random(1)).total_seconds() for number in range(10)]
    assert waits == [min(2**number, 300) for number in range(10)]
