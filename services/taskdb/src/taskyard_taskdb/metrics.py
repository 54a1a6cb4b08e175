"""taskdb's metrics of housekeeping: their instruments and gauges."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from taskyard_kit import metrics
from taskyard_kit.metrics import Labels
from taskyard_taskdb.metric_names import (
    DOCTOR_FINDINGS,
    DOCTOR_REPAIRED,
    JOB_AGE,
    JOB_DURATION,
    JOB_ITEMS,
    JOB_RUNS,
    WEBHOOK_CALLS,
    WEBHOOK_OLDEST,
    WEBHOOK_PENDING,
)
from taskyard_taskdb.storage.housekeeping import job_runs
from taskyard_taskdb.storage.pool import Tx
from taskyard_taskdb.storage.statements import statement
from taskyard_taskdb.storage.webhook import outbox as webhook_outbox


class HousekeepingMetrics:
    """The housekeeping metrics of a process; gauges report the values read last."""

    def __init__(self) -> None:
        self._runs = metrics.instrument(JOB_RUNS)
        self._items = metrics.instrument(JOB_ITEMS)
        self._duration = metrics.instrument(JOB_DURATION)
        self._calls = metrics.instrument(WEBHOOK_CALLS)
        self._repaired = metrics.instrument(DOCTOR_REPAIRED)
        self._ages: dict[str, float] = {}
        self._backlog: tuple[int, float] | None = None
        self._findings: dict[str, int] = {}
        metrics.observe(JOB_AGE, lambda: _labelled("job", self._ages))
        metrics.observe(WEBHOOK_PENDING, lambda: [(self._backlog[0], {})] if self._backlog else [])
        metrics.observe(WEBHOOK_OLDEST, lambda: [(self._backlog[1], {})] if self._backlog else [])
        metrics.observe(DOCTOR_FINDINGS, lambda: _labelled("check", self._findings))

    def job_ran(self, job: str, items: int, seconds: float, *, failed: bool) -> None:
        """Record the end of a job."""
        self._runs.add(1, {"job": job, "outcome": "failed" if failed else "done"})
        self._items.add(items, {"job": job})
        self._duration.add(seconds, {"job": job})

    def webhook_called(self, outcome: str) -> None:
        """Record the outcome of a webhook call: delivered, failed or given_up."""
        self._calls.add(1, {"outcome": outcome})

    def check_ran(self, check: str, left: int, repaired: int) -> None:
        """Record the result of a check of RunDoctor."""
        self._findings = {**self._findings, check: left}
        self._repaired.add(repaired, {"check": check})

    async def read(self, tx: Tx) -> None:
        """Read the values of the gauges."""
        runs, now = await job_runs.read(tx)
        self._ages = {
            run.job: (now - run.success_time).total_seconds() for run in runs.values() if run.success_time
        }
        self._backlog = await webhook_outbox.backlog(tx)
        # A standby comes and goes between two runs of the doctor.
        weak = await tx.fetch(statement("doctor_weak_durability"))
        self._findings = {**self._findings, "durability": len(weak)}

    def clear(self) -> None:
        """Report no gauges; the leader does."""
        self._ages, self._backlog, self._findings = {}, None, {}


def _labelled(label: str, values: Mapping[str, float]) -> Iterable[tuple[float, Labels]]:
    return [(value, {label: name}) for name, value in list(values.items())]
