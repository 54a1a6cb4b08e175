"""The lanes with claimable work, the placement classes and the tenants, as WatchQueue tells them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from taskyard.v1 import lease_service_pb2
from taskyard_scheduler import convert
from taskyard_scheduler.domain.fairness import UNLIMITED, TenantShare
from taskyard_scheduler.domain.placement import PlacementClass
from taskyard_scheduler.domain.plan import ClassKey, Lane, LaneId

# What a claim is taken to cost in capacity-seconds until taskdb's own figure arrives.
NOMINAL_USAGE = 1.0


class LaneBoard:
    """What there is to do. Only lanes with work are kept.

    `version` grows with everything heard, so that a claim's answer can tell which lanes were heard of since.
    """

    def __init__(self) -> None:
        self.classes: dict[ClassKey, PlacementClass] = {}
        self.shares: dict[str, TenantShare] = {}
        self.version = 0
        self._lanes: dict[str, dict[LaneId, Lane]] = {}
        self._heard: dict[tuple[str, LaneId], int] = {}

    def lanes(self) -> Mapping[str, list[Lane]]:
        """The lanes with work, by tenant."""
        return {tenant: list(found.values()) for tenant, found in self._lanes.items()}

    def __len__(self) -> int:
        return sum(map(len, self._lanes.values()))

    def apply(self, step: lease_service_pb2.WatchQueueResponse) -> bool:
        """Take over a step of the watch; whether there may be more to claim than before."""
        self.version += 1
        if step.full:
            self.classes.clear()
            self.shares.clear()
            self._lanes.clear()
            self._heard.clear()
        for message in step.classes:
            wanted = convert.placement_class(message)
            self.classes[(wanted.tenant, wanted.class_id)] = wanted
        for share in step.tenants:
            self.shares[share.tenant] = convert.tenant_share(share)
        gained = [self._hear(lane) for lane in step.lanes]
        return any(gained) or bool(step.tenants or step.classes)

    def _hear(self, message: lease_service_pb2.Lane) -> bool:
        tenant, key = message.tenant, message.key
        lane_id = (key.class_id, key.priority, key.pinned_runner)
        self._heard[(tenant, lane_id)] = self.version
        if not message.HasField("head_ready_time"):
            self._remove(tenant, lane_id)
            return False
        head = message.head_ready_time.seconds + message.head_ready_time.nanos / 1e9
        lane = Lane(tenant, *lane_id, head=head, backlog=max(1, message.backlog))
        self._lanes.setdefault(tenant, {})[lane_id] = lane
        return True

    def claimed(self, tenant: str, lanes: Iterable[Lane], count: int) -> None:
        """Tasks of these lanes were claimed; until taskdb says more, they cost the tenant."""
        share = self.shares.get(tenant)
        if share is not None and count:
            claimable = share.claimable if share.claimable == UNLIMITED else max(0, share.claimable - count)
            self.shares[tenant] = replace(
                share, usage=share.usage + NOMINAL_USAGE * count, claimable=claimable
            )
        for lane in lanes:
            taken = min(count, lane.backlog)
            count -= taken
            # What gave this much and was not found empty is taken to have as much again: backlogs are counted
            # up to a limit only, and the claims after a large one must not be small.
            lane.backlog = max(lane.backlog - taken, taken, 1)

    def drained(self, tenant: str, lanes: Iterable[LaneId], asked_version: int) -> bool:
        """A claim found these lanes empty; those heard of since it was sent may have work again.

        Whether any lane went away.
        """
        gone = False
        for lane_id in lanes:
            if self._heard.get((tenant, lane_id), 0) <= asked_version:
                gone = self._remove(tenant, lane_id) or gone
        return gone

    def _remove(self, tenant: str, lane_id: LaneId) -> bool:
        lanes = self._lanes.get(tenant)
        if lanes is None or lane_id not in lanes:
            return False
        del lanes[lane_id]
        if not lanes:
            del self._lanes[tenant]
        return True
