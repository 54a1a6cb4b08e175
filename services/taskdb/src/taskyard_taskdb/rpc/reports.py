"""ReportRuns, by which runners report on their leases, and ReportTaskStatus of external tasks.

Reports of runners are batched over concurrent calls and applied one by one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from google.protobuf.struct_pb2 import Struct

from taskyard import status
from taskyard.errors import FieldInvalid, InvalidArgument, ResultCheckPending, TaskyardError, TooLarge
from taskyard.v1 import common_pb2, lease_pb2, lease_service_pb2, task_pb2, task_service_pb2
from taskyard_kit import wellformed
from taskyard_taskdb.domain.event import (
    CancelledByHolder,
    ExternalReported,
    Failed,
    HolderEvent,
    ProgressReported,
    Released,
    TimedOut,
    runner,
)
from taskyard_taskdb.domain.task import Actor, RunError, TaskState
from taskyard_taskdb.domain.words import ErrorClass, Phase, ReleaseReason
from taskyard_taskdb.rpc import access, convert
from taskyard_taskdb.rpc.actions import repeatable_request
from taskyard_taskdb.rpc.reads import read_current
from taskyard_taskdb.rpc.result_schema import ResultChecks
from taskyard_taskdb.rpc.times import to_datetime, to_timedelta
from taskyard_taskdb.rpc.validate import check_payload, check_struct, validate
from taskyard_taskdb.storage.batch import Batcher
from taskyard_taskdb.storage.pool import Pool
from taskyard_taskdb.storage.report.external_inbox import ReportInbox
from taskyard_taskdb.storage.report.reports import Outcome, Report, ReportKind, ReportWriter
from taskyard_taskdb.storage.transition.task_rows import Key
from taskyard_taskdb.watch.hub import Hub

MAX_REPORTS = 1000
# Of one wait for children.
MAX_AWAITED = 1000
# Of status.details, which every report may add to.
MAX_DETAILS_BYTES = 256 * 1024
StatusRequest = task_service_pb2.ReportTaskStatusRequest
# Outcomes that may carry the start of their run: without it, it would be implied.
_AFTER_START = ("succeeded", "failed", "timed_out")
TASK_NAME = re.compile(r"tenants/([A-Za-z0-9._-]{1,64})/tasks/([A-Za-z0-9._-]{1,256})")


class ReportBatch:
    """Batches the reports of concurrent calls: up to a thousand per flush, one flush at a time, in order."""

    def __init__(self, reports: ReportWriter, checks: ResultChecks, hub: Hub) -> None:
        self._reports = reports
        self._checks = checks
        self._hub = hub
        self._calls: Batcher[list[Report], list[Outcome]] = Batcher(
            self._flush, max_items=MAX_REPORTS, max_weight=MAX_REPORTS, weigh=len
        )

    async def apply(self, reports: list[Report]) -> list[Outcome]:
        """One outcome per report, in order."""
        return await self._calls.submit(reports) if reports else []

    async def close(self) -> None:
        """Apply the reports that were accepted and are still queued."""
        await self._calls.close()

    async def _flush(self, calls: list[list[Report]]) -> list[list[Outcome]]:
        checked = await self._checks.checked([report for call in calls for report in call])
        ready = [item for item in checked if isinstance(item, Report)]
        applied = iter(await self._reports.apply(ready))
        outcomes = iter([item if isinstance(item, ResultCheckPending) else next(applied) for item in checked])
        self._hub.wake()
        return [[next(outcomes) for _ in call] for call in calls]


class RunReportHandler:
    """LeaseService.ReportRuns."""

    def __init__(self, batch: ReportBatch) -> None:
        self._batch = batch

    async def ReportRuns(
        self, request: lease_service_pb2.ReportRunsRequest, context: Any
    ) -> lease_service_pb2.ReportRunsResponse:
        """Apply reports; each has its own result."""
        if not 1 <= len(request.reports) <= MAX_REPORTS:
            problem = f"must have 1 to {MAX_REPORTS} items, not {len(request.reports)}"
            raise FieldInvalid.of("reports", problem)
        reports = [read_report(held.runner_id, held.report, n) for n, held in enumerate(request.reports)]
        outcomes = await self._batch.apply(reports)
        response = lease_service_pb2.ReportRunsResponse()
        for outcome in outcomes:
            fill_result(response.results.add(), outcome)
        return response


def fill_result(result: lease_pb2.ReportResult, outcome: Outcome) -> None:
    if isinstance(outcome, TaskyardError):
        result.error.CopyFrom(status.to_status(outcome))
    else:
        result.phase = task_pb2.TaskPhase.ValueType(outcome.phase)
        if outcome.duplicate:
            result.duplicate = True


def read_report(runner_id: str, message: lease_pb2.RunReport, index: int) -> Report:
    """The report as a stored value. Raises FieldInvalid."""
    lease = message.lease
    kind = message.WhichOneof("report")
    named = TASK_NAME.fullmatch(lease.task)
    starts = message.HasField("start")
    if named is None or kind is None or not runner_id or (starts and kind not in _AFTER_START):
        raise _invalid(runner_id, message, kind, index)
    key, generation, lease_id = (named[1], named[2]), lease.generation, lease.lease_id
    time = to_datetime(message.time) if message.HasField("time") else None
    details = message.details.SerializeToString() if message.HasField("details") else None
    log_sequence = message.log_sequence if message.HasField("log_sequence") else None
    start_time = to_datetime(message.start_time) if starts and message.HasField("start_time") else None
    checkpoint = message.start.checkpoint_sequence if starts else 0
    result = exit_code = event = None
    if kind == "started":
        stored, checkpoint, log_sequence = ReportKind.STARTED, message.started.checkpoint_sequence, None
    elif kind == "succeeded":
        stored, succeeded = ReportKind.SUCCEEDED, message.succeeded
        result = succeeded.result.SerializeToString() if succeeded.HasField("result") else None
        exit_code = succeeded.exit_code if succeeded.HasField("exit_code") else None
    else:
        holder = {
            "actor": runner(runner_id),
            "runner_id": runner_id,
            "generation": generation,
            "lease_id": lease_id,
            "time": time,
        }
        stored = ReportKind.OTHER
        event = _EVENTS[kind](getattr(message, kind), holder, f"reports[{index}].report.{kind}")
    return Report(
        key,
        runner_id,
        generation,
        lease_id,
        stored,
        time,
        checkpoint,
        result,
        exit_code,
        details,
        log_sequence,
        event,
        starts,
        start_time,
    )


def _invalid(runner_id: str, message: lease_pb2.RunReport, kind: str | None, index: int) -> FieldInvalid:
    field = f"reports[{index}]"
    if not runner_id:
        return FieldInvalid.of(f"{field}.runner_id", "must not be empty")
    if kind is None:
        return FieldInvalid.of(f"{field}.report.report", "must have one of its kinds")
    if message.HasField("start") and kind not in _AFTER_START:
        problem = f"belongs to one of {', '.join(_AFTER_START)}, not to {kind}; report the start on its own"
        return FieldInvalid.of(f"{field}.report.start", problem)
    problem = f"must be tenants/{{tenant}}/tasks/{{task}}, not {message.lease.task[:80]!r}"
    return FieldInvalid.of(f"{field}.report.lease.task", problem)


def _progress(message: Any, common: Mapping[str, Any], field: str) -> HolderEvent:
    validate(message, f"{field}.")
    observed = {"time": to_datetime(message.observe_time)} if message.HasField("observe_time") else {}
    return ProgressReported(progress=message.SerializeToString(), **{**common, **observed})


def _failed(message: lease_pb2.RunFailed, common: Mapping[str, Any], field: str) -> HolderEvent:
    if not message.HasField("error"):
        raise FieldInvalid.of(f"{field}.error", "must be set")
    retry_after = to_timedelta(message.retry_after) if message.HasField("retry_after") else None
    error = read_error(message.error)
    return Failed(error=error, exit_code=_exit_code(message), retry_after=retry_after, **common)


def _timed_out(message: lease_pb2.RunTimedOut, common: Mapping[str, Any], field: str) -> HolderEvent:
    if message.code not in ("ATTEMPT_TIMEOUT", "SILENCE_TIMEOUT", "TOTAL_TIMEOUT"):
        allowed = "ATTEMPT_TIMEOUT, SILENCE_TIMEOUT or TOTAL_TIMEOUT"
        raise FieldInvalid.of(f"{field}.code", f"must be {allowed}, not {message.code!r}")
    return TimedOut(code=message.code, exit_code=_exit_code(message), **common)


def _cancelled(message: lease_pb2.RunCancelled, common: Mapping[str, Any], field: str) -> HolderEvent:
    return CancelledByHolder(exit_code=_exit_code(message), **common)


def _released(message: lease_pb2.RunReleased, common: Mapping[str, Any], field: str) -> HolderEvent:
    try:
        reason = ReleaseReason(message.reason)
    except ValueError:
        raise FieldInvalid.of(f"{field}.reason", f"must be a known reason, not {message.reason}") from None
    if (reason is ReleaseReason.WAITING) != bool(message.wait_for) or len(message.wait_for) > MAX_AWAITED:
        problem = f"must name 1 to {MAX_AWAITED} tasks with reason WAITING, and none with another"
        raise FieldInvalid.of(f"{field}.wait_for", f"{problem}; it has {len(message.wait_for)}")
    wrong = next((name for name in message.wait_for if TASK_NAME.fullmatch(name) is None), None)
    if wrong is not None:
        problem = f"must be tenants/{{tenant}}/tasks/{{task}}, not {wrong[:80]!r}"
        raise FieldInvalid.of(f"{field}.wait_for", problem)
    return Released(reason=reason, message=message.message, wait_for=tuple(message.wait_for), **common)


_EVENTS: Mapping[str, Callable[[Any, Mapping[str, Any], str], HolderEvent]] = {
    "progress": _progress,
    "failed": _failed,
    "timed_out": _timed_out,
    "cancelled": _cancelled,
    "released": _released,
}


def _exit_code(message: Any) -> int | None:
    return message.exit_code if message.HasField("exit_code") else None


def read_error(error: Any) -> RunError:
    """The error of a TaskError; an unspecified class is transient."""
    permanent = error.error_class == ErrorClass.PERMANENT
    error_class = ErrorClass.PERMANENT if permanent else ErrorClass.TRANSIENT
    return RunError(error.code, error_class, error.message, error.SerializeToString())


def merge_details(stored: bytes | None, reported: bytes) -> bytes:
    """status.details with the reported fields added or replaced.

    Raises FieldInvalid for a value that is not JSON, TooLarge if the details would grow beyond their limit.
    """
    merged, notice = Struct(), Struct.FromString(reported)
    wellformed.check(notice, reported)
    if stored:
        merged.MergeFromString(stored)
    for name, value in notice.fields.items():
        merged.fields[name].CopyFrom(value)
    encoded = merged.SerializeToString(deterministic=True)
    if len(encoded) > MAX_DETAILS_BYTES:
        problem = (
            f"{len(encoded)} bytes together with those stored; at most {MAX_DETAILS_BYTES}: "
            "replace fields instead of adding them, or write to the log or a checkpoint"
        )
        raise TooLarge.of("details", problem)
    return encoded


class ExternalReportHandler:
    """TaskService.ReportTaskStatus, for tasks that no runner executes."""

    def __init__(self, pool: Pool, inbox: ReportInbox, checks: ResultChecks) -> None:
        self._pool = pool
        self._inbox = inbox
        self._checks = checks

    async def ReportTaskStatus(
        self, request: StatusRequest, context: Any
    ) -> task_service_pb2.ReportTaskStatusResponse:
        key = access.visible_task(request.name)
        _check_status(request)
        repeatable = repeatable_request(request, request.request_id, key)
        report = (await self._checked(request, key)).SerializeToString()
        if request.enqueue:
            task = await read_current(self._pool, key, convert.NAME)
            await self._inbox.store(key, report, access.caller(), repeatable)
        else:
            await self._inbox.apply(key, report, access.caller(), request.resource_version, repeatable)
            task = await read_current(self._pool, key, convert.NAME)
        return task_service_pb2.ReportTaskStatusResponse(task=task)

    async def _checked(self, request: StatusRequest, key: Key) -> StatusRequest:
        """The report, or a failure instead of a success whose result does not match its type's schema."""
        if request.phase != task_pb2.TASK_PHASE_SUCCEEDED:
            return request
        error = await self._checks.check_result(key, request.result)
        if error is None:
            return request
        failure = StatusRequest()
        failure.CopyFrom(request)
        failure.ClearField("result")
        failure.phase = task_pb2.TASK_PHASE_FAILED
        wrong = common_pb2.TaskError(code=error.code, message=error.message)
        wrong.error_class = common_pb2.ERROR_CLASS_PERMANENT
        failure.error.CopyFrom(wrong)
        return failure


