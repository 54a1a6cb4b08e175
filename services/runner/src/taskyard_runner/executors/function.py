"""Function: an assignment as a row for a function host, and a host's result as a report."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from datetime import UTC
from typing import Any

from google.protobuf.duration_pb2 import Duration

from taskyard.v1.common_pb2 import ERROR_CLASS_PERMANENT, ERROR_CLASS_TRANSIENT, Payload, TaskError
from taskyard.v1.lease_pb2 import Assignment, LeaseRef, RunFailed, RunReport, RunSucceeded
from taskyard.v1.task_pb2 import OVERLAP_POLICY_ALLOW, TaskResult, TaskSpec
from taskyard_runner.agent.outcome import is_metric

JSON = "application/json"
Row = list[Any]
# Defaults that a row omits.
DEFAULT_GRACE = 30.0
DEFAULT_ORPHAN = 3600.0
_MIB = 1 << 20


@dataclass(frozen=True)
class HostClass:
    """Which hosts may carry a run out.

    Work that must not overlap shares no host with work that may: its lease's end kills the host. A run with
    limits of its own has a host to itself, like every plain function.
    """

    shared: bool
    forbid: bool = False
    memory_mb: int = 0
    cpu_millis: int = 0
    disk_mb: int = 0

    @property
    def limits(self) -> dict[str, int]:
        """As the warden takes them."""
        return {
            "memory_bytes": self.memory_mb * _MIB,
            "cpu_millis": self.cpu_millis,
            "file_bytes": self.disk_mb * _MIB,
        }


def function_of(spec: TaskSpec) -> str:
    """The function's name: its own, else the task type."""
    return spec.execution.function.function or spec.task_type


def host_class(spec: TaskSpec, is_async: bool) -> HostClass:
    """Where a run of this spec belongs."""
    forbid = spec.overlap != OVERLAP_POLICY_ALLOW
    if not spec.HasField("resources"):
        return _PLAIN[is_async, forbid]
    resources = spec.resources
    limited = bool(resources.memory_mb or resources.cpu_millis or resources.disk_mb)
    return HostClass(
        is_async and not limited, forbid, resources.memory_mb, resources.cpu_millis, resources.disk_mb
    )


_PLAIN = {(shared, forbid): HostClass(shared, forbid) for shared in (True, False) for forbid in (True, False)}


def describe(
    run: str, assignment: Assignment, function: str, total_until: float | None, traceparent: str
) -> Row:
    """All that the host needs to call the function, and the next agent to restore the run."""
    lease, spec = assignment.lease, assignment.spec
    payload = spec.payload
    raw = text_of(payload.raw) if payload.WhichOneof("value") else None
    extra = _timing(spec)
    if payload.content_type and payload.content_type != JSON:
        extra["content_type"] = payload.content_type
    if total_until is not None:
        extra["total_until"] = total_until
    if traceparent:
        extra["traceparent"] = traceparent
    if assignment.labels:
        extra["labels"] = dict(assignment.labels)
    if spec.env:
        extra["env"] = {variable.name: variable.value for variable in spec.env}
    if assignment.config.WhichOneof("value"):
        extra["config"] = assignment.config.raw.decode()
    if assignment.inputs:
        extra["inputs"] = {
            one.alias: [
                text_of(one.result.output.raw) if one.result.output.WhichOneof("value") else None,
                one.result.output.content_type or JSON,
            ]
            for one in assignment.inputs
            if not one.omitted
        }
        extra["omitted"] = [one.alias for one in assignment.inputs if one.omitted]
    if assignment.HasField("checkpoint"):
        extra["checkpoint"] = assignment.checkpoint.sequence
        extra["restored_type"] = assignment.checkpoint.content_type
    _describe_task(spec, extra)
    if spec.HasField("resources"):
        resources = spec.resources
        extra["resources"] = [resources.cpu_millis, resources.memory_mb, resources.disk_mb]
    return [
        run,
        function,
        lease.task,
        lease.generation,
        lease.lease_id,
        assignment.attempt,
        raw,
        extra or None,
    ]


def _describe_task(spec: TaskSpec, extra: dict[str, Any]) -> None:
    """Add what the function can ask its context about the task, where the task has it."""
    if spec.HasField("entity"):
        extra["entity"] = [spec.entity.type, spec.entity.id]
    if spec.HasField("max_steps"):
        extra["max_steps"] = spec.max_steps
    if spec.HasField("checkpoint_interval"):
        interval = spec.checkpoint_interval
        extra["checkpoint_interval"] = interval.seconds + interval.nanos / 1e9
    for field in ("scheduled_time", "not_before"):
        if spec.HasField(field):
            extra.setdefault("scheduled_time", getattr(spec, field).ToDatetime(UTC).isoformat())


def _timing(spec: TaskSpec) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if spec.overlap != OVERLAP_POLICY_ALLOW:
        found["forbid"] = True
    for name, field, default in _DURATIONS:
        if spec.HasField(field):  # type: ignore[arg-type]
            duration: Duration = getattr(spec, field)
            seconds = duration.seconds + duration.nanos / 1e9
            if seconds != default:
                found[name] = seconds
    return found


_DURATIONS = (
    ("grace", "stop_grace_period", DEFAULT_GRACE),
    ("orphan", "orphan_timeout", DEFAULT_ORPHAN),
    ("attempt", "attempt_timeout", None),
    ("silence", "silence_timeout", None),
)


def lease_of(row: Row) -> LeaseRef:
    """The lease under which a row was assigned."""
    return LeaseRef(task=row[2], generation=row[3], lease_id=row[4])


def text_of(content: bytes) -> Any:
    """Bytes as a host takes them: text, or {"b64": …} where they are no UTF-8."""
    try:
        return content.decode()
    except UnicodeDecodeError:
        return {"b64": base64.b64encode(content).decode()}


def report_of(result: dict[str, Any] | None) -> RunReport:
    """A host's result of a run, as a report without lease and time."""
    if result is None:
        report = RunReport()
        report.succeeded.SetInParent()
        return report
    if "error" in result:
        return _failed(result["error"])
    found = TaskResult()
    if "type" in result:
        content = base64.b64decode(result["b64"]) if "b64" in result else result["text"].encode()
        found.output.CopyFrom(Payload(raw=content, content_type=result["type"]))
    if "metrics" in result:
        # The host runs code of users, which may answer in its place.
        found.metrics.update({name: n for name, n in result["metrics"].items() if is_metric(name, n)})
    return RunReport(succeeded=RunSucceeded(result=found))


def _clean(text: str) -> str:
    """Text for a report: bounded, valid, and without NUL, which the database rejects."""
    clean = text.replace("\0", "\N{REPLACEMENT CHARACTER}")
    return clean.encode(errors="replace")[:65536].decode(errors="ignore")


def _failed(error: dict[str, Any]) -> RunReport:
    lasting = error["class"] == "permanent"
    failed = RunFailed(
        error=TaskError(
            error_class=ERROR_CLASS_PERMANENT if lasting else ERROR_CLASS_TRANSIENT,
            code=error["code"],
            message=_clean(error["message"]),
        )
    )
    for name in ("exception", "traceback"):
        if isinstance(error.get(name), str):
            failed.error.details[name] = _clean(error[name])
    after = error.get("retry_after")
    if after is not None:
        after = min(float(after), 86400.0)
        failed.retry_after.CopyFrom(Duration(seconds=int(after), nanos=int(after % 1 * 1e9)))
    return RunReport(failed=failed)
