"""Maintenance jobs: partitions, request ids, checkpoints, dead runners, old audit, vacuum, doctor."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta

from taskyard_kit.logs import get_log
from taskyard_taskdb.domain.schedule import Every, Schedule
from taskyard_taskdb.storage.doctor import checks as doctor_checks
from taskyard_taskdb.storage.housekeeping import overdue, partitions
from taskyard_taskdb.storage.pool import Pool, Tx
from taskyard_taskdb.storage.runner import admin as runner_admin
from taskyard_taskdb.storage.transition.load import database_time
from taskyard_taskdb.sweep.jobs import Guard

PAGE = 2000
REQUEST_AGE = timedelta(hours=24)
# Moving rows out of a default partition may take longer than a statement of the hot path.
_STATEMENT_TIMEOUT = "SET LOCAL statement_timeout = '10min'"
# Vacuuming a large table may take longer still; nothing waits for it.
_VACUUM_TIMEOUT = "SET statement_timeout = '2h'"
# The interval at which a vacuum renews the record of its run.
HEARTBEAT_SECONDS = 5.0
# Tables with many deletions that are read by scans, which would visit the dead rows.
_VACUUMED = (
    "runners",
    "sessions",
    "webhooks",
    "inbox",
    "revocations",
    "idempotency_keys",
    "queue",
    "leases",
    "slots",
    "timers",
)


class PartitionJob:
    """Makes the partitions of coming months, and of months whose rows are in a default partition."""

    name = "partitions"
    about = "make the partitions of the coming months, and of rows in a default partition"
    schedule: Schedule = Every(timedelta(hours=1))

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def pages(self, guard: Guard) -> AsyncIterator[int]:
        for table in partitions.COLUMNS:
            async with self._pool.reading() as tx:
                strays = await partitions.stray_months(tx, table)
            for month in strays:
                yield await self._pool.run(
                    _guarded(guard, lambda tx, t=table, m=month: partitions.ensure_months(tx, t, [m]))
                )
        yield await self._pool.run(_guarded(guard, _make_ahead))


async def _make_ahead(tx: Tx) -> int:
    return await partitions.ensure_partitions(tx, await database_time(tx))


class RequestJob:
    """Deletes request ids after a day; until then a repeated request is recognised."""

    name = "request-ids"
    about = "delete request ids after 24 hours"
    schedule: Schedule = Every(timedelta(minutes=1))

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def pages(self, guard: Guard) -> AsyncIterator[int]:
        count = PAGE
        while count == PAGE:
            count = await self._pool.run(
                _guarded(guard, lambda tx: overdue.delete_old_request_ids(tx, REQUEST_AGE, PAGE))
            )
            yield count


class CheckpointJob:
    """Deletes checkpoints beyond the newest ten that their writer did not delete."""

    name = "checkpoints"
    about = "delete checkpoints beyond the newest 10 of a task, and those of deleted tasks"

    def __init__(self, pool: Pool, schedule: Schedule) -> None:
        self._pool = pool
        self.schedule = schedule

    async def pages(self, guard: Guard) -> AsyncIterator[int]:
        after: tuple[str, str] | None = overdue.BEFORE_ALL
        while after is not None:
            async with self._pool.reading() as tx:
                found, after = await overdue.excess_checkpoints(tx, after, PAGE)
            if found:
                keys = found
                yield await self._pool.run(
                    _guarded(guard, lambda tx, k=keys: overdue.trim_checkpoints(tx, k))
                )


class RunnerJob:
    """Soft-deletes runners that have been dead for a week."""

    name = "runners"
    about = "soft-delete runners that have been dead for 7 days"
    schedule: Schedule = Every(timedelta(hours=1))

    def __init__(self, pool: Pool, age: timedelta) -> None:
        self._pool = pool
        self._age = age

    async def pages(self, guard: Guard) -> AsyncIterator[int]:
        count = PAGE
        while count == PAGE:
            count = await self._pool.run(
                _guarded(guard, lambda tx: runner_admin.forget_dead(tx, self._age, PAGE))
            )
            yield count


class AuditJob:
    """Drops the monthly partitions of the change log that are older than its retention."""

    name = "audit"
    about = "drop the monthly partitions of the change log that are older than a year"

    def __init__(self, pool: Pool, age: timedelta, schedule: Schedule) -> None:
        self._pool = pool
        self._age = age
        self.schedule = schedule

    async def pages(self, guard: Guard) -> AsyncIterator[int]:
        async with self._pool.reading() as tx:
            before = await database_time(tx) - self._age
            old = await partitions.old_partitions(tx, "changes", before)
        for name in old:
            yield await self._pool.run(_guarded(guard, lambda tx, n=name: _drop(tx, n)))


async def _drop(tx: Tx, name: str) -> int:
    await partitions.drop_partition(tx, name)
    return 1


class VacuumJob:
    """Vacuums small tables every night, even if they do not reach the thresholds of autovacuum."""

    name = "vacuum"
    about = "vacuum and analyze the small tables; the large ones have settings of their own"

    def __init__(self, pool: Pool, schedule: Schedule) -> None:
        self._pool = pool
        self.schedule = schedule

    async def pages(self, guard: Guard) -> AsyncIterator[int]:
        for table in _VACUUMED:
            await self._pool.run(guard)
            work = asyncio.create_task(_vacuum(self._pool, table))
            try:
                while not (await asyncio.wait([work], timeout=HEARTBEAT_SECONDS))[0]:
                    await self._pool.run(guard)
            finally:
                work.cancel()
                await asyncio.wait([work])
            work.result()
            yield 1


async def _vacuum(pool: Pool, table: str) -> None:
    async with pool.single() as tx:
        try:
            await tx.execute(_VACUUM_TIMEOUT, prepare=False)
            # VACUUM cannot run in a transaction. SKIP_LOCKED skips tables that autovacuum works on.
            await tx.execute(f"VACUUM (ANALYZE, SKIP_LOCKED) {table}", prepare=False)
            await tx.execute("RESET statement_timeout", prepare=False)
        except BaseException:
            # A connection with this timeout must not return to the pool.
            await tx.connection.close()
            raise


def _guarded(guard: Guard, work: Callable[..., Awaitable[int]]) -> Callable[[Tx], Awaitable[int]]:
    """Return the work as a transaction that calls the guard first."""

    async def guarded(tx: Tx) -> int:
        await guard(tx)
        await tx.execute(_STATEMENT_TIMEOUT, prepare=False)
        return await work(tx)

    return guarded


log = get_log(__name__)


class DoctorJob:
    """Runs every check of RunDoctor without repairs; `check_ran` receives the counts of each."""

    name = "doctor"
    about = "check the invariants; RunDoctor repairs what is found"

    def __init__(self, pool: Pool, check_ran: Callable[[str, int, int], None], schedule: Schedule) -> None:
        self._pool = pool
        self._check_ran = check_ran
        self.schedule = schedule

    async def pages(self, guard: Guard) -> AsyncIterator[int]:
        for check in doctor_checks.CHECKS:
            await self._pool.run(lambda tx: guard(tx))
            found = await doctor_checks.run_check(self._pool, check)
            self._check_ran(check.name, found.remaining, found.repaired)
            if found.remaining:
                log.error(
                    "doctor_finding",
                    check=check.name,
                    count=found.remaining,
                    about=check.about,
                    example=found.examples[0],
                )
            yield found.remaining