def _check_status(request: StatusRequest) -> None:
    if request.HasField("details"):
        check_struct(request.details, "details")
    if request.result.HasField("output"):
        check_payload(request.result.output, "result.output")
    if request.result.HasField("metrics"):
        check_struct(request.result.metrics, "result.metrics")
    if request.error.HasField("details"):
        check_struct(request.error.details, "error.details")


def read_external_report(encoded: bytes, task: TaskState, actor: Actor) -> ExternalReported:
    """The event of a stored request, applied to the current state of the task."""
    request = StatusRequest.FromString(encoded)
    return ExternalReported(
        actor=actor,
        request_id=request.request_id or None,
        phase=Phase(request.phase) if request.phase else None,
        details=_external_details(request, task),
        progress=request.progress.SerializeToString() if request.HasField("progress") else None,
        result=request.result.SerializeToString() if request.HasField("result") else None,
        error=read_error(request.error) if request.HasField("error") else None,
    )


def _merged(task: TaskState, reported: bytes | None, replace: bool) -> bytes | None:
    """The details after a report; None leaves them unchanged."""
    if reported is None or replace:
        return reported
    return merge_details(task.details, reported) if reported else None


def _external_details(request: StatusRequest, task: TaskState) -> bytes | None:
    if not request.HasField("details"):
        return None
    reported = request.details.SerializeToString(deterministic=True)
    try:
        return _merged(task, reported, request.replace_details)
    except InvalidArgument:
        # Nobody waits for the answer of a stored report: its phase is not lost with its details.
        if request.enqueue and request.phase:
            return None
        raise
