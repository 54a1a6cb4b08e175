"""A caller of taskdb with a key: the stubs that tests use, over one channel that outlives the server."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import grpc
import grpc.aio

from taskyard.status import from_rpc_error
from taskyard.v1 import (
    group_service_pb2_grpc,
    lease_service_pb2_grpc,
    limit_service_pb2_grpc,
    schedule_service_pb2_grpc,
    session_service_pb2_grpc,
    task_service_pb2_grpc,
)

Metadata = tuple[tuple[str, str], ...]

# A call that a crash has cut off must fail, never be repeated behind the test's back; the next one waits for
# the server to be back.
_OPTIONS = (
    ("grpc.enable_retries", 0),
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.initial_reconnect_backoff_ms", 50),
    ("grpc.min_reconnect_backoff_ms", 50),
    ("grpc.max_reconnect_backoff_ms", 200),
)
_TIMEOUT = 30.0


class Caller:
    """`caller.tasks.CreateTask(request)` raises taskyard.errors; streams are passed through as they are."""

    def __init__(self, address: str, key: str) -> None:
        self.channel = grpc.aio.insecure_channel(address, options=_OPTIONS)
        self._metadata = (("authorization", f"Bearer {key}"),)
        self.tasks = self._stub(task_service_pb2_grpc.TaskServiceStub)
        self.leases = self._stub(lease_service_pb2_grpc.LeaseServiceStub)
        self.sessions = self._stub(session_service_pb2_grpc.SessionServiceStub)
        self.groups = self._stub(group_service_pb2_grpc.GroupServiceStub)
        self.limits = self._stub(limit_service_pb2_grpc.LimitServiceStub)
        self.schedules = self._stub(schedule_service_pb2_grpc.ScheduleServiceStub)

    def _stub(self, stub: Callable[[Any], Any]) -> Any:
        return _Stub(stub(self.channel), self._metadata)

    async def close(self) -> None:
        """Closes the channel."""
        await self.channel.close()


class _Stub:
    """A generated stub whose calls carry the key."""

    def __init__(self, stub: Any, metadata: Metadata) -> None:
        self._stub = stub
        self._metadata = metadata

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = getattr(self._stub, name)

        def call(request: Any, **options: Any) -> Any:
            options = {"wait_for_ready": True, "timeout": _TIMEOUT, **options}
            made = method(request, metadata=self._metadata, **options)
            return translated(made) if isinstance(made, Awaitable) else made

        return call


async def translated(call: Any) -> Any:
    """The response of a call; raises taskyard.errors."""
    try:
        return await call
    except grpc.RpcError as error:
        raise from_rpc_error(error) from error
