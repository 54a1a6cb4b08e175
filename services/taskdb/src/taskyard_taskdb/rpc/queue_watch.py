"""LeaseService.WatchQueue: changed lanes, classes and tenants, and what holders must know, for schedulers.

A full response comes first and every 30 s, and repairs what was lost. In between, commits of this process are
told at once and those of other replicas when they are heard of. New tasks are told of as they are known here;
what else is told is read first, and so is, a moment later, every lane that gained or lost tasks.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncIterator, Iterable, Mapping, Set
from typing import Any

from taskyard.v1 import lease_service_pb2
from taskyard_taskdb.rpc.convert import fill_runner, fill_verdict
from taskyard_taskdb.rpc.times import set_time
from taskyard_taskdb.storage.claim import lanes as lane_reads
from taskyard_taskdb.storage.claim import shares
from taskyard_taskdb.storage.claim.lane import Filling, LaneKey
from taskyard_taskdb.storage.claim.lanes import LaneHead, Lanes, News
from taskyard_taskdb.storage.claim.shares import Share
from taskyard_taskdb.storage.lease.lease import Verdict
from taskyard_taskdb.storage.pool import Pool, Tx
from taskyard_taskdb.storage.runner import runners
from taskyard_taskdb.storage.runner.runners import RunnerRecord
from taskyard_taskdb.storage.tenant.usage import ALWAYS, NO_USE, Use

FULL_SECONDS = 30.0
KEEP_ALIVE_SECONDS = 10.0
# Between two messages of one stream: what commits meanwhile is told together. Longer where all takes longer.
PAUSE_SECONDS = 0.001
LONGEST_PAUSE_SECONDS = 0.01
# Until the lanes are read again that gained or lost tasks: who claims knows what it took.
SETTLE_SECONDS = 0.05
# So much later while new tasks are told of, which wait for no reading.
SETTLE_SLACK_SECONDS = 0.2
GOODBYE_SECONDS = 2.0
# What tenants use is told this often while there is other news, that of a crowd of them less often.
USAGE_SECONDS = 2.0
USES_PER_SECOND = 1000

Response = lease_service_pb2.WatchQueueResponse


class QueueWatchHandler:
    """LeaseService.WatchQueue. Streams end when `draining` is set."""

    def __init__(self, pool: Pool, lanes: Lanes, draining: asyncio.Event) -> None:
        self._pool = pool
        self._lanes = lanes
        self._draining = draining
        self._watches: set[asyncio.Future[None]] = set()

    async def close(self) -> None:
        """Wait until every open stream has sent that it is closing; for the time of a drain."""
        if self._watches:
            await asyncio.wait(self._watches, timeout=GOODBYE_SECONDS)

    async def WatchQueue(
        self, request: lease_service_pb2.WatchQueueRequest, context: Any
    ) -> AsyncIterator[Response]:
        """Stream until the caller leaves or the server drains."""
        stream = _Stream(self._pool, self._lanes)
        inbox = self._lanes.listen()
        draining = asyncio.ensure_future(self._draining.wait())
        draining.add_done_callback(lambda _: inbox.wake())
        over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._watches.add(over)
        try:
            yield await stream.tell_all()
            while not draining.done():
                news = await inbox.take(stream.patience())
                if stream.full_is_due() or (news is not None and news.everything):
                    yield await stream.tell_all()
                elif news is not None or stream.settling_is_due():
                    begun = time.monotonic()
                    if (response := await stream.tell(news or News())) is not None:
                        yield response
                        took = time.monotonic() - begun
                        await asyncio.sleep(min(max(PAUSE_SECONDS, took), LONGEST_PAUSE_SECONDS))
                else:
                    yield Response()
            yield Response(closing=True)
        finally:
            self._watches.discard(over)
            over.cancel()
            self._lanes.leave(inbox)
            draining.cancel()


class _Stream:
    """One scheduler's view: what it was sent, and when it is due for everything again."""

    def __init__(self, pool: Pool, lanes: Lanes) -> None:
        self._pool = pool
        self._lanes = lanes
        self._classes: set[int] = set()
        self._tenants: set[str] = set()
        self._full_at = 0.0
        self._uses_at = 0.0
        # Up to when the use of ended runs was told.
        self._used_time = ALWAYS
        # What was told of the lanes with work, and those of which that may be out of date.
        self._heads: dict[LaneKey, LaneHead] = {}
        self._unsettled: set[LaneKey] = set()
        self._settle_at = math.inf

    def full_is_due(self) -> bool:
        return time.monotonic() >= self._full_at

    def patience(self) -> float:
        """How long to wait for news before something else is to be said."""
        due = min(self._full_at, self._settle_at) - time.monotonic()
        return max(0.0, min(KEEP_ALIVE_SECONDS, due))

    def settling_is_due(self) -> bool:
        # Timers may be a little early.
        return time.monotonic() >= self._settle_at - PAUSE_SECONDS

    def _can_settle_later(self) -> bool:
        return time.monotonic() < self._settle_at + SETTLE_SLACK_SECONDS

    async def tell_all(self) -> Response:
        self._full_at = time.monotonic() + FULL_SECONDS
        self._classes.clear()
        self._settle()
        response = Response(full=True)
        async with self._pool.reading() as tx:
            heads = await lane_reads.read_all(tx)
            tenants = await shares.read_shares(tx)
            self._used_time = ALWAYS
            uses = await self._read_uses(tx)
            verdicts = await shares.read_verdicts(tx)
            alive = [record for record in await runners.read(tx) if record.alive]
            await self._add_classes(tx, heads, response)
        self._tenants = {share.tenant_id for share in tenants}
        self._heads.clear()
        self._add_lanes(response, heads)
        _add_tenants(response, tenants, dict.fromkeys(self._tenants, NO_USE) | uses)
        _add_verdicts(response, verdicts)
        _add_runners(response, alive)
        return response

    async def tell(self, news: News) -> Response | None:
        """What is to be said now, None if that is nothing."""
        if self.settling_is_due() and not (news.filled and self._can_settle_later()):
            news.lanes |= self._settle()
        self._unsettle((news.faded | news.filled.keys()) - news.lanes)
        heads = [self._extended(*filled) for filled in news.filled.items() if filled[0] not in news.lanes]
        news.tenants |= {head.lane.tenant_id for head in heads} - self._tenants
        response = Response()
        if self._is_known(news, heads):
            self._add_lanes(response, heads)
            return response if heads else None
        async with self._pool.reading() as tx:
            if news.lanes:
                heads += await lane_reads.read_heads(tx, news.lanes, self._lanes.bounds)
                news.tenants |= {head.lane.tenant_id for head in heads} - self._tenants
            self._add_lanes(response, heads)
            await self._add_classes(tx, heads, response)
            uses = await self._read_uses(tx) if news.lanes and time.monotonic() >= self._uses_at else {}
            told = news.tenants | uses.keys()
            if told:
                _add_tenants(response, await shares.read_shares(tx, sorted(told)), uses)
                self._tenants |= told
            if news.holders:
                _add_verdicts(response, await shares.read_verdicts(tx, news.holders))
            if news.runners:
                _add_runners(response, await runners.read(tx, sorted(news.runners)))
        return response

    async def _read_uses(self, tx: Tx) -> dict[str, Use]:
        """The use of tenants that hold something or whose runs ended since it was last asked for."""
        found = await self._lanes.ledger.read(tx, self._used_time)
        self._uses_at = time.monotonic() + max(USAGE_SECONDS, len(found) / USES_PER_SECOND)
        self._used_time = max((use.update_time for use in found.values()), default=self._used_time)
        return found

    def _is_known(self, news: News, heads: Iterable[LaneHead]) -> bool:
        """Whether there is nothing to read before the news can be told."""
        to_read = news.lanes or news.tenants or news.holders or news.runners
        return not to_read and all(head.lane.class_id in self._classes for head in heads)

    def _extended(self, lane: LaneKey, filling: Filling) -> LaneHead:
        """A lane as it was told last, with the tasks that were appended to it."""
        known = self._heads.get(lane)
        if known is None or known.ready_time is None:
            return LaneHead(lane, *filling, more=False)
        ready_time = min(known.ready_time, filling.ready_time)
        return LaneHead(lane, ready_time, known.backlog + filling.backlog, known.more)

    def _add_lanes(self, response: Response, heads: Iterable[LaneHead]) -> None:
        for head in heads:
            if head.ready_time is None:
                self._heads.pop(head.lane, None)
            else:
                self._heads[head.lane] = head
            _add_lane(response, head)

    def _unsettle(self, lanes: Set[LaneKey]) -> None:
        """Read these again in a moment."""
        if lanes and not self._unsettled:
            self._settle_at = time.monotonic() + SETTLE_SECONDS
        self._unsettled |= lanes

    def _settle(self) -> set[LaneKey]:
        """The lanes that are to be read again, which the caller does."""
        lanes, self._unsettled, self._settle_at = self._unsettled, set(), math.inf
        return lanes

    async def _add_classes(self, tx: Tx, heads: Iterable[LaneHead], response: Response) -> None:
        """Add the definitions of classes that this stream has not been sent; tenants may share one."""
        used = {
            head.lane.class_id: (head.lane.tenant_id, head.lane.class_id)
            for head in heads
            if head.ready_time is not None and head.lane.class_id not in self._classes
        }
        for (tenant_id, class_id), definition in (await shares.read_classes(tx, used.values())).items():
            told = response.classes.add()
            told.MergeFromString(definition)
            told.tenant = tenant_id
            told.class_id = class_id
            self._classes.add(class_id)


