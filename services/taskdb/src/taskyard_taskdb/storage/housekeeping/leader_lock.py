"""The leader row: one replica at a time holds the leadership of housekeeping, for a term that it renews."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from taskyard_taskdb.storage.pool import Tx
from taskyard_taskdb.storage.statements import statement

TTL = timedelta(seconds=10)


class LeadershipLost(Exception):
    """The leadership is not held any more: nothing of the transaction may be kept."""


@dataclass(frozen=True, slots=True)
class Term:
    """A term in leadership; the epoch grows with every new one. `database_start` tells databases apart."""

    holder: str
    epoch: int
    database_start: datetime


async def acquire(tx: Tx, holder: str) -> Term | None:
    """Take or renew the leadership; None while another holds it."""
    row = await tx.fetch_row(statement("acquire_leadership"), {"holder": holder, "ttl": TTL})
    return Term(holder, *row) if row else None


async def check(tx: Tx, term: Term) -> None:
    """Keep the leadership for the rest of this transaction. Raises LeadershipLost."""
    found = await tx.fetch(statement("check_leadership"), {"holder": term.holder, "epoch": term.epoch})
    if not found:
        raise LeadershipLost(f"term {term.epoch} of {term.holder} is over")


async def store_grace(tx: Tx, term: Term, grace: timedelta) -> None:
    """Let everybody know from when on this term may reap; `grace` counts from now. Raises LeadershipLost."""
    await check(tx, term)
    params = {"epoch": term.epoch, "database_start": term.database_start, "grace": grace}
    await tx.execute(statement("store_grace"), params)


async def seconds_until_reaping(tx: Tx) -> float | None:
    """In how many seconds the leader may reap, 0 if it may; None without a leader."""
    row = await tx.fetch_row(statement("read_grace"))
    return row[0] if row else None


async def release(tx: Tx, term: Term) -> None:
    """Give the leadership up, so that another need not wait for the term to run out."""
    await tx.execute(statement("release_leadership"), {"holder": term.holder, "epoch": term.epoch})
