"""The lanes with claimable work, the placement classes and the tenants, as published by WatchQueue."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping

from taskyard.v1 import lease_service_pb2
from taskyard_scheduler import convert
from taskyard_scheduler.domain.agenda import Agenda, Lane
from taskyard_scheduler.domain.credit import RecentClasses
from taskyard_scheduler.domain.reservations import RESERVATION_DELAY_SECONDS, LaneId

# How long a tenant is skipped after nothing of it could be claimed although its lanes are not empty: its
# quota is used up, it was paused, or its tasks are locked.
STALL_SECONDS = 1.0
# Estimated backlog of a lane that was only partly counted, as a multiple of the count.
UNCOUNTED_FACTOR = 4


class LaneBoard:
    """The lanes that have work.

    `version` counts the updates, so that lanes updated after a claim was sent can be recognised.
    """

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        *,
        reservation_delay: float = RESERVATION_DELAY_SECONDS,
    ) -> None:
        self.agenda = Agenda(reservation_delay)
        self.recent = RecentClasses()
        self.version = 0
        # How far taskdb had read the queue in the last message; empty before the first.
        self.position = lease_service_pb2.QueuePosition()
        self._clock = clock

    def __len__(self) -> int:
        return sum(len(found.lanes) for found in self.agenda.tenants.values())

    def __bool__(self) -> bool:
        return bool(self.agenda.tenants)

    def apply(self, step: lease_service_pb2.WatchQueueResponse) -> bool:
        """Applies a message of the watch; returns whether there may be more to claim."""
        self.version += 1
        if step.HasField("position"):
            self.position.CopyFrom(step.position)
        now = self._clock()
        if step.full:
            self.agenda.clear()
        for message in step.classes:
            wanted = convert.placement_class(message)
            self.agenda.classes[wanted.class_id] = wanted
        for share in step.tenants:
            self.agenda.update_share(convert.tenant_share(share), now)
        gained = [self._update_lane(lane, now) for lane in step.lanes]
        return any(gained) or bool(step.tenants or step.classes)

    def _update_lane(self, message: lease_service_pb2.Lane, now: float) -> bool:
        tenant, key = message.tenant, message.key
        lane_id = (key.class_id, key.priority, key.pinned_runner)
        if not message.HasField("head_ready_time"):
            self.agenda.remove(tenant, lane_id)
            return False
        head = message.head_ready_time.seconds + message.head_ready_time.nanos / 1e9
        backlog = self._backlog(message, lane_id) if message.more else max(1, message.backlog)
        self.agenda.put(Lane(tenant, *lane_id, head, backlog, self.version), now)
        if (wanted := self.agenda.classes.get(key.class_id)) is not None:
            self.recent.add(wanted)
        return True

    def _backlog(self, message: lease_service_pb2.Lane, lane_id: LaneId) -> int:
        """Estimates the backlog of a lane that was only partly counted: an estimate that is too high costs a
        claim that is not filled, one that is too low many small claims."""
        found = self.agenda.tenants.get(message.tenant)
        existing = found.lanes.get(lane_id) if found is not None else None
        return max(UNCOUNTED_FACTOR * message.backlog, existing.backlog if existing is not None else 1)

    def claimed(self, tenant: str, lanes: Iterable[Lane], count: int) -> None:
        """Counts tasks of these lanes as claimed until taskdb publishes the tenant's share again."""
        found = self.agenda.share(tenant)
        if found is not None and count:
            found.claim(count, self._clock())
        for lane in lanes:
            taken = min(count, lane.backlog)
            count -= taken
            # A lane that was not found empty is assumed to have as much again: backlogs are counted only up
            # to a limit, and the claims after a large one must not be small.
            lane.backlog = max(lane.backlog - taken, taken, 1)

    def released(self, ended: Mapping[str, int]) -> bool:
        """Counts ended runs by tenant; returns whether one of the tenants was at its quota."""
        freed = False
        for tenant, count in ended.items():
            if (found := self.agenda.share(tenant)) is None:
                continue
            freed = freed or found.share.claimable == 0
            found.claim(-count, self._clock())
        return freed

    def stall(self, tenant: str) -> None:
        """Skips this tenant for a moment, because nothing of it could be claimed."""
        if (found := self.agenda.share(tenant)) is not None:
            found.stall(self._clock() + STALL_SECONDS)

    def drained(self, tenant: str, lanes: Iterable[LaneId], sent_version: int) -> None:
        """Removes lanes that a claim found empty, except those updated since the claim was sent."""
        found = self.agenda.tenants.get(tenant)
        if found is None:
            return
        empty = [key for key in lanes if (lane := found.lanes.get(key)) and lane.seen_version <= sent_version]
        for lane_id in empty:
            self.agenda.remove(tenant, lane_id)
