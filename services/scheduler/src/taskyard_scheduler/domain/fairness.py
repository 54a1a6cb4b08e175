"""Between tenants: whose turn is next, and how much of the free capacity each may take.

A tenant's turn is decided by the capacity-seconds it has used, each worth half after five minutes, over its
weight. What it holds now counts as used for a short while ahead, so that free capacity which is divided at
one moment is divided by weight.
"""

from __future__ import annotations

import heapq
import itertools
import math
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
    # Use and leases are not told this time.
    limits_only: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Account:
    """A tenant's use of capacity up to a time, and what it holds: as taskdb told it, and as it went on."""

    weight: int
    usage: float
    held: int
    time: float

    def claim(self, count: int, now: float) -> Account:
        """With so many places more, or, if negative, fewer; what was used up to now stays used."""
        return Account(self.weight, self._used(now), max(0, self.held + count), now)

    def standing(self, now: float) -> float:
        """What decides its turn: its use, with what it holds for a little while ahead, over its weight."""
        return (self._used(now) + self.held * AHEAD_SECONDS) / self.weight

    def _used(self, now: float) -> float:
        return self.usage + self.held * (now - self.time)


def decay(usage: float, held: float, seconds: float) -> float:
    """Usage after some time in which `held` places were used, as taskdb keeps it."""
    kept: float = 0.5 ** (seconds / HALF_LIFE_SECONDS)
    return usage * kept + held * (1.0 - kept) * HALF_LIFE_SECONDS / 0.6931471805599453


def lane_offset(priority: int, weight: int, *, strict: bool = False) -> float:
    """The advantage of a lane in seconds: its smallest ready_time - offset goes first."""
    if strict:
        return priority * STRICT_POINT_SECONDS
    return priority * weight * POINT_SECONDS


class Standings:
    """Tenants whose turn may come, by standing, kept between plans: a plan looks at those it serves.

    While nothing is told of a tenant its standing only grows, with the time it holds places. So what was
    worked out earlier is at most what it is now, and only what comes to the top has to be worked out again.
    """

    def __init__(self) -> None:
        self.weight = 0
        # Who was taken out for a turn.
        self.taken: list[str] = []
        # The smallest standing first; an entry counts while its account is the one in `_accounts`. The number
        # keeps accounts from being compared.
        self._order: list[tuple[float, str, int, Account]] = []
        self._accounts: dict[str, Account] = {}
        self._numbers = itertools.count()
        self._now = -math.inf

    def put(self, tenant: str, account: Account, now: float) -> None:
        """A tenant's turn may come."""
        self.remove(tenant)
        self._accounts[tenant] = account
        self.weight += account.weight
        heapq.heappush(self._order, self._entry(tenant, account, now))

    def remove(self, tenant: str) -> None:
        """A tenant's turn does not come."""
        account = self._accounts.pop(tenant, None)
        if account is not None:
            self.weight -= account.weight

    def take(self, tenant: str) -> None:
        """It is a tenant's turn: it has to be put back for the next plan."""
        self.remove(tenant)
        self.taken.append(tenant)

    def best(self, now: float) -> tuple[float, str, int] | None:
        """The smallest standing, whose it is, and that tenant's weight."""
        if now < self._now or len(self._order) > 2 * len(self._accounts) + 1000:
            self._rebuild(now)
        self._now = now
        order = self._order
        while order:
            standing, tenant, _, account = order[0]
            if self._accounts.get(tenant) is not account:
                heapq.heappop(order)
            elif account.held and standing < account.standing(now):
                heapq.heapreplace(order, self._entry(tenant, account, now))
            else:
                return standing, tenant, account.weight
        return None

    def _rebuild(self, now: float) -> None:
        self._order = [self._entry(tenant, account, now) for tenant, account in self._accounts.items()]
        heapq.heapify(self._order)

    def _entry(self, tenant: str, account: Account, now: float) -> tuple[float, str, int, Account]:
        return account.standing(now), tenant, next(self._numbers), account


class _Turn(NamedTuple):
    """A tenant that was served, in the order of turns; the smallest goes first."""

    rank: float
    standing: float
    tenant: str
    weight: int


class Turns:
    """Tenants in the order in which they are served: `next` until it is empty, then `served` or `drop`.

    Nobody's standing counts as worse than the best by more than the debt. Who has had a turn is
    taken out of the standings.
    """

    def __init__(self, standings: Standings, capacity: int, now: float) -> None:
        self._standings = standings
        self._now = now
        # Those who were served and may be again.
        self._served: list[_Turn] = []
        best = standings.best(now)
        self._limit = best[0] + DEBT_SECONDS * capacity / standings.weight if best else 0.0

    def __bool__(self) -> bool:
        return bool(self._served) or self._standings.best(self._now) is not None

    def next(self) -> tuple[str, int]:
        """Whose turn it is, and how many places it takes before it is another's."""
        fresh = self._fresh()
        if fresh is not None and (not self._served or fresh < self._served[0]):
            self._standings.take(fresh.tenant)
            heapq.heappush(self._served, fresh)
            fresh = self._fresh()
        turn = self._served[0]
        others = [self._served[n].rank for n in (1, 2) if n < len(self._served)]
        if fresh is not None:
            others.append(fresh.rank)
        if not others:
            return turn.tenant, _ALL
        return turn.tenant, 1 + int((min(others) - turn.rank) * turn.weight / AHEAD_SECONDS)

    def _fresh(self) -> _Turn | None:
        """The best of those who were not served."""
        best = self._standings.best(self._now)
        if best is None:
            return None
        standing, tenant, weight = best
        return _Turn(min(standing, self._limit), standing, tenant, weight)

    def served(self, count: int) -> None:
        """Whose turn it was took so many places."""
        turn = self._served[0]
        step = count * AHEAD_SECONDS / turn.weight
        heapq.heapreplace(
            self._served, _Turn(turn.rank + step, turn.standing + step, turn.tenant, turn.weight)
        )

    def drop(self) -> None:
        """Whose turn it was takes nothing more."""
        heapq.heappop(self._served)
