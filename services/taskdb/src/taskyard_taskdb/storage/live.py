"""Live tasks among the ended ones: which they are, or since when there are any.

No index tells live from ended tasks, because every outcome would have to move an entry of it. Live work has
tables of its own instead.
"""

from __future__ import annotations

from sqlalchemy import ARRAY, ColumnElement, Text, and_, any_, false, literal, true

from taskyard_taskdb.storage.condition import LIVE_TASKS
from taskyard_taskdb.storage.pool import Tx
from taskyard_taskdb.storage.schema import tasks
from taskyard_taskdb.storage.statements import statement

# As many are looked up by their ids; where there are more, a scan in the order of creation meets them soon.
FEW = 2000


async def live_tasks(tx: Tx, tenant_id: str | None) -> tuple[ColumnElement[bool], bool]:
    """What a live task of the tenant satisfies, and whether an index leads to just those."""
    if tenant_id is None:
        return LIVE_TASKS, False
    params = {"tenant": tenant_id, "limit": FEW + 1}
    ids = {row[0] for row in await tx.fetch(statement("live_tasks"), params)}
    if len(ids) <= FEW:
        among = tasks.c.task_id == any_(literal(sorted(ids), ARRAY(Text)))
        return and_(LIVE_TASKS, among if ids else false()), True
    row = await tx.fetch_row(statement("oldest_live"), {"tenant": tenant_id})
    oldest = row[0] if row is not None else None
    return and_(LIVE_TASKS, true() if oldest is None else tasks.c.create_time >= oldest), False
