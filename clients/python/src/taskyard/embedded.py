"""Embedded tasks: functions of this process, run under a lease like the tasks of any runner."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import traceback
import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from taskyard.channels import Channels
from taskyard.convert import to_payload
from taskyard.v1 import common_pb2, lease_pb2, task_pb2
from taskyard.v1 import embedded_service_pb2 as pb
from taskyard.v1.embedded_service_pb2_grpc import EmbeddedServiceStub
from taskyard.v1.task_service_pb2 import CreateTaskRequest, CreateTaskResponse

if TYPE_CHECKING:
    from taskyard.v1.embedded_service_pb2_grpc import EmbeddedServiceAsyncStub

LEASE_SECONDS = 30
_RENEW_SECONDS = LEASE_SECONDS / 3
_MAX_TEXT = 60_000


class Stopped(Exception):
    """The server ended the run: a cancel, a pause, or a lost lease."""

    def __init__(self, action: lease_pb2.LeaseAction.ValueType) -> None:
        super().__init__(lease_pb2.LeaseAction.Name(action))
        self.action = action


class Embedded:
    """This process as the holder of embedded tasks."""

    def __init__(self, channels: Channels, permanent: tuple[type[BaseException], ...] = ()) -> None:
        self._channels = channels
        self._permanent = permanent
        self._holder = f"embedded-{uuid.uuid4()}"

    @property
    def _stub(self) -> EmbeddedServiceAsyncStub:
        return self._channels.stub("taskdb", EmbeddedServiceStub)

    async def create(self, request: CreateTaskRequest, function: str) -> CreateTaskResponse:
        """Create the task, which only this process may claim."""
        request.task.spec.execution.embedded.function = function[:256]
        made = pb.CreateEmbeddedTaskRequest(holder_id=self._holder, request=request)
        return (await self._channels.call(self._stub.CreateEmbeddedTask, made)).response

    async def attempt(self, name: str, call: Callable[[], Any]) -> bool:
        """Run the function once if the task can be claimed now; whether it was."""
        claim = pb.ClaimEmbeddedTaskRequest(holder_id=self._holder, name=name, request_id=str(uuid.uuid4()))
        claim.lease_duration.FromSeconds(LEASE_SECONDS)
        claimed = await self._channels.call(self._stub.ClaimEmbeddedTask, claim)
        for assignment in claimed.assignments:
            await self._run(assignment, call)
        return bool(claimed.assignments)

    async def _run(self, assignment: lease_pb2.Assignment, call: Callable[[], Any]) -> None:
        lease = assignment.lease
        await self._report(lease_pb2.RunReport(lease=lease, started=lease_pb2.RunStarted()))
        outcome = await self._outcome(assignment, call)
        if outcome is not None:
            outcome.lease.CopyFrom(lease)
            await self._report(outcome)

    async def _outcome(
        self, assignment: lease_pb2.Assignment, call: Callable[[], Any]
    ) -> lease_pb2.RunReport | None:
        """What is reported of the run; None if its lease is lost."""
        spec = assignment.spec
        limit = (
            spec.attempt_timeout.ToTimedelta().total_seconds() if spec.HasField("attempt_timeout") else None
        )
        work = asyncio.ensure_future(_call(call))
        renewal = asyncio.ensure_future(self._renew(assignment.lease))
        try:
            async with asyncio.timeout(limit):
                await asyncio.wait({work, renewal}, return_when=asyncio.FIRST_COMPLETED)
                if not work.done():
                    renewal.result()
            return _succeeded(work.result())
        except TimeoutError:
            if work.done() and not work.cancelled():
                return self._failed(work.exception())
            return lease_pb2.RunReport(timed_out=lease_pb2.RunTimedOut(code="ATTEMPT_TIMEOUT"))
        except Stopped as stopped:
            return _stopped(stopped.action)
        except Exception as error:
            return self._failed(error)
        finally:
            for task in (work, renewal):
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError, Exception):
                    await task

    async def _renew(self, lease: lease_pb2.LeaseRef) -> None:
        """Renews the lease until it is cancelled. Raises Stopped."""
        request = pb.RenewEmbeddedTasksRequest(holder_id=self._holder, leases=[lease])
        request.lease_duration.FromSeconds(LEASE_SECONDS)
        while True:
            await asyncio.sleep(_RENEW_SECONDS)
            renewed = await self._channels.call(self._stub.RenewEmbeddedTasks, request)
            for verdict in renewed.verdicts:
                raise Stopped(verdict.action)

    async def _report(self, report: lease_pb2.RunReport) -> None:
        request = pb.ReportEmbeddedTasksRequest(holder_id=self._holder, reports=[report])
        # A rejected report is final: the task has another outcome, which the caller reads.
        await self._channels.call(self._stub.ReportEmbeddedTasks, request)

    def _failed(self, error: BaseException | None) -> lease_pb2.RunReport:
        lasting = isinstance(error, self._permanent)
        found = common_pb2.TaskError(
            error_class=common_pb2.ERROR_CLASS_PERMANENT if lasting else common_pb2.ERROR_CLASS_TRANSIENT,
            code="EXCEPTION",
            message=f"{type(error).__name__}: {error}".replace("\0", "")[:_MAX_TEXT],
        )
        if error is not None:
            text = "".join(traceback.format_exception(error)).replace("\0", "")
            found.details["traceback"] = text[-16_000:]
        return lease_pb2.RunReport(failed=lease_pb2.RunFailed(error=found))


async def _call(call: Callable[[], Any]) -> Any:
    if inspect.iscoroutinefunction(call):
        return await call()
    value = await asyncio.to_thread(call)
    return await value if inspect.isawaitable(value) else value


def _succeeded(value: Any) -> lease_pb2.RunReport:
    report = lease_pb2.RunReport(succeeded=lease_pb2.RunSucceeded())
    if value is not None:
        report.succeeded.result.CopyFrom(task_pb2.TaskResult(output=to_payload(value)))
    return report


def _stopped(action: lease_pb2.LeaseAction.ValueType) -> lease_pb2.RunReport | None:
    if action == lease_pb2.LEASE_ACTION_CANCEL:
        return lease_pb2.RunReport(cancelled=lease_pb2.RunCancelled())
    if action == lease_pb2.LEASE_ACTION_PAUSE:
        return lease_pb2.RunReport(released=lease_pb2.RunReleased(reason=lease_pb2.RELEASE_REASON_PAUSED))
    return None
