"""What schedulers read beside the lanes: placement classes, tenant shares, leases whose holder must act."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from taskyard_taskdb.storage import arrays
from taskyard_taskdb.storage.lease.lease import LeaseVerdict
from taskyard_taskdb.storage.lease.renewals import ABORT, verdict_of
from taskyard_taskdb.storage.pool import Tx
from taskyard_taskdb.storage.statements import statement
from taskyard_taskdb.storage.transition.task_rows import Key

# By tier: free, standard, premium, enterprise.
_WEIGHTS = {1: 1, 2: 10, 3: 50, 4: 100}

ClassKey = tuple[str, int]
"""Tenant and class."""


class Share(NamedTuple):
    """A tenant's part of the capacity, and its limits."""

    tenant_id: str
    tier: int
    weight: int
    paused: bool
    # Claims that its limit still allows; -1 is unlimited.
    claimable_count: int
    paused_task_types: tuple[str, ...]


async def read_classes(tx: Tx, keys: Iterable[ClassKey]) -> dict[ClassKey, bytes]:
    """Definitions of placement classes, serialised."""
    wanted = sorted(set(keys))
    if not wanted:
        return {}
    params = {
        "tenant_ids": arrays.texts([key[0] for key in wanted]),
        "class_ids": arrays.bigints([key[1] for key in wanted]),
    }
    rows = await tx.fetch(statement("class_definitions"), params)
    return {(tenant_id, class_id): definition for tenant_id, class_id, definition in rows}


async def read_shares(tx: Tx, tenant_ids: Sequence[str] | None = None) -> list[Share]:
    """These tenants, or all."""
    params = {"tenant_ids": None if tenant_ids is None else arrays.texts(tenant_ids)}
    rows = await tx.fetch(statement("tenant_shares"), params)
    return [
        Share(tenant_id, tier, weight or _WEIGHTS[tier], paused, claimable, tuple(types or ()))
        for tenant_id, tier, weight, paused, claimable, types in rows
    ]


async def read_verdicts(tx: Tx, keys: Iterable[Key] | None = None) -> dict[str, list[LeaseVerdict]]:
    """By runner: leases of these tasks, or all, with a requested action or just revoked."""
    wanted = None if keys is None else sorted(keys)
    params = {
        "tenant_ids": None if wanted is None else arrays.texts([key[0] for key in wanted]),
        "task_ids": None if wanted is None else arrays.texts([key[1] for key in wanted]),
        "runner_ids": None,
    }
    found: dict[str, list[LeaseVerdict]] = {}
    for row in await tx.fetch(statement("asked_leases"), params):
        found.setdefault(row[0], []).append(verdict_of(row))
    for row in await tx.fetch(statement("revoked_leases"), params):
        found.setdefault(row[0], []).append(verdict_of((*row[:5], ABORT, row[5], None)))
    return found
