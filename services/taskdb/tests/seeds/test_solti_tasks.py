"""Tasks of the preset solti: metadata, spec and status, phases, slots, restarts, identities and lists."""

from __future__ import annotations

from typing import Any

import pytest
from google.protobuf.field_mask_pb2 import FieldMask

from services.taskdb.tests.conftest import Caller, RunningTaskDb
from services.taskdb.tests.preset_tasks import create, load, running, until
from services.taskdb.tests.rpc.type_calls import get
from services.taskdb.tests.yard import Yard, duration, failed, started, succeeded
from taskyard import errors
from taskyard.v1 import common_pb2, lease_pb2, task_pb2, task_service_pb2

P, S = task_pb2, task_service_pb2
COMMAND = P.Execution(command=P.CommandExecution(program="true"))


@pytest.fixture(autouse=True)
async def preset(admin: Caller) -> None:
    await load(admin, "solti")


async def solti(tenant: Caller, **fields: Any) -> task_pb2.Task:
    fields = {"execution": COMMAND, "slot": "s", "attempt_timeout": duration(5)} | fields
    return await create(tenant, "solti.task", **fields)


@pytest.mark.seed("S4.1", "S4.2", "S4.4", "S4.5", "S4.6", "S4.7", "S4.8", "S4.14", "S4.47")
async def test_a_task_is_metadata_spec_and_status(tenant: Caller) -> None:
    made = await solti(tenant, task_id="build.1", attempt_timeout=duration(1.5))
    task = await tenant.get(made.name)
    assert task.metadata.id == "build.1" and task.metadata.create_time == task.metadata.update_time
    assert (task.spec.slot, task.spec.execution.WhichOneof("kind")) == ("s", "command")
    assert task.spec.attempt_timeout.ToMilliseconds() == 1500
    assert task.status.phase == P.TASK_PHASE_PENDING


@pytest.mark.seed("S4.3", "S4.5")
async def test_each_change_of_spec_or_status_raises_the_version_and_a_stale_writer_is_refused(
    tenant: Caller, yard: Yard
) -> None:
    task = await solti(tenant)
    change = S.UpdateTaskRequest(task=task, update_mask=FieldMask(paths=["spec.priority"]))
    change.task.spec.priority = 5
    second = (await tenant.tasks.UpdateTask(change)).task
    assert second.metadata.resource_version > task.metadata.resource_version
    assert second.metadata.update_time.ToNanoseconds() > task.metadata.update_time.ToNanoseconds()
    with pytest.raises(errors.ResourceVersionMismatch):
        await tenant.tasks.UpdateTask(change)
    await running(yard)
    third = await tenant.get(task.name)
    assert third.metadata.resource_version > second.metadata.resource_version


@pytest.mark.seed("S4.9", "S4.10", "S4.11")
async def test_policies_come_back_and_what_is_left_open_is_never_dropped_and_jittered(tenant: Caller) -> None:
    default = (await solti(tenant)).spec
    assert default.admission == P.ADMISSION_POLICY_DROP_IF_RUNNING
    assert default.retry.restart == common_pb2.RESTART_POLICY_NEVER
    backoff = default.retry.backoff
    assert (backoff.initial.seconds, backoff.max.seconds, backoff.factor) == (1, 30, 2)
    assert backoff.jitter == common_pb2.JITTER_POLICY_FULL
    own = common_pb2.BackoffPolicy(
        initial=duration(2), max=duration(9), factor=3, jitter=common_pb2.JITTER_POLICY_EQUAL
    )
    retry = common_pb2.RetryPolicy(restart=common_pb2.RESTART_POLICY_ON_FAILURE, max_retries=4, backoff=own)
    given = (await solti(tenant, slot="other", retry=retry, admission=P.ADMISSION_POLICY_QUEUE)).spec
    assert (given.retry.restart, given.retry.backoff) == (retry.restart, own)
    assert given.admission == P.ADMISSION_POLICY_QUEUE


