"""Stored checkpoints of tasks: written under their lease in one transaction, read in pieces."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from taskyard.errors import CheckpointSequenceConflict, LeaseNotHeld, NotFound, StaleGeneration, TaskTerminal
from taskyard_taskdb.domain.change import ChangeEvent
from taskyard_taskdb.domain.words import ActorType, Phase
from taskyard_taskdb.storage.change_log.append import TASK, ChangeRow, insert_changes
from taskyard_taskdb.storage.pool import Tx
from taskyard_taskdb.storage.report.run_logs import RunRef
from taskyard_taskdb.storage.statements import statement

PIECE = 262_144


@dataclass(frozen=True, slots=True)
class StoredCheckpoint:
    """A checkpoint without its content."""

    sequence: int
    generation: int
    size_bytes: int
    sha256: bytes
    content_type: str
    progress_percent: int
    create_time: datetime


@dataclass(frozen=True, slots=True)
class NewCheckpoint:
    """A checkpoint to store for the run that `run` names."""

    run: RunRef
    runner_id: str
    sequence: int
    sha256: bytes
    content_type: str
    progress_percent: int
    # The serialised progress of the task, made of the one it had; None leaves that as it is.
    progress: Callable[[bytes | None], bytes | None]
    data: bytes


async def write(tx: Tx, new: NewCheckpoint) -> StoredCheckpoint:
    """Store checkpoint, progress and change, and drop what lies beyond the newest ten.

    A repeat of the newest one returns it. Raises StaleGeneration, LeaseNotHeld, TaskTerminal or
    CheckpointSequenceConflict.
    """
    run = new.run
    key = {"tenant": run.tenant_id, "task": run.task_id}
    lease = await tx.fetch_row(statement("lock_lease_of_holder"), key)
    task = await tx.fetch_row(statement("lock_task_for_checkpoint"), key)
    name = f"tenants/{run.tenant_id}/tasks/{run.task_id}"
    if task is None:
        raise NotFound("task", name)
    latest, _, retry_count, runner_loss_count, generation = task
    if lease is None:
        if task[1] >= 10:
            raise TaskTerminal(name, Phase(task[1]).name)
        raise LeaseNotHeld(name, run.generation)
    if lease[0] != run.generation or lease[1] != run.lease_id:
        raise StaleGeneration(name, run.generation, max(lease[0], generation))
    if lease[2] != new.runner_id:
        raise LeaseNotHeld(name, run.generation)
    if new.sequence <= latest:
        found = await find(tx, run.tenant_id, run.task_id, new.sequence)
        if found is not None and found.sha256 == new.sha256:
            return found
        raise CheckpointSequenceConflict(name, new.sequence, latest)
    values = {
        **key,
        "sequence": new.sequence,
        "generation": run.generation,
        "lease_id": run.lease_id,
        "size": len(new.data),
        "percent": new.progress_percent,
        "progress": new.progress(lease[6]),
        "content_type": new.content_type,
        "sha256": new.sha256,
        "data": new.data,
    }
    made = await tx.fetch_row(statement("insert_checkpoint"), values)
    noted = await tx.fetch_row(statement("note_checkpoint"), values)
    await tx.execute(statement("delete_old_checkpoints"), key)
    assert made is not None and noted is not None
    change = ChangeRow(
        time=made[0],
        version=noted[0],
        generation=run.generation,
        next_attempt_time=None,
        attempt=lease[5],
        retry_count=retry_count,
        runner_loss_count=runner_loss_count,
        exit_code=None,
        resource_kind=TASK,
        event=ChangeEvent.TASK_CHECKPOINT_CREATED,
        actor_type=ActorType.RUNNER,
        phase=lease[3],
        previous_phase=lease[3],
        pending_reason=0,
        tenant_id=run.tenant_id,
        resource_id=run.task_id,
        actor_id=new.runner_id,
        runner_id=new.runner_id,
        error_code=None,
        request_id=None,
        details=f'{{"checkpoint_sequence": {new.sequence}}}',
    )
    await insert_changes(tx, [change])
    return StoredCheckpoint(
        new.sequence,
        run.generation,
        len(new.data),
        new.sha256,
        new.content_type,
        new.progress_percent,
        made[0],
    )


@dataclass(frozen=True, slots=True)
class Holder:
    """Who holds the lease of a task now."""

    generation: int
    lease_id: int
    runner_id: str


async def holder(tx: Tx, tenant_id: str, task_id: str) -> Holder | None:
    """Return who holds the lease of a task; None if nobody does."""
    row = await tx.fetch_row(statement("find_holder"), {"tenant": tenant_id, "task": task_id})
    return Holder(*row) if row else None


async def find(tx: Tx, tenant_id: str, task_id: str, sequence: int = 0) -> StoredCheckpoint | None:
    """Return a checkpoint, the newest for sequence 0; None if there is none."""
    values = {"tenant": tenant_id, "task": task_id, "sequence": sequence}
    row = await tx.fetch_row(statement("find_checkpoint"), values)
    return StoredCheckpoint(*row) if row else None


async def list_page(tx: Tx, tenant_id: str, task_id: str, before: int, limit: int) -> list[StoredCheckpoint]:
    """Return checkpoints below `before`, newest first."""
    values = {"tenant": tenant_id, "task": task_id, "before": before, "limit": limit}
    return [StoredCheckpoint(*row) for row in await tx.fetch(statement("list_checkpoints"), values)]


async def read_piece(tx: Tx, tenant_id: str, task_id: str, sequence: int, offset: int) -> bytes:
    """Return up to PIECE bytes of the content from `offset`; empty at its end or when it is gone."""
    values = {
        "tenant": tenant_id,
        "task": task_id,
        "sequence": sequence,
        "start": offset + 1,
        "length": PIECE,
    }
    row = await tx.fetch_row(statement("read_checkpoint_piece"), values)
    return row[0] if row else b""
