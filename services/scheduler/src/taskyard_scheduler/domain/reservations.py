"""Reserves runners for lanes whose tasks fit nowhere because smaller tasks keep every runner busy.

A lane is passed over when it had its turn and runners may take its class, but none has enough free resources,
or each executes a type that the class avoids. After a delay a runner is reserved for it: the resources of one
of its tasks are withheld from all others there, so that free resources grow with every task that ends, and
the lane's next task starts at the latest when the longest of them has ended.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

# How long a lane is passed over before a runner is reserved for it. Long against the gaps on a busy runner,
# because reserved resources are idle; short against the time that users accept.
RESERVATION_DELAY_SECONDS = 30.0
# At most one runner in this many is reserved, but always one may be; the others stay busy.
RUNNERS_PER_RESERVATION = 4
# Maximum number of new reservations per plan.
MAX_NEW = 8
# Maximum number of tracked lanes, because a plan sorts them; others wait until some of these are served.
MAX_WAITING = 2000

# A lane within its tenant: class, priority, pinned runner.
LaneId = tuple[int, int, str]
LaneName = tuple[str, LaneId]


@dataclass(slots=True)
class _Wait:
    """The time from which a runner may be reserved for a lane; infinite until it is passed over again."""

    due: float


class Reservations:
    """State kept between plans: lanes that are passed over, and the runners reserved for some of them.

    A lane that was served by a reservation is due again as soon as it is passed over once more.
    """

    def __init__(self, reservation_delay: float = RESERVATION_DELAY_SECONDS) -> None:
        # The lane for which each runner is reserved; at most one runner per lane.
        self.held: dict[str, LaneName] = {}
        self._delay = reservation_delay
        self._waits: dict[str, dict[LaneId, _Wait]] = {}
        self._count = 0

    def __bool__(self) -> bool:
        return bool(self._waits)

    def allowed(self, runners: int) -> int:
        """The number of further runners that may be reserved, of `runners` in total."""
        return min(MAX_NEW, max(1, runners // RUNNERS_PER_RESERVATION) - len(self.held))

    def pass_over(self, tenant: str, lane_id: LaneId, now: float) -> None:
        """Records that a lane had its turn and no eligible runner has enough free resources."""
        wait = self._waits.get(tenant, {}).get(lane_id)
        if wait is not None:
            if wait.due == math.inf:
                wait.due = now
        elif self._count < MAX_WAITING:
            self._waits.setdefault(tenant, {})[lane_id] = _Wait(now + self._delay)
            self._count += 1

    def line(self, now: float) -> list[LaneName]:
        """Lanes for which a runner may be reserved, in the order in which they get one.

        Tenants take turns: the second lane of one comes after the first of every other.
        """
        holding = Counter(tenant for tenant, _ in self.held.values())
        reserved = set(self.held.values())
        found: list[tuple[int, float, str, LaneId]] = []
        for tenant, waits in self._waits.items():
            due = sorted((wait.due, lane_id) for lane_id, wait in waits.items() if wait.due <= now)
            free = [(when, lane_id) for when, lane_id in due if (tenant, lane_id) not in reserved]
            found += [(holding[tenant] + n, when, tenant, lane_id) for n, (when, lane_id) in enumerate(free)]
        return [(tenant, lane_id) for _, _, tenant, lane_id in sorted(found)]

    def reserve(self, key: str, name: LaneName) -> None:
        """Reserves a runner for a lane."""
        self.held[key] = name

    def release(self, key: str) -> None:
        """Releases the reservation of a runner; its lane is next in line."""
        self.held.pop(key, None)

    def honour(self, key: str) -> None:
        """Ends the reservation because a task of the lane starts on the runner."""
        tenant, lane_id = self.held.pop(key)
        self._waits[tenant][lane_id].due = math.inf

    def forget(self, tenant: str, lane_id: LaneId) -> None:
        """Stops tracking a lane that was served or has no work."""
        waits = self._waits.get(tenant)
        if waits is None or waits.pop(lane_id, None) is None:
            return
        self._count -= 1
        if not waits:
            del self._waits[tenant]
        for key in [key for key, name in self.held.items() if name == (tenant, lane_id)]:
            del self.held[key]

    def prune(self, exists: Callable[[str, LaneId], bool]) -> None:
        """Stops tracking lanes that no longer exist."""
        for tenant, waits in list(self._waits.items()):
            for lane_id in [lane_id for lane_id in waits if not exists(tenant, lane_id)]:
                self.forget(tenant, lane_id)
