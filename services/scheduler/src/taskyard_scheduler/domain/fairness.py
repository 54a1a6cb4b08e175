"""Between tenants: whose turn is next, and how much of the free capacity each may take.

A tenant's turn is decided by the capacity-seconds it has used, each worth half after five minutes, over its
weight. What it holds now counts as used for a short while ahead, so that free capacity which is divided at
one moment is divided by weight.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

# One point of effective priority is worth this much waiting: 5 points per waited minute.
POINT_SECONDS = 12.0
# Strict order: no wait makes up for one point of priority.
STRICT_POINT_SECONDS = 366 * 86400.0

HALF_LIFE_SECONDS = 300.0
# What a place is taken to be used ahead. Short against the half-life: a tenant whose part is a fraction of a
# place gets more than its part by about their ratio.
AHEAD_SECONDS = 2.0
# What a tenant used beyond others is held against it for at most this time of the whole capacity: nobody who
# may run waits longer than that because of what it ran before.
DEBT_SECONDS = 60.0

UNLIMITED = -1
_ALL = 1_000_000_000


@dataclass(frozen=True, slots=True)
class TenantShare:
    """A tenant as taskdb describes it: tier weight, decayed capacity-seconds, and what it may claim."""

    tenant: str
    weight: int = 1
    usage: float = 0.0
    claimable: int = UNLIMITED
    paused: bool = False
    paused_task_types: frozenset[str] = frozenset()
    # Leases it holds.
    held: int = 0


@dataclass(slots=True)
class Account:
    """A tenant's use of capacity: what taskdb told last, and what it claimed and ended since."""

    weight: int
    usage: float
    held: int
    told_time: float


class Turn(NamedTuple):
    """A tenant in the order of turns; the smallest goes first."""

    rank: float
    standing: float
    tenant: str
    weight: int


def decay(usage: float, held: float, seconds: float) -> float:
    """Usage after some time in which `held` places were used, as taskdb keeps it."""
    kept: float = 0.5 ** (seconds / HALF_LIFE_SECONDS)
    return usage * kept + held * (1.0 - kept) * HALF_LIFE_SECONDS / 0.6931471805599453


def lane_offset(priority: int, weight: int, *, strict: bool = False) -> float:
    """The advantage of a lane in seconds: its smallest ready_time - offset goes first."""
    if strict:
        return priority * STRICT_POINT_SECONDS
    return priority * weight * POINT_SECONDS


class Turns:
    """Tenants in the order in which they are served: `next` until it is empty, then `served` or `drop`.

    Nobody's standing counts as worse than the best by more than the debt.
    """

    def __init__(self, accounts: Iterable[tuple[str, Account]], capacity: int, now: float) -> None:
        # Plain tuples in the order of Turn, and `standing` written out: there may be very many tenants.
        ahead = AHEAD_SECONDS + now
        found = [
            ((a.usage + a.held * (ahead - a.told_time)) / a.weight, tenant, a.weight)
            for tenant, a in accounts
        ]
        self._order: list[tuple[float, float, str, int]] = []
        if found:
            limit = min(found)[0] + DEBT_SECONDS * capacity / sum([entry[2] for entry in found])
            self._order = [(s if s < limit else limit, s, tenant, weight) for s, tenant, weight in found]
            heapq.heapify(self._order)

    def __bool__(self) -> bool:
        return bool(self._order)

    def next(self) -> tuple[str, int]:
        """Whose turn it is, and how many places it takes before it is another's."""
        turn = Turn(*self._order[0])
        others = [self._order[n][0] for n in (1, 2) if n < len(self._order)]
        if not others:
            return turn.tenant, _ALL
        return turn.tenant, 1 + int((min(others) - turn.rank) * turn.weight / AHEAD_SECONDS)

    def served(self, count: int) -> None:
        """Whose turn it was took so many places."""
        turn = Turn(*self._order[0])
        step = count * AHEAD_SECONDS / turn.weight
        heapq.heapreplace(self._order, turn._replace(rank=turn.rank + step, standing=turn.standing + step))

    def drop(self) -> None:
        """Whose turn it was takes nothing more."""
        heapq.heappop(self._order)
