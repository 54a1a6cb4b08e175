"""taskdb as the scheduler calls it: one channel, typed calls, taskyard.errors instead of gRPC's."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable
from typing import Any, TypeVar

import grpc
import grpc.aio

from taskyard import errors
from taskyard.status import from_rpc_error
from taskyard.v1 import lease_service_pb2 as leases
from taskyard.v1 import session_service_pb2 as sessions
from taskyard.v1.lease_service_pb2_grpc import LeaseServiceStub
from taskyard.v1.session_service_pb2_grpc import SessionServiceStub

T = TypeVar("T")

# Generous for a database that works, short enough to notice one that does not.
CALL_TIMEOUT = 10.0
BULK_TIMEOUT = 60.0
# A claim may return many tasks with payloads of up to 1 MiB each.
MAX_RECEIVE_BYTES = 1024 * 1024 * 1024


class Taskdb:
    """Every call the scheduler makes; each may be repeated, as the contract says."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self._leases: Any = LeaseServiceStub(channel)
        self._sessions: Any = SessionServiceStub(channel)

    async def claim_for_runners(
        self, request: leases.ClaimForRunnersRequest
    ) -> leases.ClaimForRunnersResponse:
        return await _answer(self._leases.ClaimForRunners(request, timeout=CALL_TIMEOUT))

    async def report_runs(self, request: leases.ReportRunsRequest) -> leases.ReportRunsResponse:
        return await _answer(self._leases.ReportRuns(request, timeout=CALL_TIMEOUT))

    async def renew_leases(self, request: leases.RenewLeasesRequest) -> leases.RenewLeasesResponse:
        return await _answer(self._leases.RenewLeases(request, timeout=CALL_TIMEOUT))

    async def append_logs(self, request: leases.AppendLogsRequest) -> leases.AppendLogsResponse:
        return await _answer(self._leases.AppendLogs(request, timeout=BULK_TIMEOUT))

    async def write_checkpoint(
        self, requests: AsyncIterator[leases.WriteCheckpointRequest]
    ) -> leases.WriteCheckpointResponse:
        # An iterator handed to gRPC would swallow what it raises; here that ends the call and is raised.
        call = self._leases.WriteCheckpoint(timeout=BULK_TIMEOUT)
        try:
            async for request in requests:
                await call.write(request)
            await call.done_writing()
        except (grpc.RpcError, asyncio.InvalidStateError):
            # taskdb has answered before the end; the answer says why.
            return await _answer(call)
        except BaseException:
            call.cancel()
            raise
        return await _answer(call)

    def read_checkpoint(
        self, request: leases.ReadLeasedCheckpointRequest
    ) -> AsyncIterator[leases.ReadLeasedCheckpointResponse]:
        return _steps(self._leases.ReadLeasedCheckpoint(request, timeout=BULK_TIMEOUT))

    async def create_child_tasks(
        self, request: leases.CreateChildTasksRequest
    ) -> leases.CreateChildTasksResponse:
        return await _answer(self._leases.CreateChildTasks(request, timeout=CALL_TIMEOUT))

    async def read_explain_facts(
        self, request: leases.ReadExplainFactsRequest
    ) -> leases.ReadExplainFactsResponse:
        return await _answer(self._leases.ReadExplainFacts(request, timeout=CALL_TIMEOUT))

    def watch_queue(self, scheduler_id: str) -> AsyncIterator[leases.WatchQueueResponse]:
        return _steps(self._leases.WatchQueue(leases.WatchQueueRequest(scheduler_id=scheduler_id)))

    async def open_session(self, request: sessions.OpenSessionRequest) -> sessions.OpenSessionResponse:
        return await _answer(self._sessions.OpenSession(request, timeout=CALL_TIMEOUT))

    async def renew_sessions(self, request: sessions.RenewSessionsRequest) -> sessions.RenewSessionsResponse:
        return await _answer(self._sessions.RenewSessions(request, timeout=CALL_TIMEOUT))

    async def close_session(self, request: sessions.CloseSessionRequest) -> sessions.CloseSessionResponse:
        return await _answer(self._sessions.CloseSession(request, timeout=CALL_TIMEOUT))

    async def verify_key(self, key: str) -> sessions.VerifyApiKeyResponse:
        request = sessions.VerifyApiKeyRequest(key=key)
        return await _answer(self._sessions.VerifyApiKey(request, timeout=CALL_TIMEOUT))


_UNREACHED = (errors.Code.UNAVAILABLE, errors.Code.DEADLINE_EXCEEDED, errors.Code.CANCELLED)


async def _answer(call: Awaitable[T]) -> T:
    try:
        return await call
    except grpc.RpcError as error:
        raise _translate(error) from error


async def _steps(call: Any) -> AsyncIterator[Any]:
    try:
        async for step in call:
            yield step
    except grpc.RpcError as error:
        raise _translate(error) from error
    finally:
        call.cancel()


def _translate(error: grpc.RpcError) -> errors.TaskyardError:
    found = from_rpc_error(error)
    # Without a reason of ours they come from gRPC: taskdb was not reached, or went away meanwhile.
    if not found.reason and found.code in _UNREACHED:
        return errors.StorageUnavailable("unknown", message=f"taskdb did not answer: {found.message}")
    return found
