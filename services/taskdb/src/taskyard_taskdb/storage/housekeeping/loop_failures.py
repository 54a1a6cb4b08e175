"""Loops of housekeeping that ended with an error: the last failure of each, for the doctor."""

from __future__ import annotations

from taskyard_taskdb.storage.pool import Tx
from taskyard_taskdb.storage.statements import statement

MAX_ERROR = 500


async def record(tx: Tx, loop: str, error: str) -> None:
    """Store the failure of a loop in place of its earlier one."""
    params = {"key": f"loop:{loop}", "error": error[:MAX_ERROR].replace("\0", "NUL")}
    await tx.execute(statement("record_loop_failure"), params)