@pytest.mark.seed("S4.13", "S4.48")
async def test_labels_filter_tasks_and_are_listed_in_order(tenant: Caller) -> None:
    request = S.CreateTaskRequest(parent="tenants/default")
    request.task.spec.CopyFrom(P.TaskSpec(task_type="solti.task", execution=COMMAND, slot="s"))
    request.task.spec.attempt_timeout.CopyFrom(duration(5))
    request.task.metadata.labels.update({"team": "b", "app": "a"})
    made = (await tenant.tasks.CreateTask(request)).task
    await solti(tenant, slot="other")
    found = await tenant.tasks.ListTasks(
        S.ListTasksRequest(parent="tenants/default", filter='metadata.labels.team = "b"')
    )
    assert [task.name for task in found.tasks] == [made.name]
    first, second = await tenant.get(made.name), await tenant.get(made.name)
    assert first.SerializeToString(deterministic=True) == second.SerializeToString(deterministic=True)


@pytest.mark.seed("S4.15", "S4.16", "S4.17", "S4.20", "S4.22", "S4.44")
async def test_a_failed_attempt_is_restarted_and_each_has_a_record(
    tenant: Caller, yard: Yard, taskdb: RunningTaskDb
) -> None:
    retry = common_pb2.RetryPolicy(
        restart=common_pb2.RESTART_POLICY_ON_FAILURE,
        max_retries=3,
        backoff=common_pb2.BackoffPolicy(initial=duration(0.001), max=duration(0.001)),
    )
    task = await solti(tenant, retry=retry)
    runner, assignment = await running(yard)
    assert (await tenant.get(task.name)).status.phase == P.TASK_PHASE_RUNNING
    report = failed(assignment)
    report.failed.exit_code, report.failed.error.message = 3, "exit code 3"
    await yard.report(runner, report)
    failure = (await tenant.get(task.name)).status
    assert (failure.exit_code, failure.error.message, failure.attempt) == (3, "exit code 3", 1)

    async def restarted() -> bool:
        claimed = (await yard.claim(runner)).assignments
        if claimed:
            await yard.report(runner, started(claimed[0]), succeeded(claimed[0], exit_code=0))
        return bool(claimed)

    await until(restarted)
    status = (await tenant.get(task.name)).status
    assert (status.phase, status.attempt, status.exit_code) == (P.TASK_PHASE_SUCCEEDED, 2, 0)
    runs = (await tenant.tasks.ListTaskRuns(S.ListTaskRunsRequest(parent=task.name))).runs
    assert [(run.attempt, run.state) for run in runs] == [
        (2, P.RUN_STATE_SUCCEEDED),
        (1, P.RUN_STATE_FAILED),
    ]
    assert all(run.start_time.seconds and run.end_time.seconds for run in runs)


def timed_out(assignment: lease_pb2.Assignment) -> lease_pb2.RunReport:
    return lease_pb2.RunReport(
        lease=assignment.lease, timed_out=lease_pb2.RunTimedOut(code="ATTEMPT_TIMEOUT")
    )


@pytest.mark.seed("S4.19", "S4.21", "S4.23", "S4.26")
@pytest.mark.parametrize(
    ("report", "phase"),
    [
        (succeeded, P.TASK_PHASE_SUCCEEDED),
        (failed, P.TASK_PHASE_FAILED),
        (timed_out, P.TASK_PHASE_TIMED_OUT),
    ],
)
async def test_an_attempt_ends_in_a_phase_that_is_final(
    tenant: Caller, yard: Yard, report: Any, phase: int
) -> None:
    task = await solti(tenant)
    runner, assignment = await running(yard)
    await yard.report(runner, report(assignment))
    assert (await tenant.get(task.name)).status.phase == phase
    assert not (await yard.claim(runner)).assignments
    with pytest.raises(errors.TaskTerminal):
        await tenant.tasks.CancelTask(S.CancelTaskRequest(name=task.name))


@pytest.mark.seed("S4.24", "S4.26")
async def test_a_running_task_is_cancelled_when_its_runner_has_stopped_it(tenant: Caller, yard: Yard) -> None:
    task = await solti(tenant)
    runner, assignment = await running(yard)
    await tenant.tasks.CancelTask(S.CancelTaskRequest(name=task.name))
    await yard.report(runner, lease_pb2.RunReport(lease=assignment.lease, cancelled=lease_pb2.RunCancelled()))
    assert (await tenant.get(task.name)).status.phase == P.TASK_PHASE_CANCELLED


