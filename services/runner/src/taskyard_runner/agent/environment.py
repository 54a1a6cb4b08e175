"""The environment of a workload: cleared, then the task's variables, the runner's and TASKYARD_*."""

from __future__ import annotations

from collections.abc import Mapping

from taskyard.v1.lease_pb2 import Assignment, LeaseRef
from taskyard_runner.agent.directory import RunDirectory
from taskyard_runner.agent.run import seconds
from taskyard_runner.warden.kill import MARKER


def fencing_token(lease: LeaseRef) -> str:
    """What guards the workload's own side effects, see TaskService.CheckFence."""
    return f"{lease.generation}.{lease.lease_id}"


def compose(
    assignment: Assignment,
    directory: RunDirectory,
    *,
    marker: str,
    defaults: Mapping[str, str],
    runner_env: Mapping[str, str],
    runner_id: str,
    socket: str,
    token: str,
    traceparent: str,
) -> dict[str, str]:
    """Later entries win: defaults, the task's, the runner's, then what describes the run.

    `directory` has the paths as the workload sees them, `marker` names the run's directory on the host.
    """
    env = {"LANG": "C.UTF-8", **defaults}
    env |= {variable.name: variable.value for variable in assignment.spec.env}
    env |= runner_env
    env |= _run_variables(assignment, directory)
    env |= {MARKER: marker, "TASKYARD_RUNNER": runner_id, "TASKYARD_SOCKET": socket, "TASKYARD_TOKEN": token}
    if traceparent:
        env |= {"TRACEPARENT": traceparent, "TASKYARD_TRACEPARENT": traceparent}
    return env


def _run_variables(assignment: Assignment, directory: RunDirectory) -> dict[str, str]:
    lease, spec = assignment.lease, assignment.spec
    _, tenant, _, task = lease.task.split("/")
    found = {
        "TASKYARD_TASK": lease.task,
        "TASKYARD_TASK_ID": task,
        "TASKYARD_TENANT": tenant,
        "TASKYARD_TASK_TYPE": spec.task_type,
        "TASKYARD_ATTEMPT": str(assignment.attempt),
        "TASKYARD_GENERATION": str(lease.generation),
        "TASKYARD_FENCE": fencing_token(lease),
        "TASKYARD_RESULT_FILE": str(directory.result),
        "TASKYARD_ERROR_FILE": str(directory.error),
        "TASKYARD_METRICS_FILE": str(directory.metrics),
        "TASKYARD_CHECKPOINT_DIR": str(directory.checkpoint),
        "TASKYARD_CHECKPOINT_SEQUENCE": str(assignment.checkpoint.sequence),
        "TASKYARD_CHECKPOINT_INTERVAL": str(seconds(spec.checkpoint_interval)),
    }
    if assignment.HasField("checkpoint"):
        found["TASKYARD_CHECKPOINT_FILE"] = str(directory.restored)
    if spec.HasField("entity"):
        found |= {"TASKYARD_ENTITY_TYPE": spec.entity.type, "TASKYARD_ENTITY_ID": spec.entity.id}
    if spec.HasField("not_before"):
        found["TASKYARD_SCHEDULED_TIME"] = spec.not_before.ToJsonString()
    if spec.HasField("max_steps"):
        found["TASKYARD_MAX_STEPS"] = str(spec.max_steps)
    if spec.payload.WhichOneof("value"):
        found["TASKYARD_PAYLOAD_FILE"] = str(directory.payload)
        found["TASKYARD_PAYLOAD_TYPE"] = spec.payload.content_type or "application/json"
    if assignment.config.WhichOneof("value"):
        found["TASKYARD_CONFIG_FILE"] = str(directory.config)
    return found
