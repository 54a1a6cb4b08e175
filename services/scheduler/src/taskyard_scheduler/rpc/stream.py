"""One runner's stream during its session: reader, writer, timers and shutdown."""

from __future__ import annotations

import asyncio
import math
import uuid
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

import grpc.aio

from taskyard import errors
from taskyard.v1 import runner_link_service_pb2 as link
from taskyard_kit.logs import get_log
from taskyard_kit.metrics import instrument
from taskyard_kit.validation import validate
from taskyard_scheduler.metric_names import SESSIONS_ENDED
from taskyard_scheduler.rpc.check import check_reports, check_short_runs
from taskyard_scheduler.scheduler import Scheduler
from taskyard_scheduler.session import Session
from taskyard_scheduler.uploads import Uploads

log = get_log(__name__)

Context = grpc.aio.ServicerContext[Any, Any]

# A timer that is this late means that the scheduler's own event loop was blocked.
STALL_SECONDS = 0.2
# The longest wait for the write in flight of a session that is over: a runner that does not read gets no
# status.
LAST_WRITE_SECONDS = 5.0


class Signal:
    """Wakes the writer of a stream, and its handler once the session is over."""

    def __init__(self) -> None:
        self.work = asyncio.Event()
        self.over = asyncio.Event()
        self.session: Session | None = None

    def __call__(self) -> None:
        self.work.set()
        if self.session is not None and self.session.over:
            self.over.set()


