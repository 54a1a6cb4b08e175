"""Pages in the order of the end: spans of time that hold enough ended tasks, and not many more.

End times have a BRIN index only, which finds the tasks of a span and not the next task.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from taskyard_taskdb.storage.pool import Tx
from taskyard_taskdb.storage.statements import statement

_FIRST_WIDTH = timedelta(minutes=1)
# What a page may have to sort.
_MANY = 20_000
_BISECTIONS = 12


async def far_edge(
    tx: Tx, tenant_id: str | None, after: datetime | None, descending: bool, size: int
) -> datetime | None:
    """Where a span from `after` on ends that holds at least `size` ended tasks; None if the rest does not."""
    row = await tx.fetch_row(statement("oldest_task"), {"tenant": tenant_id})
    assert row is not None, "an aggregate has a row"
    oldest, now = row
    if oldest is None:
        return None
    near, far = (now, oldest) if descending else (oldest, now)
    near = near if after is None else after
    reach = near - far if descending else far - near
    width, narrow = _FIRST_WIDTH, timedelta(0)
    while width < reach:
        found = await _count(tx, tenant_id, near, -width if descending else width)
        if found >= size:
            chosen = await _narrowed(tx, tenant_id, near, descending, size, narrow, width)
            return near - chosen if descending else near + chosen
        narrow, width = width, width * 2
    return None


async def _narrowed(
    tx: Tx,
    tenant_id: str | None,
    near: datetime,
    descending: bool,
    size: int,
    narrow: timedelta,
    wide: timedelta,
) -> timedelta:
    """A width between one that holds too few tasks and one that holds enough, perhaps far too many."""
    for _ in range(_BISECTIONS):
        if await _count(tx, tenant_id, near, -wide if descending else wide) < _MANY:
            break
        middle = (narrow + wide) / 2
        if await _count(tx, tenant_id, near, -middle if descending else middle) >= size:
            wide = middle
        else:
            narrow = middle
    return wide


async def _count(tx: Tx, tenant_id: str | None, near: datetime, span: timedelta) -> int:
    first, last = sorted((near, near + span))
    params = {"tenant": tenant_id, "first": first, "last": last, "limit": _MANY}
    row = await tx.fetch_row(statement("count_ended"), params)
    assert row is not None, "an aggregate has a row"
    count: int = row[0]
    return count
