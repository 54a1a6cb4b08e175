"""CreateTask: the stored task, the response and the errors."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from google.protobuf.duration_pb2 import Duration
from google.protobuf.struct_pb2 import Struct
from google.protobuf.timestamp_pb2 import Timestamp

from taskyard import errors
from taskyard.v1 import common_pb2, task_pb2, task_service_pb2

MakeTask = Callable[..., task_service_pb2.CreateTaskRequest]

CREATED = task_service_pb2.CREATE_OUTCOME_CREATED
REPLAYED = task_service_pb2.CREATE_OUTCOME_REPLAYED
DROPPED = task_service_pb2.CREATE_OUTCOME_DROPPED
REPLACED = task_service_pb2.CREATE_OUTCOME_REPLACED


async def count_rows(taskdb: Any) -> tuple[int, ...]:
    """How many rows of every kind a create would make."""
    tables = ("tasks", "queue", "timers", "slots", "idempotency_keys", "changes")
    sql = "SELECT " + ", ".join(f"(SELECT count(*) FROM {table})" for table in tables)
    return tuple((await taskdb.rows(sql))[0])


async def test_response_is_the_stored_task_with_defaults(
    taskdb: Any, tenant: Any, make_task: MakeTask
) -> None:
    response = await tenant.tasks.CreateTask(make_task(labels={"team": "a"}))
    task = response.task
    assert response.outcome == CREATED
    assert task == await tenant.get(task.name)
    assert task.metadata.resource_version == 1
    assert task.metadata.labels == {"team": "a"}
    assert (task.spec.priority, task.spec.retry.max_retries) == (10, 3)
    assert task.spec.retry.backoff.max.seconds == 300
    assert task.spec.overlap == task_pb2.OVERLAP_POLICY_ALLOW
    assert task.status.pending_reason == task_pb2.PENDING_REASON_QUEUED
    assert await taskdb.rows("SELECT task_id FROM queue") == [(task.metadata.id,)]


async def test_given_half_second_backoff_is_not_mixed_with_the_default(
    tenant: Any, make_task: MakeTask
) -> None:
    request = make_task()
    request.task.spec.retry.backoff.initial.nanos = 500_000_000
    request.task.spec.stop_grace_period.nanos = 1_000_000
    task = (await tenant.tasks.CreateTask(request)).task
    assert task.spec.retry.backoff.initial == Duration(nanos=500_000_000)
    assert task.spec.retry.backoff.max == Duration(seconds=300)
    assert task.spec.stop_grace_period == Duration(nanos=1_000_000)


async def test_views_leave_out_the_documented_fields(tenant: Any, make_task: MakeTask) -> None:
    request = make_task(payload=common_pb2.Payload(raw=b"{}"), env=[common_pb2.EnvVar(name="A", value="b")])
    request.view = task_service_pb2.TASK_VIEW_BASIC
    basic = (await tenant.tasks.CreateTask(request)).task
    assert not basic.spec.HasField("payload") and not basic.spec.env and basic.spec.priority == 10
    request.view = task_service_pb2.TASK_VIEW_NAME
    name = (await tenant.tasks.CreateTask(request)).task
    assert name.metadata.uid and not name.HasField("spec")


async def test_delayed_task_waits_for_its_timer(taskdb: Any, tenant: Any, make_task: MakeTask) -> None:
    later = Timestamp()
    later.GetCurrentTime()
    later.seconds += 3600
    task = (await tenant.tasks.CreateTask(make_task(not_before=later))).task
    assert task.status.pending_reason == task_pb2.PENDING_REASON_DELAYED
    assert task.status.next_attempt_time.seconds == later.seconds
    assert await taskdb.rows("SELECT kind FROM timers") == [(1,)]
    assert await taskdb.rows("SELECT * FROM queue") == []


async def test_timeouts_become_timers(taskdb: Any, tenant: Any, make_task: MakeTask) -> None:
    await tenant.tasks.CreateTask(
        make_task(queue_timeout=Duration(seconds=60), total_timeout=Duration(seconds=600))
    )
    rows = await taskdb.rows(
        "SELECT m.kind, m.due_time - t.create_time "
        "FROM timers m JOIN tasks t USING (tenant_id, task_id) ORDER BY 1"
    )
    assert rows == [(2, timedelta(seconds=60)), (3, timedelta(seconds=600))]


async def test_external_task_never_queues(taskdb: Any, tenant: Any, make_task: MakeTask) -> None:
    task = (await tenant.tasks.CreateTask(make_task(external=True, slot="s"))).task
    assert task.status.pending_reason == task_pb2.PENDING_REASON_EXTERNAL
    assert await taskdb.rows("SELECT * FROM queue") == []
    assert await taskdb.rows("SELECT * FROM slots") == []


async def test_entity_makes_a_slot_and_forbids_overlap(tenant: Any, make_task: MakeTask) -> None:
    entity = task_pb2.EntityRef(type="planner", id="p-1")
    first = await tenant.create(entity=entity)
    second = await tenant.create(entity=entity)
    assert first.spec.slot == "planner.p-1"
    assert first.spec.overlap == task_pb2.OVERLAP_POLICY_FORBID
    assert first.status.pending_reason == task_pb2.PENDING_REASON_QUEUED
    assert second.status.pending_reason == task_pb2.PENDING_REASON_SLOT_BUSY


async def test_pinned_task_has_a_lane_of_its_own(taskdb: Any, tenant: Any, make_task: MakeTask) -> None:
    placement = task_pb2.Placement(required=task_pb2.RunnerConstraint(runner_ids=["r7"]))
    await tenant.create(placement=placement)
    await tenant.create()
    lanes = await taskdb.rows("SELECT pinned_runner, class_id FROM queue ORDER BY 1")
    assert [lane[0] for lane in lanes] == ["", "r7"]


async def test_traceparent_and_creator_are_recorded(taskdb: Any, tenant: Any, make_task: MakeTask) -> None:
    trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    response = await tenant.tasks.CreateTask(make_task(), metadata=(("traceparent", trace),))
    assert response.task.metadata.traceparent == trace
    assert response.task.metadata.creator.type == common_pb2.ACTOR_TYPE_USER
    rows = await taskdb.rows("SELECT actor_id, event, version FROM changes")
    assert rows == [(response.task.metadata.creator.id, 1, 1)]


async def test_batch_order_is_queue_order(taskdb: Any, tenant: Any, make_task: MakeTask) -> None:
    request = task_service_pb2.BatchCreateTasksRequest(parent="tenants/default")
    for name in ("z", "a", "m"):
        request.requests.append(make_task(task_id=name))
    await tenant.tasks.BatchCreateTasks(request)
    assert await taskdb.rows("SELECT task_id FROM queue ORDER BY ready_time") == [("z",), ("a",), ("m",)]


async def test_validate_only_stores_nothing(taskdb: Any, tenant: Any, make_task: MakeTask) -> None:
    await tenant.create(slot="s", task_id="first")
    before = await count_rows(taskdb)
    request = make_task(slot="s", request_id="r")
    request.validate_only = True
    response = await tenant.tasks.CreateTask(request)
    assert response.task.status.pending_reason == task_pb2.PENDING_REASON_SLOT_BUSY
    assert await count_rows(taskdb) == before
    taken = make_task(task_id="first")
    taken.validate_only = True
    with pytest.raises(errors.AlreadyExists):
        await tenant.tasks.CreateTask(taken)


# --- admission


async def test_drop_if_running_returns_the_live_task(taskdb: Any, tenant: Any, make_task: MakeTask) -> None:
    live = await tenant.create(slot="s")
    drop = task_pb2.ADMISSION_POLICY_DROP_IF_RUNNING
    first = await tenant.tasks.CreateTask(make_task(slot="s", admission=drop, request_id="once"))
    again = await tenant.tasks.CreateTask(make_task(slot="s", admission=drop, request_id="once"))
    assert (first.outcome, first.task.name) == (DROPPED, live.name)
    assert (again.outcome, again.task.name) == (REPLAYED, live.name)
    assert await taskdb.rows("SELECT count(*) FROM tasks") == [(1,)]
    await taskdb.succeed(live.name)
    made = await tenant.tasks.CreateTask(make_task(slot="s", admission=drop))
    assert made.outcome == CREATED


async def test_replace_cancels_waiters_and_asks_the_holder(
    taskdb: Any, tenant: Any, make_task: MakeTask
) -> None:
    running, waiting = await tenant.create(slot="s"), await tenant.create(slot="s")
    await taskdb.start(running.name)
    response = await tenant.tasks.CreateTask(make_task(slot="s", admission=task_pb2.ADMISSION_POLICY_REPLACE))
    assert response.outcome == REPLACED
    assert set(response.replaced_tasks) == {running.name, waiting.name}
    assert response.task.status.pending_reason == task_pb2.PENDING_REASON_SLOT_BUSY
    assert (await tenant.get(waiting.name)).status.phase == task_pb2.TASK_PHASE_CANCELLED
    requested = (await tenant.get(running.name)).status.requested_action
    assert requested.action == task_pb2.TASK_ACTION_CANCEL
    assert requested.reason == f"replaced by {response.task.metadata.id}"


async def test_replace_of_a_queued_task_takes_the_slot_at_once(
    taskdb: Any, tenant: Any, make_task: MakeTask
) -> None:
    queued = await tenant.create(slot="s")
    made = await tenant.create(slot="s", admission=task_pb2.ADMISSION_POLICY_REPLACE)
    assert made.status.pending_reason == task_pb2.PENDING_REASON_QUEUED
    assert (await tenant.get(queued.name)).status.phase == task_pb2.TASK_PHASE_CANCELLED
    assert await taskdb.rows("SELECT task_id FROM queue") == [(made.metadata.id,)]
    assert await taskdb.rows("SELECT head_task_id FROM slots") == [(made.metadata.id,)]


async def test_freed_slot_goes_to_the_next_waiter(taskdb: Any, tenant: Any) -> None:
    first, second = await tenant.create(slot="s"), await tenant.create(slot="s")
    await taskdb.succeed(first.name)
    assert (await tenant.get(second.name)).status.pending_reason == task_pb2.PENDING_REASON_QUEUED


@pytest.mark.covers("CreateTask", "SLOT_QUEUE_FULL")
@pytest.mark.covers("BatchCreateTasks", "SLOT_QUEUE_FULL")
async def test_hundred_tasks_wait_behind_a_slot_and_no_more(
    taskdb: Any, tenant: Any, make_task: MakeTask
) -> None:
    request = task_service_pb2.BatchCreateTasksRequest(
        parent="tenants/default",
        requests=[make_task(slot="s") for _ in range(102)],
        mode=common_pb2.BATCH_MODE_PER_ITEM,
    )
    response = await tenant.tasks.BatchCreateTasks(request)
    assert response.failed_count == 1
    before = await count_rows(taskdb)
    with pytest.raises(errors.SlotQueueFull) as refused:
        await tenant.tasks.CreateTask(make_task(slot="s", request_id="r"))
    assert (refused.value.slot, refused.value.limit) == ("s", "100")
    assert refused.value.retry_after
    assert await count_rows(taskdb) == before
    request.mode = common_pb2.BATCH_MODE_ATOMIC
    with pytest.raises(errors.SlotQueueFull):
        await tenant.tasks.BatchCreateTasks(request)
    assert await count_rows(taskdb) == before


# --- repeats


async def test_repeat_with_a_request_id_finds_the_task_as_it_is_now(
    taskdb: Any, tenant: Any, make_task: MakeTask
) -> None:
    first = await tenant.tasks.CreateTask(make_task(request_id="r"))
    await taskdb.succeed(first.task.name)
    again = await tenant.tasks.CreateTask(make_task(request_id="r"))
    assert (again.outcome, again.task.name) == (REPLAYED, first.task.name)
    assert again.task.status.phase == task_pb2.TASK_PHASE_SUCCEEDED
    assert await taskdb.rows("SELECT count(*) FROM tasks") == [(1,)]


@pytest.mark.covers("CreateTask", "REQUEST_ID_REUSED")
async def test_request_id_with_another_body_is_refused(taskdb: Any, tenant: Any, make_task: MakeTask) -> None:
    first = await tenant.tasks.CreateTask(make_task(request_id="r"))
    before = await count_rows(taskdb)
    with pytest.raises(errors.RequestIdReused) as refused:
        await tenant.tasks.CreateTask(make_task(request_id="r", priority=11))
    assert refused.value.name == first.task.name
    assert await count_rows(taskdb) == before


async def test_request_ids_of_tenants_are_apart(taskdb: Any, admin: Any, make_task: MakeTask) -> None:
    await taskdb.add_tenant("acme")
    for parent in ("tenants/default", "tenants/acme"):
        assert (await admin.tasks.CreateTask(make_task(parent, request_id="r"))).outcome == CREATED


@pytest.mark.covers("CreateTask", "ALREADY_EXISTS")
async def test_taken_id_is_refused(taskdb: Any, tenant: Any, make_task: MakeTask) -> None:
    await tenant.create(task_id="mine")
    before = await count_rows(taskdb)
    with pytest.raises(errors.AlreadyExists) as refused:
        await tenant.tasks.CreateTask(make_task(task_id="mine", request_id="r", slot="s"))
    assert refused.value.name == "tenants/default/tasks/mine"
    assert await count_rows(taskdb) == before


# --- refusals


@pytest.mark.covers("CreateTask", "NOT_FOUND")
async def test_unknown_and_foreign_tenants_do_not_exist(
    taskdb: Any, tenant: Any, make_task: MakeTask
) -> None:
    await taskdb.add_tenant("acme")
    for parent in ("tenants/acme", "tenants/nobody"):
        with pytest.raises(errors.NotFound) as refused:
            await tenant.tasks.CreateTask(make_task(parent))
        assert refused.value.name == parent


async def test_unknown_tenant_is_not_found_for_an_administrator(admin: Any, make_task: MakeTask) -> None:
    with pytest.raises(errors.NotFound):
        await admin.tasks.CreateTask(make_task("tenants/nobody"))


async def test_parent_task_of_another_tenant_is_not_found(
    taskdb: Any, tenant: Any, make_task: MakeTask
) -> None:
    request = make_task()
    request.task.metadata.parent_task = "tenants/acme/tasks/t"
    with pytest.raises(errors.NotFound):
        await tenant.tasks.CreateTask(request)
    assert await taskdb.rows("SELECT * FROM tasks") == []


@pytest.mark.covers("CreateTask", "TENANT_SUSPENDED")
async def test_suspended_tenant_may_not_submit(taskdb: Any, admin: Any, make_task: MakeTask) -> None:
    await taskdb.add_tenant("acme", suspended=True)
    with pytest.raises(errors.TenantSuspended):
        await admin.tasks.CreateTask(make_task("tenants/acme"))


@pytest.mark.covers("CreateTask", "TASK_TYPE_UNKNOWN")
async def test_task_without_execution_needs_a_registered_type(tenant: Any) -> None:
    request = task_service_pb2.CreateTaskRequest(parent="tenants/default")
    request.task.spec.task_type = "nowhere"
    with pytest.raises(errors.TaskTypeUnknown) as refused:
        await tenant.tasks.CreateTask(request)
    assert refused.value.name == "nowhere"


def deep(levels: int) -> Struct:
    """An object with lists nested so deep; the decoder itself refuses objects nested so."""
    value: Any = 1
    for _ in range(levels - 1):
        value = [value]
    made = Struct()
    made["a"] = value
    return made


def script(body: bytes) -> task_pb2.Execution:
    """A script with this text."""
    return task_pb2.Execution(
        script=task_pb2.ScriptExecution(interpreter=task_pb2.INTERPRETER_BASH, body=body)
    )


BAD: list[tuple[str, Callable[[Any], Any]]] = [
    ("task.spec.priority", lambda r: setattr(r.task.spec, "priority", 1001)),
    ("task.spec.slot", lambda r: setattr(r.task.spec, "slot", "s" * 65)),
    ("task.spec.slot", lambda r: setattr(r.task.spec, "slot", "a/b")),
    ("task.spec.task_type", lambda r: setattr(r.task.spec, "task_type", "t" * 129)),
    ("task.spec.attempt_timeout", lambda r: setattr(r.task.spec.attempt_timeout, "seconds", 604801)),
    ("task.spec.retry.max_retries", lambda r: setattr(r.task.spec.retry, "max_retries", 1001)),
    ("task.spec.entity.type", lambda r: setattr(r.task.spec.entity, "id", "e")),
    ("task_id", lambda r: setattr(r, "task_id", "t" * 257)),
    ("task_id", lambda r: setattr(r, "task_id", "..")),
    ("request_id", lambda r: setattr(r, "request_id", "r" * 65)),
    ("parent", lambda r: setattr(r, "parent", "")),
    ("parent", lambda r: setattr(r, "parent", "tenants/..")),
    ('task.metadata.labels["k"]', lambda r: r.task.metadata.labels.update(k="a\0b")),
    ("task.metadata.labels", lambda r: r.task.metadata.labels.update({str(n): "" for n in range(65)})),
    ("task.spec.env[0].value", lambda r: r.task.spec.env.add(name="A", value="\0")),
    ("task.spec.execution.command.args[0]", lambda r: r.task.spec.execution.command.args.append("\0")),
    ("task.spec.execution.script.body", lambda r: r.task.spec.execution.CopyFrom(script(b"a\0b"))),
    ("task.spec.execution", lambda r: r.task.spec.ClearField("execution")),
    ("task.spec.payload.raw", lambda r: setattr(r.task.spec.payload, "raw", b"{not json")),
    ("task.spec.payload.json.a", lambda r: r.task.spec.payload.json.update({"a": "\0"})),
    ("task.metadata.annotations.a", lambda r: r.task.metadata.annotations.update({"a": "\0"})),
    (
        "task.spec.execution.function.function",
        lambda r: r.task.spec.execution.CopyFrom(task_pb2.Execution(function=task_pb2.FunctionExecution())),
    ),
]


@pytest.mark.covers("CreateTask", "FIELD_INVALID")
async def test_bad_fields_are_named_and_nothing_is_stored(
    taskdb: Any, tenant: Any, make_task: MakeTask
) -> None:
    for field, spoil in BAD:
        request = make_task()
        spoil(request)
        with pytest.raises(errors.FieldInvalid) as refused:
            await tenant.tasks.CreateTask(request)
        assert field in [violation.field for violation in refused.value.violations], field
    assert await count_rows(taskdb) == (0, 0, 0, 0, 0, 0)


async def test_document_nested_33_levels_deep_is_refused(tenant: Any, make_task: MakeTask) -> None:
    await tenant.tasks.CreateTask(make_task(payload=common_pb2.Payload(json=deep(32))))
    with pytest.raises(errors.FieldInvalid):
        await tenant.tasks.CreateTask(make_task(payload=common_pb2.Payload(json=deep(33))))


LARGE: list[tuple[str, dict[str, Any]]] = [
    (
        "task.spec.payload.raw",
        {"payload": common_pb2.Payload(raw=b"x" * (1024 * 1024 + 1), content_type="text/plain")},
    ),
    ("task.spec.execution.script.body", {"execution": script(b"#" * (2 * 1024 * 1024 + 1))}),
]


@pytest.mark.covers("CreateTask", "TOO_LARGE")
@pytest.mark.parametrize(("field", "spec"), LARGE, ids=[field for field, _ in LARGE])
async def test_payload_and_script_above_their_limit_are_too_large(
    taskdb: Any, tenant: Any, make_task: MakeTask, field: str, spec: dict[str, Any]
) -> None:
    with pytest.raises(errors.TooLarge) as refused:
        await tenant.tasks.CreateTask(make_task(**spec))
    assert refused.value.violations[0].field == field
    assert await count_rows(taskdb) == (0, 0, 0, 0, 0, 0)


async def test_struct_of_64_kib_and_one_byte_is_too_large(tenant: Any, make_task: MakeTask) -> None:
    large = Struct()
    large["a"] = "x" * (64 * 1024)
    with pytest.raises(errors.TooLarge) as refused:
        await tenant.tasks.CreateTask(make_task(payload=common_pb2.Payload(json=large)))
    assert refused.value.violations[0].field == "task.spec.payload.json"


@pytest.mark.covers("CreateTask", "PLACEMENT_CLASS_LIMIT")
async def test_thousand_live_placement_classes_and_no_more(
    taskdb: Any, tenant: Any, make_task: MakeTask
) -> None:
    await taskdb.rows(
        "INSERT INTO placement_classes (tenant_id, class_id, definition) "
        "SELECT 'default', n, '' FROM generate_series(1, 1000) n RETURNING 1"
    )
    with pytest.raises(errors.PlacementClassLimit):
        await tenant.tasks.CreateTask(make_task(task_type="one-more"))
    assert await taskdb.rows("SELECT count(*) FROM placement_classes") == [(1000,)]
    # Classes that no live task has make room once they are old enough.
    await taskdb.rows("UPDATE placement_classes SET create_time = now() - interval '1 hour' RETURNING 1")
    await tenant.tasks.CreateTask(make_task(task_type="one-more"))
    assert await taskdb.rows("SELECT count(*) FROM placement_classes") == [(1,)]


async def test_read_only_key_may_not_create(taskdb: Any, make_task: MakeTask) -> None:
    reader = await taskdb.caller(read_only=True)
    with pytest.raises(errors.PermissionDenied):
        await reader.tasks.CreateTask(make_task())


HOSTILE_IDS = {
    "parent": "..",
    "path": "a/../../b",
    "NUL": "a\0b",
    "control": "a\x1b[2Jb",
    "newline": "a\nb",
    "right-to-left": "a\u202eb",
    "long": "a" * 10_000,
}


@pytest.mark.parametrize("value", HOSTILE_IDS.values(), ids=HOSTILE_IDS)
async def test_hostile_id_is_refused_by_its_field_and_leaves_no_row(
    taskdb: Any, tenant: Any, make_task: MakeTask, value: str
) -> None:
    before = await count_rows(taskdb)
    by_id, by_slot = make_task(), make_task()
    by_id.task_id = by_slot.task.spec.slot = value
    for field, request in {"task_id": by_id, "task.spec.slot": by_slot}.items():
        with pytest.raises(errors.FieldInvalid) as refused:
            await tenant.tasks.CreateTask(request)
        assert {violation.field for violation in refused.value.violations} == {field}
    assert await count_rows(taskdb) == before
