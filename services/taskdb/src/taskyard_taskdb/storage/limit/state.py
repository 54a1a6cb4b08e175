"""What the limits of a task, or of a spec, are like now: for explanations."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from taskyard_taskdb.domain.limit import Closed, LimitUse
from taskyard_taskdb.storage.limit import admission
from taskyard_taskdb.storage.limit import book as books
from taskyard_taskdb.storage.pool import Tx
from taskyard_taskdb.storage.statements import statement


class LimitState(NamedTuple):
    """A use, the bound that leaves no room for it, and who waits before."""

    use: LimitUse
    missing: bool
    closed: Closed | None
    ahead: int
    # The task waits in the order of this limit.
    waits: bool


async def of_task(tx: Tx, tenant_id: str, task_id: str) -> list[LimitState]:
    """The limits of a task that waits for them."""
    uses = (await admission.uses_of(tx, [(tenant_id, task_id)])).get((tenant_id, task_id), [])
    return await of_uses(tx, tenant_id, uses, task_id)


async def of_uses(tx: Tx, tenant_id: str, uses: Sequence[LimitUse], task_id: str = "") -> list[LimitState]:
    """The limits of a spec, without a lock."""
    if not uses:
        return []
    keys = [(tenant_id, use.limit_id) for use in uses]
    book = await books.peek(tx, keys)
    await book.load_totals(tx, sorted(book.limits))
    await book.load(tx, [(tenant_id, use) for use in uses])
    found = []
    for use in sorted(uses):
        ahead, waits = await _place(tx, tenant_id, use, task_id)
        closed = book.find_closed(tenant_id, use)
        found.append(LimitState(use, (tenant_id, use.limit_id) not in book.limits, closed, ahead, waits))
    return found


async def _place(tx: Tx, tenant_id: str, use: LimitUse, task_id: str) -> tuple[int, bool]:
    params = {"tenant_id": tenant_id, "limit_id": use.limit_id, "key": use.key, "task_id": task_id}
    row = await tx.fetch_row(statement("place_of_waiter"), params)
    assert row is not None
    wait_time: datetime | None = row[1]
    return row[0], wait_time is not None
