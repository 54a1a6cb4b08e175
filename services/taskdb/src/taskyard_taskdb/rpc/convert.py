"""Stored tasks and runs as messages."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from google.protobuf.timestamp_pb2 import Timestamp

from taskyard.v1 import common_pb2, task_pb2, task_service_pb2
from taskyard_taskdb.domain.names import run_name
from taskyard_taskdb.domain.words import ActorType, PendingReason
from taskyard_taskdb.rpc.ids import uuid_text
from taskyard_taskdb.storage.create.new_task import Created
from taskyard_taskdb.storage.read.runs import RunRecord
from taskyard_taskdb.storage.read.tasks import TaskRecord

NAME = task_service_pb2.TASK_VIEW_NAME
BASIC = task_service_pb2.TASK_VIEW_BASIC
FULL = task_service_pb2.TASK_VIEW_FULL

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def chosen_view(given: int, default: int) -> int:
    """The view that was asked for, or the method's default."""
    return given or default


def set_time(field: Timestamp, value: datetime | None) -> None:
    """Fills in a timestamp; None leaves it unset."""
    if value is not None:
        since = value - _EPOCH
        field.seconds = since.days * 86400 + since.seconds
        field.nanos = since.microseconds * 1000


def timestamp(value: datetime) -> Timestamp:
    """The time as a message of its own."""
    made = Timestamp()
    set_time(made, value)
    return made


def task_message(record: TaskRecord, view: int) -> task_pb2.Task:
    """The task as far as the view shows it."""
    task = task_pb2.Task(name=record.name)
    _identify(task.metadata, record.task_id, str(record.uid), record.version)
    if view == NAME:
        task.status.phase = task_pb2.TaskPhase.ValueType(record.phase)
        return task
    _fill_metadata(task.metadata, record)
    _fill_spec(task.spec, record.spec, record.callback)
    _fill_status(task.status, record)
    if record.annotations is not None:
        task.metadata.annotations.MergeFromString(record.annotations)
    if record.end_time is not None and task.spec.HasField("retention"):
        _set_expiry(task, record.end_time)
    if view == BASIC:
        shorten(task)
    return task


def status_message(record: TaskRecord) -> task_pb2.TaskStatus:
    """The whole status."""
    status = task_pb2.TaskStatus()
    _fill_status(status, record)
    return status


def shorten(task: task_pb2.Task) -> None:
    """Removes what view BASIC leaves out."""
    task.metadata.ClearField("annotations")
    for field in ("payload", "env"):
        task.spec.ClearField(field)
    kind = task.spec.execution.WhichOneof("kind")
    if kind == "script":
        task.spec.execution.script.ClearField("body")
    elif kind == "wasm" and task.spec.execution.wasm.WhichOneof("module") == "inline":
        task.spec.execution.wasm.ClearField("inline")
    if task.status.HasField("result"):
        task.status.result.ClearField("output")
    task.status.ClearField("details")


def fill_created(task: task_pb2.Task, created: Created, view: int) -> None:
    """Describes the task that was just stored, without reading it back."""
    new = created.task
    task.name = new.name
    _identify(task.metadata, new.task_id, uuid_text(new.uid), 1)
    status = task.status
    status.phase = task_pb2.TASK_PHASE_PENDING
    if view == NAME:
        return
    _fill_created_metadata(task.metadata, created)
    _fill_spec(task.spec, new.spec, new.callback)
    if new.task_type_tenant is not None:
        status.task_type_name = f"tenants/{new.task_type_tenant}/taskTypes/{new.task_type}"
    status.pending_reason = task_pb2.PendingReason.ValueType(created.pending_reason)
    if created.pending_reason is PendingReason.QUEUED:
        set_time(status.ready_time, created.create_time)
    if created.pending_reason is PendingReason.DELAYED:
        set_time(status.next_attempt_time, new.policy.not_before)
    if view == BASIC:
        shorten(task)


def _identify(metadata: task_pb2.TaskMetadata, task_id: str, uid: str, version: int) -> None:
    metadata.id = task_id
    metadata.uid = uid
    metadata.resource_version = version


def _fill_created_metadata(metadata: task_pb2.TaskMetadata, created: Created) -> None:
    new = created.task
    set_time(metadata.create_time, created.create_time)
    set_time(metadata.update_time, created.create_time)
    if new.labels is not None:
        metadata.labels.update(new.label_map)
    if new.annotations is not None:
        metadata.annotations.MergeFromString(new.annotations)
    metadata.creator.type = common_pb2.ActorType.ValueType(new.creator_type)
    metadata.creator.id = new.creator_id
    if new.parent_task_id is not None:
        metadata.parent_task = f"tenants/{new.tenant_id}/tasks/{new.parent_task_id}"
    metadata.traceparent = new.traceparent or ""


