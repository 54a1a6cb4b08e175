"""UpdateTask: what may change when, and what a mask means."""

from __future__ import annotations

from typing import Any

import pytest
from google.protobuf.duration_pb2 import Duration
from google.protobuf.field_mask_pb2 import FieldMask

from taskyard import errors
from taskyard.v1 import common_pb2, task_pb2, task_service_pb2
from taskyard_taskdb.storage.action.edit import Editor


async def update(
    caller: Any, name: str, *paths: str, version: int = 0, request_id: str = "", **spec: Any
) -> Any:
    """Changes a task; `labels` is metadata, everything else a field of the spec."""
    labels = spec.pop("labels", None)
    task = task_pb2.Task(name=name, spec=task_pb2.TaskSpec(**spec) if spec else None)
    task.metadata.resource_version = version
    if labels is not None:
        task.metadata.labels.update(labels)
    mask = FieldMask(paths=paths) if paths else None
    request = task_service_pb2.UpdateTaskRequest(task=task, update_mask=mask, request_id=request_id)
    return (await caller.tasks.UpdateTask(request)).task


async def stored(taskdb: Any) -> Any:
    """Everything an update could change."""
    return await taskdb.rows(
        "SELECT (SELECT array_agg(t.*)::text FROM tasks t), (SELECT array_agg(q.*)::text FROM queue q), "
        "(SELECT count(*) FROM changes), (SELECT count(*) FROM idempotency_keys)"
    )


async def test_priority_of_a_queued_task_moves_it_to_another_lane(taskdb: Any, tenant: Any) -> None:
    task = await tenant.create()
    changed = await update(tenant, task.name, "spec.priority", priority=50)
    assert (changed.spec.priority, changed.metadata.resource_version) == (50, 2)
    assert changed == await tenant.get(task.name)
    rows = await taskdb.rows("SELECT q.priority, q.ready_time = t.ready_time FROM queue q, tasks t")
    assert rows == [(50, True)]


async def test_mask_replaces_labels_as_a_whole(tenant: Any) -> None:
    task = await tenant.create(labels={"a": "1", "b": "2"})
    assert (await update(tenant, task.name, "metadata.labels", labels={"c": "3"})).metadata.labels == {
        "c": "3"
    }
    assert (await update(tenant, task.name, "metadata.labels")).metadata.labels == {}


async def test_without_a_mask_populated_fields_change(tenant: Any) -> None:
    task = await tenant.create(labels={"a": "1"}, attempt_timeout=Duration(seconds=10))
    changed = await update(tenant, task.name, priority=20)
    assert changed.spec.priority == 20
    assert changed.spec.attempt_timeout.seconds == 10
    assert changed.metadata.labels == {"a": "1"}


async def test_read_change_write_of_the_whole_task_works(tenant: Any) -> None:
    task = await tenant.create(slot="s", labels={"a": "1"})
    task.spec.priority = 7
    request = task_service_pb2.UpdateTaskRequest(task=task)
    assert (await tenant.tasks.UpdateTask(request)).task.spec.priority == 7
    with pytest.raises(errors.ResourceVersionMismatch):
        await tenant.tasks.UpdateTask(request)


async def test_star_resets_what_is_not_given(tenant: Any) -> None:
    task = await tenant.create(priority=99, attempt_timeout=Duration(seconds=10), labels={"a": "1"})
    execution = task_pb2.Execution(command=task_pb2.CommandExecution(program="false"))
    changed = await update(tenant, task.name, "*", execution=execution)
    assert changed.spec.priority == 10
    assert not changed.spec.HasField("attempt_timeout") and not changed.metadata.labels
    assert changed.spec.execution.command.program == "false"


async def test_nested_path_changes_one_field(tenant: Any) -> None:
    task = await tenant.create()
    retry = common_pb2.RetryPolicy(max_retries=7, retry_on_timeout=True)
    changed = await update(tenant, task.name, "spec.retry.max_retries", retry=retry)
    assert changed.spec.retry.max_retries == 7
    assert not changed.spec.retry.retry_on_timeout
    assert changed.spec.retry.backoff.max.seconds == 300


