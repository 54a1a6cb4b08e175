"""One report until taskdb has decided it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol

from google.rpc.status_pb2 import Status

from taskyard import errors
from taskyard.v1 import lease_pb2
from taskyard_kit.metrics import instrument
from taskyard_scheduler import convert
from taskyard_scheduler.domain.capacity import RunKey
from taskyard_scheduler.metric_names import REPORTS_REJECTED

# Reports that end a run.
OUTCOMES = frozenset(("succeeded", "failed", "timed_out", "cancelled", "released"))

# A seq whose report was not applied, its lease and why.
Rejection = tuple[int, lease_pb2.LeaseRef, Status]

_rejected = instrument(REPORTS_REJECTED)


class Reporter(Protocol):
    """The owner of reports; notified once after each call that decided some of them."""

    def reports_decided(self) -> None: ...


class Entry:
    """One report until taskdb has decided it."""

    __slots__ = (
        "decided",
        "duplicate",
        "ends",
        "error",
        "owner",
        "phase",
        "report",
        "runner_id",
        "seq",
        "size",
        "tries",
    )

    # As of a block of short runs.
    count = 1
    shape: tuple[bool, ...] = ()

    def __init__(
        self, owner: Reporter, runner_id: str, report: lease_pb2.RunReport, ends: str = "", seq: int = 0
    ) -> None:
        self.owner = owner
        self.runner_id = runner_id
        self.report = report
        self.seq = seq
        # The tenant whose run it ends, if it does.
        self.ends = ends
        # Bytes of the runner's window that are free again once it is decided.
        self.size = 0
        # How often taskdb was still checking its result.
        self.tries = 0
        self.decided = False
        self.duplicate = False
        self.phase: int = 0
        self.error: Status | None = None

    def decide(self, result: lease_pb2.ReportResult) -> None:
        self.decided = True
        self.duplicate = result.duplicate
        self.phase = result.phase
        if result.HasField("error"):
            self.reject(result.error)

    @property
    def bytes(self) -> int:
        """What it adds to a call."""
        return self.report.ByteSize()

    def rejections(self) -> Iterator[Rejection]:
        """Itself, if it was not applied."""
        if self.error is not None:
            yield self.seq, self.report.lease, self.error

    @property
    def keys(self) -> Iterable[RunKey]:
        """The name of the run that it ends, if it does."""
        return (convert.run_key(self.report.lease),) if self.ends else ()

    @property
    def applied(self) -> bool:
        """Whether taskdb applied it, and not as a duplicate."""
        return self.decided and self.error is None and not self.duplicate

    def reject(self, error: Status) -> None:
        self.decided = True
        self.error = error
        _rejected.add(1, {"code": errors.Code(error.code).name})
