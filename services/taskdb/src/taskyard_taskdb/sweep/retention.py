"""Archives or deletes ended tasks after their retention, as their task type is configured."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence

from taskyard_kit.logs import get_log
from taskyard_taskdb.domain.event import Deleted
from taskyard_taskdb.domain.policy import DEFAULT_POLICY
from taskyard_taskdb.domain.schedule import Schedule
from taskyard_taskdb.storage.archive import archive
from taskyard_taskdb.storage.archive.archive import EndedTask
from taskyard_taskdb.storage.batch import isolate
from taskyard_taskdb.storage.group import groups
from taskyard_taskdb.storage.housekeeping.overdue import BEFORE_ALL
from taskyard_taskdb.storage.notify.bus import CommitNotice
from taskyard_taskdb.storage.pool import Pool, Tx
from taskyard_taskdb.storage.transition.load import load_for_update
from taskyard_taskdb.storage.transition.task_rows import Key
from taskyard_taskdb.storage.transition.write import write
from taskyard_taskdb.sweep.apply_events import OnCommit, apply_events
from taskyard_taskdb.sweep.jobs import Guard

log = get_log(__name__)

# How many tasks one query scans, and how many one transaction moves. A page blocks this process for a few
# milliseconds and costs PostgreSQL about 8 ms.
SCAN = 1000
PAGE = 250
# The pause after a page, as a multiple of the time it took: without it the moves would occupy a core and the
# disk, and slow claims down.
PAUSE_FACTOR = 2.0


async def _delete_groups(tx: Tx, guard: Guard) -> int:
    """Delete a page of groups whose tasks are gone; the outcome of an archived group is kept for a while."""
    await guard(tx)
    return await groups.delete_old(tx, DEFAULT_POLICY.retention, PAGE)


class RetentionJob:
    """Scans all tasks by primary key; a task that changed after it was found is skipped. Then groups."""

    name = "retention"
    about = "move ended tasks to the archive, or delete them, after their retention"

    def __init__(self, pool: Pool, on_commit: OnCommit, *, archive_untyped: bool, schedule: Schedule) -> None:
        self._pool = pool
        self._on_commit = on_commit
        self._archive_untyped = archive_untyped
        self.schedule = schedule

    async def pages(self, guard: Guard) -> AsyncIterator[int]:
        after = BEFORE_ALL
        while True:
            async with self._pool.reading() as tx:
                found, last = await archive.find_ended(tx, after, SCAN, DEFAULT_POLICY.retention)
                types = await archive.types_to_archive(tx, found)
            for start in range(0, len(found), PAGE):
                began = time.monotonic()
                yield await self._archive_or_delete(guard, found[start : start + PAGE], types)
                await asyncio.sleep(PAUSE_FACTOR * (time.monotonic() - began))
            if last is None:
                break
            after = last
        count = PAGE
        while count == PAGE:
            count = await self._pool.run(lambda tx: _delete_groups(tx, guard))
            yield count

    async def _archive_or_delete(
        self, guard: Guard, page: Sequence[EndedTask], types: dict[Key, bool]
    ) -> int:
        done = 0

        async def move(part: Sequence[EndedTask]) -> None:
            nonlocal done
            done += await self._pool.run(lambda tx: moving(tx, part))

        async def moving(tx: Tx, part: Sequence[EndedTask]) -> int:
            await guard(tx)
            return await archive.move(tx, part)

        async def delete(part: Sequence[EndedTask]) -> None:
            nonlocal done
            count, notice = await self._pool.run(lambda tx: deleting(tx, part))
            done += count
            self._on_commit(notice)

        async def deleting(tx: Tx, part: Sequence[EndedTask]) -> tuple[int, CommitNotice]:
            await guard(tx)
            unchanged = sorted(await archive.lock(tx, part))
            loaded = await load_for_update(tx, unchanged)
            events = [(key, Deleted(actor=archive.SYSTEM)) for key in unchanged]
            return len(unchanged), await write(tx, apply_events(loaded, events))

        archived = [task for task in page if self._archives(task, types)]
        if archived:
            await isolate(archived, move, _log_failure)
        if len(archived) < len(page):
            await isolate([task for task in page if task not in archived], delete, _log_failure)
        return done

    def _archives(self, task: EndedTask, types: dict[Key, bool]) -> bool:
        # The default applies to a type that was deleted.
        return types.get((task.task_type_tenant or "", task.task_type), self._archive_untyped)


def _log_failure(task: EndedTask, error: Exception) -> None:
    log.error("retention_failed", tenant=task.key[0], task=task.key[1], error=repr(error))
