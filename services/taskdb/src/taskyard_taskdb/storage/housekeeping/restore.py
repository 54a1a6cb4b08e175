"""What a restored backup needs before it serves: another history, and no lease of the time before."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from taskyard_taskdb.storage.pool import Tx
from taskyard_taskdb.storage.statements import statement


@dataclass(frozen=True, slots=True)
class Restored:
    """The new restore epoch, and how many sessions and leases were ended."""

    epoch: int
    sessions: int
    leases: int


async def mark_restored(tx: Tx, grace: timedelta) -> Restored:
    """Begins another history: resume tokens of before are refused, and so are holders of leases.

    The tasks that were leased are given to others once `grace` has passed, as after the loss of a runner.
    """
    row = await tx.fetch_row(statement("bump_restore_epoch"))
    assert row is not None, "the schema comes with a restore epoch"
    sessions = await tx.execute(statement("close_all_sessions"))
    leases = await tx.execute(statement("revoke_all_leases"), {"grace": grace})
    return Restored(row[0], sessions, leases)
