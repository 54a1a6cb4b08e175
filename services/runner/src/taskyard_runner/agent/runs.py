"""The lifecycle of runs in the agent: assigned, ordered, started, ended, reported, removed."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

from taskyard.v1.common_pb2 import ERROR_CLASS_PERMANENT
from taskyard.v1.lease_pb2 import (
    RELEASE_REASON_LOST,
    Assignment,
    LeaseRef,
    LeaseVerdict,
    ReleaseReason,
    RunReport,
    RunStarted,
)
from taskyard.v1.runner_link_service_pb2 import (
    HELD_STATE_ENDED,
    HELD_STATE_RUNNING,
    HELD_STATE_STOPPING,
)
from taskyard_kit import failpoint
from taskyard_kit.logs import get_log
from taskyard_kit.metrics import instrument
from taskyard_runner.agent import outcome, unstarted
from taskyard_runner.agent.background import BackgroundTasks
from taskyard_runner.agent.checkpoints import Uploads
from taskyard_runner.agent.early_stops import REASONS, EarlyStops
from taskyard_runner.agent.ended import Ended, implies_start, reports_of
from taskyard_runner.agent.executor import AssignmentHandler, WardenExecutor
from taskyard_runner.agent.leases import Held, Leases, RunKey, key_of
from taskyard_runner.agent.log_lines import count_entries, timestamp
from taskyard_runner.agent.logs import LogShipper
from taskyard_runner.agent.metric_names import RUNS_ENDED
from taskyard_runner.agent.preparation import CheckpointUnavailable, Preparation
from taskyard_runner.agent.progress import progress_of
from taskyard_runner.agent.removal import Trash
from taskyard_runner.agent.reports import Reports
from taskyard_runner.agent.run import AgentRun, seconds
from taskyard_runner.agent.run_table import RunTable
from taskyard_runner.agent.spool import Spool
from taskyard_runner.executors import NotRunnable, Unsupported
from taskyard_runner.warden.deadline import StopReason
from taskyard_runner.warden.journal import note_dropped
from taskyard_runner.warden.protocol import Message

T = TypeVar("T")

log = get_log(__name__)
_ended = instrument(RUNS_ENDED)

# A full disk delays the outcome as well, which is written to the spool.
_NOTE_SECONDS = 0.5
_NOTE_ATTEMPTS = 240

ASSIGNMENT_RECEIVED = failpoint.declare("agent.assignment_received")
RUN_ENDED = failpoint.declare("agent.run_ended")


class Runs:
    """All runs of this agent."""

    def __init__(
        self,
        preparation: Preparation,
        leases: Leases,
        spool: Spool,
        logs: LogShipper,
        uploads: Uploads,
        trash: Trash,
        *,
        send_to_warden: Callable[[Message], None],
        changed: Callable[[], None],
    ) -> None:
        self._preparation = preparation
        self._leases = leases
        self._logs = logs
        self._uploads = uploads
        self._trash = trash
        self._send_to_warden = send_to_warden
        self._changed = changed
        self.functions: AssignmentHandler | None = None
        self.table = RunTable()
        self.reports = Reports(spool, self.table, WardenExecutor(send_to_warden))
        self._early_stops = EarlyStops()
        self.spawn = BackgroundTasks().spawn

    # -- assignments

    def refuse(self, assignment: Assignment, reason: ReleaseReason.ValueType, message: str) -> None:
        """Release an assignment without starting it."""
        held = Held(assignment.lease, "", 0.0)
        self._leases.add(held)
        self._report(held, outcome.released(reason, message))

    def accept(self, assignment: Assignment, until: float, total_until: float | None) -> None:
        """Start a run whose first lease expires at `until`."""
        ASSIGNMENT_RECEIVED.hit()
        if (reason := self._early_stops.take(assignment.lease)) is not None:
            self._refuse_stopped(assignment.lease, reason)
            return
        if self.functions is not None and assignment.spec.execution.HasField("function"):
            self.functions.accept(assignment, until, total_until)
            return
        run = self._preparation.begin(assignment, until)
        self.take(run)
        run.preparing = self.spawn(self._prepare(run, assignment, total_until))

    def _refuse_stopped(self, lease: LeaseRef, reason: StopReason) -> None:
        log.info("assignment_stopped", task=lease.task, generation=lease.generation, reason=reason)
        if reason != StopReason.ABORT:
            held = Held(lease, "", 0.0)
            self._leases.add(held)
            self._report(held, unstarted.stopped(reason))

    def take(self, run: AgentRun) -> None:
        """Register a run and hold its lease."""
        self._leases.add(run.held)
        self.add(run)

    def add(self, run: AgentRun) -> None:
        """Register a run."""
        self.table.add(run)
        self._preparation.sandboxes.adopt(run.directory.owner)

    async def _prepare(self, run: AgentRun, assignment: Assignment, total_until: float | None) -> None:
        message = await self.prepared(run, self._preparation.compose(run, assignment, total_until))
        if message is not None:
            self._logs.open(run.lease, run.directory.journal)
            self._uploads.open(run.lease, run.directory.uploads, run.checkpoint_sequence)
            run.ordered = True
            self._send_to_warden(message)

    async def prepared(self, run: AgentRun, work: Awaitable[T]) -> T | None:
        """The result of preparing a run; None if it failed, after the failure was reported."""
        try:
            return await work
        except (Unsupported, NotRunnable, CheckpointUnavailable, OSError) as error:
            self._end_unstarted(run, unstarted.unprepared(error))
        except Exception as error:
            log.exception("preparation_failed", task=run.lease.task, error=repr(error))
            message = f"the runner failed to prepare the run: {error!r}"
            self._end_unstarted(run, outcome.failed(ERROR_CLASS_PERMANENT, "START_FAILED", message))
        return None

    def _end_unstarted(self, run: AgentRun, report: RunReport) -> None:
        """No process was started. A failure counts as an attempt, so it is reported as one."""
        run.ended = run.logs_shipped = True
        if report.WhichOneof("report") == "failed":
            report.start.SetInParent()
            report.start_time.CopyFrom(timestamp(time.time()))
        self._report(run.held, report)

    # -- messages of the warden

    def started(self, message: Message) -> None:
        run = self.table.by_name(message["run"])
        if run is None or run.started:
            return
        self.record_start(run, f"pid {message['pid']}", message["time"])

    def record_start(self, run: AgentRun, handle: str, when: float) -> None:
        """Record that the workload started."""
        run.started = True
        if run.held.state != HELD_STATE_STOPPING:
            run.held.change(HELD_STATE_RUNNING)
        self.reports.start(run, handle, when)
        self._changed()

    def ended(self, message: Message) -> None:
        run = self.table.by_name(message["run"])
        if run is not None and not run.ended:
            self.conclude(run, message["result"])

    def conclude(self, run: AgentRun, result: Message) -> None:
        """The process has ended: derive its outcome and report it."""
        RUN_ENDED.hit()
        run.ended = True
        run.held.change(HELD_STATE_ENDED)
        self._logs.grown(run.key)
        if dropped := int(result.get("output_dropped", 0)):
            run.noting = self.spawn(self._note_dropped(run, dropped))
        else:
            self._logs.ended(run.key)
        owner = run.directory.owner[0] if run.directory.owner is not None else None
        report = outcome.judge(result, run.directory, owner)
        kind = str(report.WhichOneof("report")) if report is not None else "aborted"
        _ended.add(1, {"outcome": kind})
        run.end_span(kind)
        if report is None:
            # Aborted: another runner may hold the task.
            self.abandon(run)
            return
        if not run.started and implies_start(report):
            self.reports.append(run.held, RunReport(started=RunStarted()))
        if run.held.progress_unreported and implies_start(report):
            self.reports.append(run.held, RunReport(progress=run.held.progress))
        report.time.CopyFrom(timestamp(result["end_time"]))
        self.spawn(self._deliver(run, report))
        self._changed()

    def conclude_all(self, ended: Iterable[Ended]) -> None:
        """Report runs that ended inside their hosts; an unreported start is sent with its outcome."""
        batch: list[RunReport] = []
        places: list[tuple[int, AgentRun]] = []
        kinds: Counter[str] = Counter()
        for end in ended:
            run = end.run
            if run.ended:
                continue
            RUN_ENDED.hit()
            kind = str(end.outcome.WhichOneof("report")) if end.outcome is not None else "aborted"
            later = end.wrote or (kind != "succeeded" and self._uploads.delays_outcome(run.key))
            reports = reports_of(end, together=not later)
            run.ended = True
            run.held.change(HELD_STATE_ENDED)
            kinds[kind] += 1
            run.end_span(kind)
            if end.wrote:
                self.open_logs(run)
                self.close_logs(run)
            else:
                run.logs_shipped = True
            if not reports:
                self.abandon(run)
                continue
            if later:
                self.spawn(self._deliver(run, reports.pop()))
            else:
                reports[-1].log_sequence = 0
                places.append((len(batch) + len(reports) - 1, run))
            batch += reports
        for kind, count in kinds.items():
            _ended.add(count, {"outcome": kind})
        if batch:
            self.reports.append_all(batch, lambda first: self.reports.outcomes_saved(first, places))
        self._changed()

    def open_logs(self, run: AgentRun) -> None:
        """Ship the run's journal, or continue with the records added since."""
        if self._logs.follows(run.key):
            self._logs.grown(run.key)
        else:
            self._logs.open(run.lease, run.directory.journal)

    def close_logs(self, run: AgentRun) -> None:
        """The run's journal is complete."""
        self._logs.ended(run.key)

    async def _note_dropped(self, run: AgentRun, count: int) -> None:
        """Add the notice of dropped output as soon as the disk has room, then end the log."""
        for attempt in range(_NOTE_ATTEMPTS):
            if note_dropped(str(run.directory.journal), count):
                break
            if attempt == 0:
                log.error("journal_write_failed", task=run.lease.task, journal=str(run.directory.journal))
            await asyncio.sleep(_NOTE_SECONDS)
        self._logs.grown(run.key)
        self._logs.ended(run.key)

    async def _deliver(self, run: AgentRun, report: RunReport) -> None:
        if run.noting is not None:
            await run.noting
        # From the journal, which stays until the outcome is acknowledged; its shipper may be done already.
        report.log_sequence = await asyncio.to_thread(count_entries, run.directory.journal)
        if report.WhichOneof("report") != "succeeded":
            # While storage is unavailable, the outcome could not be stored either.
            await self._uploads.flush(run.key)
        self._report(run.held, report)

    def abandon(self, run: AgentRun) -> None:
        """End a run without a report, because another runner may hold the task; its output is kept as any."""
        run.logs_shipped = not self._logs.follows(run.key)
        self._finish(run)
        self._leases.report_dropped(run.lease)

    def grown(self, message: Message) -> None:
        if (run := self.table.by_name(message["run"])) is not None:
            self._logs.grown(run.key)

    def progress_reported(self, message: Message) -> None:
        """Handle a progress message of a workload."""
        run = self.table.by_name(message["run"])
        if run is not None:
            self.progressed(run, message["message"])

    def progressed(self, run: AgentRun, message: Message) -> None:
        """Record the progress of a run."""
        if not run.ended:
            run.held.change(progress=progress_of(message, self._uploads.last_sequence(run.key)))
            self._changed()

    # -- reports

    def _report(self, held: Held, report: RunReport) -> None:
        self.reports.outcome(held, report)
        self._changed()

    def recovered(self, report: RunReport) -> None:
        """Restore a report that an earlier agent spooled."""
        if self.reports.recover(report) in ("started", "progress"):
            return
        held = Held(report.lease, "", 0.0, state=HELD_STATE_ENDED, outcome_seq=report.seq)
        self._leases.add(held)

    def report_lost(self, run: AgentRun) -> None:
        """Releases a run that ended with an earlier warden, after its last checkpoint is stored."""
        self._leases.add(run.held)
        run.held.change(HELD_STATE_ENDED)
        self._uploads.open(run.lease, run.directory.uploads, run.checkpoint_sequence)
        self.spawn(self._release_lost(run))

    async def _release_lost(self, run: AgentRun) -> None:
        await self._uploads.flush(run.key)
        message = "the runner was killed or the host restarted"
        self._report(run.held, outcome.released(RELEASE_REASON_LOST, message))

    def acknowledged(self, through_seq: int) -> None:
        """The scheduler has applied or rejected reports up to this one."""
        for key in self.reports.decided(through_seq):
            run = self.table.get(key)
            if run is not None:
                self._finish(run)
            else:
                self._leases.drop(key)

    def rejected(self, seq: int, reason: str) -> None:
        """Abort the run whose start was rejected, because its lease is lost."""
        key = self.reports.starts.get(seq)
        run = self.table.get(key) if key is not None else None
        if run is not None and not run.ended:
            log.warning("run_aborted", task=run.lease.task, generation=run.lease.generation, reason=reason)
            self._abort(run)

    # -- stopping

    def apply_verdict(self, verdict: LeaseVerdict) -> None:
        """Cancel, pause or abort a run; idempotent."""
        run = self.table.get(key_of(verdict.lease))
        if run is None or run.lease.lease_id != verdict.lease.lease_id:
            self._leases.report_dropped(verdict.lease)
            self._early_stops.add(verdict)
            return
        reason = REASONS.get(verdict.action)
        if run.ended or reason is None:
            return
        if reason == StopReason.ABORT:
            log.warning(
                "run_aborted", task=run.lease.task, generation=run.lease.generation, reason=verdict.reason
            )
            self._abort(run)
        else:
            grace = seconds(verdict.grace_period) if verdict.HasField("grace_period") else run.grace
            self.stop(run, reason, min(grace, run.grace))

    def stop(self, run: AgentRun, reason: StopReason, grace: float) -> None:
        """Have the executor stop a run; a run not yet ordered ends at once."""
        if run.ended:
            return
        if run.held.state != HELD_STATE_STOPPING:
            run.held.change(HELD_STATE_STOPPING)
        if run.ordered:
            self.reports.executor(run).stop(run, reason, grace)
        else:
            self.end_unstarted(run, reason)
        self._changed()

    def end_unstarted(self, run: AgentRun, reason: StopReason) -> None:
        """End a run that has not started."""
        if reason == StopReason.ABORT:
            run.ended = run.logs_shipped = True
            self._finish(run)
            self._leases.report_dropped(run.lease)
        else:
            self._end_unstarted(run, unstarted.stopped(reason))
        if run.preparing is not None:
            run.preparing.cancel()

    def _abort(self, run: AgentRun) -> None:
        if run.ordered:
            self.reports.executor(run).stop(run, StopReason.ABORT, 0)
        else:
            self.end_unstarted(run, StopReason.ABORT)

    # -- removal

    def _finish(self, run: AgentRun) -> None:
        """Drop the lease; the directory is kept until the logs are shipped."""
        run.reported = True
        self._leases.drop(run.key)
        self._uploads.drop(run.key)
        if run.ordered:
            self.reports.executor(run).note(run, reported=True)
        self._forget_if_done(run)
        self._changed()

    def logs_finished(self, key: RunKey) -> None:
        """All logs of the run are stored."""
        if (run := self.table.get(key)) is not None:
            run.logs_shipped = True
            self._forget_if_done(run)

    def logs_acked(self, key: RunKey) -> None:
        """Keep a note of the acknowledged logs, which the next agent does not send again."""
        if (run := self.table.get(key)) is not None:
            self.reports.executor(run).note(run, log_acked=self._logs.acked(key))

    def _forget_if_done(self, run: AgentRun) -> None:
        if run.reported and run.logs_shipped and self.table.remove(run):
            self.reports.executor(run).forget(run)
            if run.executor is None:
                self.spawn(self.remove(run))

    async def remove(self, run: AgentRun) -> None:
        """Remove the run's directory, then release its user."""
        await self._trash.remove(run.name)
        self._preparation.sandboxes.release(run.directory.owner)
