"""Ended runs, as far as reports and renewals have to know them."""

from __future__ import annotations

from collections.abc import Sequence

from taskyard_taskdb.domain.report import EndedRun
from taskyard_taskdb.domain.words import RunState
from taskyard_taskdb.storage import arrays
from taskyard_taskdb.storage.pool import Tx
from taskyard_taskdb.storage.statements import statement

RunKey = tuple[str, str, int]
"""Tenant, task and generation."""


async def find_runs(tx: Tx, keys: Sequence[RunKey]) -> dict[RunKey, EndedRun]:
    """Those of the runs that have ended."""
    params = {
        "tenant_ids": arrays.texts([key[0] for key in keys]),
        "task_ids": arrays.texts([key[1] for key in keys]),
        "generations": arrays.bigints([key[2] for key in keys]),
    }
    rows = await tx.fetch(statement("find_runs"), params)
    return {
        (tenant_id, task_id, generation): EndedRun(lease_id, runner_id, RunState(state), started)
        for tenant_id, task_id, generation, lease_id, runner_id, state, started in rows
    }
