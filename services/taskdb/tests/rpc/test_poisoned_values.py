"""Values that no later step can process: rejected in front, and harmless in rows that have them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp

from services.taskdb.tests.conftest import Caller, RunningTaskDb, new_task
from services.taskdb.tests.yard import Yard
from taskyard import errors
from taskyard.status import translated
from taskyard.v1 import (
    common_pb2,
    runner_link_service_pb2,
    task_pb2,
    task_service_pb2,
    task_type_service_pb2,
    tenant_service_pb2,
)

NAME = "tenants/default/tasks/t"
NAN = float("nan")
HUGE = Duration(seconds=2**62)
TINY = Duration(nanos=1)
LATE = Timestamp(seconds=253_402_300_800)

Change = Callable[[Any], object]


def _set(field: Any, **values: int) -> None:
    for name, value in values.items():
        setattr(field, name, value)


CREATES: list[tuple[str, Change]] = [
    ("task.spec.payload.json.a", lambda r: r.task.spec.payload.json.update({"a": NAN})),
    ("task.spec.payload.json.a.b[1]", lambda r: r.task.spec.payload.json.update({"a": {"b": [1, NAN]}})),
    ("task.metadata.annotations.a", lambda r: r.task.metadata.annotations.update({"a": float("-inf")})),
    ("task.metadata.annotations.aNUL", lambda r: r.task.metadata.annotations.update({"a\0": 1})),
    ("task.spec.not_before", lambda r: r.task.spec.not_before.CopyFrom(LATE)),
    ("task.spec.not_before", lambda r: _set(r.task.spec.not_before, seconds=1, nanos=10**9)),
    ("task.spec.retention", lambda r: r.task.spec.retention.CopyFrom(HUGE)),
    ("task.spec.retry.backoff.initial", lambda r: r.task.spec.retry.backoff.initial.CopyFrom(HUGE)),
    ("task.spec.retry.backoff.initial", lambda r: r.task.spec.retry.backoff.initial.CopyFrom(TINY)),
    ("task.spec.retry.backoff.max", lambda r: r.task.spec.retry.backoff.max.CopyFrom(HUGE)),
    ("task.spec.attempt_timeout", lambda r: r.task.spec.attempt_timeout.CopyFrom(TINY)),
    ("request_id", lambda r: _set_text(r, "request_id", "a\0b")),
    ("task.spec.placement.required.runner_ids[0]", lambda r: _placement(r).append("r\0")),
    ("task.spec.callback.url", lambda r: _set_text(r.task.spec.callback, "url", "http://example.com/\0")),
]


def _set_text(message: Any, field: str, text: str) -> None:
    setattr(message, field, text)


def _placement(request: Any) -> Any:
    return request.task.spec.placement.required.runner_ids


@pytest.mark.parametrize(("field", "change"), CREATES, ids=[f"{n}-{f}" for n, (f, _) in enumerate(CREATES)])
async def test_a_create_with_a_poisoned_value_is_refused_by_its_field(
    tenant: Caller, field: str, change: Change
) -> None:
    request = new_task()
    change(request)
    with pytest.raises(errors.FieldInvalid) as caught:
        await tenant.tasks.CreateTask(request)
    assert [violation.field for violation in caught.value.violations] == [field]


async def test_external_report_timeouts_out_of_range_are_refused(tenant: Caller) -> None:
    for value in (HUGE, TINY, Duration(seconds=315_576_000_000)):
        external = task_pb2.ExternalExecution(report_timeout=value)
        with pytest.raises(errors.FieldInvalid, match=r"task\.spec\.execution\.external\.report_timeout"):
            await tenant.create(execution=task_pb2.Execution(external=external))


async def test_one_poisoned_item_of_a_batch_fails_alone(tenant: Caller) -> None:
    bad, good = new_task(), new_task()
    bad.task.spec.payload.json.update({"a": NAN})
    response = await tenant.tasks.BatchCreateTasks(
        task_service_pb2.BatchCreateTasksRequest(
            parent="tenants/default", requests=[good, bad, good], mode=common_pb2.BATCH_MODE_PER_ITEM
        )
    )
    assert [item.HasField("error") for item in response.results] == [False, True, False]
    assert "requests[1].task.spec.payload.json.a" in response.results[1].error.message


async def test_nul_in_a_request_id_is_refused_by_every_rpc_that_has_one(
    taskdb: RunningTaskDb, tenant: Caller, admin: Caller
) -> None:
    name = (await tenant.create(external=True)).name
    task = task_pb2.Task(name=name)
    nul = "a\0b"
    calls = [
        tenant.tasks.UpdateTask(task_service_pb2.UpdateTaskRequest(task=task, request_id=nul)),
        tenant.tasks.RetryTask(task_service_pb2.RetryTaskRequest(name=name, request_id=nul)),
        tenant.tasks.ReportTaskStatus(
            task_service_pb2.ReportTaskStatusRequest(
                name=name, phase=task_pb2.TASK_PHASE_RUNNING, request_id=nul
            )
        ),
        tenant.task_types.CreateTaskType(
            task_type_service_pb2.CreateTaskTypeRequest(
                parent="tenants/default", task_type_id="t", request_id=nul
            )
        ),
        admin.tenants.CreateTenant(tenant_service_pb2.CreateTenantRequest(tenant_id="t", request_id=nul)),
    ]
    for call in calls:
        with pytest.raises(errors.FieldInvalid, match="request_id"):
            await call


async def test_nul_in_the_runner_pattern_of_a_type_is_refused(tenant: Caller) -> None:
    request = task_type_service_pb2.CreateTaskTypeRequest(parent="tenants/default", task_type_id="t")
    request.task_type.runner_id_pattern = "a\0"
    with pytest.raises(errors.FieldInvalid, match=r"task_type\.runner_id_pattern"):
        await tenant.task_types.CreateTaskType(request)


DURATIONS = [
    "attempt_timeout",
    "total_timeout",
    "queue_timeout",
    "silence_timeout",
    "max_attempt_timeout",
    "retention",
    "stop_grace_period",
    "orphan_timeout",
    "checkpoint_interval",
    "min_attempt_timeout",
]


@pytest.mark.parametrize("field", DURATIONS)
async def test_durations_of_a_type_out_of_range_are_refused(tenant: Caller, field: str) -> None:
    values = [HUGE, Duration(seconds=315_576_000_000)]
    if field in DURATIONS[:5]:
        values.append(TINY)
    for value in values:
        request = task_type_service_pb2.CreateTaskTypeRequest(parent="tenants/default", task_type_id="t")
        getattr(request.task_type, field).CopyFrom(value)
        with pytest.raises(errors.FieldInvalid, match=rf"task_type\.{field}"):
            await tenant.task_types.CreateTaskType(request)


async def test_statistics_take_the_longest_window_and_refuse_times_out_of_range(tenant: Caller) -> None:
    request = task_service_pb2.GetTaskStatsRequest(parent="tenants/default")
    request.time_range.window.seconds = 99_999_999_999
    await tenant.tasks.GetTaskStats(request)
    request.time_range.Clear()
    request.time_range.start_time.seconds = -62_135_596_800
    request.time_range.end_time.seconds = 253_402_300_799
    await tenant.tasks.GetTaskStats(request)
    request.time_range.end_time.CopyFrom(LATE)
    with pytest.raises(errors.FieldInvalid, match=r"time_range\.end_time"):
        await tenant.tasks.GetTaskStats(request)


async def test_a_stored_spec_that_cannot_be_read_fails_alone_in_its_claim(
    yard: Yard, taskdb: RunningTaskDb
) -> None:
    names = await yard.create(5)
    spec = task_pb2.TaskSpec(execution=task_pb2.Execution(command=task_pb2.CommandExecution(program="true")))
    spec.payload.json.update({"a": NAN})
    await _store(taskdb, names[1], spec.SerializeToString())
    await _store(taskdb, names[3], b"\xff\xff")
    runner, _ = await yard.hello()
    assignments = (await yard.claim(runner)).assignments
    assert [assignment.lease.task for assignment in assignments] == [names[0], names[2], names[4]]
    rows = await taskdb.rows("SELECT phase, error_code FROM tasks WHERE end_time IS NOT NULL")
    assert rows == [(task_pb2.TASK_PHASE_FAILED, "SPEC_UNREADABLE")] * 2
    failed = await yard.task(names[1])
    assert "NaN" in failed.status.error.message
    assert not (await yard.claim(runner)).assignments


async def _store(taskdb: RunningTaskDb, name: str, spec: bytes) -> None:
    await taskdb.execute("UPDATE tasks SET spec = %s WHERE task_id = %s", spec, name.rsplit("/", 1)[1])


@pytest.mark.parametrize(
    "raw", [b'{"a":NaN}', b'{"a":1e999}', b"[Infinity]", '{"a":1}'.encode("utf-16"), b'\xef\xbb\xbf{"a":1}']
)
async def test_raw_payloads_that_only_python_reads_as_json_are_refused(tenant: Caller, raw: bytes) -> None:
    with pytest.raises(errors.FieldInvalid, match=r"payload\.raw"):
        await tenant.create(payload=common_pb2.Payload(raw=raw))


async def test_only_a_traceparent_of_the_w3c_form_is_stored(tenant: Caller) -> None:
    good = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    for given, stored in (("x" * 2000, ""), (good, good), (good.upper(), ""), (good + "-", "")):
        metadata = (("traceparent", given),)
        task = (await tenant.tasks.CreateTask(new_task(), metadata=metadata)).task
        assert task.metadata.traceparent == stored


async def test_bytes_that_are_no_message_are_refused_with_a_reason(tenant: Caller) -> None:
    call: Any = tenant.channel.unary_unary("/taskyard.v1.TaskService/GetTask")
    with pytest.raises(errors.FieldInvalid, match="are not a message"), translated():
        await call(b"\xff\xff\xff", metadata=tenant._metadata)


@pytest.mark.parametrize(("place", "depth"), [("spec", 98), ("payload", 97), ("execution", 97)])
async def test_unknown_fields_of_a_spec_reach_no_runner(yard: Yard, place: str, depth: int) -> None:
    """A request may be as deep as a message can be read, and the stream to a runner nests it deeper."""
    request = task_service_pb2.CreateTaskRequest(parent="tenants/default")
    spec = request.task.spec
    spec.execution.command.program = "true"
    spec.payload.raw = b"{}"
    message = spec if place == "spec" else getattr(spec, place)
    # Groups of an unknown field, one within the other.
    message.MergeFromString(b"\xc3\x3e" * depth + b"\xc4\x3e" * depth)
    await yard.tenant.tasks.CreateTask(request)
    runner, _ = await yard.hello()
    response = runner_link_service_pb2.ConnectResponse()
    response.assignments.assignments.extend((await yard.claim(runner)).assignments)
    (read,) = runner_link_service_pb2.ConnectResponse.FromString(
        response.SerializeToString()
    ).assignments.assignments
    assert read.spec.payload.raw == b"{}"
