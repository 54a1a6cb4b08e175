"""Adopting the state of an earlier agent: its spool, the warden's runs, runs that an earlier warden lost."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from taskyard.v1.runner_link_service_pb2 import HELD_STATE_RUNNING, HELD_STATE_STOPPING
from taskyard_kit.logs import get_log
from taskyard_runner.agent.checkpoints import Uploads
from taskyard_runner.agent.function_host import HOST
from taskyard_runner.agent.journals import Journal
from taskyard_runner.agent.leases import Held, Leases
from taskyard_runner.agent.logs import LogShipper
from taskyard_runner.agent.progress import progress_of
from taskyard_runner.agent.run import AgentRun, adopt
from taskyard_runner.agent.runs import Runs
from taskyard_runner.agent.selftest import META
from taskyard_runner.agent.spool import Spool
from taskyard_runner.warden.deadline import StopReason
from taskyard_runner.warden.journal import note_cut
from taskyard_runner.warden.protocol import Message

log = get_log(__name__)


class Adoption:
    """Done once, before hello."""

    def __init__(
        self,
        runs: Runs,
        leases: Leases,
        spool: Spool,
        logs: LogShipper,
        uploads: Uploads,
        send_to_warden: Callable[[Message], None],
    ) -> None:
        self._runs = runs
        self._leases = leases
        self._spool = spool
        self._logs = logs
        self._uploads = uploads
        self._send_to_warden = send_to_warden

    def take_over(self, hello: Message) -> None:
        """Everything there is, from the warden's hello and the spool."""
        for report in self._spool.recovered():
            self._runs.recovered(report)
        for described in hello["runs"]:
            if HOST in described["meta"]:
                continue
            if _is_task(described):
                self._adopt(adopt(described, hello["runs_directory"]), described)
            else:
                self._end_test(described)
        for lost in hello["lost"]:
            if _is_task(lost):
                self._adopt_lost(lost, hello["runs_directory"])
            else:
                self._send_to_warden({"op": "forget", "run": lost["run"]})
        found = {"runs": len(hello["runs"]), "lost": len(hello["lost"]), "spooled": self._spool.depth}
        if any(found.values()):
            log.info("work_adopted", **found)

    def _end_test(self, described: Message) -> None:
        # A self-test that an earlier agent did not see the end of.
        self._send_to_warden({"op": "stop", "run": described["run"], "reason": StopReason.ABORT, "grace": 0})
        self._send_to_warden({"op": "forget", "run": described["run"]})

    def _adopt_lost(self, lost: Message, runs_directory: str) -> None:
        """Release a run that was killed with its warden, and ship the output it wrote."""
        run = adopt({**lost, "lease_until": 0.0, "start_time": None}, runs_directory)
        spooled = self._leases.get(run.key)
        run.ended = True
        if spooled is not None:
            run.adopt_outcome(spooled)
        else:
            # A run whose outcome is in the spool had ended: its journal is complete.
            note_cut(str(run.directory.journal))
        self._runs.add(run)
        self._logs.open(run.lease, run.directory.journal)
        self._logs.ended(run.key)
        if spooled is None:
            self._runs.report_lost(run)

    def ship(self, journals: Iterable[Journal]) -> None:
        """Ships the output of ended runs; an outcome that is not in the spool was acknowledged or is lost."""
        for journal in journals:
            held = Held(journal.lease, journal.directory.name, 0.0)
            run = AgentRun(held, journal.directory, 0.0, ordered=True, started=True, ended=True)
            spooled = self._leases.get(run.key)
            if spooled is not None:
                run.adopt_outcome(spooled)
            run.reported = spooled is None
            self._runs.add(run)
            self._logs.open(run.lease, run.directory.journal)
            self._logs.ended(run.key)

    def _adopt(self, run: AgentRun, described: Message) -> None:
        notes: dict[str, Any] = described["notes"]
        spooled = self._leases.get(run.key)
        self._runs.add(run)
        self._logs.open(run.lease, run.directory.journal, notes.get("log_acked", 0))
        if notes.get("reported") or spooled is not None:
            run.ended = True
            run.reported = bool(notes.get("reported"))
            self._logs.ended(run.key)
            if spooled is not None:
                run.adopt_outcome(spooled)
        else:
            self._adopt_live(run, described, notes)

    def _adopt_live(self, run: AgentRun, described: Message, notes: dict[str, Any]) -> None:
        if described["state"] == "stopping":
            run.held.state = HELD_STATE_STOPPING
        elif run.started:
            run.held.state = HELD_STATE_RUNNING
        self._leases.add(run.held)
        last = max(run.checkpoint_sequence, notes.get("checkpoint", 0))
        self._uploads.open(run.lease, run.directory.uploads, last)
        if "progress" in notes:
            run.held.change(progress=progress_of(notes["progress"], self._uploads.last_sequence(run.key)))
        if run.started and not notes.get("started_saved") and not self._runs.reports.has_start(run.key):
            self._runs.reports.start(run, f"pid {described['pid']}", described["start_time"])
        if described["result"] is not None:
            self._runs.conclude(run, described["result"])


def _is_task(described: Message) -> bool:
    return META not in described["meta"] and HOST not in described["meta"]
