"""The locked limits of a transaction: what is held and has started, as the transaction leaves it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from taskyard_taskdb.domain import limit
from taskyard_taskdb.domain.limit import UNBOUNDED, Closed, Entry, Gauge, LimitUse, Rate, Rules
from taskyard_taskdb.storage import arrays
from taskyard_taskdb.storage.pool import Tx
from taskyard_taskdb.storage.statements import statement
from taskyard_taskdb.storage.transition.load import database_time

LimitKey = tuple[str, str]
"""Tenant and limit."""

GaugeKey = tuple[str, str, str]
"""Tenant, limit and key."""


@dataclass(slots=True)
class LockedLimit:
    """A locked row of `limits`."""

    rules: Rules
    last_key: str
    try_time: datetime | None
    deleted: bool

    def wake(self, time: datetime) -> None:
        """Make the sweep try it at this time at the latest."""
        self.try_time = time if self.try_time is None else min(self.try_time, time)


class _Window(NamedTuple):
    """The starts of a limit, in total or of a key, in the order of the key of `limit_starts`."""

    tenant_id: str
    limit_id: str
    of_key: bool
    key: str


class Book:
    """Limits that this transaction has locked; one that does not exist bounds nothing."""

    def __init__(
        self,
        now: datetime,
        looked: Set[LimitKey],
        limits: dict[LimitKey, LockedLimit],
        totals: dict[LimitKey, Gauge],
    ) -> None:
        self.now = now
        # The limits that were to be locked, also those that do not exist.
        self.looked = looked
        self.limits = limits
        self._totals = totals
        self._keys: dict[GaugeKey, Gauge] = {}
        self._changed_keys: set[GaugeKey] = set()
        self._stored_keys: set[GaugeKey] = set()
        self._started: dict[_Window, int] = {}
        self._windows: dict[_Window, Gauge] = {}

    def rules(self, key: LimitKey) -> Rules:
        """What it bounds."""
        found = self.limits.get(key)
        return found.rules if found is not None else UNBOUNDED

    def shares_bound(self, key: LimitKey) -> bool:
        """Whether a release of one key may admit tasks of another."""
        rules = self.rules(key)
        return bool(rules.max_running or rules.starts) or rules.bounds_nothing

    def held(self, key: LimitKey) -> int:
        """The units that are held of it."""
        return self._totals[key].held

    def in_use(self, key: LimitKey, of: str) -> tuple[Gauge, Gauge]:
        """The gauges of a limit as a whole and of one of its keys."""
        return self._totals[key], self._keys[(*key, of)]

    async def load_totals(self, tx: Tx, keys: Iterable[LimitKey]) -> None:
        """Read what has started lately under these limits, where that is bounded in total."""
        await self._load_starts(
            tx, [_Window(*key, False, "") for key in keys if self.rules(key).starts is not None]
        )

    async def load(self, tx: Tx, tenant_uses: Iterable[tuple[str, LimitUse]]) -> None:
        """Read what the keys of these uses hold and have started."""
        wanted = {(tenant_id, use.limit_id, use.key) for tenant_id, use in tenant_uses}
        fresh = sorted(key for key in wanted - self._keys.keys() if key[:2] in self.limits)
        if not fresh:
            return
        self._keys |= {key: Gauge() for key in fresh}
        for tenant_id, limit_id, key, held in await tx.fetch(
            statement("read_limit_keys"), _key_arrays(fresh)
        ):
            self._keys[(tenant_id, limit_id, key)].held = held
            self._stored_keys.add((tenant_id, limit_id, key))
        windows = [
            _Window(tenant_id, limit_id, True, key)
            for tenant_id, limit_id, key in fresh
            if self.rules((tenant_id, limit_id)).starts_per_key is not None
        ]
        await self._load_starts(tx, windows)

    async def _load_starts(self, tx: Tx, windows: Sequence[_Window]) -> None:
        fresh = [window for window in windows if window not in self._windows]
        if not fresh:
            return
        for window in fresh:
            key = (window.tenant_id, window.limit_id)
            self._windows[window] = self._keys[(*key, window.key)] if window.of_key else self._totals[key]
        for n, time, units in await tx.fetch(statement("read_limit_starts"), _window_arrays(fresh)):
            self._windows[fresh[n - 1]].entries.append(Entry(time, units))

    def total_closed(self, key: LimitKey) -> Closed | None:
        """The bound of all keys together that leaves no room for a single unit."""
        rules = self.rules(key)._replace(max_running_per_key=0, starts_per_key=None)
        if key not in self.limits or rules.bounds_nothing:
            return None
        return limit.find_closed(rules, self._totals[key], Gauge(), 1, self.now)

    def find_closed(self, tenant_id: str, use: LimitUse) -> Closed | None:
        """The bound that leaves no room for a use; it is loaded."""
        key = (tenant_id, use.limit_id)
        if key not in self.limits:
            return None
        total, of_key = self.in_use(key, use.key)
        return limit.find_closed(self.rules(key), total, of_key, use.units, self.now)

    def take(self, tenant_id: str, use: LimitUse) -> bool:
        """Hold the units of a use, which fits, and count its start; whether there is something to hold."""
        key = (tenant_id, use.limit_id)
        if key not in self.limits or self.limits[key].deleted:
            return False
        self._move(tenant_id, use, use.units)
        rules = self.rules(key)
        for of_key, rate in ((False, rules.starts), (True, rules.starts_per_key)):
            if rate is not None:
                window = _Window(*key, of_key, use.key if of_key else "")
                self._windows[window].add_start(use.units, self.now)
                self._started[window] = self._started.get(window, 0) + use.units
        return True

    def give_back(self, tenant_id: str, use: LimitUse) -> None:
        """Release the units of a use, which was counted and is loaded."""
        self._move(tenant_id, use, -use.units)
        key = (tenant_id, use.limit_id)
        if self.limits[key].deleted and not self._totals[key].held:
            self.limits[key].wake(self.now)

    def _move(self, tenant_id: str, use: LimitUse, units: int) -> None:
        total, of_key = self.in_use((tenant_id, use.limit_id), use.key)
        total.held += units
        of_key.held += units
        self._changed_keys.add((tenant_id, use.limit_id, use.key))

    async def write(self, tx: Tx) -> None:
        """Write everything that differs from what was read, and the times at which the sweep tries again."""
        await self._write_limits(tx)
        changed = sorted(self._changed_keys)
        kept = [key for key in changed if self._keys[key].held]
        gone = [key for key in changed if not self._keys[key].held and key in self._stored_keys]
        if kept:
            held = arrays.bigints([self._keys[key].held for key in kept])
            await tx.execute(statement("write_limit_keys"), _key_arrays(kept) | {"held": held})
        if gone:
            await tx.execute(statement("delete_limit_keys"), _key_arrays(gone))
        await self._write_starts(tx)

    async def _write_limits(self, tx: Tx) -> None:
        keys = list(self.limits)
        if not keys:
            return
        await tx.execute(
            statement("write_limits"),
            {
                **limit_arrays(keys),
                "held": arrays.bigints([self._totals[key].held for key in keys]),
                "last_keys": arrays.texts([self.limits[key].last_key for key in keys]),
                "try_times": arrays.timestamps([self.limits[key].try_time for key in keys]),
            },
        )

    async def _write_starts(self, tx: Tx) -> None:
        started = sorted(self._started)
        if started:
            rates = [self._rate(window) for window in started]
            await tx.execute(
                statement("write_limit_starts"),
                {
                    **_window_arrays(started),
                    "entry_times": arrays.timestamps(
                        [limit.entry_time(self.now, rate.per) for rate in rates]
                    ),
                    "times": arrays.timestamps([self.now] * len(started)),
                    "units": arrays.bigints([self._started[window] for window in started]),
                },
            )
        old = sorted(window for window, gauge in self._windows.items() if self._is_old(window, gauge))
        if old:
            befores = arrays.timestamps([self.now - self._rate(window).per for window in old])
            await tx.execute(statement("prune_limit_starts"), _window_arrays(old) | {"befores": befores})

    def _is_old(self, window: _Window, gauge: Gauge) -> bool:
        return bool(gauge.entries) and gauge.entries[0].time < self.now - self._rate(window).per

    def _rate(self, window: _Window) -> Rate:
        rules = self.rules((window.tenant_id, window.limit_id))
        rate = rules.starts_per_key if window.of_key else rules.starts
        assert rate is not None, "only bounded starts are counted"
        return rate


async def lock(tx: Tx, keys: Iterable[LimitKey]) -> Book:
    """Lock limits in their order; those that do not exist are left out."""
    return await _read(tx, "lock_limits", keys)


async def peek(tx: Tx, keys: Iterable[LimitKey]) -> Book:
    """The limits without a lock; nothing may be written."""
    return await _read(tx, "peek_limits", keys)


async def _read(tx: Tx, name: str, keys: Iterable[LimitKey]) -> Book:
    looked = frozenset(keys)
    rows = await tx.fetch(statement(name), limit_arrays(sorted(looked)))
    limits: dict[LimitKey, LockedLimit] = {}
    totals: dict[LimitKey, Gauge] = {}
    for tenant_id, limit_id, *columns, held, last_key, try_time, deleted, _ in rows:
        rules = UNBOUNDED if deleted else read_rules(columns)
        limits[(tenant_id, limit_id)] = LockedLimit(rules, last_key, try_time, deleted)
        totals[(tenant_id, limit_id)] = Gauge(held)
    now = max(row[-1] for row in rows) if rows else await database_time(tx)
    return Book(now, looked, limits, totals)


def read_rules(columns: Sequence[object]) -> Rules:
    """The bounds, in the order of the columns of lock_limits."""
    max_running, max_per_key, count, per, key_count, key_per = columns
    return Rules(
        max_running,  # type: ignore[arg-type]
        max_per_key,  # type: ignore[arg-type]
        None if count is None else Rate(count, per),  # type: ignore[arg-type]
        None if key_count is None else Rate(key_count, key_per),  # type: ignore[arg-type]
    )


def limit_arrays(keys: Sequence[LimitKey]) -> dict[str, object]:
    """The arrays of tenants and limits."""
    return {
        "tenant_ids": arrays.texts([key[0] for key in keys]),
        "limit_ids": arrays.texts([key[1] for key in keys]),
    }


def _key_arrays(keys: Sequence[GaugeKey]) -> dict[str, object]:
    return {
        "tenant_ids": arrays.texts([key[0] for key in keys]),
        "limit_ids": arrays.texts([key[1] for key in keys]),
        "keys": arrays.texts([key[2] for key in keys]),
    }


def _window_arrays(windows: Sequence[_Window]) -> dict[str, object]:
    return {
        "tenant_ids": arrays.texts([window.tenant_id for window in windows]),
        "limit_ids": arrays.texts([window.limit_id for window in windows]),
        "of_keys": arrays.bools([window.of_key for window in windows]),
        "keys": arrays.texts([window.key for window in windows]),
    }
