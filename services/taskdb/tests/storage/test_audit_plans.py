"""Queries of the audit use indexes, at any length of the log and selectivity of the filter."""

import re
from collections.abc import AsyncIterator
from typing import Any

import pytest

from taskyard_taskdb.domain import filter as filters
from taskyard_taskdb.domain.filter_fields import AUDIT_FIELDS
from taskyard_taskdb.storage.audit import listing as audit_listing
from taskyard_taskdb.storage.audit.listing import AuditQuery
from taskyard_taskdb.storage.pool import Pool, PoolOptions, Tx

ROWS = 60_000
FILL = """
INSERT INTO changes (time, version, event, actor_type, phase, tenant_id, resource_id, actor_id)
SELECT now(), 1, 1 + n %% 3, 4, 1, CASE n WHEN 777 THEN 'rare' ELSE 'default' END, 't' || n, 'user-' || n %% 7
FROM generate_series(1, %s) AS n
"""
# Of a partition with anything in it: those of months to come are empty, and have no cost.
SCAN = re.compile(r"Seq Scan on \w+(?: \w+)?  \(cost=(?!0\.00\.\.0\.00)")
SUMMARISE = """
SELECT brin_summarize_new_values(i.indexrelid) FROM pg_index i
JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_am a ON a.oid = c.relam
WHERE a.amname = 'brin' AND c.relkind = 'i' AND i.indrelid::regclass::text LIKE 'changes%%'
"""


class Explaining(Tx):
    """A transaction that notes the plan of each query of the audit."""

    def __init__(self, tx: Tx) -> None:
        super().__init__(tx.connection)
        self.plans: list[str] = []

    async def fetch(self, sql: str, params: Any = None, *, prepare: bool = True) -> list[tuple[Any, ...]]:
        if "ORDER BY c.id" in sql:
            explain = f"EXPLAIN (ANALYZE, BUFFERS, TIMING OFF) {sql}"
            self.plans.append(
                "\n".join(row[0] for row in await super().fetch(explain, params, prepare=False))
            )
        return await super().fetch(sql, params, prepare=prepare)


@pytest.fixture
async def tx(database_url: str) -> AsyncIterator[Explaining]:
    pool = Pool(database_url, PoolOptions(size=2))
    await pool.open()
    async with pool.transaction() as appended:
        await appended.execute(FILL, (ROWS,))
    async with pool.reading() as summarising:
        await summarising.execute("ANALYZE changes")
        await summarising.fetch(SUMMARISE)
    async with pool.transaction(planned=True) as transaction:
        yield Explaining(transaction)
    await pool.close()


CASES = (
    (None, 'resource = "tenants/default/tasks/t4321"', "Bitmap Index Scan", 1),
    ("default", 'resource = "tenants/default/tasks/t4321"', "Bitmap Index Scan", 1),
    ("rare", "", "Bitmap Index Scan", 1),
    ("default", "", "Index Scan Backward", 50),
    ("default", 'event_type = "task.scheduled"', "Index Scan Backward", 50),
    ("default", 'actor.id = "user-3"', "Index Scan Backward", 50),
    ("default", 'actor.id = "nobody"', "Bitmap Index Scan", 0),
    ("default", 'event_type = "task.archived"', "Bitmap Index Scan", 0),
)


async def test_every_audit_filter_uses_an_index(tx: Explaining) -> None:
    for tenant_id, text, index, count in CASES:
        condition = filters.parse(text, AUDIT_FIELDS) if text else None
        found = await audit_listing.list_page(tx, AuditQuery(tenant_id, condition), None, 50)
        assert len(found.changes) == count
        # The last query looks for starts that came with their success, the one before for rows.
        assert index in tx.plans[-2], tx.plans[-2]
        assert not any(SCAN.search(plan) for plan in tx.plans), tx.plans[-1]
