"""Prepares a restored backup for service: starts a new restore epoch and revokes all leases."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from taskyard_taskdb.storage.pool import Tx
from taskyard_taskdb.storage.statements import statement


@dataclass(frozen=True, slots=True)
class Restored:
    """The new restore epoch, and the number of sessions closed and leases revoked."""

    epoch: int
    sessions: int
    leases: int


async def mark_restored(tx: Tx, grace: timedelta) -> Restored:
    """Start a new restore epoch: earlier resume tokens and leases are rejected from now on.

    Leased tasks are redistributed after `grace`, as after the loss of a runner.
    """
    row = await tx.fetch_row(statement("bump_restore_epoch"))
    assert row is not None, "the migrations insert a restore epoch"
    sessions = await tx.execute(statement("close_all_sessions"))
    leases = await tx.execute(statement("revoke_all_leases"), {"grace": grace})
    return Restored(row[0], sessions, leases)
