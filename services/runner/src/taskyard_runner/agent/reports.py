"""Spooled starts and outcomes, until the scheduler has applied or rejected them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence

from taskyard.v1.lease_pb2 import RunReport, RunStarted
from taskyard.v1.runner_link_service_pb2 import HELD_STATE_ENDED
from taskyard_kit import failpoint
from taskyard_runner.agent.executor import Executor
from taskyard_runner.agent.leases import Held, RunKey, key_of
from taskyard_runner.agent.log_lines import timestamp
from taskyard_runner.agent.run import AgentRun
from taskyard_runner.agent.run_table import RunTable
from taskyard_runner.agent.spool import Spool

OUTCOME_SAVED = failpoint.declare("agent.outcome_saved")


class Reports:
    """Starts and outcomes by the sequence number under which the spool has them."""

    def __init__(self, spool: Spool, table: RunTable, warden: Executor) -> None:
        self._spool = spool
        self._table = table
        self._warden = warden
        self.starts: dict[int, RunKey] = {}
        self.outcomes: dict[int, RunKey] = {}

    def append(self, held: Held, report: RunReport) -> asyncio.Future[int]:
        """Spool a report about a lease; the future has its number once it is on disk."""
        report.lease.CopyFrom(held.lease)
        if not report.HasField("time"):
            report.time.CopyFrom(timestamp(time.time()))
        return self._spool.append(report)

    def start(self, run: AgentRun, handle: str, when: float) -> None:
        """Spool the start; the executor keeps a note for the next agent once it is on disk."""
        started = RunStarted(checkpoint_sequence=run.checkpoint_sequence, handle=handle)
        future = self.append(run.held, RunReport(started=started, time=timestamp(when)))

        def saved(done: asyncio.Future[int]) -> None:
            if not done.cancelled():
                self.starts[done.result()] = run.key
                self.executor(run).note(run, started_saved=True)

        future.add_done_callback(saved)

    def outcome(self, held: Held, report: RunReport) -> None:
        """Spool the outcome; the lease is held only until the outcome is acknowledged."""
        held.change(HELD_STATE_ENDED)

        def saved(done: asyncio.Future[int]) -> None:
            if not done.cancelled():
                self._outcome_saved(held, done.result())

        self.append(held, report).add_done_callback(saved)

    def outcomes_saved(self, first: int, places: Sequence[tuple[int, AgentRun]]) -> None:
        """A batch is on disk from sequence number `first`; `places` are the offsets of outcomes in it."""
        for place, run in places:
            self._outcome_saved(run.held, first + place, run)

    def _outcome_saved(self, held: Held, seq: int, run: AgentRun | None = None) -> None:
        OUTCOME_SAVED.hit()
        held.outcome_seq = seq
        self.outcomes[seq] = held.key
        run = run or self._table.get(held.key)
        if run is not None:
            self.executor(run).saved(run)

    def executor(self, run: AgentRun) -> Executor:
        """The executor of a run: its own, or the warden."""
        return run.executor or self._warden

    def append_all(self, reports: Sequence[RunReport], saved: Callable[[int], None]) -> None:
        """Spool complete reports; `saved` is called with the number of the first."""
        self._spool.append_all(reports, saved)

    def has_start(self, key: RunKey) -> bool:
        """Whether the spool holds the report of its start."""
        return key in self.starts.values()

    def recover(self, report: RunReport) -> str:
        """Register a report that an earlier agent spooled; its kind."""
        kind = str(report.WhichOneof("report"))
        if kind != "progress":
            index = self.starts if kind == "started" else self.outcomes
            index[report.seq] = key_of(report.lease)
        return kind

    def decided(self, through_seq: int) -> list[RunKey]:
        """Forget reports up to this one; the runs whose outcomes were among them."""
        for seq in [seq for seq in self.starts if seq <= through_seq]:
            del self.starts[seq]
        return [self.outcomes.pop(seq) for seq in [seq for seq in self.outcomes if seq <= through_seq]]
