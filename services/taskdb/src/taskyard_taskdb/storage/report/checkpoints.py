"""Stored checkpoints of tasks: written under their lease in one transaction, read in pieces."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from random import Random

from taskyard.errors import NotFound
from taskyard_taskdb.domain import lifecycle
from taskyard_taskdb.domain.event import CheckpointStored, runner
from taskyard_taskdb.storage.pool import Tx
from taskyard_taskdb.storage.report.run_logs import RunRef
from taskyard_taskdb.storage.statements import statement
from taskyard_taskdb.storage.transition.load import load_for_update
from taskyard_taskdb.storage.transition.write import write as write_transitions

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
    """Store checkpoint, progress and change as the lifecycle decides, and delete all but the newest ten.

    A repeat returns what is stored. Raises NotFound, StaleGeneration, LeaseNotHeld, TaskTerminal or
    CheckpointSequenceConflict.
    """
    run = new.run
    key = (run.tenant_id, run.task_id)
    loaded = await load_for_update(tx, [key])
    task = loaded.tasks.get(key)
    if task is None:
        raise NotFound("task", f"tenants/{run.tenant_id}/tasks/{run.task_id}")
    found = await find(tx, *key, new.sequence) if new.sequence <= task.checkpoint_sequence else None
    event = CheckpointStored(
        actor=runner(new.runner_id),
        runner_id=new.runner_id,
        generation=run.generation,
        lease_id=run.lease_id,
        sequence=new.sequence,
        progress=new.progress(task.progress),
        repeated=found is not None and found.sha256 == new.sha256,
    )
    step = lifecycle.apply(task, event, loaded.now, Random())
    if found is None:
        found = _described(new, loaded.now)
        await _insert(tx, new, found)
    await write_transitions(tx, [step])
    return found


def _described(new: NewCheckpoint, create_time: datetime) -> StoredCheckpoint:
    return StoredCheckpoint(
        sequence=new.sequence,
        generation=new.run.generation,
        size_bytes=len(new.data),
        sha256=new.sha256,
        content_type=new.content_type,
        progress_percent=new.progress_percent,
        create_time=create_time,
    )


async def _insert(tx: Tx, new: NewCheckpoint, described: StoredCheckpoint) -> None:
    values = {
        "tenant": new.run.tenant_id,
        "task": new.run.task_id,
        "create_time": described.create_time,
        "sequence": described.sequence,
        "generation": described.generation,
        "size": described.size_bytes,
        "percent": described.progress_percent,
        "content_type": described.content_type,
        "sha256": described.sha256,
        "data": new.data,
    }
    await tx.execute(statement("insert_checkpoint"), values)


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
