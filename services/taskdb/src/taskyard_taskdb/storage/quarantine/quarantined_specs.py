"""Quarantined specs: added when a task of theirs has lost too many runners, kept until they are released."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from taskyard_taskdb.domain.change import ChangeEvent
from taskyard_taskdb.domain.spec_digest import spec_digest
from taskyard_taskdb.domain.task import Actor, TaskState
from taskyard_taskdb.domain.words import ActorType
from taskyard_taskdb.storage import arrays
from taskyard_taskdb.storage.change_log.append import append_change
from taskyard_taskdb.storage.pool import Tx
from taskyard_taskdb.storage.statements import statement
from taskyard_taskdb.storage.transition.task_rows import Key

SYSTEM = Actor(ActorType.SYSTEM, "quarantine")


@dataclass(frozen=True, slots=True)
class Quarantine:
    """A quarantined spec; fields in the column order of list_quarantines."""

    tenant_id: str
    digest: str
    task_type: str
    runner_loss_count: int
    create_time: datetime
    example_task_id: str


async def note(tx: Tx, given_up: Sequence[TaskState]) -> None:
    """Quarantine the specs of tasks that this transaction ends because they lost too many runners."""
    params = {
        "tenant_ids": arrays.texts([task.tenant_id for task in given_up]),
        "task_ids": arrays.texts([task.task_id for task in given_up]),
    }
    losses = {(task.tenant_id, task.task_id): task.runner_loss_count for task in given_up}
    found = [
        (row[0], spec_digest(row[3]), row[2], row[1])
        for row in await tx.fetch(statement("read_specs"), params)
    ]
    for tenant_id, digest, task_type, task_id in sorted(found):
        values = {
            "tenant_id": tenant_id,
            "digest": digest,
            "task_type": task_type,
            "losses": losses[(tenant_id, task_id)],
            "task_id": task_id,
        }
        row = await tx.fetch_row(statement("add_quarantine"), values)
        if row is not None and row[0]:
            (now,) = (await tx.fetch("SELECT clock_timestamp()"))[0]
            details = {"task": task_id}
            await append_change(
                tx, ChangeEvent.QUARANTINE_CREATED, tenant_id, digest, SYSTEM, now, details=details
            )


async def page(tx: Tx, tenant_id: str | None, after: Key, size: int) -> list[Quarantine]:
    """Return a page of quarantined specs, of one tenant or of all."""
    params = {"tenant_id": tenant_id, "after_tenant": after[0], "after_digest": after[1], "page": size}
    return [Quarantine(*row) for row in await tx.fetch(statement("list_quarantines"), params)]
