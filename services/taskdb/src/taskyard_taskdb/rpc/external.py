"""ReportTaskStatus: what the owner of an external task says of it."""

from __future__ import annotations

from typing import Any

from taskyard.v1 import common_pb2, task_pb2, task_service_pb2
from taskyard_taskdb.domain.event import ExternalReported
from taskyard_taskdb.domain.task import Actor, TaskState
from taskyard_taskdb.domain.words import Phase
from taskyard_taskdb.rpc import access, convert
from taskyard_taskdb.rpc.actions import repeatable_request
from taskyard_taskdb.rpc.reports import merge_details, read_error
from taskyard_taskdb.rpc.result_schema import ResultChecks
from taskyard_taskdb.rpc.show import ShowMethods
from taskyard_taskdb.rpc.validate import check_payload, check_struct
from taskyard_taskdb.storage.inbox import ReportInbox
from taskyard_taskdb.storage.task_rows import Key

Request = task_service_pb2.ReportTaskStatusRequest


class ReportMethods(ShowMethods):
    """TaskService.ReportTaskStatus."""

    _inbox: ReportInbox
    _results: ResultChecks

    async def ReportTaskStatus(
        self, request: Request, context: Any
    ) -> task_service_pb2.ReportTaskStatusResponse:
        key = access.visible_task(request.name)
        _check(request)
        repeatable = repeatable_request(request, request.request_id, key)
        report = (await self._judged(request, key)).SerializeToString()
        if request.enqueue:
            shown = await self._show(key, convert.NAME)
            await self._inbox.store(key, report, access.caller(), repeatable)
        else:
            await self._inbox.apply(key, report, access.caller(), request.resource_version, repeatable)
            shown = await self._show(key, convert.NAME)
        return task_service_pb2.ReportTaskStatusResponse(task=shown)

    async def _judged(self, request: Request, key: Key) -> Request:
        """The report, or a failure in place of a success whose result does not match its type's schema."""
        if request.phase != task_pb2.TASK_PHASE_SUCCEEDED:
            return request
        error = await self._results.judge_one(key, request.result)
        if error is None:
            return request
        judged = Request()
        judged.CopyFrom(request)
        judged.ClearField("result")
        judged.phase = task_pb2.TASK_PHASE_FAILED
        wrong = common_pb2.TaskError(code=error.code, message=error.message)
        wrong.error_class = common_pb2.ERROR_CLASS_PERMANENT
        judged.error.CopyFrom(wrong)
        return judged


def _check(request: Request) -> None:
    if request.HasField("details"):
        check_struct(request.details, "details")
    if request.result.HasField("output"):
        check_payload(request.result.output, "result.output")
    if request.result.HasField("metrics"):
        check_struct(request.result.metrics, "result.metrics")
    if request.error.HasField("details"):
        check_struct(request.error.details, "error.details")


def read_report(encoded: bytes, task: TaskState, actor: Actor) -> ExternalReported:
    """The event of a stored request for a task as it is now."""
    request = Request.FromString(encoded)
    details = request.details.SerializeToString(deterministic=True) if request.HasField("details") else None
    return ExternalReported(
        actor=actor,
        request_id=request.request_id or None,
        phase=Phase(request.phase) if request.phase else None,
        details=_merged(task, details, request.replace_details),
        progress=request.progress.SerializeToString() if request.HasField("progress") else None,
        result=request.result.SerializeToString() if request.HasField("result") else None,
        error=read_error(request.error) if request.HasField("error") else None,
    )


def _merged(task: TaskState, reported: bytes | None, replace: bool) -> bytes | None:
    """The details after a report; None leaves them as they are."""
    if reported is None or replace:
        return reported
    return merge_details(task.details, reported) if reported else None
