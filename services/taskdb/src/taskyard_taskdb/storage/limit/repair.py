"""Repairs of limits: counts that differ from a recount, and tasks whose wait or units are wrong."""

from __future__ import annotations

from collections.abc import Sequence

from taskyard_taskdb.storage import arrays
from taskyard_taskdb.storage.limit import admission
from taskyard_taskdb.storage.limit import book as books
from taskyard_taskdb.storage.limit.admission import key_arrays
from taskyard_taskdb.storage.limit.book import LimitKey, limit_arrays
from taskyard_taskdb.storage.notify.bus import CommitNotice
from taskyard_taskdb.storage.pool import Tx
from taskyard_taskdb.storage.statements import statement
from taskyard_taskdb.storage.transition.load import load_for_update
from taskyard_taskdb.storage.transition.task_rows import Key


async def recount(tx: Tx, keys: Sequence[LimitKey]) -> CommitNotice:
    """Set the counts of limits to what tasks hold. Units are held and given back under the limit's lock."""
    await books.lock(tx, keys)
    await _recount(tx, keys)
    return CommitNotice(limits=True, changed=True)


async def _recount(tx: Tx, keys: Sequence[LimitKey]) -> None:
    params = limit_arrays(sorted(set(keys)))
    for name in ("release_stray_units", "recount_limits", "forget_limit_keys", "recount_limit_keys"):
        await tx.execute(statement(name), params)


async def settle_tasks(tx: Tx, keys: Sequence[Key]) -> CommitNotice:
    """Make tasks wait or hold units as their state says; the sweep looks at those that wait."""
    loaded = await load_for_update(tx, keys, damaged=True)
    uses = await admission.uses_of(tx, keys)
    limits = [(key[0], use.limit_id) for key, found in uses.items() for use in found]
    await books.lock(tx, limits)
    await tx.execute(statement("delete_stray_task_limits"), key_arrays(keys))
    found = {key: task for key, task in loaded.tasks.items() if key in uses}
    waiting = [key for key, task in found.items() if task.awaits_limits]
    await admission.leave(tx, list(found))
    if waiting:
        await admission.park(tx, waiting, untried=True)
    idle = [key for key, task in found.items() if not task.keeps_units]
    if idle:
        await tx.fetch(statement("release_units"), key_arrays(idle))
        limited = arrays.bools([False] * len(idle))
        await tx.execute(statement("set_limited"), key_arrays(idle) | {"limited": limited})
    await _recount(tx, limits)
    return CommitNotice(limits=True, changed=True)
