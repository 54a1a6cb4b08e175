"""What outcomes and retries leave to the sweep: further dependents, and dependents of dependents.

A transaction goes on until its page is used up, so that a long chain takes few of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random

from taskyard_taskdb.domain import lifecycle
from taskyard_taskdb.domain.dependency import Prerequisite
from taskyard_taskdb.domain.event import RetryRequested
from taskyard_taskdb.domain.transition import Transition
from taskyard_taskdb.domain.words import Phase
from taskyard_taskdb.storage.dependency import edges, release
from taskyard_taskdb.storage.dependency.edges import Edge, Judged, judge
from taskyard_taskdb.storage.dependency.release import SWEEP_PAGE, Cause, Ended, Released
from taskyard_taskdb.storage.notify.bus import CommitNotice
from taskyard_taskdb.storage.pool import Row, Tx
from taskyard_taskdb.storage.statements import statement
from taskyard_taskdb.storage.transition.load import Loaded, load_for_update
from taskyard_taskdb.storage.transition.task_rows import Key
from taskyard_taskdb.storage.transition.write import write

# Prerequisites that are read at a time, and dependencies that a retry of their dependents may judge.
ROWS = 100
MOST_EDGES = 5000


@dataclass(slots=True)
class Progress:
    """The notice of a transaction, and how many tasks it released or revived."""

    notice: CommitNotice
    count: int = 0


async def exists(tx: Tx) -> bool:
    """Whether anything was left."""
    row = await tx.fetch_row(statement("backlog_exists"))
    return row is not None and bool(row[0])


async def advance(tx: Tx, page: int = SWEEP_PAGE) -> Progress:
    """Release and revive what was left, about a page of tasks; zero if nothing was left."""
    progress = Progress(CommitNotice())
    while progress.count < page:
        done = (
            await _settle(tx, progress, page)
            + await _release(tx, progress, page)
            + await _revive(tx, progress, page)
        )
        if not done:
            break
    return progress


async def _settle(tx: Tx, progress: Progress, page: int) -> int:
    """Tasks that wait no longer and were locked at that moment, or never had to wait."""
    settled = await tx.fetch(statement("lock_settled"), {"page": page})
    if not settled:
        return 0
    released = Released()
    await release.settle(tx, settled, released)
    progress.notice.add(await write(tx, [], released=released))
    progress.count += len(released.steps)
    return len(released.steps)


async def _backlog(tx: Tx, cause: Cause, page: int) -> list[Row]:
    return await tx.fetch(statement("lock_backlog"), {"kind": cause, "page": page})


async def _release(tx: Tx, progress: Progress, page: int) -> int:
    """Dependents of ended tasks."""
    rows = await _backlog(tx, Cause.ENDED, ROWS)
    if not rows:
        return 0
    ended = [Ended((row[0], row[1]), Phase(row[2])) for row in rows]
    keys = [one.key for one in ended]
    # Removed before: a full page stores them again.
    await release.forget(tx, keys, Cause.ENDED)
    released = await release.release(tx, ended, page)
    progress.notice.add(await write(tx, [], released=released))
    progress.count += len(released.steps) + 1
    return len(rows)


async def _revive(tx: Tx, progress: Progress, page: int) -> int:
    """Dependents that ended because of a task that was retried with cascade."""
    rows = await _backlog(tx, Cause.RETRIED, 1)
    if not rows:
        return 0
    tenant_id, task_id, _, after_id = rows[0]
    params = {"tenant_id": tenant_id, "task_id": task_id, "after_id": after_id, "page": page}
    found = [(row[0], row[1]) for row in await tx.fetch(statement("failed_dependents"), params)]
    needed = without_waits(await edges.of_tasks(tx, found))
    taken = _within_bound(found, needed)
    if taken:
        progress.count += await _retry(tx, progress, taken, needed)
    if len(taken) < len(found) or len(found) == page:
        place = {**params, "after_id": taken[-1][1], "kind": Cause.RETRIED}
        await tx.execute(statement("continue_backlog"), place)
    else:
        await release.forget(tx, [(tenant_id, task_id)], Cause.RETRIED)
    progress.count += 1
    return 1


def _within_bound(found: list[Key], needed: dict[Key, list[Edge]]) -> list[Key]:
    taken, total = list[Key](), 0
    for key in found:
        total += len(needed[key])
        if taken and total > MOST_EDGES:
            break
        taken.append(key)
    return taken


async def _retry(tx: Tx, progress: Progress, keys: list[Key], needed: dict[Key, list[Edge]]) -> int:
    """Retry tasks whose prerequisites can all still hold; returns how many."""
    prerequisites = [(edge.tenant_id, edge.prerequisite_id) for key in keys for edge in needed[key]]
    loaded = await load_for_update(tx, [*keys, *prerequisites])
    phases = await edges.phases_of(tx, prerequisites, loaded)
    judged = {key: found for key in keys if (found := rejudge(needed[key], phases)) is not None}
    revived = {key: found for key, found in judged.items() if found.failed is None and _failed(loaded, key)}
    if not revived:
        return 0
    # An id that was used again after its task was archived has no mark yet.
    await edges.mark(tx, loaded, prerequisites)
    await edges.forget_waits(tx, list(revived))
    await edges.reopen(tx, revived)
    event = RetryRequested()
    steps: list[Transition] = [
        lifecycle.apply(loaded.tasks[key], replace(event, blocked=found.blocked), loaded.now, Random())
        for key, found in revived.items()
    ]
    progress.notice.add(await write(tx, steps))
    deeper = [Ended(key, Phase.CANCELLED) for key in revived if loaded.tasks[key].has_dependents]
    if deeper:
        await release.remember(tx, deeper, Cause.RETRIED)
    return len(revived)


def without_waits(found: Mapping[Key, Sequence[Edge]]) -> dict[Key, list[Edge]]:
    """The dependencies of spec.after alone: a task that is retried spawns and waits anew."""
    kept = {key: [edge for edge in edges if not edge.of_wait] for key, edges in found.items()}
    return {key: edges for key, edges in kept.items() if edges}


def rejudge(needed: Sequence[Edge], phases: Mapping[Key, Phase]) -> Judged | None:
    """What a task waits for by the present phases of its prerequisites; None if one is gone."""
    if not needed:
        return None
    tenant_id, task_id = needed[0].tenant_id, needed[0].task_id
    if any((tenant_id, edge.prerequisite_id) not in phases for edge in needed):
        return None
    after = [Prerequisite(edge.prerequisite_id, edge.condition, edge.alias) for edge in needed]
    known = {edge.prerequisite_id: phases[(tenant_id, edge.prerequisite_id)] for edge in needed}
    return judge((tenant_id, task_id), after, known)


def _failed(loaded: Loaded, key: Key) -> bool:
    task = loaded.tasks.get(key)
    return task is not None and task.phase is Phase.CANCELLED and task.blocked is not None
