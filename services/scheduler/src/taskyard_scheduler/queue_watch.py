"""The watch on taskdb's queue: passes its messages to the lane board and to the sessions they concern."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from typing import Protocol

from taskyard import errors
from taskyard.v1.lease_service_pb2 import WatchQueueResponse
from taskyard_kit.logs import get_log
from taskyard_kit.startup import StartupError
from taskyard_scheduler.backoff import Backoff
from taskyard_scheduler.fleet import Fleet
from taskyard_scheduler.lanes import LaneBoard
from taskyard_scheduler.link_config import LinkConfig
from taskyard_scheduler.loop import Dispatcher

log = get_log(__name__)


class WatchClient(Protocol):
    """taskdb, as far as the watch needs it; raises taskyard.errors."""

    def watch_queue(self, scheduler_id: str) -> AsyncIterator[WatchQueueResponse]: ...


class QueueWatch:
    """Keeps the watch open; while it is closed, taskdb counts as unreachable and no claims are made."""

    def __init__(
        self,
        taskdb: WatchClient,
        board: LaneBoard,
        fleet: Fleet,
        dispatcher: Dispatcher,
        config: LinkConfig,
        reopen_sessions: Callable[[], None],
        *,
        clock: Callable[[], float] = time.monotonic,
        backoff: Backoff | None = None,
    ) -> None:
        self._taskdb = taskdb
        self._board = board
        self._fleet = fleet
        self._dispatcher = dispatcher
        self._config = config
        self._clock = clock
        self._backoff = backoff or Backoff(0.1, 1.0)
        self._reopen_sessions = reopen_sessions
        # Called when a new connection has brought its first message.
        self.on_open: Callable[[], None] = _ignore
        # 0 until taskdb has sent one.
        self._log_epoch = 0

    async def run(self) -> None:
        """Watch until cancelled."""
        while True:
            closing = False
            try:
                async for step in self._taskdb.watch_queue(self._config.scheduler_id):
                    self._backoff.reset()
                    self.take(step)
                    if closing := step.closing:
                        break
            except errors.TaskyardError as error:
                self._check_key(error)
                log.warning("watch_lost", error=str(error))
            if not closing:
                self._set_available(False)
                await asyncio.sleep(self._backoff.next())

    def _check_key(self, error: errors.TaskyardError) -> None:
        """Raises StartupError if the key never worked; a key that worked before may be in rotation."""
        refused = isinstance(error, errors.Unauthenticated | errors.PermissionDenied)
        if refused and self._board.version == 0:
            message = "taskdb rejects the key; set TASKYARD_KEY to a key of kind scheduler"
            raise StartupError(f"{message} ({error})") from None

    def take(self, step: WatchQueueResponse) -> None:
        """Applies one message of the watch."""
        if step.full:
            self.on_open()
        gained = self._board.apply(step)
        self._set_available(True)
        self._compare_epoch(step.log_epoch)
        for concerned in step.verdicts:
            if session := self._fleet.sessions.get(concerned.runner_id):
                session.send_verdicts(concerned.verdicts, self._clock())
        for runner in step.runners:
            if session := self._fleet.sessions.get(runner.name.removeprefix("runners/")):
                session.update_runner(runner)
        if gained:
            self._dispatcher.lanes_changed()

    def _compare_epoch(self, log_epoch: int) -> None:
        """After a failover or a restore, every runner lists what it holds in a new session.

        The database may lack an outcome that was acknowledged: the runner no longer holds that lease, and it
        would last as long as the session.
        """
        if log_epoch and self._log_epoch not in (0, log_epoch):
            log.warning("database_replaced", sessions=len(self._fleet.sessions), effect="sessions open again")
            self._reopen_sessions()
        self._log_epoch = log_epoch or self._log_epoch

    def _set_available(self, available: bool) -> None:
        if self._dispatcher.available == available:
            return
        self._dispatcher.available = available
        log.info("taskdb_reached" if available else "taskdb_lost")
        # Runners hold back logs and checkpoints while taskdb cannot store them (rule 11).
        for session in self._fleet.sessions.values():
            session.outbox.flow(self._config.flow(hold_bulk=not available))
        if available:
            self._dispatcher.wake()


def _ignore() -> None:
    pass
