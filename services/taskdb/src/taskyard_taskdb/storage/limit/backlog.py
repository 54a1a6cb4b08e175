"""What is left to the sweep: limits that open by time, were raised or deleted, or have many waiters."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from taskyard_taskdb.domain.limit import LimitUse
from taskyard_taskdb.storage.dependency.release import Released
from taskyard_taskdb.storage.limit import admission, limits
from taskyard_taskdb.storage.limit import book as books
from taskyard_taskdb.storage.limit.admission import SWEEP_PAGE, Page
from taskyard_taskdb.storage.limit.book import Book, LimitKey
from taskyard_taskdb.storage.notify.bus import CommitNotice
from taskyard_taskdb.storage.pool import Tx
from taskyard_taskdb.storage.statements import statement
from taskyard_taskdb.storage.transition.write import write

# Limits of one transaction.
LIMITS = 20


class Due(NamedTuple):
    """The database's time, when the next limit is to be tried, and whether one is to be tried now."""

    now: datetime
    time: datetime | None
    untried: bool

    @property
    def seconds(self) -> float | None:
        """How long there is nothing to do; None if that depends on others."""
        if self.untried:
            return 0.0
        return None if self.time is None else max(0.0, (self.time - self.now).total_seconds())


@dataclass(slots=True)
class Progress:
    """The notice of a transaction, and how many limits it looked at."""

    notice: CommitNotice
    count: int = 0


async def next_due(tx: Tx) -> Due:
    """When there is something to do."""
    row = await tx.fetch_row(statement("next_limit"))
    assert row is not None
    return Due(*row)


async def advance(tx: Tx, page: Page = SWEEP_PAGE) -> Progress:
    """Admit what waits for limits that are due."""
    due = await next_due(tx)
    if due.seconds is None or due.seconds > 0:
        return Progress(CommitNotice())
    rows = await tx.fetch(statement("due_limits"), {"now": due.now, "page": LIMITS})
    keys = [(row[0], row[1]) for row in rows]
    if not keys:
        return Progress(CommitNotice())
    book = await books.lock(tx, [*keys, *await _named_beside(tx, keys, page)])
    await tx.execute(statement("note_tried"), books.limit_arrays(keys))
    for key in keys:
        if key in book.limits:
            # All that wait are looked at, so that an earlier time has nothing to add.
            book.limits[key].try_time = None
    named = [(tenant_id, LimitUse(limit_id)) for tenant_id, limit_id in keys]
    settled = await admission.admit(tx, book, named, page=page, scan=True)
    await _remove_deleted(tx, book, keys)
    notice = await write(tx, [], released=Released(settled.steps))
    return Progress(notice, len(keys))


async def _named_beside(tx: Tx, keys: list[LimitKey], page: Page) -> list[LimitKey]:
    """Other limits that the waiters of these name, read without a lock: limits are locked in one order."""
    seen = await books.peek(tx, keys)
    waiters = await admission.choose(tx, seen, keys, (), page, scan=True)
    uses = await admission.uses_of(tx, [waiter.task for waiter in waiters])
    return [(key[0], use.limit_id) for key, found in uses.items() for use in found]


async def _remove_deleted(tx: Tx, book: Book, keys: list[LimitKey]) -> None:
    """Remove deleted limits that nobody holds or waits for."""
    idle = [key for key in keys if key in book.limits and book.limits[key].deleted and not book.held(key)]
    if idle:
        await limits.remove_idle(tx, idle)
