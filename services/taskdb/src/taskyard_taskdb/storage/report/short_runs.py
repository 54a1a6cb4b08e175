"""Completes runs whose start came with their success, in columns and in one exchange with PostgreSQL."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta
from operator import itemgetter
from typing import Any

from taskyard_taskdb import failpoints
from taskyard_taskdb.storage import arrays
from taskyard_taskdb.storage.batch import POISON
from taskyard_taskdb.storage.change_log.append import LOG_LOCK
from taskyard_taskdb.storage.notify.bus import Bus, CommitNotice
from taskyard_taskdb.storage.pool import Pool, Row, Tx
from taskyard_taskdb.storage.report.reports import Report, ReportKind
from taskyard_taskdb.storage.statements import statement

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class ShortRuns:
    """Runs in columns: element n of each belongs to run n. Times are in microseconds since 1970."""

    tenant_ids: Sequence[str]
    # Without slashes.
    task_ids: Sequence[str]
    generations: Sequence[int]
    lease_ids: Sequence[int]
    runner_ids: Sequence[str]
    start_times: Sequence[int]
    end_times: Sequence[int]
    # Of no bytes: none.
    results: Sequence[bytes]
    exit_codes: Sequence[int | None]
    checkpoints: Sequence[int]
    log_sequences: Sequence[int | None]

    def __len__(self) -> int:
        return len(self.task_ids)

    def report(self, n: int) -> Report:
        """Run n as a report of its own."""
        return Report(
            key=(self.tenant_ids[n], self.task_ids[n]),
            runner_id=self.runner_ids[n],
            generation=self.generations[n],
            lease_id=self.lease_ids[n],
            kind=ReportKind.SUCCEEDED,
            time=_EPOCH + self.end_times[n] * _MICROSECOND,
            checkpoint_sequence=self.checkpoints[n],
            result=self.results[n] or None,
            exit_code=self.exit_codes[n],
            log_sequence=self.log_sequences[n],
            starts=True,
            start_time=_EPOCH + self.start_times[n] * _MICROSECOND,
        )

    def columns(self) -> list[Sequence[Any]]:
        """The columns in the order of the fields."""
        return [getattr(self, name) for name in _FIELDS]


_FIELDS = tuple(field.name for field in fields(ShortRuns))


def joined(parts: Sequence[ShortRuns]) -> ShortRuns:
    """The runs of all parts, one part after the other."""
    if len(parts) == 1:
        return parts[0]
    columns = zip(*(part.columns() for part in parts), strict=True)
    return ShortRuns(*([value for piece in column for value in piece] for column in columns))


class ShortRunWriter:
    """Completes short runs and publishes what that changed."""

    def __init__(self, pool: Pool, bus: Bus) -> None:
        self._pool = pool
        self._bus = bus

    async def complete(self, runs: ShortRuns) -> Sequence[int]:
        """Complete runs; returns the places of those about which the lifecycle has to decide."""
        order = _key_order(runs)
        ordered = runs if order is None else ShortRuns(*(_arranged(c, order) for c in runs.columns()))
        params = _params(ordered)
        # The failpoint lies between the function and its commit.
        single = not failpoints.REPORT_BEFORE_COMMIT.is_set
        try:
            row = await self._pool.run(lambda tx: _complete(tx, params), single=single)
        except POISON:
            return range(len(runs))
        refused, tenants, counts, seconds, counted = row
        notice = CommitNotice(tenants=set(counted or ()))
        # They are short: the mean is worth what their sum is.
        used = zip(tenants or (), seconds or (), counts or (), strict=True)
        notice.used = [(tenant_id, total / count, count) for tenant_id, total, count in used]
        self._bus.publish(notice)
        await failpoints.REPORT_AFTER_COMMIT.reach()
        return [n - 1 if order is None else order[n - 1] for n in refused or ()]


async def _complete(tx: Tx, params: dict[str, object]) -> Row:
    (row,) = await tx.fetch(statement("complete_runs"), params)
    await failpoints.REPORT_BEFORE_COMMIT.reach()
    return row


def _key_order(runs: ShortRuns) -> list[int] | None:
    """The places in the order of their keys; None if that is the order they have."""
    places = range(len(runs))
    keys: Sequence[Any] = runs.task_ids
    if runs.tenant_ids.count(runs.tenant_ids[0]) < len(runs):
        keys = list(zip(runs.tenant_ids, runs.task_ids, strict=True))
    order = sorted(places, key=keys.__getitem__)
    return None if order == list(places) else order


def _arranged(column: Sequence[Any], order: Sequence[int]) -> Sequence[Any]:
    arranged: Sequence[Any] = itemgetter(*order)(column)
    return arranged


def _params(runs: ShortRuns) -> dict[str, object]:
    return {
        "log_lock": LOG_LOCK,
        "tenant_ids": arrays.repeating_texts(runs.tenant_ids),
        "task_ids": "/".join(runs.task_ids),
        "generations": arrays.array(arrays.whole_bigints, runs.generations),
        "lease_ids": arrays.whole_bigints(runs.lease_ids),
        "runner_ids": arrays.repeating_texts(runs.runner_ids),
        "start_times": arrays.unix_times(runs.start_times),
        "end_times": arrays.unix_times(runs.end_times),
        "results": arrays.byteas([result or None for result in runs.results]) if any(runs.results) else None,
        "exit_codes": arrays.array(arrays.integers, runs.exit_codes),
        "checkpoints": arrays.whole_bigints(runs.checkpoints) if any(runs.checkpoints) else None,
        "log_sequences": arrays.array(arrays.bigints, runs.log_sequences),
    }
