"""Runners as messages."""

from __future__ import annotations

from datetime import UTC

from taskyard.v1 import runner_pb2
from taskyard_taskdb.domain.names import runner_name
from taskyard_taskdb.rpc.durations import set_time
from taskyard_taskdb.storage.runner.runners import Registration, RunnerRecord


def read_registration(message: runner_pb2.RunnerRegistration) -> Registration:
    """What an agent says about itself."""
    return Registration(message.SerializeToString(), dict(message.labels), message.backend_type)


def fill_runner(told: runner_pb2.Runner, runner: RunnerRecord) -> None:
    """Fills in a runner, in force and as far as it is known."""
    told.name = runner_name(runner.runner_id)
    told.registration.MergeFromString(runner.registration)
    told.state = _state(runner)
    told.occupancy = _occupancy(runner, told.registration.capacity)
    if runner.drain is not None:
        told.drain.MergeFromString(runner.drain)
    told.admin_labels.update(runner.admin_labels)
    told.labels.update(runner.labels)
    told.scope_labels.update(runner.scope.labels)
    told.tenants.extend(runner.scope.tenants)
    told.completed_count = runner.completed_count
    told.failed_count = runner.failed_count
    told.resource_version = runner.version
    set_time(told.register_time, runner.register_time)
    set_time(told.update_time, runner.update_time)
    if runner.delete_time is not None:
        set_time(told.delete_time, runner.delete_time)
    _fill_session(told, runner)


def _fill_session(told: runner_pb2.Runner, runner: RunnerRecord) -> None:
    told.used_capacity = runner.used_capacity or 0
    told.session_id = str(runner.session_id) if runner.session_id else ""
    told.scheduler_id = runner.scheduler_id or ""
    if runner.heartbeat_time is not None:
        set_time(told.heartbeat_time, runner.heartbeat_time)


def _state(runner: RunnerRecord) -> runner_pb2.RunnerState.ValueType:
    if not runner.alive:
        return runner_pb2.RUNNER_STATE_DEAD
    if runner.draining or runner.drain is not None:
        return runner_pb2.RUNNER_STATE_DRAINING
    return runner_pb2.RUNNER_STATE_HEALTHY


def _occupancy(runner: RunnerRecord, capacity: int) -> runner_pb2.RunnerOccupancy.ValueType:
    if not runner.alive:
        return runner_pb2.RUNNER_OCCUPANCY_OFFLINE
    if (runner.used_capacity or 0) >= capacity:
        return runner_pb2.RUNNER_OCCUPANCY_BUSY
    return runner_pb2.RUNNER_OCCUPANCY_IDLE


def fill_held(told: runner_pb2.Runner, tasks: list[str]) -> None:
    """Fills in what the runner holds by record, which its last heartbeat may not know yet."""
    told.tasks.extend(tasks)
    told.used_capacity = len(tasks)
    if told.occupancy != runner_pb2.RUNNER_OCCUPANCY_OFFLINE:
        full = len(tasks) >= told.registration.capacity
        told.occupancy = runner_pb2.RUNNER_OCCUPANCY_BUSY if full else runner_pb2.RUNNER_OCCUPANCY_IDLE


def shorten(told: runner_pb2.Runner) -> None:
    """Removes what view BASIC leaves out."""
    told.ClearField("tasks")
    told.registration.ClearField("env")
    told.registration.ClearField("metadata")


def filter_fields(told: runner_pb2.Runner) -> dict[str, object]:
    """What filters of runners compare, by path."""
    registration = told.registration
    heartbeat = told.heartbeat_time.ToDatetime(UTC) if told.HasField("heartbeat_time") else None
    return {
        "id": told.name.removeprefix("runners/"),
        "state": told.state,
        "occupancy": told.occupancy,
        "registration.backend_type": registration.backend_type,
        "registration.version": registration.version,
        "registration.task_types": {name: name for name in registration.task_types},
        "heartbeat_time": heartbeat,
        "labels": dict(told.labels),
    }
