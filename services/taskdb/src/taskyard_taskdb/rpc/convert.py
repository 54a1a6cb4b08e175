"""Stored tasks, runs, leases and runners as messages, and messages as stored values."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from taskyard.convert import from_struct
from taskyard.v1 import common_pb2, lease_pb2, runner_pb2, task_pb2, task_service_pb2, task_type_pb2
from taskyard_kit.auth import current_principal
from taskyard_taskdb.domain import search_fields
from taskyard_taskdb.domain.names import parse_task_name, run_name, runner_name
from taskyard_taskdb.domain.words import Action, ActorType, PendingReason
from taskyard_taskdb.rpc.ids import uuid_text
from taskyard_taskdb.rpc.times import set_duration, set_time
from taskyard_taskdb.storage.create.new_task import Created, FirstLease
from taskyard_taskdb.storage.lease.lease import Lease, LeaseVerdict
from taskyard_taskdb.storage.read.runs import RunRecord
from taskyard_taskdb.storage.read.tasks import TaskRecord
from taskyard_taskdb.storage.runner.runners import Registration, RunnerRecord

NAME = task_service_pb2.TASK_VIEW_NAME
BASIC = task_service_pb2.TASK_VIEW_BASIC
FULL = task_service_pb2.TASK_VIEW_FULL
# FULL for a key that only reads: without environment and headers of the callback, which hold secrets.
FULL_READ_ONLY = 100


def chosen_view(given: int, default: int) -> int:
    """The view of the request, or the default of the RPC, as the caller may see it."""
    view = given or default
    return FULL_READ_ONLY if view == FULL and not current_principal().may("write") else view


def task_message(record: TaskRecord, view: int) -> task_pb2.Task:
    """The task with the fields that the view shows."""
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
    elif view == FULL_READ_ONLY:
        hide_secrets(task.spec)
    return task


def status_message(record: TaskRecord) -> task_pb2.TaskStatus:
    """The whole status."""
    status = task_pb2.TaskStatus()
    _fill_status(status, record)
    return status


def hide_secrets(holder: task_pb2.TaskSpec | task_type_pb2.TaskType) -> None:
    """Remove what may hold secrets, in place: the environment, and the headers of the callback."""
    holder.ClearField("env")
    if holder.HasField("callback"):
        holder.callback.ClearField("headers")


def shorten(task: task_pb2.Task) -> None:
    """Remove the fields that view BASIC leaves out."""
    task.metadata.ClearField("annotations")
    task.spec.ClearField("payload")
    hide_secrets(task.spec)
    kind = task.spec.execution.WhichOneof("kind")
    if kind == "script":
        task.spec.execution.script.ClearField("body")
    elif kind == "wasm" and task.spec.execution.wasm.WhichOneof("module") == "inline":
        task.spec.execution.wasm.ClearField("inline")
    if task.status.HasField("result"):
        task.status.result.ClearField("output")
    task.status.ClearField("details")


def fill_created(task: task_pb2.Task, created: Created, view: int) -> None:
    """Fill in the task that was just stored, without reading it back."""
    new = created.task
    task.name = new.name
    uid = new.task_id if new.uid is None else uuid_text(new.uid)
    _identify(task.metadata, new.task_id, uid, _created_version(created))
    status = task.status
    status.phase = task_pb2.TASK_PHASE_PENDING if created.leased is None else task_pb2.TASK_PHASE_SCHEDULED
    if view == NAME:
        return
    _fill_created_metadata(task.metadata, created)
    _fill_spec(task.spec, new.spec, new.callback)
    if new.task_type_tenant is not None:
        status.task_type_name = f"tenants/{new.task_type_tenant}/taskTypes/{new.task_type}"
    if created.leased is None:
        status.pending_reason = task_pb2.PendingReason.ValueType(created.pending_reason)
    else:
        _fill_first_lease(status, created.leased, created.create_time)
    if created.pending_reason is PendingReason.QUEUED:
        set_time(status.ready_time, created.admit_time or created.create_time)
    if created.pending_reason is PendingReason.DELAYED:
        set_time(status.next_attempt_time, new.policy.not_before)
    if view == BASIC:
        shorten(task)


def _created_version(created: Created) -> int:
    """The version of a task when its create was committed."""
    return 1 if created.admit_time is None and created.leased is None else 2


def _fill_first_lease(status: task_pb2.TaskStatus, leased: FirstLease, time: datetime) -> None:
    status.generation = 1
    status.runner = status.last_runner = f"runners/{leased.runner_id}"
    set_time(status.schedule_time, time)
    set_time(status.lease_expire_time, time + leased.duration)


def _identify(metadata: task_pb2.TaskMetadata, task_id: str, uid: str, version: int) -> None:
    metadata.id = task_id
    metadata.uid = uid
    metadata.resource_version = version


def _fill_created_metadata(metadata: task_pb2.TaskMetadata, created: Created) -> None:
    new = created.task
    set_time(metadata.create_time, created.create_time)
    set_time(metadata.update_time, created.admit_time or created.create_time)
    if new.labels is not None:
        metadata.labels.update(new.label_map)
    if new.annotations is not None:
        metadata.annotations.MergeFromString(new.annotations)
    metadata.creator.type = common_pb2.ActorType.ValueType(new.creator_type)
    metadata.creator.id = new.creator_id
    if new.parent_task_id is not None:
        metadata.parent_task = f"tenants/{new.tenant_id}/tasks/{new.parent_task_id}"
    if new.group_id is not None:
        metadata.group = new.group_id
    metadata.traceparent = new.traceparent or ""


def _fill_metadata(metadata: task_pb2.TaskMetadata, record: TaskRecord) -> None:
    set_time(metadata.create_time, record.create_time)
    set_time(metadata.update_time, record.update_time)
    if record.labels:
        metadata.labels.update(search_fields.visible(record.labels))
    metadata.creator.type = common_pb2.ActorType.ValueType(record.creator_type)
    metadata.creator.id = record.creator_id
    if record.parent_task_id is not None:
        metadata.parent_task = f"tenants/{record.tenant_id}/tasks/{record.parent_task_id}"
    if record.group_id is not None:
        metadata.group = record.group_id
    metadata.traceparent = record.traceparent or ""


def _fill_spec(spec: task_pb2.TaskSpec, encoded: bytes, callback: bytes | None) -> None:
    spec.MergeFromString(encoded)
    if callback is not None:
        spec.callback.MergeFromString(callback)


def _set_expiry(task: task_pb2.Task, end_time: datetime) -> None:
    retention = task.spec.retention.ToTimedelta()
    # A retention of zero never expires, nor does one that ends after the year 9999.
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
    if record.last_runner_id is not None:
        status.last_runner = f"runners/{record.last_runner_id}"
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
    details: dict[str, Any] = record.action or {}
    action.action = task_pb2.TaskAction.ValueType(record.requested_action)
    set_time(action.deadline, record.action_deadline)
    if "request_time" in details:
        set_time(action.request_time, datetime.fromisoformat(details["request_time"]))
    action.reason = details.get("reason", "")
    action.actor.type = common_pb2.ActorType.ValueType(details.get("actor_type", ActorType.USER))
    action.actor.id = details.get("actor_id", "")


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


_ACTIONS = {
    Action.CANCEL: lease_pb2.LEASE_ACTION_CANCEL,
    Action.PAUSE: lease_pb2.LEASE_ACTION_PAUSE,
    # The holder stops the run in the same way; what follows is none of its business.
    Action.RESET: lease_pb2.LEASE_ACTION_CANCEL,
    None: lease_pb2.LEASE_ACTION_ABORT,
}


def read_lease(message: lease_pb2.LeaseRef, field: str) -> Lease:
    """The lease that a message names. Raises FieldInvalid."""
    tenant_id, task_id = parse_task_name(message.task, f"{field}.task")
    return Lease(tenant_id, task_id, message.generation, message.lease_id)


def read_leases(messages: Iterable[lease_pb2.LeaseRef], field: str) -> tuple[Lease, ...]:
    """The leases that messages name, in order. Raises FieldInvalid."""
    return tuple(read_lease(message, f"{field}[{n}]") for n, message in enumerate(messages))


def fill_verdict(message: lease_pb2.LeaseVerdict, verdict: LeaseVerdict) -> None:
    """Fill in a verdict."""
    message.lease.task = verdict.lease.name
    message.lease.generation = verdict.lease.generation
    message.lease.lease_id = verdict.lease.lease_id
    message.action = _ACTIONS[verdict.action]
    message.reason = verdict.reason
    if verdict.grace is not None:
        set_duration(message.grace_period, verdict.grace)


def read_registration(message: runner_pb2.RunnerRegistration) -> Registration:
    """The registration that an agent sent."""
    return Registration(message.SerializeToString(), dict(message.labels), message.backend_type)


def fill_runner(message: runner_pb2.Runner, runner: RunnerRecord) -> None:
    """Fill in a runner: registration, labels and drain in force, counts, and its session if there is one."""
    message.name = runner_name(runner.runner_id)
    message.registration.MergeFromString(runner.registration)
    message.state = _state(runner)
    message.occupancy = _occupancy(runner, message.registration.capacity)
    if runner.drain is not None:
        message.drain.MergeFromString(runner.drain)
    message.admin_labels.update(runner.admin_labels)
    message.labels.update(runner.labels)
    message.scope_labels.update(runner.scope.labels)
    message.tenants.extend(runner.scope.tenants)
    message.completed_count = runner.completed_count
    message.failed_count = runner.failed_count
    message.resource_version = runner.version
    set_time(message.register_time, runner.register_time)
    set_time(message.update_time, runner.update_time)
    if runner.delete_time is not None:
        set_time(message.delete_time, runner.delete_time)
    _fill_session(message, runner)


def _fill_session(message: runner_pb2.Runner, runner: RunnerRecord) -> None:
    message.used_capacity = runner.used_capacity or 0
    message.session_id = str(runner.session_id) if runner.session_id else ""
    message.scheduler_id = runner.scheduler_id or ""
    if runner.heartbeat_time is not None:
        set_time(message.heartbeat_time, runner.heartbeat_time)


def _state(runner: RunnerRecord) -> runner_pb2.RunnerState.ValueType:
    if not runner.alive:
        return runner_pb2.RUNNER_STATE_STOPPED if runner.stopped else runner_pb2.RUNNER_STATE_DEAD
    if runner.draining or runner.drain is not None:
        return runner_pb2.RUNNER_STATE_DRAINING
    return runner_pb2.RUNNER_STATE_HEALTHY


def _occupancy(runner: RunnerRecord, capacity: int) -> runner_pb2.RunnerOccupancy.ValueType:
    if not runner.alive:
        return runner_pb2.RUNNER_OCCUPANCY_OFFLINE
    if (runner.used_capacity or 0) >= capacity:
        return runner_pb2.RUNNER_OCCUPANCY_BUSY
    return runner_pb2.RUNNER_OCCUPANCY_IDLE


def fill_held(message: runner_pb2.Runner, tasks: list[str]) -> None:
    """Fill in the tasks that the runner holds by its leases; its last heartbeat may be older."""
    message.tasks.extend(tasks)
    message.used_capacity = len(tasks)
    if message.occupancy != runner_pb2.RUNNER_OCCUPANCY_OFFLINE:
        full = len(tasks) >= message.registration.capacity
        message.occupancy = runner_pb2.RUNNER_OCCUPANCY_BUSY if full else runner_pb2.RUNNER_OCCUPANCY_IDLE


def shorten_runner(message: runner_pb2.Runner) -> None:
    """Remove the fields that view BASIC leaves out."""
    message.ClearField("tasks")
    message.registration.ClearField("env")
    message.registration.ClearField("metadata")


def runner_filter_fields(message: runner_pb2.Runner) -> dict[str, object]:
    """The values that a filter of runners may compare, by path."""
    registration = message.registration
    heartbeat = message.heartbeat_time.ToDatetime(UTC) if message.HasField("heartbeat_time") else None
    return {
        "id": message.name.removeprefix("runners/"),
        "state": message.state,
        "occupancy": message.occupancy,
        "registration.backend_type": registration.backend_type,
        "registration.version": registration.version,
        "registration.task_types": {name: name for name in registration.task_types},
        "heartbeat_time": heartbeat,
        "labels": dict(message.labels),
    }


def make_raw(payload: common_pb2.Payload) -> None:
    """Turn a structured payload into its raw form, in place."""
    if payload.WhichOneof("value") == "json":
        document = from_struct(payload.json)
        payload.raw = json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()
        payload.content_type = "application/json"


def raw_payload(payload: common_pb2.Payload) -> common_pb2.Payload:
    """A copy in raw form."""
    made = common_pb2.Payload()
    made.CopyFrom(payload)
    make_raw(made)
    return made


def json_document(payload: common_pb2.Payload) -> Any:
    """The document of a payload; None if it is not JSON."""
    if payload.WhichOneof("value") == "json":
        return from_struct(payload.json)
    if payload.content_type not in ("", "application/json"):
        return None
    try:
        return json.loads(payload.raw)
    except (ValueError, RecursionError):
        return None
