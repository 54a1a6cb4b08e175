"""Spooled starts and outcomes, until the scheduler has applied or rejected them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence

from taskyard.v1.lease_pb2 import RunReport
from taskyard_runner.agent.leases import Held, RunKey, key_of
from taskyard_runner.agent.log_lines import timestamp
from taskyard_runner.agent.spool import Spool


class Reports:
    """Starts and outcomes by the sequence number under which the spool has them."""

    def __init__(self, spool: Spool) -> None:
        self._spool = spool
        self.starts: dict[int, RunKey] = {}
        self.outcomes: dict[int, RunKey] = {}

    def append(self, held: Held, report: RunReport) -> asyncio.Future[int]:
        """Spool a report about a lease; the future has its number once it is on disk."""
        report.lease.CopyFrom(held.lease)
        if not report.HasField("time"):
            report.time.CopyFrom(timestamp(time.time()))
        return self._spool.append(report)

    def append_all(self, reports: Sequence[RunReport], saved: Callable[[int], None]) -> None:
        """Spool complete reports; `saved` is called with the number of the first."""
        self._spool.append_all(reports, saved)

    def has_start(self, key: RunKey) -> bool:
        """Whether the spool holds the report of its start."""
        return key in self.starts.values()

    def recover(self, report: RunReport) -> str:
        """Register a report that an earlier agent spooled; its kind."""
        kind = str(report.WhichOneof("report"))
        index = self.starts if kind == "started" else self.outcomes
        index[report.seq] = key_of(report.lease)
        return kind

    def decided(self, through_seq: int) -> list[RunKey]:
        """Forget reports up to this one; the runs whose outcomes were among them."""
        for seq in [seq for seq in self.starts if seq <= through_seq]:
            del self.starts[seq]
        return [self.outcomes.pop(seq) for seq in [seq for seq in self.outcomes if seq <= through_seq]]
