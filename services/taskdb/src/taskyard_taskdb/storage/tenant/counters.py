"""What limited tenants use: waiting and leased tasks and the tokens of their rate, exact across replicas.

A tenant with a limit has one row of tenant_counters, written in the very transactions that change what it
counts; any other tenant has none and costs nothing. The row is the last lock of a transaction.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from taskyard_taskdb.domain.quota import Quota
from taskyard_taskdb.storage import arrays
from taskyard_taskdb.storage.pool import Row, Tx
from taskyard_taskdb.storage.statements import statement


@dataclass(slots=True)
class Delta:
    """By how much a transaction changes the counts of each tenant."""

    pending: Counter[str] = field(default_factory=Counter)
    leased: Counter[str] = field(default_factory=Counter)

    def move(self, tenant_id: str, pending: int, leased: int) -> None:
        """Note a change of one tenant."""
        if pending:
            self.pending[tenant_id] += pending
        if leased:
            self.leased[tenant_id] += leased

    def tenants(self) -> list[str]:
        """Whose counts change, in key order."""
        return sorted(t for t in {*self.pending, *self.leased} if self.pending[t] or self.leased[t])


@dataclass(frozen=True, slots=True)
class Counts:
    """The counters of a tenant, its limits, and its tokens at a time of the database."""

    tenant_id: str
    pending: int
    leased: int
    quota: Quota
    tokens: float
    time: datetime


def _read(row: Row) -> Counts:
    tenant_id, pending, leased, concurrent, queued, rate, burst, tokens, refill_time, time = row
    quota = Quota(concurrent, queued, rate, burst, 1)
    return Counts(tenant_id, pending, leased, quota, quota.refilled(tokens, time - refill_time), time)


async def hold_writers(tx: Tx) -> None:
    """Wait for every transaction that has counted tasks to end, and hold up new ones to the end of this one.

    Each of them opens the table for writing, also where none of its rows is concerned; what is read
    afterwards is complete.
    """
    await tx.execute("LOCK TABLE tenant_counters IN SHARE ROW EXCLUSIVE MODE", prepare=False)


async def set_limits(tx: Tx, tenant_id: str, quota: Quota, *, counted: bool) -> None:
    """Let a locked tenant have these limits; `counted`: it has counters already.

    The first limit of a tenant waits for all writers of tasks and holds up new ones while it counts.
    """
    params = _limits(tenant_id, quota)
    if not quota.counted:
        await tx.execute(statement("end_counting"), (tenant_id,))
    elif counted:
        await tx.execute(statement("set_limits"), params)
    else:
        await hold_writers(tx)
        await tx.execute(statement("begin_counting"), params)


async def begin(tx: Tx, tenant_id: str, quota: Quota) -> None:
    """Count a tenant that is made in this transaction, and so has no tasks."""
    await tx.execute(statement("begin_counting"), _limits(tenant_id, quota))


def _limits(tenant_id: str, quota: Quota) -> dict[str, object]:
    return {
        "tenant_id": tenant_id,
        "max_concurrent_tasks": quota.max_concurrent_tasks,
        "max_queue_depth": quota.max_queue_depth,
        "rate_limit_per_sec": quota.rate_limit_per_sec,
        "rate_burst": quota.rate_burst,
    }


async def add(tx: Tx, delta: Delta) -> set[str]:
    """Write changes of counts; the tenants that have counters at all."""
    tenants = delta.tenants()
    if not tenants:
        return set()
    params = {
        "tenant_ids": arrays.texts(tenants),
        "pending": arrays.integers([delta.pending[t] for t in tenants]),
        "leased": arrays.integers([delta.leased[t] for t in tenants]),
    }
    return {row[0] for row in await tx.fetch(statement("count_tasks"), params)}


async def lock(tx: Tx, tenant_ids: Iterable[str]) -> dict[str, Counts]:
    """The counters of those of these tenants that have some, which stay so to the end of the transaction."""
    params = {"tenant_ids": arrays.texts(sorted(set(tenant_ids)))}
    return {row[0]: _read(row) for row in await tx.fetch(statement("lock_counters"), params)}


async def read(tx: Tx, tenant_ids: Iterable[str]) -> dict[str, Counts]:
    """The counters of those of these tenants that have some, unlocked."""
    params = {"tenant_ids": arrays.texts(sorted(set(tenant_ids)))}
    return {row[0]: _read(row) for row in await tx.fetch(statement("read_counters"), params)}


async def take_tokens(tx: Tx, left: Sequence[tuple[Counts, float]]) -> None:
    """Write how many tokens are left in locked buckets."""
    await tx.execute(
        statement("take_tokens"),
        {
            "tenant_ids": arrays.texts([counts.tenant_id for counts, _ in left]),
            "tokens": arrays.floats([tokens for _, tokens in left]),
            "times": arrays.timestamps([counts.time for counts, _ in left]),
        },
    )


async def count_waiting(tx: Tx, tenant_id: str) -> tuple[int, int]:
    """Waiting and leased tasks of a tenant without counters."""
    row = await tx.fetch_row(statement("count_waiting"), {"tenant_id": tenant_id})
    assert row is not None
    return row[0], row[1]


@dataclass(frozen=True, slots=True)
class Discrepancy:
    """Counters that differ from a recount."""

    tenant_id: str
    pending: int
    leased: int
    counted_pending: int
    counted_leased: int


async def compare(tx: Tx, *, repair: bool = False) -> list[Discrepancy]:
    """Counters that differ from a recount; while tasks are being written, only those found with `repair`,
    which holds up writers and corrects them, are certain."""
    if repair:
        await hold_writers(tx)
    found = [Discrepancy(*row) for row in await tx.fetch(statement("off_counters"))]
    if repair and found:
        await tx.execute(
            statement("correct_counters"),
            {
                "tenant_ids": arrays.texts([off.tenant_id for off in found]),
                "pending": arrays.bigints([off.counted_pending for off in found]),
                "leased": arrays.bigints([off.counted_leased for off in found]),
            },
        )
    return found