class RunnerStream:
    """Joins a session with its gRPC stream. The reader never waits for a write (rule 12)."""

    def __init__(self, session: Session, scheduler: Scheduler, context: Context, signal: Signal) -> None:
        self._session = session
        self._scheduler = scheduler
        self._context = context
        self._signal = signal
        self._uploads = Uploads(session, scheduler.taskdb)
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._goodbye: link.RunnerGoodbye | None = None
        # The agent sends no more messages: the stream ends once its reports are decided.
        self._half_closed = False
        self._writing = False
        signal.session = session

    async def run(self) -> None:
        """Serve the stream to its end; raises the session's error."""
        session = self._session
        reader = asyncio.create_task(self._guard(self._read()))
        writer = asyncio.create_task(self._guard(self._write()))
        self._check_silence()
        self._start_age_timer()
        self._scheduler.admit(session)
        try:
            await self._signal.over.wait()
        finally:
            session.finish()
            self._scheduler.dismiss(session, disconnected=self._is_disconnected())
            for timer in self._timers.values():
                timer.cancel()
            reader.cancel()
            self._uploads.close()
            self._note_end()
            await self._end_writer(writer)
        await asyncio.gather(reader, writer, return_exceptions=True)
        if session.error is not None:
            raise session.error

    async def _end_writer(self, writer: asyncio.Task[None]) -> None:
        """Ends the writer, after the write in flight: a cancellation would not stop it.

        gRPC refuses a status while a message is being sent, and the runner would wait for it for ever.
        """
        if self._writing:
            await asyncio.wait([writer], timeout=LAST_WRITE_SECONDS)
        writer.cancel()

    def _note_end(self) -> None:
        error = self._session.error
        reason = (error.reason or error.code.name) if error else "OK"
        instrument(SESSIONS_ENDED).add(1, {"reason": reason})
        log.info("session_ended", runner=self._session.runner_id, epoch=self._session.epoch, reason=reason)

    def _is_disconnected(self) -> bool:
        """Whether the runner disconnected without a goodbye, which is reported to taskdb."""
        if self._goodbye is not None or self._session.closing or self._scheduler.draining:
            return False
        return not isinstance(self._session.error, errors.SessionSuperseded)

    async def _guard(self, work: Coroutine[Any, Any, None]) -> None:
        """Ends the session when the reader or the writer ends."""
        try:
            await work
        except errors.TaskyardError as error:
            self._session.finish(error)
        except (grpc.aio.InternalError, grpc.aio.UsageError):
            # Raised by gRPC when the peer is gone.
            self._session.finish()
        except Exception:
            correlation_id = uuid.uuid4().hex
            log.exception("stream_failed", runner=self._session.runner_id, correlation_id=correlation_id)
            self._session.finish(errors.Internal(correlation_id))

    # ---- reading

    async def _read(self) -> None:
        read = self._context.read
        session = self._session
        while not session.over:
            message = await read()
            if message is grpc.aio.EOF:
                self._half_closed = True
                self._signal()
                return
            self._handle(message)

    def _handle(self, message: link.ConnectRequest) -> None:
        session = self._session
        now = self._scheduler.clock()
        match message.WhichOneof("message"):
            case "reports":
                session.receive_reports(check_reports(message.reports), message.ByteSize(), now)
            case "short_runs":
                check_short_runs(message.short_runs)
                session.receive_short_runs(message.short_runs, message.ByteSize())
            case "heartbeat":
                validate(message.heartbeat)
                session.receive_heartbeat(message.heartbeat, now)
            case "logs":
                validate(message.logs)
                self._scheduler.logs.submit(session, message.logs)
            case "checkpoint_chunk":
                validate(message.checkpoint_chunk)
                self._uploads.receive(message.checkpoint_chunk)
            case "goodbye":
                validate(message.goodbye)
                self._goodbye = message.goodbye
                session.closing = True
                self._signal()
            case "hello":
                raise session.violation("a second hello; it comes once")
            case _:
                # A member that this version does not have (rule 15).
                pass

    # ---- writing

    async def _write(self) -> None:
        session, work = self._session, self._signal.work
        while not session.over:
            await self._write_outbox()
            if session.closing:
                self._start_goodbye_timer()
            if (self._half_closed or self._goodbye is not None) and not session.unacked_reports:
                await self._close()
                return
            work.clear()
            if not session.outbox and not session.over:
                await work.wait()

    async def _close(self) -> None:
        """Closes the stream after all reports are decided and acknowledged."""
        if self._goodbye is not None:
            await self._scheduler.close_session(self._session, release=not self._goodbye.keep_leases)
        await self._write_outbox()
        self._session.finish()

    async def _write_outbox(self) -> None:
        write, session = self._context.write, self._session
        while not session.over and (message := session.outbox.next()) is not None:
            self._writing = True
            await write(message)
            self._writing = False

    # ---- time

    def _later(self, name: str, delay: float, call: Callable[[], None]) -> None:
        self._timers[name] = asyncio.get_running_loop().call_later(delay, call)

    def _check_silence(self, due: float = math.inf) -> None:
        """Ends the session of a silent runner (rule 6), else schedules the next check.

        A scheduler that was itself blocked beyond `due` reads first the messages that arrived meanwhile.
        """
        session, now, config = self._session, self._scheduler.clock(), self._scheduler.config
        if now < due + STALL_SECONDS:
            session.check_silence(now)
        if not session.over:
            limit = max(session.heartbeat_time + config.silence_limit, now + config.heartbeat_interval / 2)
            self._later("silence", limit - now, partial(self._check_silence, limit))

    def _start_age_timer(self) -> None:
        """Redirects the runner after the session age, so that load spreads over replicas."""
        self._later("age", self._scheduler.session_age(), self._redirect_old_session)

    def _redirect_old_session(self) -> None:
        self._scheduler.redirect(self._session, link.SERVER_GOODBYE_REASON_SESSION_AGE)

    def _start_goodbye_timer(self) -> None:
        """Limits the time after a goodbye of either side."""
        if "goodbye" not in self._timers:
            self._later("goodbye", self._scheduler.config.goodbye_timeout, self._goodbye_timed_out)

    def _goodbye_timed_out(self) -> None:
        # An agent whose reports taskdb has not stored keeps them and reconnects.
        stuck = self._goodbye is not None and self._session.unacked_reports > 0
        self._session.finish(errors.StorageUnavailable("unknown") if stuck else None)
