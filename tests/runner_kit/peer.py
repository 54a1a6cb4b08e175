"""The test scheduler: it records every message, holds its welcome and ends streams with errors."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

from services.runner.tests.scheduler_peer import (
    Context,
    SchedulerPeer,
    Session,
    Task,
    duration,
    reports_of,
    run_key,
)
from taskyard import errors
from taskyard.status import GRPC_CODE, trailing_metadata
from taskyard.v1 import checkpoint_pb2, lease_pb2, task_pb2
from taskyard.v1 import runner_link_service_pb2 as link

UNKNOWN_MEMBER = link.ConnectResponse.FromString(b"\xba\x3e\x00")
"""A member of a later version: field 999, empty."""


class RecordedSession(Session):
    """A session with all that the runner sent, and when."""

    def __init__(self, hello: link.Hello) -> None:
        super().__init__(hello)
        self.begun = time.monotonic()
        self.messages: list[tuple[float, link.ConnectRequest]] = []

    def of(self, kind: str) -> list[Any]:
        """The messages of one kind."""
        return [getattr(m, kind) for _, m in self.messages if m.WhichOneof("message") == kind]

    def spooled(self) -> list[lease_pb2.RunReport]:
        """The reports that came through the spool, in order."""
        found: list[lease_pb2.RunReport] = []
        for _, message in self.messages:
            found += [report for report in message.reports.reports if report.seq]
            found += reports_of(message.short_runs)
        return found


class KitScheduler(SchedulerPeer):
    """Plays the faults of the rules; `faults` are rules that the runner broke while it was watched."""

    def __init__(self, **welcome: Any) -> None:
        super().__init__(**welcome)
        self.may_welcome = asyncio.Event()
        self.may_welcome.set()
        self.may_read = asyncio.Event()
        self.may_read.set()
        self.faults: list[str] = []
        self.largest = 0

    @property
    def last(self) -> RecordedSession:
        session = self.session
        assert isinstance(session, RecordedSession)
        return session

    async def session_number(self, count: int, seconds: float = 30.0) -> RecordedSession:
        """A session once its hello has arrived."""
        await self.until(lambda: len(self.sessions) >= count, seconds)
        found = self.sessions[count - 1]
        assert isinstance(found, RecordedSession)
        return found

    def drop(self, error: errors.TaskyardError | None = None) -> None:
        """End the stream with an error, without a goodbye."""
        self.session.outbox.put_nowait(error or errors.Unavailable(message="dropped by the kit"))  # type: ignore[arg-type]

    def push(self, response: link.ConnectResponse) -> None:
        """Send a message as it is."""
        self.session.outbox.put_nowait(response)

    async def Connect(
        self, requests: AsyncIterator[link.ConnectRequest], context: Context
    ) -> AsyncIterator[link.ConnectResponse]:
        first = await anext(requests)
        if first.WhichOneof("message") != "hello":
            self.faults.append(f"the first message is {first.WhichOneof('message')}, not hello")
        session = RecordedSession(first.hello)
        session.messages.append((time.monotonic(), first))
        self.sessions.append(session)
        reader = asyncio.create_task(self._read(session, requests))
        await self._notify()
        await self.may_welcome.wait()
        yield link.ConnectResponse(welcome=self._welcome(first.hello))
        try:
            while (response := await session.outbox.get()) is not None:
                if isinstance(response, errors.TaskyardError):
                    context.set_trailing_metadata(trailing_metadata(response))
                    await context.abort(GRPC_CODE[response.code], response.message)
                yield response
        finally:
            session.ended = True
            reader.cancel()
            await self._notify()

    async def _read(self, session: Session, requests: AsyncIterator[link.ConnectRequest]) -> None:
        assert isinstance(session, RecordedSession)

        async def recorded() -> AsyncIterator[link.ConnectRequest]:
            async for request in requests:
                session.messages.append((time.monotonic(), request))
                self.largest = max(self.largest, request.ByteSize())
                if request.WhichOneof("message") == "hello":
                    self.faults.append("a second hello in one session")
                yield request
                await self.may_read.wait()

        await super()._read(session, recorded())

    def _heartbeat(self, session: Session, heartbeat: link.Heartbeat) -> None:
        if heartbeat.heartbeat_id != session.last_heartbeat_id + 1:
            self.faults.append(f"heartbeat {heartbeat.heartbeat_id} follows {session.last_heartbeat_id}")
            session.last_heartbeat_id = heartbeat.heartbeat_id - 1
        super()._heartbeat(session, heartbeat)

    def _chunk(self, session: Session, chunk: checkpoint_pb2.CheckpointChunk) -> None:
        """Recorded only: the play of rule 10 answers it."""

    def ack_all(self) -> None:
        """Acknowledge the reports so far, and all that follow."""
        self.ack_reports = True
        if self.session.seqs:
            self.session.send(report_ack=link.ReportAck(through_seq=self.session.seqs[-1]))

    async def heartbeats(self, count: int) -> None:
        """Wait for this many more heartbeats."""
        session = self.last
        wanted = len(session.heartbeats) + count
        await self.until(lambda: len(session.heartbeats) >= wanted or session.ended)


def spec_of(*argv: str, overlap: task_pb2.OverlapPolicy.ValueType | None = None) -> task_pb2.TaskSpec:
    """A command with every default filled in, as a scheduler sends it."""
    execution = task_pb2.Execution(command=task_pb2.CommandExecution(program=argv[0], args=argv[1:]))
    return task_pb2.TaskSpec(
        execution=execution,
        overlap=overlap or task_pb2.OVERLAP_POLICY_ALLOW,
        stop_grace_period=duration(1),
        attempt_timeout=duration(120),
        orphan_timeout=duration(3600),
    )


def listed(tasks: Any, task: Task) -> Any:
    """The entry of a run in a list of held tasks."""
    return next((held for held in tasks if run_key(held.lease) == task.key), None)


Found = Callable[[], Any]
