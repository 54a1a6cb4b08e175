"""Rows of `dependencies` and `blocked_tasks`: what new and retried tasks wait for.

The creator locks the prerequisites like any other writer of tasks and so reads their final phase, or marks
them: the outcome of a marked task releases its dependents, which it finds in a statement after its locks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from taskyard_taskdb.domain.dependency import Condition, Prerequisite, is_met
from taskyard_taskdb.domain.words import Phase
from taskyard_taskdb.storage import arrays
from taskyard_taskdb.storage.group import groups
from taskyard_taskdb.storage.pool import Tx
from taskyard_taskdb.storage.statements import statement
from taskyard_taskdb.storage.transition.load import Loaded
from taskyard_taskdb.storage.transition.task_rows import Key

# The position of dependencies that are not of spec.after but of a wait for children.
OF_WAIT = -1


class Edge(NamedTuple):
    """A row of `dependencies`, in the order of the columns of dependencies_of."""

    tenant_id: str
    task_id: str
    prerequisite_id: str
    condition: Condition
    alias: str | None
    open: bool
    # The task waits for a child that it has created; not of spec.after.
    of_wait: bool = False


@dataclass(frozen=True, slots=True)
class Judged:
    """The dependencies of a task: which are open, and the first that can no longer hold."""

    edges: Sequence[Edge]
    open_count: int
    failed: tuple[str, Phase] | None

    @property
    def blocked(self) -> bool:
        """Whether the task cannot start now."""
        return self.open_count > 0 or self.failed is not None


def judge(key: Key, after: Sequence[Prerequisite], phases: Mapping[str, Phase]) -> Judged:
    """Compare the phases of the prerequisites with what the task requires."""
    edges: list[Edge] = []
    failed: tuple[str, Phase] | None = None
    for task_id, condition, alias in after:
        phase = phases[task_id]
        edges.append(Edge(*key, task_id, condition, alias, not phase.terminal))
        if failed is None and phase.terminal and not is_met(condition, phase):
            failed = (task_id, phase)
    return Judged(edges, sum(edge.open for edge in edges), failed)


async def of_tasks(tx: Tx, keys: Iterable[Key]) -> dict[Key, list[Edge]]:
    """The dependencies of tasks, in the order of spec.after; a task without any is left out.

    Those of an earlier wait for children, which has ended, are among them.
    """
    found: dict[Key, list[Edge]] = {}
    for row in await tx.fetch(statement("dependencies_of"), key_arrays(sorted(set(keys)))):
        edge = Edge(row[0], row[1], row[2], Condition(row[3]), row[4], row[5], row[6])
        found.setdefault((edge.tenant_id, edge.task_id), []).append(edge)
    return found


async def phases_of(tx: Tx, keys: Sequence[Key], loaded: Loaded) -> dict[Key, Phase]:
    """The phases of loaded tasks, of groups, and of those of the others that are archived."""
    found = {key: loaded.tasks[key].phase for key in keys if key in loaded.tasks}
    found |= await groups.phases_of(tx, keys)
    missing = [key for key in keys if key not in found]
    if missing:
        rows = await tx.fetch(statement("archived_phases"), key_arrays(missing))
        found |= {(row[0], row[1]): Phase(row[2]) for row in rows}
    return found


async def mark(tx: Tx, loaded: Loaded, keys: Iterable[Key]) -> None:
    """Mark locked tasks as prerequisites, so that their outcomes release those that wait for them.

    One that has ended is marked for its retry, which may revive its dependents.
    """
    fresh = sorted(key for key in set(keys) if key in loaded.tasks and not loaded.tasks[key].has_dependents)
    if fresh:
        await mark_new(tx, fresh)
        leased = [key for key in fresh if loaded.tasks[key].lease is not None]
        if leased:
            await tx.execute(statement("mark_prerequisite_leases"), key_arrays(leased))


async def mark_new(tx: Tx, keys: Sequence[Key]) -> None:
    """Mark locked or new tasks without a lease as prerequisites."""
    await tx.execute(statement("mark_prerequisites"), key_arrays(keys))


async def store(tx: Tx, judged: Mapping[Key, Judged]) -> None:
    """Store the dependencies of tasks that this transaction has inserted."""
    await _insert(tx, [(place, edge) for found in judged.values() for place, edge in enumerate(found.edges)])
    blocked = arrays.bools([found.blocked for found in judged.values()])
    await tx.execute(statement("set_blocked"), key_arrays(list(judged)) | {"blocked": blocked})
    await block(tx, {key: found for key, found in judged.items() if found.blocked})


async def _insert(tx: Tx, edges: Sequence[tuple[int, Edge]]) -> None:
    await tx.execute(
        statement("insert_dependencies"),
        {
            **key_arrays([(edge.tenant_id, edge.task_id) for _, edge in edges]),
            "prerequisite_ids": arrays.texts([edge.prerequisite_id for _, edge in edges]),
            "conditions": arrays.smallints([edge.condition for _, edge in edges]),
            "positions": arrays.smallints([place for place, _ in edges]),
            "aliases": arrays.texts([edge.alias for _, edge in edges]),
            "opens": arrays.bools([edge.open for _, edge in edges]),
        },
    )


async def wait(tx: Tx, loaded: Loaded, children: Mapping[Key, Sequence[str]]) -> None:
    """Store that locked tasks wait for the end of live children, which are locked too."""
    judged = {
        key: Judged([Edge(*key, id, Condition.ENDED, None, True, True) for id in ids], len(ids), None)
        for key, ids in children.items()
    }
    edges = [edge for found in judged.values() for edge in found.edges]
    await mark(tx, loaded, [(edge.tenant_id, edge.prerequisite_id) for edge in edges])
    await forget_waits(tx, list(judged))
    await _insert(tx, [(OF_WAIT, edge) for edge in edges])
    await block(tx, judged)


async def forget_waits(tx: Tx, keys: Sequence[Key]) -> None:
    """Remove what earlier waits of locked tasks for children have left."""
    await tx.execute(statement("forget_waits"), key_arrays(keys))


async def reopen(tx: Tx, judged: Mapping[Key, Judged]) -> None:
    """Set which dependencies of locked, retried tasks are open."""
    edges = [edge for found in judged.values() for edge in found.edges]
    await tx.execute(
        statement("reopen_dependencies"),
        {
            **key_arrays([(edge.tenant_id, edge.task_id) for edge in edges]),
            "prerequisite_ids": arrays.texts([edge.prerequisite_id for edge in edges]),
            "opens": arrays.bools([edge.open for edge in edges]),
        },
    )
    await block(tx, {key: found for key, found in judged.items() if found.blocked})


async def block(tx: Tx, judged: Mapping[Key, Judged]) -> None:
    """Insert what tasks wait for."""
    if not judged:
        return
    failed = [found.failed or (None, None) for found in judged.values()]
    await tx.execute(
        statement("block_tasks"),
        {
            **key_arrays(list(judged)),
            "open_counts": arrays.integers([found.open_count for found in judged.values()]),
            "failed_ids": arrays.texts([task_id for task_id, _ in failed]),
            "failed_phases": arrays.smallints([phase for _, phase in failed]),
        },
    )


async def unblock(tx: Tx, keys: Sequence[Key]) -> None:
    """Remove what locked tasks wait for."""
    await tx.execute(statement("unblock_tasks"), key_arrays(keys))


async def delete(tx: Tx, keys: Sequence[Key]) -> None:
    """Delete the dependencies of tasks that are being deleted or archived."""
    await tx.execute(statement("delete_dependencies"), key_arrays(keys))


def key_arrays(keys: Sequence[Key]) -> dict[str, object]:
    """The arrays of tenants and task ids."""
    return {
        "tenant_ids": arrays.texts([key[0] for key in keys]),
        "task_ids": arrays.texts([key[1] for key in keys]),
    }
