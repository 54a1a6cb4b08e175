"""What an operator runs against the database itself: the check of the audit, and the end of a restore."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from taskyard_taskdb.settings import DatabaseSettings, RestoredSettings, VerifyAuditSettings
from taskyard_taskdb.storage.audit import seals
from taskyard_taskdb.storage.audit.seals import SealFinding
from taskyard_taskdb.storage.housekeeping.restore import Restored, mark_restored
from taskyard_taskdb.storage.pool import Pool, PoolOptions, Tx

T = TypeVar("T")


async def verify_audit(settings: VerifyAuditSettings) -> list[SealFinding]:
    """What of the change log is not as it was sealed."""

    async def work(tx: Tx) -> list[SealFinding]:
        findings = await seals.verify_seals(tx, settings.after)
        if settings.known_seal is not None:
            findings += await seals.check_known(tx, *settings.known_seal)
        return findings

    return await _alone(settings, work)


async def restored(settings: RestoredSettings) -> Restored:
    """Make a restored database ready to serve."""
    return await _alone(settings, lambda tx: mark_restored(tx, settings.grace))


async def _alone(settings: DatabaseSettings, work: Callable[[Tx], Awaitable[T]]) -> T:
    pool = Pool(settings.database_url, PoolOptions(size=1, reserve=1))
    await pool.open()
    try:
        return await pool.run(work)
    finally:
        await pool.close()
