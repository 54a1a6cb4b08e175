"""Runners: their registration, the scope of their key, their health, and the counts of their outcomes."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from taskyard.errors import PermissionDenied
from taskyard_taskdb.domain.words import RunState
from taskyard_taskdb.storage import arrays
from taskyard_taskdb.storage.pool import Row, Tx
from taskyard_taskdb.storage.statements import statement
from taskyard_taskdb.storage.tenant.api_keys import RUNNER, RunnerScope, find_key


@dataclass(frozen=True, slots=True)
class Registration:
    """The registration of an agent: the serialised message, and the fields that have columns."""

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
    stopped: bool

    @property
    def pulls(self) -> bool:
        """Whether it is a pull worker now: the session of an agent has ended when it counts as stopped."""
        return self.alive and self.stopped


@dataclass(frozen=True, slots=True)
class Registered:
    """The locked row of a runner, deleted or not."""

    key_id: str
    registration: bytes
    scope: RunnerScope
    deleted: bool


async def admit(
    tx: Tx, key_id: str, runner_id: str, check: Callable[[RunnerScope], None]
) -> tuple[RunnerScope, Registered | None]:
    """The scope of the key a runner came with, and its row, which is locked.

    Raises PermissionDenied if the key may not be this runner: its scope excludes the id, or the runner has a
    key of another scope. `check` raises for what the key's rules refuse.
    """
    key = await find_key(tx, key_id)
    if key is None or key.kind != RUNNER:
        raise _denied(runner_id, f"key {key_id}", "a runner that is in force")
    allowed = key.runner_scope.runner_id
    fits = runner_id.startswith(allowed[:-1]) if allowed.endswith("*") else allowed in ("", runner_id)
    if not fits:
        raise _denied(runner_id, f"key {key_id}, which is for runner {allowed},", "that runner")
    check(key.runner_scope)
    found = await _lock(tx, runner_id)
    if found is not None and not found.deleted and not _may_replace(key.runner_scope, found.scope, runner_id):
        raise PermissionDenied(
            f"key {key_id}",
            f"the link as runner {runner_id}",
            message=f'key {key_id} may not be runner "{runner_id}": that runner has a key of another scope; '
            f"use another runner id, or a key for this one (--runner-id {runner_id}), or delete the runner",
        )
    return key.runner_scope, found


async def _lock(tx: Tx, runner_id: str) -> Registered | None:
    row = await tx.fetch_row(statement("lock_registered"), {"runner_id": runner_id})
    if row is None:
        # Of two that register a new id at once, the second sees the row of the first.
        await tx.fetch(statement("lock_new_runner"), {"runner_id": runner_id})
        row = await tx.fetch_row(statement("lock_registered"), {"runner_id": runner_id})
    return None if row is None else Registered(row[0], row[1], RunnerScope.unpack(row[2]), row[3])


def _may_replace(scope: RunnerScope, stored: RunnerScope, runner_id: str) -> bool:
    """Whether a key of this scope may be a runner that has a key of the stored one; another key may be newer.

    An administrator who made a key for this very runner meant it. Any other must cover the same tenants and
    labels, and name the runner as narrowly.
    """
    if runner_id in (scope.runner_id, stored.runner_id):
        return scope.runner_id == runner_id
    same = set(scope.tenants) == set(stored.tenants) and dict(scope.labels) == dict(stored.labels)
    return same and len(stored.runner_id.rstrip("*")) <= len(scope.runner_id.rstrip("*"))


async def put(
    tx: Tx, runner_id: str, key_id: str, scope: RunnerScope, registration: Registration, instance_id: UUID
) -> bool:
    """Store a runner that connects; returns whether it is new, or was deleted before.

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
    registrations = [changed[runner_id] for runner_id in ids]
    params = {
        "runner_ids": arrays.texts(ids),
        "registrations": arrays.byteas([registration.encoded for registration in registrations]),
        "backend_types": arrays.texts([registration.backend_type for registration in registrations]),
        "labels": arrays.texts([json.dumps(dict(registration.labels)) for registration in registrations]),
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
    # A key with labels decides about all of them; an administrator's win over both.
    labels = {**(scope.labels or row[9]), **row[10]}
    values: list[Any] = [*row[:8], scope, labels, *row[10:]]
    return RunnerRecord(*values)


def _denied(runner_id: str, principal: str, needed: str) -> PermissionDenied:
    return PermissionDenied(principal, f"the link as runner {runner_id}", needed)


_FAILURES = (RunState.FAILED, RunState.TIMED_OUT)


async def count_outcomes(tx: Tx, ended: Iterable[tuple[str, RunState]]) -> None:
    """Count runs that their holders reported to have ended so."""
    completed: Counter[str] = Counter()
    failed: Counter[str] = Counter()
    for runner_id, state in ended:
        if state is RunState.SUCCEEDED:
            completed[runner_id] += 1
        elif state in _FAILURES:
            failed[runner_id] += 1
    runners = sorted({*completed, *failed})
    if runners:
        params = {
            "runner_ids": arrays.texts(runners),
            "completed": arrays.bigints([completed[runner] for runner in runners]),
            "failed": arrays.bigints([failed[runner] for runner in runners]),
        }
        await tx.execute(statement("count_outcomes"), params)
