"""taskdb's metrics of housekeeping: their definitions, instruments and gauges."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from taskyard_kit import metrics
from taskyard_kit.metric_names import Metric
from taskyard_kit.metrics import Labels
from taskyard_taskdb.storage.housekeeping import job_runs
from taskyard_taskdb.storage.pool import Tx
from taskyard_taskdb.storage.statements import statement
from taskyard_taskdb.storage.webhook import outbox as webhook_outbox

JOB_RUNS = Metric(
    "taskyard.taskdb.job.runs",
    "counter",
    "{run}",
    ("job", "outcome"),
    "Runs of a maintenance job by this replica: done or failed.",
)
JOB_ITEMS = Metric(
    "taskyard.taskdb.job.items",
    "counter",
    "{item}",
    ("job",),
    "Items that a maintenance job has moved, deleted or made.",
)
JOB_DURATION = Metric(
    "taskyard.taskdb.job.duration", "histogram", "s", ("job",), "How long a maintenance job ran."
)
JOB_AGE = Metric(
    "taskyard.taskdb.job.age",
    "gauge",
    "s",
    ("job",),
    "Time since a job last succeeded, reported by the leader; alert on a few of its periods.",
)
WEBHOOK_CALLS = Metric(
    "taskyard.taskdb.webhook.calls",
    "counter",
    "{call}",
    ("outcome",),
    "Webhook calls: delivered, failed (and repeated later) or given_up.",
)
WEBHOOK_PENDING = Metric(
    "taskyard.taskdb.webhook.pending", "gauge", "{call}", (), "Webhooks that are not delivered yet."
)
WEBHOOK_OLDEST = Metric(
    "taskyard.taskdb.webhook.oldest", "gauge", "s", (), "Age of the oldest webhook that is not delivered."
)
DOCTOR_FINDINGS = Metric(
    "taskyard.taskdb.doctor.findings",
    "gauge",
    "{finding}",
    ("check",),
    "Findings that each check of the last RunDoctor of this replica left unrepaired; 0 is healthy. The check "
    "durability is repeated with every reading of the gauges.",
)
DOCTOR_REPAIRED = Metric(
    "taskyard.taskdb.doctor.repaired",
    "counter",
    "{finding}",
    ("check",),
    "Findings that RunDoctor has repaired.",
)


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
