"""The leader lock: one replica at a time holds the leadership of housekeeping, for a term that it renews."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from taskyard_taskdb.storage.pool import Tx
from taskyard_taskdb.storage.statements import statement

TTL = timedelta(seconds=10)


class LeadershipLost(Exception):
    """The replica does not lead any more; the transaction must be rolled back."""


@dataclass(frozen=True, slots=True)
class Term:
    """A term of a leader; the epoch grows with every term. `database_start` is the start of PostgreSQL."""

    holder: str
    epoch: int
    database_start: datetime


async def acquire(tx: Tx, holder: str, ttl: timedelta = TTL) -> Term | None:
    """Acquire or renew the leadership; None while another replica holds it."""
    row = await tx.fetch_row(statement("acquire_leadership"), {"holder": holder, "ttl": ttl})
    return Term(holder, *row) if row else None


async def check(tx: Tx, term: Term) -> None:
    """Lock the leadership for the rest of this transaction. Raises LeadershipLost."""
    found = await tx.fetch(statement("check_leadership"), {"holder": term.holder, "epoch": term.epoch})
    if not found:
        raise LeadershipLost(f"term {term.epoch} of {term.holder} is over")


async def store_grace(tx: Tx, term: Term, grace: timedelta) -> None:
    """Store that this term may expire leases after `grace`, counted from now. Raises LeadershipLost."""
    await check(tx, term)
    params = {"epoch": term.epoch, "database_start": term.database_start, "grace": grace}
    await tx.execute(statement("store_grace"), params)


async def seconds_until_reaping(tx: Tx) -> float | None:
    """Return in how many seconds the leader may expire leases, 0 if it may now; None without a leader."""
    row = await tx.fetch_row(statement("read_grace"))
    return row[0] if row else None


async def release(tx: Tx, term: Term) -> None:
    """Release the leadership, so that another replica need not wait until the term expires."""
    await tx.execute(statement("release_leadership"), {"holder": term.holder, "epoch": term.epoch})