def _fill_metadata(metadata: task_pb2.TaskMetadata, record: TaskRecord) -> None:
    set_time(metadata.create_time, record.create_time)
    set_time(metadata.update_time, record.update_time)
    if record.labels:
        metadata.labels.update(record.labels)
    metadata.creator.type = common_pb2.ActorType.ValueType(record.creator_type)
    metadata.creator.id = record.creator_id
    if record.parent_task_id is not None:
        metadata.parent_task = f"tenants/{record.tenant_id}/tasks/{record.parent_task_id}"
    metadata.traceparent = record.traceparent or ""


def _fill_spec(spec: task_pb2.TaskSpec, encoded: bytes, callback: bytes | None) -> None:
    spec.MergeFromString(encoded)
    if callback is not None:
        spec.callback.MergeFromString(callback)


def _set_expiry(task: task_pb2.Task, end_time: datetime) -> None:
    retention = task.spec.retention.ToTimedelta()
    # Zero keeps it for ever, and so does what lies beyond the calendar.
    if retention and retention < datetime.max.replace(tzinfo=UTC) - end_time:
        set_time(task.metadata.expire_time, end_time + retention)


def _fill_status(status: task_pb2.TaskStatus, record: TaskRecord) -> None:
    status.phase = task_pb2.TaskPhase.ValueType(record.phase)
    status.pending_reason = task_pb2.PendingReason.ValueType(record.pending_reason)
    status.attempt = record.attempt
    status.retry_count = record.retry_count
    status.runner_loss_count = record.runner_loss_count
    status.generation = record.generation
    status.checkpoint_sequence = record.checkpoint_sequence
    if record.runner_id is not None:
        status.runner = f"runners/{record.runner_id}"
        set_time(status.lease_expire_time, record.expire_time)
    if record.action_deadline is not None:
        _fill_action(status.requested_action, record)
    if record.exit_code is not None:
        status.exit_code = record.exit_code
    if record.task_type_tenant is not None:
        status.task_type_name = f"tenants/{record.task_type_tenant}/taskTypes/{record.task_type}"
    _fill_times(status, record)
    _fill_documents(status, record)


def _fill_times(status: task_pb2.TaskStatus, record: TaskRecord) -> None:
    set_time(status.next_attempt_time, record.next_attempt_time)
    set_time(status.ready_time, record.ready_time)
    set_time(status.schedule_time, record.schedule_time)
    set_time(status.start_time, record.start_time)
    set_time(status.end_time, record.end_time)


def _fill_documents(status: task_pb2.TaskStatus, record: TaskRecord) -> None:
    if record.progress is not None:
        status.progress.MergeFromString(record.progress)
    if record.result is not None:
        status.result.MergeFromString(record.result)
    if record.error is not None:
        status.error.MergeFromString(record.error)
    if record.details is not None:
        status.details.MergeFromString(record.details)


def _fill_action(action: task_pb2.RequestedAction, record: TaskRecord) -> None:
    told: dict[str, Any] = record.action or {}
    action.action = task_pb2.TaskAction.ValueType(record.requested_action)
    set_time(action.deadline, record.action_deadline)
    if "request_time" in told:
        set_time(action.request_time, datetime.fromisoformat(told["request_time"]))
    action.reason = told.get("reason", "")
    action.actor.type = common_pb2.ActorType.ValueType(told.get("actor_type", ActorType.USER))
    action.actor.id = told.get("actor_id", "")


def run_message(key: tuple[str, str], run: RunRecord) -> task_pb2.TaskRun:
    """One run of a task."""
    message = task_pb2.TaskRun(
        name=run_name(*key, run.generation),
        generation=run.generation,
        attempt=run.attempt,
        runner=f"runners/{run.runner_id}",
        state=task_pb2.RunState.ValueType(run.state),
        start_checkpoint_sequence=run.start_checkpoint,
        task_type_revision=run.task_type_revision,
    )
    set_time(message.schedule_time, run.schedule_time)
    set_time(message.start_time, run.start_time)
    set_time(message.end_time, run.end_time)
    if run.exit_code is not None:
        message.exit_code = run.exit_code
    if run.error is not None:
        message.error.MergeFromString(run.error)
    if run.progress is not None:
        message.progress.MergeFromString(run.progress)
    return message
