"""Pages of overdue leases: found unlocked, then locked, judged and written under the office."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from random import Random

from taskyard_taskdb import failpoints
from taskyard_taskdb.domain import lifecycle
from taskyard_taskdb.domain.event import Event
from taskyard_taskdb.domain.transition import Transition
from taskyard_taskdb.storage.housekeeping.overdue import BEFORE_ALL, OverdueLease
from taskyard_taskdb.storage.notify.notice import CommitNotice
from taskyard_taskdb.storage.poison import isolate
from taskyard_taskdb.storage.pool import Pool, Tx
from taskyard_taskdb.storage.transition.load import Loaded, load_for_update
from taskyard_taskdb.storage.transition.task_rows import Key
from taskyard_taskdb.storage.transition.write import write
from taskyard_taskdb.sweep.leader import Office

logger = logging.getLogger(__name__)

PAGE = 200

Find = Callable[[Tx, Key, int], Awaitable[list[OverdueLease]]]
Told = Callable[[CommitNotice], None]


class LeasePages:
    """Applies an event to every lease that a query finds, page by page."""

    def __init__(self, pool: Pool, told: Told, page: int = PAGE) -> None:
        self._pool = pool
        self._told = told
        self._page = page

    async def sweep(self, office: Office, find: Find, event_of: Callable[[OverdueLease], Event]) -> int:
        """How many leases were found. What cannot be moved is passed over, so that it blocks nobody else."""
        after, count = BEFORE_ALL, 0
        while True:
            found = await self._sweep_page(office, find, event_of, after)
            count += len(found)
            if len(found) < self._page:
                return count
            after = found[-1].key

    async def _sweep_page(
        self, office: Office, find: Find, event_of: Callable[[OverdueLease], Event], after: Key
    ) -> list[OverdueLease]:
        async with self._pool.reading() as tx:
            found = await find(tx, after, self._page)
        if found:
            await failpoints.SWEEP_BETWEEN_SELECT_AND_UPDATE.reach()
            await self._apply(office, found, event_of)
        return found

    async def _apply(
        self, office: Office, found: Sequence[OverdueLease], event_of: Callable[[OverdueLease], Event]
    ) -> None:
        async def apply(part: Sequence[OverdueLease]) -> None:
            self._told(await self._pool.run(lambda tx: work(tx, part)))

        async def work(tx: Tx, part: Sequence[OverdueLease]) -> CommitNotice:
            await office.stand(tx)
            loaded = await load_for_update(tx, [lease.key for lease in part])
            return await write(tx, judge(loaded, [(lease.key, event_of(lease)) for lease in part]))

        await isolate(found, apply, _give_up)


def _give_up(found: OverdueLease, error: Exception) -> None:
    logger.error("the lease of task %s/%s cannot be swept: %r", *found.key, error)


def judge(loaded: Loaded, events: Sequence[tuple[Key, Event]]) -> list[Transition]:
    """The transitions of events on loaded tasks; one that cannot be judged is logged and left as it is."""
    rng = Random()
    transitions: list[Transition] = []
    tasks = dict(loaded.tasks)
    for key, event in events:
        if key not in tasks:
            continue
        try:
            transition = lifecycle.apply(tasks[key], event, loaded.now, rng)
        except Exception:
            logger.exception("%s of task %s/%s cannot be judged", type(event).__name__, *key)
            continue
        tasks[key] = transition.task
        transitions.append(transition)
    return transitions
