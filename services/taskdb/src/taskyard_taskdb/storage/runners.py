"""Runners: what they said of themselves, what their key allows, and how they are."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from taskyard.errors import PermissionDenied
from taskyard_taskdb.storage import arrays
from taskyard_taskdb.storage.keys import RUNNER, RunnerScope, find_key
from taskyard_taskdb.storage.pool import Row, Tx
from taskyard_taskdb.storage.statements import statement


@dataclass(frozen=True, slots=True)
class Registration:
    """What an agent says about itself: the serialised message, and what of it is stored by itself."""

    encoded: bytes
    labels: Mapping[str, str]
    backend_type: str = ""


@dataclass(frozen=True, slots=True)
class RunnerRecord:
    """A runner and its newest session, in the order of read_runners; `labels` are those in force."""

    runner_id: str
    version: int
    register_time: datetime
    update_time: datetime
    delete_time: datetime | None
    completed_count: int
    failed_count: int
    registration: bytes
    scope: RunnerScope
    labels: Mapping[str, str]
    admin_labels: Mapping[str, str]
    drain: bytes | None
    session_id: UUID | None
    scheduler_id: str | None
    heartbeat_time: datetime | None
    used_capacity: int | None
    draining: bool | None
    alive: bool


async def admit(tx: Tx, key_id: str, runner_id: str) -> RunnerScope:
    """The scope of the key a runner came with. Raises PermissionDenied if it may not be this runner."""
    key = await find_key(tx, key_id)
    if key is None or key.kind != RUNNER:
        raise _denied(runner_id, f"key {key_id}", "a runner that is in force")
    allowed = key.runner_scope.runner_id
    fits = runner_id.startswith(allowed[:-1]) if allowed.endswith("*") else allowed in ("", runner_id)
    if not fits:
        raise _denied(runner_id, f"key {key_id}, which is for runner {allowed},", "that runner")
    return key.runner_scope


async def put(
    tx: Tx, runner_id: str, key_id: str, scope: RunnerScope, registration: Registration, instance_id: UUID
) -> bool:
    """Store a runner that says hello; returns whether it is new, or anew after it was deleted.

    Raises PermissionDenied for a process that was cut off when its runner was deleted.
    """
    params = {
        "instance_id": instance_id,
        "runner_id": runner_id,
        "key_id": key_id,
        "backend_type": registration.backend_type,
        "registration": registration.encoded,
        "scope": scope.pack(),
        "labels": json.dumps(dict(registration.labels)),
    }
    row = await tx.fetch_row(statement("put_runner"), params)
    if row is None:
        raise _denied(runner_id, f"runner {runner_id} was deleted and", "another runner id, or restart it,")
    return bool(row[0])


async def register(tx: Tx, changed: Mapping[str, Registration]) -> None:
    """Take over changed registrations of connected runners."""
    ids = sorted(changed)
    told = [changed[runner_id] for runner_id in ids]
    params = {
        "runner_ids": arrays.texts(ids),
        "registrations": arrays.byteas([registration.encoded for registration in told]),
        "backend_types": arrays.texts([registration.backend_type for registration in told]),
        "labels": arrays.texts([json.dumps(dict(registration.labels)) for registration in told]),
    }
    await tx.execute(statement("register_runners"), params)


async def read(tx: Tx, runner_ids: Sequence[str] | None = None) -> list[RunnerRecord]:
    """These runners, or all that were not deleted."""
    params = {"runner_ids": None if runner_ids is None else arrays.texts(runner_ids)}
    return [_record(row) for row in await tx.fetch(statement("read_runners"), params)]


async def held_task_types(tx: Tx, runner_id: str) -> dict[tuple[str, str], str]:
    """The types of the tasks that a runner holds by record, by tenant and task id."""
    rows = await tx.fetch(statement("held_task_types"), {"runner_ids": arrays.texts([runner_id])})
    return {(tenant_id, task_id): task_type for tenant_id, task_id, task_type in rows}


def _record(row: Row) -> RunnerRecord:
    scope = RunnerScope.unpack(row[8])
    # A key with labels decides about all of them, whatever the agent says; an administrator's win over both.
    labels = {**(scope.labels or row[9]), **row[10]}
    values: list[Any] = [*row[:8], scope, labels, *row[10:]]
    return RunnerRecord(*values)


def _denied(runner_id: str, principal: str, needed: str) -> PermissionDenied:
    return PermissionDenied(principal, f"the link as runner {runner_id}", needed)
