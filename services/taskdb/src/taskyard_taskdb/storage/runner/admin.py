"""What administrators do with runners: drain, label, delete; and the runners as they see them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from random import Random
from typing import Any

from taskyard.errors import NotFound, ResourceVersionMismatch, RunnerBusy
from taskyard_taskdb.domain import lifecycle
from taskyard_taskdb.domain.change import ChangeEvent
from taskyard_taskdb.domain.event import LossCause, RunnerLost
from taskyard_taskdb.domain.names import runner_name, task_name
from taskyard_taskdb.domain.task import Actor, TaskState
from taskyard_taskdb.domain.words import LEASED, ActorType
from taskyard_taskdb.storage import arrays
from taskyard_taskdb.storage.change_log.append import append_change, insert_changes, resource_change
from taskyard_taskdb.storage.notify.bus import CommitNotice
from taskyard_taskdb.storage.pool import Row, Tx
from taskyard_taskdb.storage.statements import statement
from taskyard_taskdb.storage.transition.load import database_time, load_for_update
from taskyard_taskdb.storage.transition.write import write

TENANT = "system"
SYSTEM = Actor(ActorType.SYSTEM, "housekeeping")


@dataclass(frozen=True, slots=True)
class Settings:
    """What an administrator has set for a runner; `drain` is a serialised DrainRequest."""

    version: int
    drain: bytes | None
    admin_labels: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Edit:
    """The new settings, and the change to log."""

    settings: Settings
    event: ChangeEvent
    details: Mapping[str, Any]


async def change(
    tx: Tx, runner_id: str, decide: Callable[[Settings], Edit | None], actor: Actor, resource_version: int = 0
) -> bool:
    """Change a runner's settings as `decide` says, None for not at all; whether they changed.

    Raises NotFound or ResourceVersionMismatch.
    """
    found = await _lock(tx, runner_id)
    if resource_version and found.version != resource_version:
        raise ResourceVersionMismatch(runner_name(runner_id), str(resource_version), str(found.version))
    edit = decide(found)
    if edit is None:
        return False
    version = await _store(tx, runner_id, edit.settings)
    now = await database_time(tx)
    await append_change(tx, edit.event, TENANT, runner_id, actor, now, version=version, details=edit.details)
    return True


async def delete(tx: Tx, runner_id: str, actor: Actor, *, force: bool) -> CommitNotice:
    """Delete a runner and end its session; with `force` although it holds leases.

    Work that may overlap is redistributed at once; what must not overlap keeps its recorded expiry. Raises
    NotFound, or RunnerBusy.
    """
    found = await _lock(tx, runner_id)
    session = await tx.fetch_row(statement("lock_session"), {"runner_id": runner_id})
    rows = await tx.fetch(statement("leases_of_runner"), {"runner_id": runner_id})
    loaded = await load_for_update(tx, [(row[0], row[1]) for row in rows])
    held = [task for task in loaded.tasks.values() if _holds(task, runner_id)]
    if held and not force:
        raise RunnerBusy(runner_name(runner_id), len(held))
    rng = Random()
    lost = [lifecycle.apply(task, _lost(task, actor), loaded.now, rng) for task in held]
    if session is not None:
        params = {"runner_id": runner_id, "epoch": session[0], "release": False}
        await tx.execute(statement("close_session"), params)
    version = await _store(tx, runner_id, found, delete=True)
    notice = await write(tx, lost)
    event, details = ChangeEvent.RUNNER_DELETED, {"leases": len(held)} if held else None
    await append_change(tx, event, TENANT, runner_id, actor, loaded.now, version=version, details=details)
    return notice


def _holds(task: TaskState, runner_id: str) -> bool:
    return task.phase in LEASED and task.lease is not None and task.lease.runner_id == runner_id


def _lost(task: TaskState, actor: Actor) -> RunnerLost:
    # As after a hello that lists nothing: the process is cut off and may not have noticed.
    return RunnerLost(generation=task.generation, cause=LossCause.NOT_LISTED, actor=actor)


async def forget_dead(tx: Tx, age: timedelta, page: int) -> int:
    """Soft-delete a page of runners that have been dead for so long; returns how many those were."""
    rows = await tx.fetch(statement("forget_dead_runners"), {"age": age, "page": page})
    return await _log(tx, ChangeEvent.RUNNER_DELETED, rows, {"reason": "dead"})


async def note_drained(tx: Tx, page: int) -> int:
    """Mark the runners that have finished draining; returns how many."""
    return await _log(
        tx, ChangeEvent.RUNNER_DRAINED, await tx.fetch(statement("note_drained"), {"page": page})
    )


async def _log(
    tx: Tx, event: ChangeEvent, rows: Sequence[Row], details: Mapping[str, object] | None = None
) -> int:
    await insert_changes(
        tx,
        [
            resource_change(event, TENANT, runner_id, SYSTEM, now, version=version, details=details)
            for runner_id, version, now in rows
        ],
    )
    return len(rows)


async def list_ids(tx: Tx, after: str, page: int, *, deleted: bool) -> list[str]:
    """The ids of a page of runners after one."""
    params = {"after": after, "page": page, "deleted": deleted}
    return [row[0] for row in await tx.fetch(statement("runner_page"), params)]


async def held_tasks(tx: Tx, runner_ids: Sequence[str]) -> dict[str, list[str]]:
    """The names of the tasks that runners hold, the oldest first."""
    held: dict[str, list[str]] = {runner_id: [] for runner_id in runner_ids}
    rows = await tx.fetch(statement("runner_tasks"), {"runner_ids": arrays.texts(runner_ids)})
    for runner_id, tenant_id, task_id in rows:
        held[runner_id].append(task_name(tenant_id, task_id))
    return held


async def _lock(tx: Tx, runner_id: str) -> Settings:
    row = await tx.fetch_row(statement("lock_runner"), {"runner_id": runner_id})
    if row is None:
        raise NotFound("runner", runner_name(runner_id))
    return Settings(*row)


async def _store(tx: Tx, runner_id: str, settings: Settings, *, delete: bool = False) -> int:
    params = {
        "runner_id": runner_id,
        "drain": settings.drain,
        "admin_labels": json.dumps(dict(settings.admin_labels)),
        "delete": delete,
    }
    row = await tx.fetch_row(statement("update_runner"), params)
    assert row is not None, "the runner is locked"
    version: int = row[0]
    return version


def drained(settings: Settings, drain: bytes | None) -> Settings:
    """The settings with another drain."""
    return replace(settings, drain=drain)


def labelled(settings: Settings, labels: Mapping[str, str]) -> Settings:
    """The settings with other labels."""
    return replace(settings, admin_labels=labels)
