"""LeaseService.WatchQueue: changed lanes, classes, tenants, runners and verdicts, for schedulers.

A stream begins with a full response and repeats it every 30 s, which repairs lost notifications. In between,
commits of this process are sent at once, and those of other replicas when their notification arrives. New
tasks are added to the lane as it was last sent, without a read. Everything else is read first, and every lane
that gained or lost tasks is read again a moment later.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncIterator, Iterable, Mapping, Set
from typing import Any

from taskyard.v1 import lease_service_pb2
from taskyard_taskdb.domain.credit import CreditBook
from taskyard_taskdb.rpc.convert import fill_runner, fill_verdict
from taskyard_taskdb.rpc.times import set_time
from taskyard_taskdb.storage.change_log import epoch as log_epoch
from taskyard_taskdb.storage.claim import lanes, shares
from taskyard_taskdb.storage.claim.bounds import Bounds
from taskyard_taskdb.storage.claim.lanes import Appended, LaneHead, LaneKey
from taskyard_taskdb.storage.claim.shares import Share
from taskyard_taskdb.storage.lease.lease import LeaseVerdict
from taskyard_taskdb.storage.notify.bus import Bus, CommitNotice
from taskyard_taskdb.storage.pool import Pool, Tx
from taskyard_taskdb.storage.runner import runners
from taskyard_taskdb.storage.runner.runners import RunnerRecord
from taskyard_taskdb.storage.tenant.usage import ALWAYS, NO_USE, UsageLedger, Use

FULL_SECONDS = 30.0
KEEP_ALIVE_SECONDS = 10.0
# Between two responses of one stream: changes that commit meanwhile share a response. As long as the last
# response took to make, within these bounds.
PAUSE_SECONDS = 0.001
LONGEST_PAUSE_SECONDS = 0.01
# Until lanes that gained or lost tasks are read again; a scheduler counts its own claims meanwhile.
REREAD_SECONDS = 0.05
# Added to it while inserts are pushed directly, without a read.
REREAD_SLACK_SECONDS = 0.2
CLOSE_SECONDS = 2.0
# Interval between reads of the usage of tenants while lanes change; longer for many tenants.
USAGE_SECONDS = 2.0
USES_PER_SECOND = 1000

Response = lease_service_pb2.WatchQueueResponse


class QueueWatchHandler:
    """LeaseService.WatchQueue. Streams end when `draining` is set."""

    def __init__(
        self,
        pool: Pool,
        bus: Bus,
        bounds: Bounds,
        usage: UsageLedger,
        credit: CreditBook,
        draining: asyncio.Event,
    ) -> None:
        self._pool = pool
        self._credit = credit
        self._bus = bus
        self._bounds = bounds
        self._usage = usage
        self._draining = draining
        self._watches: set[asyncio.Future[None]] = set()

    async def close(self) -> None:
        """Wait until every open stream has sent that it is closing; for the time of a drain."""
        if self._watches:
            await asyncio.wait(self._watches, timeout=CLOSE_SECONDS)

    async def WatchQueue(
        self, request: lease_service_pb2.WatchQueueRequest, context: Any
    ) -> AsyncIterator[Response]:
        """Stream until the caller cancels or the server drains."""
        stream = _Stream(self._pool, self._bounds, self._usage)
        subscription = self._bus.subscribe()
        draining = asyncio.ensure_future(self._draining.wait())
        draining.add_done_callback(lambda _: subscription.wake())
        closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._watches.add(closed)
        try:
            yield self._placed(self._credit.position, await stream.full_response())
            while not draining.done():
                notice = await subscription.take(stream.wait_seconds())
                # The notices that were taken contain all work up to here; more may come while it is read.
                position = self._credit.position
                if stream.full_is_due() or (notice is not None and notice.everything):
                    yield self._placed(position, await stream.full_response())
                elif notice is not None or stream.reread_is_due():
                    start = time.monotonic()
                    if (response := await stream.change_response(notice or CommitNotice())) is not None:
                        yield self._placed(position, response)
                        took = time.monotonic() - start
                        await asyncio.sleep(min(max(PAUSE_SECONDS, took), LONGEST_PAUSE_SECONDS))
                else:
                    yield Response()
            yield Response(closing=True)
        finally:
            self._watches.discard(closed)
            closed.cancel()
            self._bus.unsubscribe(subscription)
            draining.cancel()

    def _placed(self, number: int, response: Response) -> Response:
        """The response with the position up to which it contains the work that waits."""
        response.position.replica_id = self._credit.replica_id
        response.position.number = number
        return response


class _Stream:
    """The state of one stream: what was sent, and when the next full response is due."""

    def __init__(self, pool: Pool, bounds: Bounds, usage: UsageLedger) -> None:
        self._pool = pool
        self._bounds = bounds
        self._usage = usage
        self._classes: set[int] = set()
        self._tenants: set[str] = set()
        self._full_due = 0.0
        self._uses_due = 0.0
        # The usage of runs that ended before this time was sent.
        self._uses_read_time = ALWAYS
        # The lanes with work as they were sent, and those that may have changed since.
        self._heads: dict[LaneKey, LaneHead] = {}
        self._stale_lanes: set[LaneKey] = set()
        self._reread_at = math.inf

    def full_is_due(self) -> bool:
        return time.monotonic() >= self._full_due

    def wait_seconds(self) -> float:
        """How long to wait for notifications until the next response is due."""
        due = min(self._full_due, self._reread_at) - time.monotonic()
        return max(0.0, min(KEEP_ALIVE_SECONDS, due))

    def reread_is_due(self) -> bool:
        # Timers may fire a little early.
        return time.monotonic() >= self._reread_at - PAUSE_SECONDS

    def _can_reread_later(self) -> bool:
        return time.monotonic() < self._reread_at + REREAD_SLACK_SECONDS

    async def full_response(self) -> Response:
        self._full_due = time.monotonic() + FULL_SECONDS
        self._classes.clear()
        self._take_stale()
        response = Response(full=True)
        async with self._pool.reading() as tx:
            heads = await lanes.read_all(tx)
            tenants = await shares.read_shares(tx)
            self._uses_read_time = ALWAYS
            uses = await self._read_uses(tx)
            verdicts = await shares.read_verdicts(tx)
            alive = [record for record in await runners.read(tx) if record.alive]
            if (epoch := await log_epoch.find(tx)) is not None:
                response.log_epoch = epoch.number
            await self._add_classes(tx, heads, response)
        self._tenants = {share.tenant_id for share in tenants}
        self._heads.clear()
        self._add_lanes(response, heads)
        _add_tenants(response, tenants, dict.fromkeys(self._tenants, NO_USE) | uses)
        _add_verdicts(response, verdicts)
        _add_runners(response, alive)
        return response

    async def change_response(self, notice: CommitNotice) -> Response | None:
        """The response for these notifications; None if nothing has changed."""
        if self.reread_is_due() and not (notice.appended and self._can_reread_later()):
            notice.lanes |= self._take_stale()
        self._mark_stale((notice.shrunk | notice.appended.keys()) - notice.lanes)
        heads = [
            self._extended(*filled) for filled in notice.appended.items() if filled[0] not in notice.lanes
        ]
        notice.tenants |= {head.lane.tenant_id for head in heads} - self._tenants
        response = Response()
        if self._needs_no_read(notice, heads):
            self._add_lanes(response, heads)
            return response if heads else None
        async with self._pool.reading() as tx:
            if notice.lanes:
                heads += await lanes.read_heads(tx, notice.lanes, self._bounds.by_lane)
                notice.tenants |= {head.lane.tenant_id for head in heads} - self._tenants
            self._add_lanes(response, heads)
            await self._add_classes(tx, heads, response)
            uses = await self._read_uses(tx) if notice.lanes and time.monotonic() >= self._uses_due else {}
            changed = notice.tenants | uses.keys()
            if changed:
                _add_tenants(response, await shares.read_shares(tx, sorted(changed)), uses)
                self._tenants |= changed
            if notice.holders:
                _add_verdicts(response, await shares.read_verdicts(tx, notice.holders))
            if notice.runners:
                _add_runners(response, await runners.read(tx, sorted(notice.runners)))
        return response

    async def _read_uses(self, tx: Tx) -> dict[str, Use]:
        """The usage of tenants that hold leases or whose runs ended since the last read."""
        found = await self._usage.read(tx, self._uses_read_time)
        self._uses_due = time.monotonic() + max(USAGE_SECONDS, len(found) / USES_PER_SECOND)
        self._uses_read_time = max((use.update_time for use in found.values()), default=self._uses_read_time)
        return found

    def _needs_no_read(self, notice: CommitNotice, heads: Iterable[LaneHead]) -> bool:
        """Whether the response can be made without reading from the database."""
        to_read = notice.lanes or notice.tenants or notice.holders or notice.runners
        return not to_read and all(head.lane.class_id in self._classes for head in heads)

    def _extended(self, lane: LaneKey, appended: Appended) -> LaneHead:
        """A lane as it was last sent, with the tasks that were appended to it."""
        head = self._heads.get(lane)
        if head is None or head.ready_time is None:
            return LaneHead(lane, *appended, more=False)
        ready_time = min(head.ready_time, appended.ready_time)
        return LaneHead(lane, ready_time, head.backlog + appended.backlog, head.more)

    def _add_lanes(self, response: Response, heads: Iterable[LaneHead]) -> None:
        for head in heads:
            if head.ready_time is None:
                self._heads.pop(head.lane, None)
            else:
                self._heads[head.lane] = head
            _add_lane(response, head)

    def _mark_stale(self, lanes: Set[LaneKey]) -> None:
        """Schedule another read of these lanes."""
        if lanes and not self._stale_lanes:
            self._reread_at = time.monotonic() + REREAD_SECONDS
        self._stale_lanes |= lanes

    def _take_stale(self) -> set[LaneKey]:
        """The lanes that are due to be read again, for the caller to read; none are due afterwards."""
        lanes, self._stale_lanes, self._reread_at = self._stale_lanes, set(), math.inf
        return lanes

    async def _add_classes(self, tx: Tx, heads: Iterable[LaneHead], response: Response) -> None:
        """Add the definitions of classes that were not sent on this stream; tenants may share a class."""
        used = {
            head.lane.class_id: (head.lane.tenant_id, head.lane.class_id)
            for head in heads
            if head.ready_time is not None and head.lane.class_id not in self._classes
        }
        for (tenant_id, class_id), definition in (await shares.read_classes(tx, used.values())).items():
            message = response.classes.add()
            message.MergeFromString(definition)
            message.tenant = tenant_id
            message.class_id = class_id
            self._classes.add(class_id)


def _add_lane(response: Response, head: LaneHead) -> None:
    message = response.lanes.add(tenant=head.lane.tenant_id, backlog=head.backlog, more=head.more)
    message.key.class_id = head.lane.class_id
    message.key.priority = head.lane.priority
    message.key.pinned_runner = head.lane.pinned_runner
    if head.ready_time is not None:
        set_time(message.head_ready_time, head.ready_time)


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


def _add_verdicts(response: Response, verdicts: dict[str, list[LeaseVerdict]]) -> None:
    for runner_id, found in verdicts.items():
        message = response.verdicts.add(runner_id=runner_id)
        for verdict in found:
            fill_verdict(message.verdicts.add(), verdict)


def _add_runners(response: Response, records: Iterable[RunnerRecord]) -> None:
    for record in records:
        fill_runner(response.runners.add(), record)
