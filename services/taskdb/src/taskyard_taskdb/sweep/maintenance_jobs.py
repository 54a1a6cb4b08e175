"""Small jobs: partitions, request ids, old checkpoints, dead runners, the end of the audit, vacuum."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta

from taskyard_taskdb.domain.schedule import Every, Schedule
from taskyard_taskdb.storage.doctor import checks as doctor_checks
from taskyard_taskdb.storage.housekeeping import overdue, partitions
from taskyard_taskdb.storage.pool import Pool, Tx
from taskyard_taskdb.storage.runner import admin as runner_admin
from taskyard_taskdb.storage.transition.transitions import database_time
from taskyard_taskdb.sweep.jobs import Guard

PAGE = 2000
REQUEST_AGE = timedelta(hours=24)
# Moving the rows of a forgotten month may take longer than a statement of the hot path.
_PATIENCE = "SET LOCAL statement_timeout = '10min'"
# A table that has grown may take longer still; nothing waits for its vacuum.
_VACUUM_PATIENCE = "SET statement_timeout = '2h'"
# So often such a job shows that it is alive.
HEARTBEAT_SECONDS = 5.0
# What is deleted from and read by scans: the rows that are gone must not be visited for long.
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
    """Makes partitions ahead of time, and those of months whose rows lie in a default partition."""

    name = "partitions"
    about = "make the partitions of the coming months, and those that rows are waiting for"
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
    """Forgets request ids after a day: until then a repeated request is recognised."""

    name = "request-ids"
    about = "forget request ids after 24 hours"
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
    """Deletes checkpoints beyond the newest ten, where a writer did not come to it."""

    name = "checkpoints"
    about = "delete checkpoints beyond the newest 10 of a task, and those of tasks that are gone"

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
    """Drops the months of the change log that nobody has to keep any more."""

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
    """Removes dead rows of small tables once a day, also where autovacuum's thresholds are not reached."""

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
            await tx.execute(_VACUUM_PATIENCE, prepare=False)
            # Not in a transaction, as PostgreSQL asks. What somebody else vacuums now is passed over.
            await tx.execute(f"VACUUM (ANALYZE, SKIP_LOCKED) {table}", prepare=False)
            await tx.execute("RESET statement_timeout", prepare=False)
        except BaseException:
            # The pool must not hand out a connection that waits for hours.
            await tx.connection.close()
            raise


def _guarded(guard: Guard, work: Callable[..., Awaitable[int]]) -> Callable[[Tx], Awaitable[int]]:
    """The work as a transaction that first proves that it may be done."""

    async def guarded(tx: Tx) -> int:
        await guard(tx)
        await tx.execute(_PATIENCE, prepare=False)
        return await work(tx)

    return guarded


logger = logging.getLogger(__name__)


class DoctorJob:
    """Runs every check of RunDoctor; `check_ran` hears what each found."""

    name = "doctor"
    about = "look for broken invariants; RunDoctor repairs them"

    def __init__(self, pool: Pool, check_ran: Callable[[str, int, int], None], schedule: Schedule) -> None:
        self._pool = pool
        self._check_ran = check_ran
        self.schedule = schedule

    async def pages(self, guard: Guard) -> AsyncIterator[int]:
        for check in doctor_checks.CHECKS:
            await self._pool.run(lambda tx: guard(tx))
            found = await doctor_checks.run_check(self._pool, check)
            self._check_ran(check.name, found.left, found.repaired)
            if found.left:
                logger.error("doctor: %d %s, such as %s", found.left, check.about, found.examples[0])
            yield found.left