async def test_changed_policy_is_that_of_the_next_run(taskdb: Any, tenant: Any) -> None:
    task = await tenant.create()
    await update(
        tenant,
        task.name,
        "spec.retry",
        "spec.queue_timeout",
        retry=common_pb2.RetryPolicy(restart=common_pb2.RESTART_POLICY_NEVER),
        queue_timeout=Duration(seconds=60),
    )
    assert await taskdb.rows("SELECT restart, timed FROM tasks") == [(1, True)]
    assert await taskdb.rows("SELECT kind FROM timers") == [(2,)]


async def test_placement_of_a_queued_task_moves_it_to_another_class(taskdb: Any, tenant: Any) -> None:
    task = await tenant.create()
    before = await taskdb.rows("SELECT class_id FROM queue")
    placement = task_pb2.Placement(required=task_pb2.RunnerConstraint(runner_ids=["r1"]))
    await update(tenant, task.name, "spec.placement", "spec.resources", placement=placement)
    rows = await taskdb.rows("SELECT class_id, pinned_runner FROM queue")
    assert rows == [(before[0][0], "r1")]
    await update(tenant, task.name, "spec.resources", resources=common_pb2.Resources(memory_mb=100))
    rows = await taskdb.rows(
        "SELECT q.class_id FROM queue q JOIN placement_classes USING (tenant_id, class_id)"
    )
    assert rows and rows != before


async def test_labels_callback_and_retention_change_in_every_phase(taskdb: Any, tenant: Any) -> None:
    task = await tenant.create()
    callback = task_pb2.Callback(url="https://example.com/hook")

    async def change(number: int) -> Any:
        return await update(
            tenant,
            task.name,
            "metadata.labels",
            "spec.callback",
            "spec.retention",
            labels={"n": str(number)},
            callback=callback,
            retention=Duration(seconds=number),
        )

    await change(1)
    await taskdb.start(task.name)
    running = await change(2)
    assert running.status.phase == task_pb2.TASK_PHASE_RUNNING
    assert (running.metadata.labels["n"], running.spec.retention.seconds) == ("2", 2)
    await tenant.tasks.CancelTask(task_service_pb2.CancelTaskRequest(name=task.name))
    assert (await change(3)).metadata.resource_version == running.metadata.resource_version + 2


async def test_update_without_a_difference_changes_nothing(taskdb: Any, tenant: Any) -> None:
    task = await tenant.create(priority=20)
    before = await stored(taskdb)
    assert await update(tenant, task.name, "spec.priority", priority=20) == task
    assert await stored(taskdb) == before


async def test_repeat_with_a_request_id_changes_nothing(taskdb: Any, tenant: Any) -> None:
    task = await tenant.create()
    await update(tenant, task.name, "spec.priority", priority=20, request_id="r")
    await update(tenant, task.name, "spec.priority", priority=30)
    assert (await update(tenant, task.name, "spec.priority", priority=20, request_id="r")).spec.priority == 30
    with pytest.raises(errors.RequestIdReused):
        await update(tenant, task.name, "spec.priority", priority=40, request_id="r")


@pytest.mark.covers("UpdateTask", "NOT_FOUND")
async def test_missing_and_foreign_tasks_are_not_found(taskdb: Any, tenant: Any, admin: Any) -> None:
    await taskdb.add_tenant("acme")
    foreign = await admin.create(parent="tenants/acme")
    for name in ("tenants/default/tasks/none", foreign.name):
        with pytest.raises(errors.NotFound):
            await update(tenant, name, "spec.priority", priority=1)


@pytest.mark.covers("UpdateTask", "RESOURCE_VERSION_MISMATCH")
async def test_stale_version_changes_nothing(taskdb: Any, tenant: Any) -> None:
    task = await tenant.create()
    before = await stored(taskdb)
    with pytest.raises(errors.ResourceVersionMismatch) as refused:
        await update(tenant, task.name, "spec.priority", priority=1, version=9)
    assert refused.value.current_resource_version == "1"
    assert await stored(taskdb) == before


@pytest.mark.seed("S4.18")
@pytest.mark.covers("UpdateTask", "PHASE_CONFLICT")
async def test_spec_of_a_started_task_is_fixed(taskdb: Any, tenant: Any) -> None:
    running, retried, ended = await tenant.create(), await tenant.create(), await tenant.create()
    await taskdb.start(running.name)
    await taskdb.fail(retried.name)
    await tenant.tasks.RetryTask(task_service_pb2.RetryTaskRequest(name=retried.name))
    await taskdb.succeed(ended.name)
    before = await stored(taskdb)
    for task in (running, ended):
        with pytest.raises(errors.PhaseConflict):
            await update(tenant, task.name, "spec.priority", priority=1)
    for task in (running, retried, ended):
        with pytest.raises(errors.PhaseConflict):
            await update(tenant, task.name, "spec.attempt_timeout", attempt_timeout=Duration(seconds=5))
    assert await stored(taskdb) == before
    assert (await update(tenant, retried.name, "spec.priority", priority=1)).spec.priority == 1


