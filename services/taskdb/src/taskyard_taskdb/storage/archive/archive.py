"""The archive: ended tasks after their retention, with their runs, partitioned by the month of their end.

Logs and audit stay in their own monthly partitions; checkpoints are deleted. An archived task can be read and
deleted; it is not listed and cannot be changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from taskyard_taskdb.domain.change import ChangeEvent
from taskyard_taskdb.domain.task import Actor
from taskyard_taskdb.domain.words import ActorType
from taskyard_taskdb.storage import arrays
from taskyard_taskdb.storage.change_log.append import LOG_LOCK, TASK, insert_changes, resource_change
from taskyard_taskdb.storage.housekeeping.partitions import ensure_months, month_of
from taskyard_taskdb.storage.pool import Row, Tx
from taskyard_taskdb.storage.read import tasks
from taskyard_taskdb.storage.read.runs import RunRecord
from taskyard_taskdb.storage.read.tasks import COLUMNS, JOINS, SIZE, Key, TaskRecord
from taskyard_taskdb.storage.statements import statement

SYSTEM = Actor(ActorType.SYSTEM, "retention")
_KEYS = "unnest(%(tenant_ids)s::text[], %(task_ids)s::text[]) AS k (tenant_id, task_id)"
_CHANGE_FIELDS = {
    "kind": TASK,
    "event": ChangeEvent.TASK_ARCHIVED,
    "actor_type": SYSTEM.type,
    "actor_id": SYSTEM.id,
}


@dataclass(frozen=True, slots=True)
class EndedTask:
    """An ended task whose retention is over, as it was read."""

    tenant_id: str
    task_id: str
    version: int
    end_time: datetime
    task_type: str
    task_type_tenant: str | None

    @property
    def key(self) -> Key:
        """Tenant and task id."""
        return self.tenant_id, self.task_id


async def find_ended(tx: Tx, after: Key, page: int, retention: object) -> tuple[list[EndedTask], Key | None]:
    """Return which of the next `page` tasks are past their retention, and the key to continue after.

    The key is None at the end. `retention` is the default for tasks without their own.
    """
    params = {"after_tenant": after[0], "after_task": after[1], "page": page, "retention": retention}
    rows = await tx.fetch(statement("retention_page"), params)
    found = [EndedTask(*row[:6]) for row in rows if row[6]]
    return found, (rows[-1][0], rows[-1][1]) if rows else None


async def types_to_archive(tx: Tx, found: Sequence[EndedTask]) -> dict[Key, bool]:
    """Return whether each task type, by its tenant and name, archives its tasks."""
    types = sorted({(task.task_type_tenant, task.task_type) for task in found if task.task_type_tenant})
    if not types:
        return {}
    params = {
        "tenant_ids": arrays.texts([tenant_id for tenant_id, _ in types]),
        "task_types": arrays.texts([task_type for _, task_type in types]),
    }
    return {(row[0], row[1]): row[2] for row in await tx.fetch(statement("types_to_archive"), params)}


async def move(tx: Tx, found: Sequence[EndedTask]) -> int:
    """Move tasks that have not changed since they were read to the archive; returns how many."""
    locked = await lock(tx, found)
    unchanged = [task for task in found if task.key in locked]
    if not unchanged:
        return 0
    await ensure_months(tx, "tasks_archive", {month_of(task.end_time) for task in unchanged})
    await _move_runs(tx, unchanged)
    await tx.execute(await _move_sql(tx), _keys(unchanged))
    # Locked as late as possible: readers of the log wait for it.
    await tx.execute(statement("lock_log"), (LOG_LOCK,))
    return await tx.execute(
        statement("log_archived"), _keys(unchanged) | _end_times(unchanged) | _CHANGE_FIELDS
    )


async def lock(tx: Tx, found: Sequence[EndedTask]) -> set[Key]:
    """Lock the tasks that have not changed since they were read; returns their keys."""
    versions = {"versions": arrays.bigints([task.version for task in found])}
    params = _keys(found) | _end_times(found) | versions
    return {(row[0], row[1]) for row in await tx.fetch(statement("lock_ended"), params)}


async def _move_runs(tx: Tx, found: Sequence[EndedTask]) -> None:
    """Move the runs by their own end time; those of one task may belong to several months."""
    months = [month for (month,) in await tx.fetch(statement("months_of_runs"), _keys(found))]
    if not months:
        return
    await ensure_months(tx, "runs_archive", months)
    names = ", ".join(await _columns(tx, "runs"))
    await tx.execute(
        f"""WITH deleted AS (
            DELETE FROM runs r USING {_KEYS}
            WHERE r.tenant_id = k.tenant_id AND r.task_id = k.task_id RETURNING r.*
        )
        INSERT INTO runs_archive ({names}) SELECT {names} FROM deleted""",
        _keys(found),
    )


async def _move_sql(tx: Tx) -> str:
    """Return the statement that moves locked tasks, with the current columns of the table.

    The rows do not pass through this process. Primary keys of tasks and checkpoints.
    """
    names = await _columns(tx, "tasks")
    values = ", ".join("version + 1" if name == "version" else name for name in names)
    return f"""WITH deleted AS (
            DELETE FROM tasks t USING {_KEYS}
            WHERE t.tenant_id = k.tenant_id AND t.task_id = k.task_id AND t.end_time IS NOT NULL
            RETURNING t.*
        ), checkpoint AS (
            DELETE FROM checkpoints c USING deleted
            WHERE c.tenant_id = deleted.tenant_id AND c.task_id = deleted.task_id
        ), dependency AS (
            DELETE FROM dependencies d USING deleted
            WHERE deleted.blocked IS NOT NULL
                AND d.tenant_id = deleted.tenant_id AND d.task_id = deleted.task_id
        ), task_limit AS (
            DELETE FROM task_limits l USING deleted
            WHERE deleted.limited IS NOT NULL
                AND l.tenant_id = deleted.tenant_id AND l.task_id = deleted.task_id
        )
        INSERT INTO tasks_archive ({", ".join(names)}) SELECT {values} FROM deleted"""


async def _columns(tx: Tx, table: str) -> list[str]:
    rows = await tx.fetch(
        "SELECT attname::text FROM pg_attribute WHERE attrelid = %s::regclass AND attnum > 0 "
        "AND NOT attisdropped ORDER BY attnum",
        (table,),
    )
    return [f'"{name}"' if not name.isidentifier() else name for (name,) in rows]


async def delete(tx: Tx, key: Key, actor: Actor) -> bool:
    """Delete an archived task with its runs and logs; returns whether it existed."""
    row = await tx.fetch_row(statement("delete_archived"), {"tenant_id": key[0], "task_id": key[1]})
    if row is None:
        return False
    (now,) = (await tx.fetch("SELECT clock_timestamp()"))[0]
    change = resource_change(ChangeEvent.TASK_DELETED, *key, actor, now, version=row[0] + 1)
    await insert_changes(tx, [change._replace(phase=row[1], previous_phase=row[1])])
    return True


async def read_anywhere(tx: Tx, key: Key) -> tuple[TaskRecord | None, bool]:
    """Return a task, and whether it is archived."""
    found = await tasks.read(tx, *key)
    if found is not None:
        return found, False
    found = (await _read(tx, [key])).get(key)
    return found, found is not None


async def read_many_anywhere(tx: Tx, keys: Iterable[Key]) -> dict[Key, TaskRecord]:
    """Return the tasks of these keys that exist, archived ones included."""
    wanted = set(keys)
    found = await tasks.read_many(tx, wanted)
    missing = sorted(wanted - found.keys())
    return found | await _read(tx, missing) if missing else found


async def read_sizes_anywhere(tx: Tx, keys: Iterable[Key]) -> dict[Key, int]:
    """Return the bytes of the documents of these tasks, of those that exist, archived ones included."""
    wanted = set(keys)
    found = await tasks.read_sizes(tx, wanted)
    missing = sorted(wanted - found.keys())
    if missing:
        rows = await _fetch(tx, f"t.tenant_id, t.task_id, {SIZE}", missing)
        found |= {(row[0], row[1]): row[2] for row in rows}
    return found


async def _read(tx: Tx, keys: Sequence[Key]) -> dict[Key, TaskRecord]:
    return {found.key: found for found in map(tasks.record, await _fetch(tx, COLUMNS, keys))}


async def _fetch(tx: Tx, columns: str, keys: Sequence[Key]) -> list[Row]:
    return await tx.fetch(
        f"SELECT {columns} FROM unnest(%s::text[], %s::text[]) AS k (tenant_id, task_id) "
        # An id may be used again after its task was archived; the newest task is returned.
        "CROSS JOIN LATERAL (SELECT * FROM tasks_archive a WHERE a.tenant_id = k.tenant_id "
        f"AND a.task_id = k.task_id ORDER BY a.end_time DESC LIMIT 1) t {JOINS}",
        (arrays.texts([key[0] for key in keys]), arrays.texts([key[1] for key in keys])),
    )


async def list_runs(tx: Tx, key: Key, before: int | None, limit: int) -> list[RunRecord]:
    """Return up to `limit` runs of an archived task of generations below `before`, newest first."""
    params = {"tenant_id": key[0], "task_id": key[1], "before": before or 2**62, "limit": limit}
    return [RunRecord(*row) for row in await tx.fetch(statement("archived_runs"), params)]


def _keys(found: Sequence[EndedTask]) -> dict[str, object]:
    return {
        "tenant_ids": arrays.texts([task.tenant_id for task in found]),
        "task_ids": arrays.texts([task.task_id for task in found]),
    }


def _end_times(found: Sequence[EndedTask]) -> dict[str, object]:
    return {"end_times": arrays.timestamps([task.end_time for task in found])}
