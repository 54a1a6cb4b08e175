"""Admits tasks that wait for their limits: all of them or none, keys in turn, tasks of a key in their order.

A task waits for one limit at a time: the first that had no room for it. Whoever gives units back, or makes a
task wait, holds the locks of its limits and looks at those that wait in a later statement, so that no wake-up
is lost. What names a limit that is not locked here, is locked by another transaction, or is beyond the page,
is left to the sweep.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from random import Random
from typing import NamedTuple

from taskyard_taskdb.domain import lifecycle
from taskyard_taskdb.domain.event import Admitted
from taskyard_taskdb.domain.limit import Closed, LimitUse
from taskyard_taskdb.domain.task import TaskState
from taskyard_taskdb.domain.transition import DeleteTask
from taskyard_taskdb.storage import arrays
from taskyard_taskdb.storage.limit import book as books
from taskyard_taskdb.storage.limit.book import Book, LimitKey
from taskyard_taskdb.storage.pool import Tx
from taskyard_taskdb.storage.statements import statement
from taskyard_taskdb.storage.transition.task_rows import Key, Steps, read_task

# How long keys without room wait for their next turn, where there are more than a page of them.
TURN = timedelta(seconds=1)


class Page(NamedTuple):
    """How much one transaction looks at: keys of a limit, tasks of a key, and tasks that it admits."""

    keys: int
    per_key: int
    tasks: int


OUTCOME_PAGE = Page(keys=20, per_key=20, tasks=100)
SWEEP_PAGE = Page(keys=200, per_key=100, tasks=500)


class Waiter(NamedTuple):
    """A task that waits for a limit."""

    task: Key
    limit: LimitKey
    key: str
    wait_time: datetime


@dataclass(slots=True)
class Settled:
    """The steps of admitted tasks, and whether something is left to the sweep, now or later."""

    steps: list[Steps] = field(default_factory=list)
    left: bool = False


async def settle(tx: Tx, steps: Iterable[Steps]) -> Settled:
    """Give back the units of tasks that these steps end or hold, and admit a page of those that wait."""
    concerned = [step for step in steps if step.before.limited is not None]
    if not concerned:
        return Settled()
    gone = [s.key for s in concerned if any(isinstance(effect, DeleteTask) for effect in s.effects())]
    if gone:
        await tx.execute(statement("delete_task_limits"), key_arrays(gone))
    flagged = [step for step in concerned if step.before.limited is not step.task.limited]
    if flagged:
        limited = arrays.bools([bool(step.task.limited) for step in flagged])
        await tx.execute(
            statement("set_limited"), key_arrays([s.key for s in flagged]) | {"limited": limited}
        )
    released = [step.key for step in flagged if step.before.limited]
    await leave(tx, [s.key for s in concerned if s.before.awaits_limits and not s.task.awaits_limits])
    parked = [s.key for s in concerned if s.task.awaits_limits and not s.before.awaits_limits]
    if not released and not parked:
        return Settled()
    uses = await uses_of(tx, [*released, *parked])
    book = await books.lock(tx, ((key[0], use.limit_id) for key, found in uses.items() for use in found))
    if parked:
        await park(tx, parked, untried=False)
    given = [(row[0], LimitUse(*row[1:])) for row in await _release(tx, released)]
    named = [*given, *((key[0], use) for key in parked for use in uses.get(key, ())[:1])]
    return await admit(tx, book, named, given)


async def wait_untried(tx: Tx, steps: Iterable[Steps]) -> bool:
    """Make tasks wait for their limits without a look at them, which the sweep has; whether there are any.

    For transactions that have locked the counters of tenants, which come after limits.
    """
    parked = [step.key for step in steps if step.task.awaits_limits and not step.before.awaits_limits]
    if parked:
        await park(tx, parked, untried=True)
    return bool(parked)


async def admit(
    tx: Tx,
    book: Book,
    named: Sequence[tuple[str, LimitUse]],
    given: Sequence[tuple[str, LimitUse]] = (),
    page: Page = OUTCOME_PAGE,
    *,
    scan: bool = False,
) -> Settled:
    """Admit tasks that wait for the limits of `named` uses, of their keys and, where all keys share a bound
    or with `scan`, of the next ones; `given` units are released first. Writes everything but the tasks."""
    wanted = {(tenant_id, use.limit_id) for tenant_id, use in named}
    await book.load_totals(tx, sorted(wanted & book.limits.keys()))
    await book.load(tx, given)
    for tenant_id, use in given:
        book.give_back(tenant_id, use)
    before = {key: locked.try_time for key, locked in book.limits.items()}
    tries = sorted(key for key in wanted if _has_room(book, key))
    waiters = await choose(tx, book, tries, named, page, scan=scan)
    rounds = _Round(book, page, await uses_of(tx, [waiter.task for waiter in waiters]), scan=scan)
    await book.load(tx, ((key[0], use) for key, found in rounds.uses.items() for use in found))
    rounds.tasks = await _lock(tx, [waiter.task for waiter in waiters if rounds.is_covered(waiter.task)])
    for key in tries:
        rounds.serve(key, [waiter for waiter in waiters if waiter.limit == key])
    await rounds.write(tx)
    await book.write(tx)
    left = any(locked.try_time != before[key] for key, locked in book.limits.items())
    return Settled(rounds.steps, left or rounds.left)


def _has_room(book: Book, key: LimitKey) -> bool:
    closed = book.total_closed(key)
    if closed is not None and closed.open_time is not None:
        book.limits[key].wake(closed.open_time)
    return closed is None


class _Round:
    """One look at those that wait for locked limits."""

    def __init__(self, book: Book, page: Page, uses: Mapping[Key, Sequence[LimitUse]], *, scan: bool) -> None:
        self.uses = uses
        self.tasks: Mapping[Key, TaskState] = {}
        self.steps: list[Steps] = []
        self._book = book
        self._page = page
        self._scan = scan
        self._held: list[tuple[Key, str, bool]] = []
        self._moved: list[tuple[Waiter, str]] = []
        # Limits that do not exist and that more tasks wait for than this transaction looks at.
        self._untried: set[LimitKey] = set()

    def is_covered(self, task: Key) -> bool:
        """Whether this transaction may lock the task: it has locked all of its limits that exist."""
        return all((task[0], use.limit_id) in self._book.looked for use in self.uses.get(task, ()))

    def serve(self, key: LimitKey, waiters: Sequence[Waiter]) -> None:
        """Admit those that wait for a limit, one of each key in turn, as long as there is room."""
        locked = self._book.limits.get(key)
        turns: dict[str, deque[Waiter]] = {}
        for waiter in waiters:
            turns.setdefault(waiter.key, deque()).append(waiter)
        full = {of for of, waiting in turns.items() if len(waiting) == self._page.per_key}
        last = locked.last_key if locked is not None else ""
        order = deque(sorted(turns, key=lambda of: (of <= last, of)))
        more = self._scan and len(turns) >= self._page.keys
        served = len(self.steps)
        while order:
            if len(self.steps) >= self._page.tasks:
                self._wake(key)
                return
            of = order.popleft()
            closed = self._try_next(key, turns[of])
            if not turns[of] and of in full:
                self._wake(key)
            if closed is None:
                if locked is not None:
                    locked.last_key = of
                if turns[of]:
                    order.append(of)
                continue
            if closed.open_time is not None and locked is not None:
                locked.wake(closed.open_time)
            if not closed.of_key:
                return
            last = of
        if more and locked is not None:
            # Keys without room must not keep the others from their turn.
            locked.last_key = last if len(self.steps) == served else locked.last_key
            locked.wake(self._book.now if len(self.steps) > served else self._book.now + TURN)
        elif not self._scan and len(turns) >= self._page.keys:
            self._wake(key)

    def _try_next(self, key: LimitKey, waiting: deque[Waiter]) -> Closed | None:
        """Admit the first of a key, past those that another limit holds back; or what keeps it back."""
        while waiting:
            waiter = waiting.popleft()
            task = self.tasks.get(waiter.task)
            if task is None or not task.awaits_limits:
                # Locked elsewhere, or with a limit that is not locked here: nobody of its key overtakes it.
                self._wake(key)
                return Closed("", 0, 0, of_key=True)
            obstacle = self._find_obstacle(waiter)
            if obstacle is None:
                self._admit(waiter, task)
                return None
            limit_id, closed = obstacle
            if limit_id == waiter.limit[1]:
                return closed
            self._moved.append((waiter, limit_id))
            other = self._book.limits[(key[0], limit_id)]
            if closed.open_time is not None:
                other.wake(closed.open_time)
        return Closed("", 0, 0, of_key=True)

    def _find_obstacle(self, waiter: Waiter) -> tuple[str, Closed] | None:
        """The limit without room: first the one that it waits for, so that it keeps its place."""
        tenant_id = waiter.task[0]
        uses = sorted(self.uses[waiter.task], key=lambda use: use.limit_id != waiter.limit[1])
        for use in uses:
            closed = self._book.find_closed(tenant_id, use)
            if closed is not None:
                return use.limit_id, closed
        return None

    def _admit(self, waiter: Waiter, task: TaskState) -> None:
        for use in self.uses[waiter.task]:
            self._held.append((waiter.task, use.limit_id, self._book.take(waiter.task[0], use)))
        self.steps.append(Steps([lifecycle.apply(task, Admitted(), self._book.now, Random())]))

    def _wake(self, key: LimitKey) -> None:
        locked = self._book.limits.get(key)
        if locked is not None:
            locked.wake(self._book.now)
        else:
            self._untried.add(key)

    @property
    def left(self) -> bool:
        """Whether tasks wait for limits that do not exist."""
        return bool(self._untried)

    async def write(self, tx: Tx) -> None:
        """Write which tasks hold their units, and which wait for another limit from now on."""
        if self._held:
            params = {
                **key_arrays([task for task, _, _ in self._held]),
                "limit_ids": arrays.texts([limit_id for _, limit_id, _ in self._held]),
                "held": arrays.bools([held for _, _, held in self._held]),
            }
            await tx.execute(statement("hold_units"), params)
            keys = [step.key for step in self.steps]
            limited = arrays.bools([True] * len(keys))
            await tx.execute(statement("set_limited"), key_arrays(keys) | {"limited": limited})
        if self._moved:
            params = {
                **key_arrays([waiter.task for waiter, _ in self._moved]),
                "limit_ids": arrays.texts([limit_id for _, limit_id in self._moved]),
                "wait_times": arrays.timestamps([waiter.wait_time for waiter, _ in self._moved]),
            }
            await tx.execute(statement("move_waiters"), params)
        if self._untried:
            await tx.execute(statement("note_untried"), books.limit_arrays(sorted(self._untried)))


async def choose(
    tx: Tx,
    book: Book,
    keys: Sequence[LimitKey],
    named: Iterable[tuple[str, LimitUse]],
    page: Page,
    *,
    scan: bool,
) -> list[Waiter]:
    """Those that wait for these limits and are next."""
    if not keys:
        return []
    places = {key: n for n, key in enumerate(keys, 1)}
    of_keys = sorted(
        {
            (places[(tenant_id, use.limit_id)], use.key)
            for tenant_id, use in named
            if (tenant_id, use.limit_id) in places
        }
    )
    params = {
        **books.limit_arrays(keys),
        "last_keys": arrays.texts([book.limits[key].last_key if key in book.limits else "" for key in keys]),
        "scans": arrays.bools([scan or book.shares_bound(key) for key in keys]),
        "named_ns": arrays.bigints([n for n, _ in of_keys]),
        "named_keys": arrays.texts([key for _, key in of_keys]),
        "most_keys": page.keys,
        "per_key": page.per_key,
    }
    rows = await tx.fetch(statement("choose_waiters"), params)
    return [
        Waiter((keys[n - 1][0], task_id), keys[n - 1], key, wait_time) for n, key, task_id, wait_time in rows
    ]


async def uses_of(tx: Tx, keys: Sequence[Key]) -> dict[Key, list[LimitUse]]:
    """What tasks name in spec.limits, by id of the limit; a task without any is left out."""
    found: dict[Key, list[LimitUse]] = {}
    if keys:
        for tenant_id, task_id, *use in await tx.fetch(statement("uses_of_tasks"), key_arrays(keys)):
            found.setdefault((tenant_id, task_id), []).append(LimitUse(*use))
    return found


async def park(tx: Tx, keys: Sequence[Key], *, untried: bool) -> None:
    """Make locked tasks wait for the first of their limits."""
    await tx.execute(statement("await_limits"), key_arrays(sorted(keys)) | {"untried": untried})


async def leave(tx: Tx, keys: Sequence[Key]) -> None:
    """End the wait of locked tasks."""
    if keys:
        await tx.execute(statement("leave_limits"), key_arrays(keys))


async def _release(tx: Tx, keys: Sequence[Key]) -> list[tuple[str, str, str, int]]:
    if not keys:
        return []
    return [tuple(row) for row in await tx.fetch(statement("release_units"), key_arrays(keys))]


async def _lock(tx: Tx, keys: Sequence[Key]) -> dict[Key, TaskState]:
    if not keys:
        return {}
    rows = await tx.fetch(statement("lock_waiters"), key_arrays(keys))
    return {(row[0], row[1]): read_task(row) for row in rows}


def key_arrays(keys: Sequence[Key]) -> dict[str, object]:
    """The arrays of tenants and task ids."""
    return {
        "tenant_ids": arrays.texts([key[0] for key in keys]),
        "task_ids": arrays.texts([key[1] for key in keys]),
    }
