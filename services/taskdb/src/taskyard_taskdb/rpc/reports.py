"""LeaseService.ReportRuns: what holders say, batched over concurrent calls and applied report by report."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from google.protobuf.struct_pb2 import Struct

from taskyard import status
from taskyard.errors import FieldInvalid, TaskyardError
from taskyard.v1 import lease_pb2, lease_service_pb2, task_pb2
from taskyard_taskdb.domain.event import (
    CancelledByHolder,
    Failed,
    HolderEvent,
    ProgressReported,
    Released,
    Started,
    Succeeded,
    TimedOut,
    runner,
)
from taskyard_taskdb.domain.names import parse_task_name
from taskyard_taskdb.domain.task import RunError
from taskyard_taskdb.domain.words import ErrorClass, ReleaseReason
from taskyard_taskdb.rpc.durations import to_datetime, to_timedelta
from taskyard_taskdb.storage.batch import Batcher
from taskyard_taskdb.storage.lanes import Lanes
from taskyard_taskdb.storage.pool import Pool
from taskyard_taskdb.storage.reports import Outcome, Report, Reports
from taskyard_taskdb.watch.hub import Hub

MAX_REPORTS = 1000


class ReportBatch:
    """Reports of concurrent calls, applied in flushes of up to a thousand, one flush at a time: order is kept."""

    def __init__(self, pool: Pool, lanes: Lanes, hub: Hub) -> None:
        self._reports = Reports(pool, lanes, merge_details)
        self._hub = hub
        self._calls: Batcher[list[Report], list[Outcome]] = Batcher(
            self._flush, max_items=MAX_REPORTS, max_weight=MAX_REPORTS, weigh=len
        )

    async def apply(self, reports: list[Report]) -> list[Outcome]:
        """One outcome per report, in order."""
        return await self._calls.submit(reports) if reports else []

    async def close(self) -> None:
        """Finish what was accepted."""
        await self._calls.close()

    async def _flush(self, calls: list[list[Report]]) -> list[list[Outcome]]:
        outcomes = iter(await self._reports.apply([report for call in calls for report in call]))
        self._hub.wake()
        return [[next(outcomes) for _ in call] for call in calls]


class ReportMethods:
    """LeaseService.ReportRuns."""

    _batch: ReportBatch

    async def ReportRuns(
        self, request: lease_service_pb2.ReportRunsRequest, context: Any
    ) -> lease_service_pb2.ReportRunsResponse:
        """Apply reports; each has its own result."""
        if not 1 <= len(request.reports) <= MAX_REPORTS:
            told = f"must have 1 to {MAX_REPORTS} items, not {len(request.reports)}"
            raise FieldInvalid.of("reports", told)
        reports = [read_report(held.runner_id, held.report, n) for n, held in enumerate(request.reports)]
        outcomes = await self._batch.apply(reports)
        response = lease_service_pb2.ReportRunsResponse()
        for outcome in outcomes:
            _fill_result(response.results.add(), outcome)
        return response


def _fill_result(result: lease_pb2.ReportResult, outcome: Outcome) -> None:
    if isinstance(outcome, TaskyardError):
        result.error.CopyFrom(status.to_status(outcome))
    else:
        result.phase = task_pb2.TaskPhase.ValueType(outcome.phase)
        if outcome.duplicate:
            result.duplicate = True


def read_report(runner_id: str, message: lease_pb2.RunReport, index: int) -> Report:
    """The report as the lifecycle understands it. Raises FieldInvalid."""
    field = f"reports[{index}]"
    if not runner_id:
        raise FieldInvalid.of(f"{field}.runner_id", "must not be empty")
    kind = message.WhichOneof("report")
    if kind is None:
        raise FieldInvalid.of(f"{field}.report.report", "must have one of its kinds")
    lease = message.lease
    common = {
        "actor": runner(runner_id),
        "runner_id": runner_id,
        "generation": lease.generation,
        "lease_id": lease.lease_id,
        "time": to_datetime(message.time) if message.HasField("time") else None,
    }
    event = _EVENTS[kind](getattr(message, kind), common, f"{field}.report.{kind}")
    details = message.details.SerializeToString() if message.HasField("details") else None
    key = parse_task_name(lease.task, f"{field}.report.lease.task")
    return Report(key, event, details, message.log_sequence if message.HasField("log_sequence") else None)


def _started(told: lease_pb2.RunStarted, common: Mapping[str, Any], field: str) -> HolderEvent:
    return Started(checkpoint_sequence=told.checkpoint_sequence, **common)


def _progress(told: Any, common: Mapping[str, Any], field: str) -> HolderEvent:
    observed = {"time": to_datetime(told.observe_time)} if told.HasField("observe_time") else {}
    return ProgressReported(progress=told.SerializeToString(), **{**common, **observed})


def _succeeded(told: lease_pb2.RunSucceeded, common: Mapping[str, Any], field: str) -> HolderEvent:
    result = told.result.SerializeToString() if told.HasField("result") else None
    return Succeeded(result=result, exit_code=_exit_code(told), **common)


def _failed(told: lease_pb2.RunFailed, common: Mapping[str, Any], field: str) -> HolderEvent:
    if not told.HasField("error"):
        raise FieldInvalid.of(f"{field}.error", "must be set")
    retry_after = to_timedelta(told.retry_after) if told.HasField("retry_after") else None
    error = read_error(told.error)
    return Failed(error=error, exit_code=_exit_code(told), retry_after=retry_after, **common)


def _timed_out(told: lease_pb2.RunTimedOut, common: Mapping[str, Any], field: str) -> HolderEvent:
    if told.code not in ("ATTEMPT_TIMEOUT", "SILENCE_TIMEOUT", "TOTAL_TIMEOUT"):
        known = "ATTEMPT_TIMEOUT, SILENCE_TIMEOUT or TOTAL_TIMEOUT"
        raise FieldInvalid.of(f"{field}.code", f"must be {known}, not {told.code!r}")
    return TimedOut(code=told.code, exit_code=_exit_code(told), **common)


def _cancelled(told: lease_pb2.RunCancelled, common: Mapping[str, Any], field: str) -> HolderEvent:
    return CancelledByHolder(exit_code=_exit_code(told), **common)


def _released(told: lease_pb2.RunReleased, common: Mapping[str, Any], field: str) -> HolderEvent:
    try:
        reason = ReleaseReason(told.reason)
    except ValueError:
        raise FieldInvalid.of(f"{field}.reason", f"must be a known reason, not {told.reason}") from None
    return Released(reason=reason, message=told.message, **common)


_EVENTS: Mapping[str, Callable[[Any, Mapping[str, Any], str], HolderEvent]] = {
    "started": _started,
    "progress": _progress,
    "succeeded": _succeeded,
    "failed": _failed,
    "timed_out": _timed_out,
    "cancelled": _cancelled,
    "released": _released,
}


def _exit_code(told: Any) -> int | None:
    return told.exit_code if told.HasField("exit_code") else None


def read_error(error: Any) -> RunError:
    """A TaskError; an unspecified class is transient."""
    permanent = error.error_class == ErrorClass.PERMANENT
    error_class = ErrorClass.PERMANENT if permanent else ErrorClass.TRANSIENT
    return RunError(error.code, error_class, error.message, error.SerializeToString())


def merge_details(stored: bytes | None, reported: bytes) -> bytes:
    """status.details with the reported fields put in or replaced."""
    merged, news = Struct(), Struct.FromString(reported)
    if stored:
        merged.MergeFromString(stored)
    for name, value in news.fields.items():
        merged.fields[name].CopyFrom(value)
    return merged.SerializeToString(deterministic=True)
