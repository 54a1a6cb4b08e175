"""What tenants have used of the runners: sampled from the leases by the leader, read by every replica."""

from __future__ import annotations

from datetime import datetime

from taskyard_taskdb.storage.pool import Tx
from taskyard_taskdb.storage.statements import statement


async def sample(tx: Tx) -> int:
    """Add what was held since the last sample; how many tenants hold or held something."""
    return await tx.execute(statement("sample_usage"), {})


async def forget(tx: Tx) -> int:
    """Forget tenants that have used nothing for hours."""
    return await tx.execute(statement("forget_usage"), {})


async def sampled_since(tx: Tx, after: datetime) -> dict[str, datetime]:
    """The tenants whose use was sampled after this time, and when."""
    rows = await tx.fetch(statement("sampled_tenants"), {"after": after})
    return {row[0]: row[1] for row in rows}