@pytest.mark.seed("S4.18")
@pytest.mark.covers("UpdateTask", "FIELD_IMMUTABLE")
async def test_identity_and_status_cannot_be_changed(taskdb: Any, tenant: Any) -> None:
    task, external = await tenant.create(slot="s", task_type="t"), await tenant.create(external=True)
    before = await stored(taskdb)
    for path in (
        "name",
        "status",
        "status.phase",
        "metadata.uid",
        "spec.slot",
        "spec.task_type",
        "spec.entity",
    ):
        with pytest.raises(errors.FieldImmutable):
            await update(tenant, task.name, path)
    with pytest.raises(errors.FieldImmutable) as refused:
        await update(tenant, task.name, slot="other", priority=1)
    assert refused.value.violations[0].field == "task.spec.slot"
    command = task_pb2.Execution(command=task_pb2.CommandExecution(program="true"))
    with pytest.raises(errors.FieldImmutable):
        await update(tenant, external.name, "spec.execution", execution=command)
    assert await stored(taskdb) == before


@pytest.mark.covers("UpdateTask", "FIELD_INVALID")
async def test_unknown_paths_and_bad_values_are_named(taskdb: Any, tenant: Any) -> None:
    task = await tenant.create()
    before = await stored(taskdb)
    for path in ("spec.nothing", "metadata.labels.team", "spec.env.name", "spec.priority.more"):
        with pytest.raises(errors.FieldInvalid) as refused:
            await update(tenant, task.name, path)
        assert refused.value.violations[0].field == "update_mask"
    with pytest.raises(errors.FieldInvalid) as refused:
        await update(tenant, task.name, "spec.priority", priority=1001)
    assert refused.value.violations[0].field == "task.spec.priority"
    with pytest.raises(errors.FieldInvalid):
        await update(tenant, task.name, "metadata.labels", labels={"a": "\0"})
    with pytest.raises(errors.FieldInvalid):
        await update(tenant, task.name, "spec.execution")
    assert await stored(taskdb) == before


@pytest.mark.covers("UpdateTask", "TOO_LARGE")
async def test_payload_above_its_limit_is_too_large(taskdb: Any, tenant: Any) -> None:
    task = await tenant.create()
    before = await stored(taskdb)
    large = common_pb2.Payload(raw=b"x" * (1024 * 1024 + 1), content_type="text/plain")
    with pytest.raises(errors.TooLarge):
        await update(tenant, task.name, "spec.payload", payload=large)
    assert await stored(taskdb) == before


async def test_a_validated_change_is_not_made(taskdb: Any, tenant: Any) -> None:
    task = await tenant.create()
    before = await stored(taskdb)
    changed = task_pb2.Task(name=task.name, spec=task_pb2.TaskSpec(priority=50))
    request = task_service_pb2.UpdateTaskRequest(task=changed, request_id="r1", validate_only=True)
    assert (await tenant.tasks.UpdateTask(request)).task.spec.priority == task.spec.priority
    assert await stored(taskdb) == before
    request.task.spec.slot = "another"
    with pytest.raises(errors.FieldImmutable):
        await tenant.tasks.UpdateTask(request)


async def test_the_answer_shows_this_change_and_not_a_later_one(
    tenant: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another change commits between the commit of this one and its answer."""
    name = (await tenant.create()).name
    edit = Editor.edit
    later = [{"by": "another"}]

    async def overtaken(self: Editor, *args: Any, **named: Any) -> Any:
        found = await edit(self, *args, **named)
        while later:
            await update(tenant, name, "metadata.labels", labels=later.pop())
        return found

    monkeypatch.setattr(Editor, "edit", overtaken)
    answer = await update(tenant, name, "metadata.labels", labels={"by": "me"})
    assert dict(answer.metadata.labels) == {"by": "me"}
    assert dict((await tenant.get(name)).metadata.labels) == {"by": "another"}
