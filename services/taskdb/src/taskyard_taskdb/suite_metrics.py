"""taskdb's metrics of tasks, queue, runners and the database: instruments, and gauges read by the leader."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from taskyard_kit import metrics
from taskyard_kit.metrics import Labels
from taskyard_taskdb.domain.change import ChangeEvent
from taskyard_taskdb.domain.words import RunnerState
from taskyard_taskdb.metric_names import (
    DATABASE_SIZE,
    DATABASE_WRITABLE,
    LEADER,
    LEASES_LOST,
    POOL_CONNECTIONS,
    QUEUE_DEPTH,
    QUEUE_OLDEST,
    REPLICATION_LAG,
    REPLICATION_LAG_BYTES,
    RUNNERS,
    RUNS_STARTED,
    TASKS_CREATED,
    TASKS_ENDED,
    TASKS_RETRIED,
)
from taskyard_taskdb.storage.claim import lanes
from taskyard_taskdb.storage.claim.lanes import LaneHead
from taskyard_taskdb.storage.pool import Pool, Tx
from taskyard_taskdb.storage.probe import DatabaseState, Probe
from taskyard_taskdb.storage.read import system_status
from taskyard_taskdb.storage.read.system_status import Standby
from taskyard_taskdb.storage.transition.load import database_time

MAX_GROUPS = 200
OTHER = "_other"

_OUTCOMES = {
    ChangeEvent.TASK_SUCCEEDED: "succeeded",
    ChangeEvent.TASK_FAILED: "failed",
    ChangeEvent.TASK_TIMED_OUT: "timed_out",
    ChangeEvent.TASK_EXHAUSTED: "exhausted",
    ChangeEvent.TASK_CANCELLED: "cancelled",
}
_COUNTERS = {
    ChangeEvent.TASK_CREATED: TASKS_CREATED,
    # A short run reports its start and its end at once, so that only its claim is a change of its own.
    ChangeEvent.TASK_SCHEDULED: RUNS_STARTED,
    ChangeEvent.TASK_RETRY_SCHEDULED: TASKS_RETRIED,
    ChangeEvent.TASK_REDISTRIBUTED: LEASES_LOST,
}

Group = tuple[str, str]


@dataclass(frozen=True)
class Measured:
    """What the leader has read last."""

    depths: Mapping[Group, float] = field(default_factory=dict)
    oldest: Mapping[Group, float] = field(default_factory=dict)
    runners: Mapping[RunnerState, int] = field(default_factory=dict)
    standbys: tuple[Standby, ...] = ()
    size_bytes: int | None = None


class SuiteMetrics:
    """Counters of changes, each counted by the one replica that folds it; gauges of the leader."""

    def __init__(self, pool: Pool, probe: Probe) -> None:
        self._pool = pool
        self._probe = probe
        self._leads = False
        self._measured = Measured()
        self._ended = metrics.instrument(TASKS_ENDED)
        self._counters = {event: metrics.instrument(metric) for event, metric in _COUNTERS.items()}
        metrics.observe(QUEUE_DEPTH, lambda: _by_group(self._measured.depths))
        metrics.observe(QUEUE_OLDEST, lambda: _by_group(self._measured.oldest))
        metrics.observe(RUNNERS, self._runners)
        metrics.observe(REPLICATION_LAG, self._lags)
        metrics.observe(REPLICATION_LAG_BYTES, self._lag_bytes)
        metrics.observe(DATABASE_SIZE, self._size)
        metrics.observe(POOL_CONNECTIONS, self._connections)
        metrics.observe(DATABASE_WRITABLE, lambda: [(float(self._probe.state is DatabaseState.WRITABLE), {})])
        metrics.observe(LEADER, lambda: [(float(self._leads), {})])

    def folded(self, counts: Mapping[ChangeEvent, int]) -> None:
        """Count changes of tasks."""
        for event, count in counts.items():
            if event in _OUTCOMES:
                self._ended.add(count, {"outcome": _OUTCOMES[event]})
            elif event in self._counters:
                self._counters[event].add(count, {})

    async def read(self, tx: Tx) -> None:
        """Read the values of the leader's gauges, if anything reads them."""
        if not metrics.enabled():
            return
        heads = await lanes.read_depths(tx)
        depths, oldest = group(heads, await database_time(tx))
        _, size, _ = await system_status.database(tx)
        self._leads = True
        self._measured = Measured(
            depths, oldest, await system_status.runner_states(tx), await system_status.standbys(tx), size
        )

    def clear(self) -> None:
        """Report none of the leader's gauges."""
        self._leads, self._measured = False, Measured()

    def _runners(self) -> Iterable[tuple[float, Labels]]:
        return [(count, {"state": state.name.lower()}) for state, count in self._measured.runners.items()]

    def _lags(self) -> Iterable[tuple[float, Labels]]:
        return [(each.lag_seconds, {"standby": each.name}) for each in self._measured.standbys]

    def _lag_bytes(self) -> Iterable[tuple[float, Labels]]:
        return [(each.lag_bytes, {"standby": each.name}) for each in self._measured.standbys]

    def _size(self) -> Iterable[tuple[float, Labels]]:
        size = self._measured.size_bytes
        return [] if size is None else [(size, {})]

    def _connections(self) -> Iterable[tuple[float, Labels]]:
        for purpose, (used, most) in self._pool.usage_by_purpose().items():
            yield used, {"purpose": purpose, "state": "used"}
            yield most - used, {"purpose": purpose, "state": "free"}


def group(heads: Iterable[LaneHead], now: datetime) -> tuple[dict[Group, float], dict[Group, float]]:
    """Depth and oldest wait by tenant and class; beyond MAX_GROUPS the smallest are added up as OTHER."""
    depths: dict[Group, float] = {}
    waits: dict[Group, float] = {}
    for head in heads:
        if head.ready_time is None:
            continue
        key = (head.lane.tenant_id, str(head.lane.class_id))
        depths[key] = depths.get(key, 0) + head.backlog
        waits[key] = max(waits.get(key, 0.0), (now - head.ready_time).total_seconds())
    for key in sorted(depths, key=depths.__getitem__, reverse=True)[MAX_GROUPS:]:
        rest = (OTHER, OTHER)
        depths[rest] = depths.get(rest, 0) + depths.pop(key)
        waits[rest] = max(waits.get(rest, 0.0), waits.pop(key))
    return depths, waits


def _by_group(values: Mapping[Group, float]) -> Iterable[tuple[float, Labels]]:
    return [(value, {"tenant": tenant, "class": name}) for (tenant, name), value in values.items()]
