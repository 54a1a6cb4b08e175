"""Schedules as users define and change them. The definition is the contract's message, serialised."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from psycopg import errors as pg

from taskyard.errors import NotFound
from taskyard_taskdb.domain.names import schedule_name, tenant_name
from taskyard_taskdb.domain.schedule_times import Planned
from taskyard_taskdb.storage.pool import Tx
from taskyard_taskdb.storage.statements import statement

ScheduleKey = tuple[str, str]
"""Tenant and schedule."""


class ScheduleRow(NamedTuple):
    """A schedule as it is stored, in the order of the columns of read_schedule."""

    tenant_id: str
    schedule_id: str
    uid: UUID
    version: int
    create_time: datetime
    update_time: datetime
    definition: bytes
    paused: bool
    pause_note: str
    pause_on_failure: bool
    remaining_runs: int | None
    next_scheduled_time: datetime | None
    next_fire_time: datetime | None
    skip_until: datetime | None
    last_scheduled_time: datetime | None
    last_task_id: str | None
    fired_count: int
    skipped_count: int
    missed_count: int

    @property
    def key(self) -> ScheduleKey:
        """Tenant and schedule."""
        return self.tenant_id, self.schedule_id

    @property
    def name(self) -> str:
        """The resource name."""
        return schedule_name(self.tenant_id, self.schedule_id)

    @property
    def cursor(self) -> tuple[UUID, int, datetime | None]:
        """What must be unchanged for a decision on this row to hold."""
        return self.uid, self.version, self.next_scheduled_time

    def at(self, planned: Planned | None) -> ScheduleRow:
        """The row with its cursor moved."""
        return self._replace(
            next_scheduled_time=planned.time if planned is not None else None,
            next_fire_time=planned.fire_time if planned is not None else None,
        )

    def pausing(self, note: str, now: datetime) -> ScheduleRow:
        """The row, paused. Instants that are due keep the cursor until the sweep has missed them."""
        paused = self._replace(paused=True, pause_note=note)
        is_due = self.next_fire_time is not None and self.next_fire_time <= now
        return paused if is_due else paused.at(None)


def _params(row: ScheduleRow) -> dict[str, object]:
    return row._asdict()


async def insert(tx: Tx, row: ScheduleRow) -> ScheduleRow | None:
    """The new schedule; None if the id is taken. Raises NotFound for the tenant."""
    try:
        made = await tx.fetch_row(statement("insert_schedule"), _params(row))
    except pg.ForeignKeyViolation:
        raise NotFound("tenant", tenant_name(row.tenant_id)) from None
    return ScheduleRow(*made) if made is not None else None


async def update(tx: Tx, row: ScheduleRow) -> ScheduleRow:
    """Write a locked schedule, in its next version."""
    made = await tx.fetch_row(statement("update_schedule"), _params(row))
    assert made is not None, "the schedule is locked"
    return ScheduleRow(*made)


async def find(tx: Tx, key: ScheduleKey) -> ScheduleRow | None:
    """The schedule, unlocked."""
    row = await tx.fetch_row(statement("read_schedule"), key)
    return ScheduleRow(*row) if row is not None else None


async def lock(tx: Tx, key: ScheduleKey) -> ScheduleRow | None:
    """The schedule, locked until the end of the transaction; before any other row."""
    row = await tx.fetch_row(statement("lock_schedule"), key)
    return ScheduleRow(*row) if row is not None else None


async def page(tx: Tx, tenant_id: str | None, after: Sequence[str], size: int) -> list[ScheduleRow]:
    """Up to `size` schedules behind `after`, of one tenant or of all."""
    after_tenant, after_schedule = after or ("", "")
    params = {
        "tenant_id": tenant_id,
        "after_tenant": after_tenant,
        "after_schedule": after_schedule,
        "size": size,
    }
    return [ScheduleRow(*row) for row in await tx.fetch(statement("list_schedules"), params)]


async def delete(tx: Tx, key: ScheduleKey) -> None:
    """Delete a locked schedule."""
    await tx.execute(statement("delete_schedule"), key)


async def count(tx: Tx, tenant_id: str, most: int) -> int:
    """How many schedules a tenant has, up to `most`."""
    row = await tx.fetch_row(statement("count_schedules"), (tenant_id, most))
    assert row is not None
    found: int = row[0]
    return found


async def due(tx: Tx, size: int) -> tuple[list[ScheduleRow], datetime, datetime | None]:
    """Schedules with a due instant, oldest first; the database's time; and when the next one is due."""
    row = await tx.fetch_row(statement("next_schedule"))
    assert row is not None
    now, upcoming = row
    if upcoming is None or upcoming > now:
        return [], now, upcoming
    rows = await tx.fetch(statement("due_schedules"), {"now": now, "size": size})
    return [ScheduleRow(*found) for found in rows], now, upcoming
