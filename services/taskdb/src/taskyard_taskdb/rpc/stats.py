"""GetTaskStats and GetTaskSeries: counts and durations, cheap enough to be polled."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

from taskyard.errors import FieldInvalid, FilterInvalid
from taskyard.v1 import common_pb2, task_pb2, task_service_pb2
from taskyard_taskdb.domain import filter as filters
from taskyard_taskdb.domain.stats import Durations, Stats
from taskyard_taskdb.rpc import pages
from taskyard_taskdb.rpc.access import visible_scope
from taskyard_taskdb.rpc.times import set_time
from taskyard_taskdb.storage.change_log import read as change_reader
from taskyard_taskdb.storage.pool import Pool, Tx
from taskyard_taskdb.storage.stats import stats as task_stats
from taskyard_taskdb.storage.stats.stats import QUARTER, Minute, OnFolded, StatsQuery, ignore_folded
from taskyard_taskdb.storage.transition.load import database_time

WINDOW = timedelta(hours=24)
SERIES_WINDOW = timedelta(hours=1)
# Counts are folded by the quarter of an hour; a shorter span than this is read from the tasks instead.
EXACT = timedelta(hours=6)
FRESH_SECONDS = 1.0
# Time to fold new changes within a call; the leader folds the rest, and as_of_time is older then.
CATCH_UP_SECONDS = 0.25
PAUSE_SECONDS = 0.01

Request = task_service_pb2.GetTaskStatsRequest
Response = task_service_pb2.GetTaskStatsResponse


# No task is older; arithmetic with earlier times leaves the years that Python and PostgreSQL share.
_EARLIEST = datetime(1970, 1, 1, tzinfo=UTC)


class StatsCache:
    """Responses of the last second, by request."""

    def __init__(self) -> None:
        self._responses: dict[str, tuple[float, Response]] = {}

    def find(self, key: str) -> Response | None:
        """The fresh response to a request, if there is one."""
        found = self._responses.get(key)
        return found[1] if found and time.monotonic() - found[0] < FRESH_SECONDS else None

    def store(self, key: str, response: Response) -> None:
        """Store a response and evict those that are no longer fresh."""
        now = time.monotonic()
        self._responses = {k: v for k, v in self._responses.items() if now - v[0] < FRESH_SECONDS}
        self._responses[key] = (now, response)


class StatsHandler:
    """TaskService.GetTaskStats and GetTaskSeries."""

    def __init__(self, pool: Pool, on_folded: OnFolded = ignore_folded) -> None:
        self._pool = pool
        self._on_folded = on_folded
        self._responses = StatsCache()

    async def GetTaskStats(self, request: Request, context: Any) -> Response:
        """Return counts and durations of the tasks created in a time range."""
        chosen = filters.parse(request.filter) if request.filter else None
        tenant_id = visible_scope(request.parent)
        key = pages.binding(request.SerializeToString(deterministic=True).hex())
        response = self._responses.find(key)
        if response is None:
            response = await self._read(request, tenant_id, chosen)
            self._responses.store(key, response)
        return response

    async def GetTaskSeries(
        self, request: task_service_pb2.GetTaskSeriesRequest, context: Any
    ) -> task_service_pb2.GetTaskSeriesResponse:
        """Return what happened in each minute of the window."""
        tenant_id = visible_scope(request.parent)
        window = request.window.ToTimedelta() if request.HasField("window") else SERIES_WINDOW
        await self._catch_up()
        async with self._pool.reading(planned=True) as tx:
            minutes = await task_stats.read_minutes(tx, tenant_id, await database_time(tx) - window)
            as_of = await task_stats.folded_at(tx)
        response = task_service_pb2.GetTaskSeriesResponse(points=map(_point, minutes))
        set_time(response.as_of_time, as_of)
        return response

    async def _read(self, request: Request, tenant_id: str | None, chosen: filters.Filter | None) -> Response:
        by_runner = task_service_pb2.STATS_DIMENSION_RUNNER in request.group_by
        exact = chosen is not None or by_runner
        if not exact:
            await self._catch_up()
        async with self._pool.reading(planned=True) as tx:
            query = _query(request, tenant_id, await database_time(tx))
            found = None
            if exact or query.end - query.start < EXACT:
                found = await task_stats.scan(tx, query, chosen, by_runner=by_runner)
                as_of = await database_time(tx)
            if found is None and exact:
                raise _too_many(chosen)
            if found is None:
                found, as_of = await _counted(tx, query)
        response = Response(groups=map(_message, found))
        set_time(response.as_of_time, as_of)
        return response

    async def _catch_up(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(CATCH_UP_SECONDS):
                async with self._pool.reading() as tx:
                    decided = await change_reader.settled(tx)
                while not await task_stats.fold(self._pool, decided, 4, self._on_folded):  # noqa: ASYNC110 (a row lock is no event)
                    # Another process is folding, perhaps up to an earlier position.
                    await asyncio.sleep(PAUSE_SECONDS)


def _point(minute: Minute) -> task_service_pb2.TaskSeriesPoint:
    point = task_service_pb2.TaskSeriesPoint(
        created_count=minute.created,
        started_count=minute.started,
        succeeded_count=minute.succeeded,
        failed_count=minute.failed,
        retried_count=minute.retried,
    )
    set_time(point.time, minute.time)
    if minute.waited:
        point.mean_wait.FromTimedelta(timedelta(seconds=minute.waited_seconds / minute.waited))
    return point


async def _counted(tx: Tx, query: StatsQuery) -> tuple[list[Stats], datetime]:
    widened = StatsQuery(
        query.tenant_id, _floor(query.start), query.end, by_tenant=query.by_tenant, by_type=query.by_type
    )
    return await task_stats.read(tx, widened), await task_stats.folded_at(tx)


def _query(request: Request, tenant_id: str | None, now: datetime) -> StatsQuery:
    start, end = _span(request.time_range, now)
    if start >= end:
        raise FieldInvalid.of("time_range", f"begins at {start} and ends at {end}; it must end later")
    return StatsQuery(
        tenant_id,
        start,
        end,
        by_tenant=task_service_pb2.STATS_DIMENSION_TENANT in request.group_by,
        by_type=task_service_pb2.STATS_DIMENSION_TASK_TYPE in request.group_by,
    )


def _span(requested: common_pb2.TimeRange, now: datetime) -> tuple[datetime, datetime]:
    end = requested.end_time.ToDatetime(UTC) if requested.HasField("end_time") else now + QUARTER
    if requested.HasField("start_time"):
        return max(_EARLIEST, requested.start_time.ToDatetime(UTC)), end
    window = requested.window.ToTimedelta() if requested.HasField("window") else WINDOW
    return now - min(window, now - _EARLIEST), end


def _floor(time: datetime) -> datetime:
    seconds = int(QUARTER.total_seconds())
    return datetime.fromtimestamp(int(time.timestamp()) // seconds * seconds, UTC)


def _too_many(chosen: filters.Filter | None) -> FilterInvalid | FieldInvalid:
    problem = f"more than {task_stats.MOST_TASKS:,} tasks would have to be read; choose a shorter time_range"
    return FilterInvalid.of("filter", problem) if chosen else FieldInvalid.of("group_by", problem)


def _message(stats: Stats) -> task_service_pb2.TaskStats:
    message = task_service_pb2.TaskStats(
        group=stats.group,
        total=stats.total,
        phases=[
            task_service_pb2.PhaseCount(phase=task_pb2.TaskPhase.ValueType(phase), count=count)
            for phase, count in sorted(stats.phases.items())
        ],
        success_ratio=stats.success_ratio,
        retry_count=stats.retry_count,
    )
    for field, durations in (
        (message.run_duration, stats.run),
        (message.queue_duration, stats.queue),
        (message.ended_duration, stats.ended),
    ):
        if durations.count:
            _fill(field, durations)
    if stats.oldest_pending is not None:
        message.oldest_pending_age.FromTimedelta(timedelta(seconds=stats.oldest_pending))
    return message


def _fill(message: task_service_pb2.DurationStats, durations: Durations) -> None:
    message.average.FromTimedelta(timedelta(seconds=durations.average))
    message.max.FromTimedelta(timedelta(seconds=durations.longest))
    for field, part in ((message.p50, 0.5), (message.p95, 0.95), (message.p99, 0.99)):
        field.FromTimedelta(timedelta(seconds=durations.percentile(part)))
