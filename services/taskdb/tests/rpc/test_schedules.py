"""ScheduleService: definitions, refusals that name the field, previews, runs and backfills."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from services.taskdb.tests.conftest import Caller, RunningTaskDb
from services.taskdb.tests.rpc.schedule_calls import PARENT, Clock, Service, create, get, schedule, template
from taskyard import errors
from taskyard.v1 import (
    common_pb2,
    schedule_pb2,
    task_pb2,
    task_service_pb2,
    task_type_pb2,
    task_type_service_pb2,
)
from taskyard_taskdb.storage.tenant import api_keys

NAME = f"{PARENT}/schedules/s"
OTHER = f"{PARENT}/schedules/none"
FIRST = datetime(2026, 3, 28, 12, tzinfo=UTC)


async def add_type(tenant: Caller, task_type_id: str, **fields: Any) -> None:
    kind = task_type_pb2.TaskType(execution=template().spec.execution, **fields)
    await tenant.task_types.CreateTaskType(
        task_type_service_pb2.CreateTaskTypeRequest(parent=PARENT, task_type_id=task_type_id, task_type=kind)
    )


async def update(tenant: Caller, *paths: str, name: str = NAME, version: int = 0, **fields: Any) -> Any:
    made = schedule(**fields)
    made.name, made.resource_version = name, version
    request = Service.UpdateScheduleRequest(schedule=made)
    request.update_mask.paths.extend(paths)
    return (await tenant.schedules.UpdateSchedule(request)).schedule


def backfill(
    start: datetime, end: datetime, name: str = NAME, **fields: Any
) -> Service.BackfillScheduleRequest:
    request = Service.BackfillScheduleRequest(name=name, **fields)
    request.start_time.FromDatetime(start)
    request.end_time.FromDatetime(end)
    return request


def preview(**fields: Any) -> Service.PreviewScheduleRequest:
    request = Service.PreviewScheduleRequest(parent=PARENT, **fields)
    request.start_time.FromDatetime(FIRST)
    return request


async def test_a_schedule_is_stored_as_it_was_given(tenant: Caller) -> None:
    made = await create(tenant, cron=["30 2 * * *"], time_zone="Europe/Berlin", description="report")
    found = await get(tenant)
    assert found == made
    assert (list(found.cron), found.time_zone, found.resource_version) == (["30 2 * * *"], "Europe/Berlin", 1)
    assert found.HasField("next_scheduled_time") and not found.paused
    listed = await tenant.schedules.ListSchedules(
        Service.ListSchedulesRequest(parent=PARENT, filter="paused = false")
    )
    assert [one.name for one in listed.schedules] == [NAME]
    await tenant.schedules.DeleteSchedule(Service.DeleteScheduleRequest(name=NAME))
    with pytest.raises(errors.NotFound):
        await get(tenant)


async def test_a_repeated_create_is_recognised(tenant: Caller) -> None:
    request = Service.CreateScheduleRequest(
        parent=PARENT, schedule_id="s", schedule=schedule(every=3600), request_id="r1"
    )
    first = await tenant.schedules.CreateSchedule(request)
    assert (await tenant.schedules.CreateSchedule(request)).schedule.uid == first.schedule.uid


async def test_a_validated_schedule_is_not_stored(tenant: Caller, taskdb: RunningTaskDb) -> None:
    request = Service.CreateScheduleRequest(
        parent=PARENT, schedule_id="s", schedule=schedule(every=3600), validate_only=True
    )
    assert (await tenant.schedules.CreateSchedule(request)).schedule.HasField("next_fire_time")
    assert await taskdb.rows("SELECT FROM schedules") == []


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "31 February": ({"cron": ["0 0 31 2 *"]}, "schedule.cron[0]"),
    "six fields": ({"cron": ["@daily", "* * * * * *"]}, "schedule.cron[1]"),
    "empty line": ({"cron": [""]}, "schedule.cron[0]"),
    "unknown zone": ({"cron": ["@daily"], "time_zone": "Mars/Olympus"}, "schedule.time_zone"),
    "path as zone": ({"cron": ["@daily"], "time_zone": "../../etc/passwd"}, "schedule.time_zone"),
    "interval below 1 s": ({"every": 0.5}, "schedule.every"),
    "no interval": ({"every": 0}, "schedule.every"),
    "fraction of a second": ({"every": 1.5}, "schedule.every"),
    "neither cron nor every": ({"cron": []}, "schedule.cron"),
    "offset without every": ({"cron": ["@daily"], "offset": 1}, "schedule.offset"),
    "offset of an interval": ({"every": 10, "offset": 10}, "schedule.offset"),
    "end before start": (
        {"every": 60, "start_time": FIRST, "end_time": FIRST - timedelta(1)},
        "schedule",
    ),
    "a time of long ago": ({"every": 60, "start_time": datetime(1, 1, 1)}, "schedule.start_time"),
    "21 lines": ({"cron": ["@daily"] * 21}, "schedule.cron"),
    "nothing to run": (
        {"template": task_pb2.Task(spec=task_pb2.TaskSpec(priority=1))},
        "schedule.template.spec.execution",
    ),
    "a bad priority": ({"template": template(priority=5000)}, "schedule.template.spec.priority"),
    "admission": ({"template": template(admission=2)}, "schedule.template.spec.admission"),
    "external": (
        {"template": template(execution=task_pb2.Execution(external=task_pb2.ExternalExecution()))},
        "schedule.overlap",
    ),
    "an unknown overlap": ({"overlap": 99}, "schedule.overlap"),
    "NUL": ({"description": "a\0b"}, "schedule.description"),
}  # fmt: skip


@pytest.mark.covers("CreateSchedule", "FIELD_INVALID")
@pytest.mark.covers("UpdateSchedule", "FIELD_INVALID")
async def test_bad_input_names_the_field_and_stores_nothing(tenant: Caller, taskdb: RunningTaskDb) -> None:
    for what, (fields, field) in BAD.items():
        with pytest.raises(errors.FieldInvalid) as raised:
            await create(tenant, **fields)
        found = raised.value.violations[0].field
        assert found == field or (field == "schedule" and not found), (what, raised.value)
    at = template()
    at.spec.not_before.seconds = 1
    with pytest.raises(errors.FieldInvalid, match="not_before"):
        await create(tenant, template=at)
    assert await taskdb.rows("SELECT FROM schedules") == []
    await create(tenant, every=3600)
    with pytest.raises(errors.FieldInvalid, match=r"schedule\.cron\[0\]"):
        await update(tenant, "cron", cron=["0 0 31 2 *"])
    with pytest.raises(errors.FieldInvalid, match="update_mask"):
        await update(tenant, "colour")
    assert (await get(tenant)).resource_version == 1


async def test_a_tenant_has_a_limited_number_of_schedules(
    tenant: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("taskyard_taskdb.rpc.schedules.MAX_SCHEDULES", 1)
    await create(tenant, every=3600)
    with pytest.raises(errors.FieldInvalid, match="the most that a tenant may have"):
        await create(tenant, "second", every=3600)


@pytest.mark.covers("CreateSchedule", "NOT_FOUND")
@pytest.mark.covers("GetSchedule", "NOT_FOUND")
@pytest.mark.covers("UpdateSchedule", "NOT_FOUND")
@pytest.mark.covers("DeleteSchedule", "NOT_FOUND")
@pytest.mark.covers("PauseSchedule", "NOT_FOUND")
@pytest.mark.covers("ResumeSchedule", "NOT_FOUND")
@pytest.mark.covers("RunSchedule", "NOT_FOUND")
@pytest.mark.covers("BackfillSchedule", "NOT_FOUND")
@pytest.mark.covers("PreviewSchedule", "NOT_FOUND")
async def test_what_is_missing_is_not_found(tenant: Caller, admin: Caller) -> None:
    calls = tenant.schedules
    for made in (
        admin.schedules.CreateSchedule(
            Service.CreateScheduleRequest(parent="tenants/none", schedule_id="s", schedule=schedule())
        ),
        calls.GetSchedule(Service.GetScheduleRequest(name=OTHER)),
        update(tenant, name=OTHER),
        calls.DeleteSchedule(Service.DeleteScheduleRequest(name=OTHER)),
        calls.PauseSchedule(Service.PauseScheduleRequest(name=OTHER)),
        calls.ResumeSchedule(Service.ResumeScheduleRequest(name=OTHER)),
        calls.RunSchedule(Service.RunScheduleRequest(name=OTHER)),
        calls.BackfillSchedule(backfill(FIRST, FIRST + timedelta(1), OTHER)),
        calls.PreviewSchedule(preview(name=OTHER)),
    ):
        with pytest.raises(errors.NotFound):
            await made


@pytest.mark.covers("CreateSchedule", "ALREADY_EXISTS")
async def test_an_id_is_taken_once(tenant: Caller) -> None:
    await create(tenant, every=3600)
    with pytest.raises(errors.AlreadyExists):
        await create(tenant, every=3600)


@pytest.mark.covers("UpdateSchedule", "RESOURCE_VERSION_MISMATCH")
@pytest.mark.covers("DeleteSchedule", "RESOURCE_VERSION_MISMATCH")
@pytest.mark.covers("UpdateSchedule", "FIELD_IMMUTABLE")
async def test_an_update_keeps_to_its_version_and_mask(tenant: Caller) -> None:
    await create(tenant, every=3600, description="old")
    changed = await update(tenant, "description", description="new", version=1)
    assert (changed.description, changed.every.seconds, changed.resource_version) == ("new", 3600, 2)
    with pytest.raises(errors.ResourceVersionMismatch):
        await update(tenant, "description", description="newer", version=1)
    with pytest.raises(errors.ResourceVersionMismatch):
        await tenant.schedules.DeleteSchedule(Service.DeleteScheduleRequest(name=NAME, resource_version=1))
    with pytest.raises(errors.FieldImmutable):
        await update(tenant, "paused")


@pytest.mark.covers("CreateSchedule", "TASK_TYPE_UNKNOWN")
@pytest.mark.covers("UpdateSchedule", "TASK_TYPE_UNKNOWN")
@pytest.mark.covers("RunSchedule", "TASK_TYPE_UNKNOWN")
@pytest.mark.covers("BackfillSchedule", "TASK_TYPE_UNKNOWN")
async def test_the_type_of_a_template_must_exist(tenant: Caller) -> None:
    unknown = template(task_type="none")
    with pytest.raises(errors.TaskTypeUnknown):
        await create(tenant, every=3600, template=unknown)
    await add_type(tenant, "gone")
    await create(tenant, every=3600, template=template(task_type="gone"))
    with pytest.raises(errors.TaskTypeUnknown):
        await update(tenant, "template", template=unknown)
    await tenant.task_types.DeleteTaskType(
        task_type_service_pb2.DeleteTaskTypeRequest(name=f"{PARENT}/taskTypes/gone")
    )
    with pytest.raises(errors.TaskTypeUnknown):
        await tenant.schedules.RunSchedule(Service.RunScheduleRequest(name=NAME))
    with pytest.raises(errors.TaskTypeUnknown):
        await tenant.schedules.BackfillSchedule(backfill(FIRST, FIRST + timedelta(hours=2)))


@pytest.mark.covers("CreateSchedule", "TASK_TYPE_DISABLED")
@pytest.mark.covers("UpdateSchedule", "TASK_TYPE_DISABLED")
@pytest.mark.covers("RunSchedule", "TASK_TYPE_DISABLED")
@pytest.mark.covers("BackfillSchedule", "TASK_TYPE_DISABLED")
@pytest.mark.covers("CreateSchedule", "PAYLOAD_SCHEMA_VIOLATION")
@pytest.mark.covers("UpdateSchedule", "PAYLOAD_SCHEMA_VIOLATION")
@pytest.mark.covers("RunSchedule", "PAYLOAD_SCHEMA_VIOLATION")
@pytest.mark.covers("BackfillSchedule", "PAYLOAD_SCHEMA_VIOLATION")
@pytest.mark.covers("RunSchedule", "FIELD_INVALID")
async def test_the_rules_of_a_type_hold_at_each_call(tenant: Caller) -> None:
    fits = template(task_type="job", payload=common_pb2.Payload(raw=b'{"n": 1}'))
    wrong = template(task_type="job", payload=common_pb2.Payload(raw=b'{"n": "x"}'))
    await add_type(tenant, "job", payload_schema=b'{"properties": {"n": {"type": "integer"}}}')
    with pytest.raises(errors.PayloadSchemaViolation, match=r"schedule\.template\.spec\.payload"):
        await create(tenant, every=3600, template=wrong)
    await create(tenant, every=3600, template=fits)
    with pytest.raises(errors.PayloadSchemaViolation):
        await update(tenant, "template", template=wrong)

    async def change_type(**fields: Any) -> None:
        request = task_type_service_pb2.UpdateTaskTypeRequest(
            task_type=task_type_pb2.TaskType(name=f"{PARENT}/taskTypes/job", **fields)
        )
        await tenant.task_types.UpdateTaskType(request)

    run = Service.RunScheduleRequest(name=NAME)
    past = backfill(FIRST, FIRST + timedelta(hours=2))
    await change_type(payload_schema=b'{"required": ["m"]}')
    for call, request in ((tenant.schedules.RunSchedule, run), (tenant.schedules.BackfillSchedule, past)):
        with pytest.raises(errors.PayloadSchemaViolation):
            await call(request)
    await change_type(payload_schema=b"{}", task_id_pattern="^x$")
    with pytest.raises(errors.FieldInvalid, match="task_id"):
        await tenant.schedules.RunSchedule(run)
    await change_type(disabled=True)
    for call, request in ((tenant.schedules.RunSchedule, run), (tenant.schedules.BackfillSchedule, past)):
        with pytest.raises(errors.TaskTypeDisabled):
            await call(request)
    with pytest.raises(errors.TaskTypeDisabled):
        await create(tenant, "t", every=3600, template=fits)
    with pytest.raises(errors.TaskTypeDisabled):
        await update(tenant, "template", template=fits)


@pytest.mark.covers("CreateSchedule", "TENANT_SUSPENDED")
@pytest.mark.covers("UpdateSchedule", "TENANT_SUSPENDED")
@pytest.mark.covers("RunSchedule", "TENANT_SUSPENDED")
@pytest.mark.covers("BackfillSchedule", "TENANT_SUSPENDED")
async def test_a_suspended_tenant_gets_no_tasks(tenant: Caller, taskdb: RunningTaskDb) -> None:
    await create(tenant, every=3600)
    await taskdb.execute("UPDATE tenants SET suspended = true WHERE tenant_id = 'default'")
    taskdb.taskdb.tenants.forget()
    for made in (
        create(tenant, "t"),
        update(tenant, "every"),
        tenant.schedules.RunSchedule(Service.RunScheduleRequest(name=NAME)),
        tenant.schedules.BackfillSchedule(backfill(FIRST, FIRST + timedelta(hours=2))),
    ):
        with pytest.raises(errors.TenantSuspended):
            await made


@pytest.mark.covers("CreateSchedule", "TOO_LARGE")
@pytest.mark.covers("UpdateSchedule", "TOO_LARGE")
async def test_a_large_payload_is_refused(tenant: Caller) -> None:
    large = template()
    large.spec.payload.json.update({"a": "x" * 70_000})
    with pytest.raises(errors.TooLarge):
        await create(tenant, every=3600, template=large)
    await create(tenant, every=3600)
    with pytest.raises(errors.TooLarge):
        await update(tenant, "template", template=large)


@pytest.mark.covers("ListSchedules", "FILTER_INVALID")
@pytest.mark.covers("ListSchedules", "PAGE_TOKEN_INVALID")
async def test_lists_have_pages_and_filters(tenant: Caller) -> None:
    for id in ("a", "b", "c"):
        await create(tenant, id, every=3600, paused=id == "b")
    request = Service.ListSchedulesRequest(parent=PARENT, page_size=2)
    first = await tenant.schedules.ListSchedules(request)
    request.page_token = first.next_page_token
    second = await tenant.schedules.ListSchedules(request)
    assert [one.name[-1] for one in (*first.schedules, *second.schedules)] == ["a", "b", "c"]
    paused = Service.ListSchedulesRequest(parent=PARENT, filter="paused = true")
    assert [one.name[-1] for one in (await tenant.schedules.ListSchedules(paused)).schedules] == ["b"]
    with pytest.raises(errors.FilterInvalid):
        await tenant.schedules.ListSchedules(Service.ListSchedulesRequest(parent=PARENT, filter="colour = 1"))
    with pytest.raises(errors.PageTokenInvalid):
        await tenant.schedules.ListSchedules(Service.ListSchedulesRequest(parent=PARENT, page_token="x"))


@pytest.mark.covers("PreviewSchedule", "FIELD_INVALID")
async def test_a_preview_notes_daylight_saving(tenant: Caller) -> None:
    berlin = schedule(cron=["30 2 * * *"], time_zone="Europe/Berlin")
    found = await tenant.schedules.PreviewSchedule(preview(schedule=berlin, count=2))
    assert [(one.local_time, one.daylight_saving_note) for one in found.instants] == [
        ("2026-03-29T03:00:00+02:00", schedule_pb2.DAYLIGHT_SAVING_NOTE_AFTER_GAP),
        ("2026-03-30T02:30:00+02:00", 0),
    ]
    ending = schedule(every=60, end_time=FIRST + timedelta(minutes=3))
    assert len((await tenant.schedules.PreviewSchedule(preview(schedule=ending))).instants) == 2
    for request in (preview(), preview(name=NAME, schedule=ending), preview(schedule=schedule(cron=["x"]))):
        with pytest.raises(errors.FieldInvalid):
            await tenant.schedules.PreviewSchedule(request)


@pytest.mark.covers("RunSchedule", "REQUEST_ID_REUSED")
async def test_a_run_is_made_at_once_and_repeats_are_recognised(tenant: Caller) -> None:
    await create(tenant, every=3600, paused=True)
    request = Service.RunScheduleRequest(name=NAME, request_id="r1")
    first = await tenant.schedules.RunSchedule(request)
    again = await tenant.schedules.RunSchedule(request)
    assert first.outcome == task_service_pb2.CREATE_OUTCOME_CREATED
    assert (again.outcome, again.task.name) == (task_service_pb2.CREATE_OUTCOME_REPLAYED, first.task.name)
    assert first.task.spec.schedule == NAME and first.task.spec.HasField("scheduled_time")
    other = await tenant.schedules.RunSchedule(Service.RunScheduleRequest(name=NAME))
    assert (other.outcome, other.task.name) == (task_service_pb2.CREATE_OUTCOME_DROPPED, first.task.name)
    await create(tenant, "t", every=3600)
    with pytest.raises(errors.RequestIdReused):
        await tenant.schedules.RunSchedule(
            Service.RunScheduleRequest(name=f"{PARENT}/schedules/t", request_id="r1")
        )


@pytest.mark.covers("BackfillSchedule", "FIELD_INVALID")
async def test_a_backfill_creates_each_past_instant_once(tenant: Caller, taskdb: RunningTaskDb) -> None:
    await create(tenant, every=3600)
    request = backfill(FIRST, FIRST + timedelta(hours=3))
    made = await tenant.schedules.BackfillSchedule(request)
    assert [name.rpartition(".")[2] for name in made.tasks] == [
        "20260328T120000Z",
        "20260328T130000Z",
        "20260328T140000Z",
    ]
    again = await tenant.schedules.BackfillSchedule(request)
    assert (len(again.tasks), again.existing_count) == (0, 3)
    assert len(await taskdb.rows("SELECT FROM changes WHERE event = 108")) == 1
    now = datetime.now(UTC)
    await create(tenant, "second")
    for refused in (
        backfill(now - timedelta(seconds=1_000_000), now, f"{PARENT}/schedules/second"),
        backfill(FIRST, now + timedelta(days=1)),
        backfill(FIRST, FIRST),
    ):
        with pytest.raises(errors.FieldInvalid, match=r"end_time|start_time"):
            await tenant.schedules.BackfillSchedule(refused)
    assert len(await taskdb.rows("SELECT FROM tasks WHERE task_id LIKE 'second.%%'")) <= 5


@pytest.mark.covers("RunSchedule", "SLOT_QUEUE_FULL")
@pytest.mark.covers("BackfillSchedule", "SLOT_QUEUE_FULL")
async def test_a_full_slot_refuses_runs_and_backfills(tenant: Caller, taskdb: RunningTaskDb) -> None:
    await create(tenant, every=3600, overlap=schedule_pb2.SCHEDULE_OVERLAP_QUEUE)
    with pytest.raises(errors.SlotQueueFull):
        await tenant.schedules.BackfillSchedule(backfill(FIRST, FIRST + timedelta(hours=102)))
    assert await taskdb.rows("SELECT FROM tasks") == []
    await tenant.schedules.BackfillSchedule(backfill(FIRST, FIRST + timedelta(hours=101)))
    with pytest.raises(errors.SlotQueueFull):
        await tenant.schedules.RunSchedule(Service.RunScheduleRequest(name=NAME))


@pytest.mark.covers("RunSchedule", "RATE_LIMITED")
@pytest.mark.covers("BackfillSchedule", "RATE_LIMITED")
@pytest.mark.covers("RunSchedule", "QUEUE_DEPTH_EXCEEDED")
@pytest.mark.covers("BackfillSchedule", "QUEUE_DEPTH_EXCEEDED")
@pytest.mark.covers("RunSchedule", "STORAGE_QUOTA_EXCEEDED")
@pytest.mark.covers("BackfillSchedule", "STORAGE_QUOTA_EXCEEDED")
@pytest.mark.parametrize(
    ("limits", "error"),
    [
        ({"rate_limit_per_sec": 1, "rate_burst": 1}, errors.RateLimited),
        ({"max_queue_depth": 1}, errors.QueueDepthExceeded),
        ({"max_storage_bytes": 1}, errors.StorageQuotaExceeded),
    ],
)
async def test_quotas_hold_for_schedules(
    taskdb: RunningTaskDb, admin: Caller, limits: dict[str, int], error: type[Exception]
) -> None:
    from taskyard.v1 import tenant_pb2, tenant_service_pb2

    quota = tenant_pb2.TenantQuota(**limits)
    acme = tenant_pb2.Tenant(display_name="Acme", tier=tenant_pb2.TENANT_TIER_ENTERPRISE, quota=quota)
    await admin.tenants.CreateTenant(tenant_service_pb2.CreateTenantRequest(tenant_id="acme", tenant=acme))
    caller = await taskdb.caller(api_keys.TENANT, "acme")
    name = "tenants/acme/schedules/s"
    await create(caller, "s", "tenants/acme", every=3600, overlap=schedule_pb2.SCHEDULE_OVERLAP_ALLOW)
    if error is not errors.StorageQuotaExceeded:
        await caller.schedules.RunSchedule(Service.RunScheduleRequest(name=name))
    with pytest.raises(error):
        await caller.schedules.RunSchedule(Service.RunScheduleRequest(name=name))
    with pytest.raises(error):
        await caller.schedules.BackfillSchedule(backfill(FIRST, FIRST + timedelta(hours=1), name))


@pytest.mark.covers("RunSchedule", "PLACEMENT_CLASS_LIMIT")
@pytest.mark.covers("BackfillSchedule", "PLACEMENT_CLASS_LIMIT")
async def test_placement_classes_are_limited(tenant: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    await create(tenant, every=3600, template=template(resources=common_pb2.Resources(memory_mb=999)))
    monkeypatch.setattr("taskyard_taskdb.storage.create.placement_classes.MAX_CLASSES", 0)
    with pytest.raises(errors.PlacementClassLimit):
        await tenant.schedules.RunSchedule(Service.RunScheduleRequest(name=NAME))
    with pytest.raises(errors.PlacementClassLimit):
        await tenant.schedules.BackfillSchedule(backfill(FIRST, FIRST + timedelta(hours=2)))


async def test_a_key_that_only_reads_sees_no_environment(tenant: Caller, taskdb: RunningTaskDb) -> None:
    await create(tenant, every=3600, template=template(env=[common_pb2.EnvVar(name="A", value="secret")]))
    reader = await taskdb.caller(read_only=True)
    assert not (await get(reader)).template.spec.env
    assert (await get(tenant)).template.spec.env
    with pytest.raises(errors.PermissionDenied):
        await reader.schedules.RunSchedule(Service.RunScheduleRequest(name=NAME))


async def test_a_user_cannot_forge_the_schedule_of_a_task(tenant: Caller) -> None:
    forged = await tenant.create(schedule=NAME)
    assert not (await tenant.get(forged.name)).spec.schedule


async def test_deleting_a_tenant_deletes_its_schedules(taskdb: RunningTaskDb, admin: Caller) -> None:
    from taskyard.v1 import tenant_service_pb2

    await taskdb.add_tenant("acme")
    caller = await taskdb.caller(api_keys.TENANT, "acme")
    await create(caller, "s", "tenants/acme", every=1, pause_on_failure=True)
    await caller.schedules.RunSchedule(Service.RunScheduleRequest(name="tenants/acme/schedules/s"))
    await admin.tenants.DeleteTenant(tenant_service_pb2.DeleteTenantRequest(name="tenants/acme", force=True))
    for table in ("schedules", "schedule_tasks", "tasks"):
        assert await taskdb.rows(f"SELECT FROM {table} WHERE tenant_id = 'acme'") == []


async def test_a_real_leader_fires_what_the_preview_shows(tenant: Caller, taskdb: RunningTaskDb) -> None:
    import asyncio

    made = await create(tenant, overlap=schedule_pb2.SCHEDULE_OVERLAP_ALLOW, jitter=0.5)
    request = Service.PreviewScheduleRequest(parent=PARENT, name=made.name, count=3)
    request.start_time.FromDatetime(made.create_time.ToDatetime())
    shown = (await tenant.schedules.PreviewSchedule(request)).instants
    async with asyncio.timeout(60):
        while len(await Clock(taskdb).events()) < 3:  # noqa: ASYNC110
            await asyncio.sleep(0.1)
    events = (await Clock(taskdb).events())[:3]
    assert [details["scheduled_time"] for _, details in events] == [
        one.scheduled_time.ToJsonString() for one in shown
    ]
