"""Holds tasks of quarantined specs: pauses them in the queue, resumes them when the spec is released."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from datetime import timedelta
from random import Random

from taskyard.errors import NotFound, TaskyardError
from taskyard_taskdb.domain import lifecycle
from taskyard_taskdb.domain.change import ChangeEvent
from taskyard_taskdb.domain.event import Event, PauseRequested, ResumeRequested
from taskyard_taskdb.domain.spec_digest import spec_digest
from taskyard_taskdb.domain.task import Actor
from taskyard_taskdb.domain.transition import Transition
from taskyard_taskdb.domain.words import Phase
from taskyard_taskdb.storage import arrays
from taskyard_taskdb.storage.change_log.append import append_change
from taskyard_taskdb.storage.notify.bus import CommitNotice
from taskyard_taskdb.storage.pool import Tx
from taskyard_taskdb.storage.quarantine.quarantined_specs import SYSTEM, Quarantine
from taskyard_taskdb.storage.statements import statement
from taskyard_taskdb.storage.transition.load import Loaded, load_for_update
from taskyard_taskdb.storage.transition.task_rows import Key
from taskyard_taskdb.storage.transition.write import write


async def find_waiting(tx: Tx, quarantine: Quarantine, after: str, page: int) -> tuple[list[Key], str | None]:
    """Return which of the next queued tasks have the quarantined spec, and the id to continue after."""
    params = {
        "tenant_id": quarantine.tenant_id,
        "task_type": quarantine.task_type,
        "after": after,
        "page": page,
    }
    rows = await tx.fetch(statement("queued_specs"), params)
    found = [(quarantine.tenant_id, row[0]) for row in rows if spec_digest(row[1]) == quarantine.digest]
    return found, rows[-1][0] if len(rows) == page else None


async def find_held(tx: Tx, keys: Sequence[Key]) -> dict[Key, str]:
    """Return those of the tasks whose specs are quarantined, with the digests."""
    params = {
        "tenant_ids": arrays.texts([key[0] for key in keys]),
        "task_ids": arrays.texts([key[1] for key in keys]),
    }
    rows = await tx.fetch(statement("suspect_specs"), params)
    found = ((row[0], row[1], spec_digest(row[2]), row[3]) for row in rows)
    return {(tenant_id, task_id): digest for tenant_id, task_id, digest, held in found if digest in held}


async def hold(tx: Tx, tenant_id: str, digest: str, keys: Sequence[Key]) -> CommitNotice:
    """Pause queued tasks if their spec is still quarantined; its release resumes them."""
    loaded = await load_for_update(tx, keys)
    params: dict[str, object] = {"tenant_id": tenant_id, "digest": digest}
    if not await tx.fetch(statement("lock_quarantine"), params):
        return CommitNotice()
    reason = f"its spec is quarantined: quarantines/{digest}"
    event = PauseRequested(actor=SYSTEM, grace=timedelta(0), reason=reason)
    paused = _apply(loaded, event, (Phase.PENDING, Phase.REDISTRIBUTING))
    params["task_ids"] = arrays.texts([transition.task.task_id for transition in paused])
    await tx.execute(statement("hold_tasks"), params)
    return await write(tx, paused)


async def release(tx: Tx, tenant_id: str, digest: str, actor: Actor) -> CommitNotice:
    """Release a spec and resume the tasks paused for it. Idempotent. Raises NotFound."""
    params = {"tenant_id": tenant_id, "digest": digest}
    row = await tx.fetch_row(statement("release_quarantine"), params)
    if row is None:
        raise NotFound("quarantine", f"tenants/{tenant_id}/quarantines/{digest}")
    held = [(tenant_id, found[0]) for found in await tx.fetch(statement("release_holds"), params)]
    loaded = await load_for_update(tx, held)
    notice = await write(tx, _apply(loaded, ResumeRequested(actor=actor), (Phase.PAUSED,)))
    if row[0]:
        event = ChangeEvent.QUARANTINE_RELEASED
        await append_change(
            tx, event, tenant_id, digest, actor, loaded.now, details={"tasks": len(held)} if held else None
        )
    return notice


def _apply(loaded: Loaded, event: Event, phases: tuple[Phase, ...]) -> list[Transition]:
    """Return the transitions of tasks in these phases; a task that rejects the event is skipped."""
    rng = Random()
    made: list[Transition] = []
    for task in loaded.tasks.values():
        if task.phase in phases:
            with contextlib.suppress(TaskyardError):
                made.append(lifecycle.apply(task, event, loaded.now, rng))
    return made
