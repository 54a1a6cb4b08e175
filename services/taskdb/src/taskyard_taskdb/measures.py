"""What the process tells of its housekeeping: the instruments of metric_names and the values of gauges."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from taskyard_kit import metrics
from taskyard_kit.metrics import Labels
from taskyard_taskdb import metric_names as names
from taskyard_taskdb.storage.housekeeping import job_runs
from taskyard_taskdb.storage.pool import Tx
from taskyard_taskdb.storage.webhook import outbox as webhook_outbox


class Measures:
    """One per process; gauges show what was read last."""

    def __init__(self) -> None:
        self._runs = metrics.instrument(names.JOB_RUNS)
        self._items = metrics.instrument(names.JOB_ITEMS)
        self._duration = metrics.instrument(names.JOB_DURATION)
        self._calls = metrics.instrument(names.WEBHOOK_CALLS)
        self._repaired = metrics.instrument(names.DOCTOR_REPAIRED)
        self._ages: dict[str, float] = {}
        self._backlog: tuple[int, float] | None = None
        self._findings: dict[str, int] = {}
        metrics.observe(names.JOB_AGE, lambda: _labelled("job", self._ages))
        metrics.observe(names.WEBHOOK_PENDING, lambda: [(self._backlog[0], {})] if self._backlog else [])
        metrics.observe(names.WEBHOOK_OLDEST, lambda: [(self._backlog[1], {})] if self._backlog else [])
        metrics.observe(names.DOCTOR_FINDINGS, lambda: _labelled("check", self._findings))

    def job_ran(self, job: str, items: int, seconds: float, *, failed: bool) -> None:
        """A job has ended."""
        self._runs.add(1, {"job": job, "outcome": "failed" if failed else "done"})
        self._items.add(items, {"job": job})
        self._duration.add(seconds, {"job": job})

    def webhook_told(self, outcome: str) -> None:
        """A webhook was delivered, failed or was given up."""
        self._calls.add(1, {"outcome": outcome})

    def examined(self, check: str, left: int, repaired: int) -> None:
        """A check of RunDoctor has ended."""
        self._findings = {**self._findings, check: left}
        self._repaired.add(repaired, {"check": check})

    async def read(self, tx: Tx) -> None:
        """Read what the gauges show."""
        runs, now = await job_runs.read(tx)
        self._ages = {
            run.job: (now - run.success_time).total_seconds() for run in runs.values() if run.success_time
        }
        self._backlog = await webhook_outbox.backlog(tx)

    def forget(self) -> None:
        """Show nothing: another replica does."""
        self._ages, self._backlog, self._findings = {}, None, {}


def _labelled(label: str, values: Mapping[str, float]) -> Iterable[tuple[float, Labels]]:
    return [(value, {label: name}) for name, value in list(values.items())]