def _add_lane(response: Response, head: LaneHead) -> None:
    told = response.lanes.add(tenant=head.lane.tenant_id, backlog=head.backlog, more=head.more)
    told.key.class_id = head.lane.class_id
    told.key.priority = head.lane.priority
    told.key.pinned_runner = head.lane.pinned_runner
    if head.ready_time is not None:
        set_time(told.head_ready_time, head.ready_time)


def _add_tenants(response: Response, tenants: Iterable[Share], uses: Mapping[str, Use]) -> None:
    for share in tenants:
        use = uses.get(share.tenant_id)
        response.tenants.add(
            tenant=share.tenant_id,
            weight=share.weight,
            claimable_count=share.claimable_count,
            paused=share.paused,
            paused_task_types=share.paused_task_types,
            tier=share.tier,
            usage=use.usage if use else 0.0,
            leased_count=use.leased_count if use else 0,
            limits_only=use is None,
        )


def _add_verdicts(response: Response, verdicts: dict[str, list[Verdict]]) -> None:
    for runner_id, found in verdicts.items():
        told = response.verdicts.add(runner_id=runner_id)
        for verdict in found:
            fill_verdict(told.verdicts.add(), verdict)


def _add_runners(response: Response, records: Iterable[RunnerRecord]) -> None:
    for record in records:
        fill_runner(response.runners.add(), record)