@pytest.mark.seed("S4.25", "S4.26")
async def test_a_task_is_exhausted_when_its_retries_are_used_up(tenant: Caller, yard: Yard) -> None:
    retry = common_pb2.RetryPolicy(
        restart=common_pb2.RESTART_POLICY_ON_FAILURE,
        max_retries=1,
        backoff=common_pb2.BackoffPolicy(initial=duration(0.001), max=duration(0.001)),
    )
    task = await solti(tenant, retry=retry)
    runner, _ = await yard.hello()

    async def ended() -> bool:
        for assignment in (await yard.claim(runner)).assignments:
            await yard.report(runner, started(assignment), failed(assignment))
        return (await tenant.get(task.name)).status.phase == P.TASK_PHASE_EXHAUSTED

    await until(ended)
    assert (await tenant.get(task.name)).status.attempt == 2


@pytest.mark.seed("S4.38")
async def test_a_taken_slot_drops_replaces_or_queues(tenant: Caller, yard: Yard) -> None:
    first = await solti(tenant)
    dropped = await solti(tenant)
    assert dropped.name == first.name
    queued = await solti(tenant, admission=P.ADMISSION_POLICY_QUEUE)
    assert queued.status.pending_reason == P.PENDING_REASON_SLOT_BUSY
    replacing = await solti(tenant, admission=P.ADMISSION_POLICY_REPLACE)
    for name in (first.name, queued.name):
        assert (await tenant.get(name)).status.phase == P.TASK_PHASE_CANCELLED
    runner, _ = await yard.hello()
    assert [one.lease.task for one in (await yard.claim(runner)).assignments] == [replacing.name]


@pytest.mark.seed("S4.55", "S4.56", "S4.59", "S4.60", "S4.61")
@pytest.mark.parametrize("bad", [".", "..", "a b", "a/b", "ä"])
async def test_an_id_and_a_slot_are_validated_where_they_are_submitted(tenant: Caller, bad: str) -> None:
    assert (await solti(tenant, task_id="x" * 256, slot="y" * 64)).spec.slot == "y" * 64
    for field, value in (("task_id", bad), ("task_id", "x" * 257), ("slot", bad), ("slot", "y" * 65)):
        with pytest.raises(errors.FieldInvalid) as refused:
            await solti(tenant, **{field: value})
        assert refused.value.violations[0].field.endswith(field)


@pytest.mark.seed("S4.52", "S4.53", "S4.62")
async def test_lists_have_100_by_default_and_at_most_1000(tenant: Caller, taskdb: RunningTaskDb) -> None:
    requests = [
        S.CreateTaskRequest(parent="tenants/default", task=P.Task(spec=P.TaskSpec(execution=COMMAND)))
        for _ in range(1000)
    ]
    batch = S.BatchCreateTasksRequest(
        parent="tenants/default", requests=requests, mode=common_pb2.BATCH_MODE_PER_ITEM
    )
    await tenant.tasks.BatchCreateTasks(batch)
    await solti(tenant)
    request = S.ListTasksRequest(parent="tenants/default", view=S.TASK_VIEW_NAME)
    page = await tenant.tasks.ListTasks(request)
    assert len(page.tasks) == 100 and page.next_page_token
    request.page_size = 5000
    page = await tenant.tasks.ListTasks(request)
    assert len(page.tasks) == 1000 and page.next_page_token
    request.page_token = page.next_page_token
    assert len((await tenant.tasks.ListTasks(request)).tasks) == 1


@pytest.mark.seed("S4.6", "S4.8")
async def test_a_slot_and_a_timeout_are_required(tenant: Caller) -> None:
    for missing in ("slot", "attempt_timeout"):
        given = {"execution": COMMAND, "slot": "s", "attempt_timeout": duration(5)}
        del given[missing]
        with pytest.raises(errors.FieldInvalid) as refused:
            await create(tenant, "solti.task", **given)
        assert refused.value.violations[0].field == f"task.spec.{missing}"


async def test_tasks_are_kept_until_they_are_deleted(admin: Caller) -> None:
    made = await get(admin, "tenants/system/taskTypes/solti.task")
    assert (made.retention.seconds, made.archive) == (0, False)
