"""RunnerLinkService: the stream of each runner, read and written by separate tasks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import grpc.aio

from taskyard import errors
from taskyard.v1 import lease_service_pb2, session_service_pb2
from taskyard.v1 import runner_link_service_pb2 as link
from taskyard.v1.runner_link_service_pb2_grpc import RunnerLinkServiceServicer
from taskyard_kit.auth import Principal
from taskyard_kit.logs import get_log
from taskyard_kit.validation import validate
from taskyard_scheduler.link_config import PROTOCOL_VERSION, duration
from taskyard_scheduler.rpc.scope import require_leases, require_runner
from taskyard_scheduler.rpc.stream import RunnerStream, Signal
from taskyard_scheduler.scheduler import Scheduler
from taskyard_scheduler.session import Session

log = get_log(__name__)

Context = grpc.aio.ServicerContext[Any, Any]


class RunnerLinkServicer(RunnerLinkServiceServicer):
    """Runner agents connect here."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler

    async def Connect(  # type: ignore[override]
        self, requests: object, context: Context
    ) -> None:
        """One runner's stream, from hello to the end of its session."""
        scheduler, signal = self._scheduler, Signal()
        try:
            session = await self._open_session(context, signal)
        except errors.TaskyardError as error:
            log.warning("session_refused", reason=error.reason, error=str(error))
            raise
        log.info("session_opened", runner=session.runner_id, epoch=session.epoch)
        await RunnerStream(session, scheduler, context, signal).run()

    async def _open_session(self, context: Context, signal: Signal) -> Session:
        scheduler = self._scheduler
        if scheduler.draining:
            raise errors.ServerDraining()
        hello = await self._read_hello(context)
        principal = require_runner(hello.runner_id)
        opened = await scheduler.open_session(self._open_request(hello, principal))
        return Session(hello, opened, scheduler.config, scheduler, signal, scheduler.clock())

    async def _read_hello(self, context: Context) -> link.Hello:
        timeout = self._scheduler.config.hello_timeout
        try:
            async with asyncio.timeout(timeout):
                message = await context.read()
        except TimeoutError:
            raise errors.ProtocolViolation("?", f"no hello within {timeout:g} s") from None
        if message is grpc.aio.EOF or message.WhichOneof("message") != "hello":
            raise errors.ProtocolViolation("?", "the first message must be hello")
        hello: link.Hello = message.hello
        if hello.protocol_version < 1:
            raise errors.ProtocolVersionUnsupported(
                hello.runner_id, str(hello.protocol_version), f"1 to {PROTOCOL_VERSION}"
            )
        validate(hello)
        return hello

    def _open_request(
        self, hello: link.Hello, principal: Principal
    ) -> session_service_pb2.OpenSessionRequest:
        return session_service_pb2.OpenSessionRequest(
            scheduler_id=self._scheduler.config.scheduler_id,
            runner_id=hello.runner_id,
            key_id=principal.id,
            instance_id=hello.instance_id,
            takeover=hello.takeover,
            registration=hello.registration,
            held=[held.lease for held in hello.held],
            lease_duration=duration(self._scheduler.config.lease_duration),
        )

    async def DownloadCheckpoint(
        self, request: link.DownloadCheckpointRequest, context: Context
    ) -> AsyncIterator[link.DownloadCheckpointResponse]:
        """The newest checkpoint of a task that the runner has leased; taskdb checks the lease."""
        require_leases(request.runner_id, [request.lease.task])
        checkpoint_request = lease_service_pb2.ReadLeasedCheckpointRequest(
            runner_id=request.runner_id, lease=request.lease
        )
        async for piece in self._scheduler.taskdb.read_checkpoint(checkpoint_request):
            yield link.DownloadCheckpointResponse(
                checkpoint=piece.checkpoint if piece.HasField("checkpoint") else None, data=piece.data
            )

    async def SubmitChildTasks(
        self, request: link.SubmitChildTasksRequest, context: Context
    ) -> link.SubmitChildTasksResponse:
        """Tasks of a task that the runner has leased; taskdb checks the lease."""
        require_leases(request.runner_id, [request.lease.task])
        response = await self._scheduler.taskdb.create_child_tasks(
            lease_service_pb2.CreateChildTasksRequest(
                runner_id=request.runner_id, lease=request.lease, children=request.children
            )
        )
        return link.SubmitChildTasksResponse(tasks=response.tasks)

    async def FetchChildOutcomes(
        self, request: link.FetchChildOutcomesRequest, context: Context
    ) -> link.FetchChildOutcomesResponse:
        """How children of a task that the runner has leased have ended; taskdb checks the lease."""
        require_leases(request.runner_id, [request.lease.task])
        response = await self._scheduler.taskdb.read_child_outcomes(
            lease_service_pb2.ReadChildOutcomesRequest(
                runner_id=request.runner_id, lease=request.lease, tasks=request.tasks
            )
        )
        return link.FetchChildOutcomesResponse(outcomes=response.outcomes)
