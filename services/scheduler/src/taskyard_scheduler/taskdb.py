"""taskdb as the scheduler calls it: one channel, typed calls, taskyard.errors instead of gRPC's."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable
from typing import Any, TypeVar

import grpc
import grpc.aio
from grpc_health.v1 import health_pb2
from grpc_health.v1.health_pb2_grpc import HealthStub

from taskyard import errors
from taskyard.status import from_rpc_error
from taskyard.v1 import lease_service_pb2 as leases
from taskyard.v1 import session_service_pb2 as sessions
from taskyard.v1.lease_service_pb2_grpc import LeaseServiceStub
from taskyard.v1.session_service_pb2_grpc import SessionServiceStub

T = TypeVar("T")

# Long enough for a working database, short enough to detect an outage.
CALL_TIMEOUT = 10.0
HEALTH_TIMEOUT = 2.0
BULK_TIMEOUT = 60.0
# A claim may return many tasks with payloads of up to 1 MiB each.
MAX_RECEIVE_BYTES = 1024 * 1024 * 1024


class Taskdb:
    """Every call of the scheduler; all of them are safe to repeat."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self._leases: Any = LeaseServiceStub(channel)
        self._sessions: Any = SessionServiceStub(channel)
        self._health: Any = HealthStub(channel)

    async def serves(self) -> bool:
        """Whether taskdb answers and reports that it can do its work."""
        try:
            found = await self._health.Check(health_pb2.HealthCheckRequest(), timeout=HEALTH_TIMEOUT)
        except grpc.RpcError:
            return False
        return bool(found.status == health_pb2.HealthCheckResponse.SERVING)

    async def claim_for_runners(
        self, request: leases.ClaimForRunnersRequest
    ) -> leases.ClaimForRunnersResponse:
        return await _call(self._leases.ClaimForRunners(request, timeout=CALL_TIMEOUT))

    async def report_runs(self, request: leases.ReportRunsRequest) -> leases.ReportRunsResponse:
        return await _call(self._leases.ReportRuns(request, timeout=CALL_TIMEOUT))

    async def complete_runs(self, request: leases.CompleteRunsRequest) -> leases.CompleteRunsResponse:
        return await _call(self._leases.CompleteRuns(request, timeout=CALL_TIMEOUT))

    async def renew_leases(self, request: leases.RenewLeasesRequest) -> leases.RenewLeasesResponse:
        return await _call(self._leases.RenewLeases(request, timeout=CALL_TIMEOUT))

    async def append_logs(self, request: leases.AppendLogsRequest) -> leases.AppendLogsResponse:
        return await _call(self._leases.AppendLogs(request, timeout=BULK_TIMEOUT))

    async def write_checkpoint(
        self, requests: AsyncIterator[leases.WriteCheckpointRequest]
    ) -> leases.WriteCheckpointResponse:
        # gRPC swallows errors of a request iterator; writing the requests here raises them and ends the call.
        call = self._leases.WriteCheckpoint(timeout=BULK_TIMEOUT)
        try:
            async for request in requests:
                await call.write(request)
            await call.done_writing()
        except (grpc.RpcError, asyncio.InvalidStateError):
            # taskdb has responded before the last piece; the response contains the reason.
            return await _call(call)
        except BaseException:
            call.cancel()
            raise
        return await _call(call)

    def read_checkpoint(
        self, request: leases.ReadLeasedCheckpointRequest
    ) -> AsyncIterator[leases.ReadLeasedCheckpointResponse]:
        return _stream(self._leases.ReadLeasedCheckpoint(request, timeout=BULK_TIMEOUT))

    async def create_child_tasks(
        self, request: leases.CreateChildTasksRequest
    ) -> leases.CreateChildTasksResponse:
        return await _call(self._leases.CreateChildTasks(request, timeout=CALL_TIMEOUT))

    async def read_child_outcomes(
        self, request: leases.ReadChildOutcomesRequest
    ) -> leases.ReadChildOutcomesResponse:
        return await _call(self._leases.ReadChildOutcomes(request, timeout=CALL_TIMEOUT))

    async def read_explain_facts(
        self, request: leases.ReadExplainFactsRequest
    ) -> leases.ReadExplainFactsResponse:
        return await _call(self._leases.ReadExplainFacts(request, timeout=CALL_TIMEOUT))

    def watch_queue(self, scheduler_id: str) -> AsyncIterator[leases.WatchQueueResponse]:
        return _stream(self._leases.WatchQueue(leases.WatchQueueRequest(scheduler_id=scheduler_id)))

    def keep_credit(self) -> CreditStream:
        return CreditStream(self._leases.KeepCredit())

    async def open_session(self, request: sessions.OpenSessionRequest) -> sessions.OpenSessionResponse:
        return await _call(self._sessions.OpenSession(request, timeout=CALL_TIMEOUT))

    async def renew_sessions(self, request: sessions.RenewSessionsRequest) -> sessions.RenewSessionsResponse:
        return await _call(self._sessions.RenewSessions(request, timeout=CALL_TIMEOUT))

    async def close_session(self, request: sessions.CloseSessionRequest) -> sessions.CloseSessionResponse:
        return await _call(self._sessions.CloseSession(request, timeout=CALL_TIMEOUT))

    async def register_worker(
        self, request: sessions.RegisterWorkerRequest
    ) -> sessions.RegisterWorkerResponse:
        return await _call(self._sessions.RegisterWorker(request, timeout=CALL_TIMEOUT))

    async def verify_key(self, key: str) -> sessions.VerifyApiKeyResponse:
        request = sessions.VerifyApiKeyRequest(key=key)
        return await _call(self._sessions.VerifyApiKey(request, timeout=CALL_TIMEOUT))


class CreditStream:
    """The open call of KeepCredit; raises taskyard.errors."""

    def __init__(self, call: Any) -> None:
        self._call = call

    async def write(self, request: leases.KeepCreditRequest) -> None:
        try:
            await self._call.write(request)
        except asyncio.InvalidStateError:
            raise errors.StorageUnavailable("unknown", message="taskdb has ended the stream") from None
        except grpc.RpcError as error:
            raise _translate(error) from error

    async def read(self) -> leases.KeepCreditResponse | None:
        """The next response; None at the end."""
        try:
            response = await self._call.read()
        except grpc.RpcError as error:
            raise _translate(error) from error
        return None if response is grpc.aio.EOF else response

    def cancel(self) -> None:
        self._call.cancel()


_UNREACHED = (errors.Code.UNAVAILABLE, errors.Code.DEADLINE_EXCEEDED, errors.Code.CANCELLED)


async def _call(call: Awaitable[T]) -> T:
    try:
        return await call
    except grpc.RpcError as error:
        raise _translate(error) from error


async def _stream(call: Any) -> AsyncIterator[Any]:
    try:
        async for step in call:
            yield step
    except grpc.RpcError as error:
        raise _translate(error) from error
    finally:
        call.cancel()


def _translate(error: grpc.RpcError) -> errors.TaskyardError:
    found = from_rpc_error(error)
    # Errors without a reason come from gRPC: taskdb was not reached, or the connection broke.
    if not found.reason and found.code in _UNREACHED:
        return errors.StorageUnavailable("unknown", message=f"taskdb did not answer: {found.message}")
    return found
