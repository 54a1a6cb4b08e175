"""New tasks and groups: those that they join, which their first task makes, and those that they wait for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from taskyard.errors import GroupClosed
from taskyard_taskdb.domain.group import as_prerequisite, children_group, group_of, outcome
from taskyard_taskdb.domain.names import group_name
from taskyard_taskdb.domain.words import Phase
from taskyard_taskdb.storage import arrays
from taskyard_taskdb.storage.create.new_task import NewTask, Refused
from taskyard_taskdb.storage.group import counts
from taskyard_taskdb.storage.group.counts import Delta
from taskyard_taskdb.storage.group.groups import GroupKey, key_arrays
from taskyard_taskdb.storage.pool import Tx
from taskyard_taskdb.storage.statements import statement
from taskyard_taskdb.storage.transition.load import Loaded
from taskyard_taskdb.storage.transition.task_rows import Key

Fresh = Sequence[tuple[int, NewTask]]


class _Group(NamedTuple):
    """A locked group, in the order of the columns of lock_groups."""

    tenant_id: str
    group_id: str
    closed: bool
    complete: bool
    not_succeeded_count: int
    parent_task_id: str | None
    awaited: bool


def joined(fresh: Fresh) -> dict[GroupKey, NewTask]:
    """The groups of new tasks, each with the first task that names it."""
    found: dict[GroupKey, NewTask] = {}
    for _, task in fresh:
        if task.group_id is not None:
            found.setdefault((task.tenant_id, task.group_id), task)
    return found


async def new_parents(tx: Tx, fresh: Fresh) -> list[Key]:
    """The tasks whose children are to form a new group; the caller locks and marks them."""
    groups = {key: task for key, task in joined(fresh).items() if _is_child(task)}
    if not groups:
        return []
    rows = await tx.fetch(statement("known_groups"), key_arrays(sorted(groups)))
    known = {(row[0], row[1]) for row in rows}
    return [(key[0], task.parent_task_id or "") for key, task in groups.items() if key not in known]


def _is_child(task: NewTask) -> bool:
    return task.parent_task_id is not None and task.group_id == children_group(task.parent_task_id)


async def admit(tx: Tx, fresh: Fresh, parents: Loaded | None = None) -> dict[Key, Phase]:
    """Make and lock the groups of new tasks; returns how those have ended that tasks wait for.

    Tasks are locked before. `parents` are the tasks of new_parents. Raises Refused for tasks that join a
    closed group.
    """
    own = joined(fresh)
    named = {
        (task.tenant_id, group_id)
        for _, task in fresh
        for item in task.after
        if (group_id := group_of(item.task_id)) is not None
    }
    if not own and not named:
        return {}
    if own:
        await _make(tx, own, parents)
    keys = sorted(own.keys() | named)
    rows = await tx.fetch(statement("lock_groups" if named else "share_groups"), key_arrays(keys))
    groups = {(row[0], row[1]): _Group(*row) for row in rows}
    _refuse_closed(fresh, groups)
    awaited = sorted(key for key in named if key in groups)
    if awaited:
        await tx.execute(statement("await_groups"), key_arrays(awaited))
    return {
        (key[0], as_prerequisite(key[1])): outcome(groups[key].not_succeeded_count)
        if groups[key].complete
        else Phase.PENDING
        for key in awaited
    }


async def _make(tx: Tx, own: Mapping[GroupKey, NewTask], parents: Loaded | None) -> None:
    keys = sorted(own)
    children = {key: task.parent_task_id for key, task in own.items() if _is_child(task)}
    ended = [_has_ended(parents, (key[0], children[key] or "")) if key in children else False for key in keys]
    params = key_arrays(keys) | {
        "parent_ids": arrays.texts([children.get(key) for key in keys]),
        "closed": arrays.bools(ended),
    }
    await tx.execute(statement("make_groups"), params)


def _has_ended(parents: Loaded | None, key: Key) -> bool:
    task = parents.tasks.get(key) if parents is not None else None
    return task is None or task.phase.terminal


def _refuse_closed(fresh: Fresh, groups: Mapping[GroupKey, _Group]) -> None:
    refused: dict[int, Exception] = {}
    for position, task in fresh:
        if task.group_id is None:
            continue
        group = groups[(task.tenant_id, task.group_id)]
        name = group_name(task.tenant_id, task.group_id)
        if group.closed:
            refused[position] = GroupClosed(name)
        elif group.awaited and task.after:
            # It might wait for a task that waits for the group.
            problem = f'tasks wait for group "{name}": a further task of it may have no spec.after'
            refused[position] = GroupClosed(name, message=problem)
    if refused:
        raise Refused(refused)


async def count(tx: Tx, stored: Iterable[NewTask]) -> None:
    """Count new tasks as live."""
    deltas: dict[GroupKey, Delta] = {}
    for task in stored:
        if task.group_id is not None:
            deltas.setdefault((task.tenant_id, task.group_id), Delta()).live += 1
    if deltas:
        await counts.add(tx, deltas)
