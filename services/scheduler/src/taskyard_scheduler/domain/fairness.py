"""Fairness between tenants: whose turn is next, and how much of the free capacity each may take.

The order of turns is by capacity-seconds used, with a half-life of five minutes, divided by weight. Leases
that a tenant holds count as used for a short time ahead, so that capacity that is divided at one moment is
divided by weight.
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
# How long a held place counts as used ahead. Short against the half-life: a tenant whose part is a fraction
# of a place gets more than its part by about their ratio.
AHEAD_SECONDS = 2.0
# Bound on the excess usage of a tenant, in seconds of the whole capacity: past usage never delays a tenant
# longer than that.
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
    # The message contains limits only, neither usage nor leases.
    limits_only: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Account:
    """A tenant's usage up to a time and the leases it holds, as published by taskdb and updated since."""

    weight: int
    usage: float
    held: int
    time: float

    def claim(self, count: int, now: float) -> Account:
        """The account after `count` more places, or fewer if negative; usage up to now is kept."""
        return Account(self.weight, self._used(now), max(0, self.held + count), now)

    def standing(self, now: float) -> float:
        """The sort key of turns: usage, plus held places for a short time ahead, divided by weight."""
        return (self._used(now) + self.held * AHEAD_SECONDS) / self.weight

    def _used(self, now: float) -> float:
        return self.usage + self.held * (now - self.time)


def decay(usage: float, held: float, seconds: float) -> float:
    """Usage after some time in which `held` places were used, as taskdb keeps it."""
    factor: float = 0.5 ** (seconds / HALF_LIFE_SECONDS)
    return usage * factor + held * (1.0 - factor) * HALF_LIFE_SECONDS / 0.6931471805599453


def lane_offset(priority: int, weight: int, *, strict: bool = False) -> float:
    """The advantage of a lane in seconds: its smallest ready_time - offset goes first."""
    if strict:
        return priority * STRICT_POINT_SECONDS
    return priority * weight * POINT_SECONDS


class Standings:
    """The tenants that may get a turn, by standing, kept between plans: a plan reads only those it serves.

    Between updates of a tenant its standing only grows, with the time it holds places. So an earlier value is
    a lower bound, and only the value at the top of the heap has to be recomputed.
    """

    def __init__(self) -> None:
        self.weight = 0
        # The tenants removed for a turn.
        self.taken: list[str] = []
        # The smallest standing first; an entry counts while its account is the one in `_accounts`. The number
        # keeps accounts from being compared.
        self._order: list[tuple[float, str, int, Account]] = []
        self._accounts: dict[str, Account] = {}
        self._numbers = itertools.count()
        self._now = -math.inf

    def put(self, tenant: str, account: Account, now: float) -> None:
        """Adds a tenant that may get a turn."""
        self.remove(tenant)
        self._accounts[tenant] = account
        self.weight += account.weight
        heapq.heappush(self._order, self._entry(tenant, account, now))

    def remove(self, tenant: str) -> None:
        """Removes a tenant that gets no turn."""
        account = self._accounts.pop(tenant, None)
        if account is not None:
            self.weight -= account.weight

    def take(self, tenant: str) -> None:
        """Removes a tenant for its turn; it has to be added again for the next plan."""
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

    No standing counts as worse than the best by more than the debt. A tenant that had a turn is
    removed from the standings.
    """

    def __init__(self, standings: Standings, capacity: int, now: float) -> None:
        self._standings = standings
        self._now = now
        # Tenants that were served and may be served again.
        self._served: list[_Turn] = []
        best = standings.best(now)
        self._limit = best[0] + DEBT_SECONDS * capacity / standings.weight if best else 0.0

    def __bool__(self) -> bool:
        return bool(self._served) or self._standings.best(self._now) is not None

    def next(self) -> tuple[str, int]:
        """The next tenant, and how many places it gets before the turn of another."""
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
        """The best tenant that was not served yet."""
        best = self._standings.best(self._now)
        if best is None:
            return None
        standing, tenant, weight = best
        return _Turn(min(standing, self._limit), standing, tenant, weight)

    def served(self, count: int) -> None:
        """Counts the places that the current tenant took."""
        turn = self._served[0]
        step = count * AHEAD_SECONDS / turn.weight
        heapq.heapreplace(
            self._served, _Turn(turn.rank + step, turn.standing + step, turn.tenant, turn.weight)
        )

    def drop(self) -> None:
        """Removes the current tenant, which takes no more places."""
        heapq.heappop(self._served)
