"""Children of a task: which of them exist, and how they have ended; archived ones are among them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from taskyard_taskdb.domain.words import Phase
from taskyard_taskdb.storage import arrays
from taskyard_taskdb.storage.pool import Tx
from taskyard_taskdb.storage.statements import statement
from taskyard_taskdb.storage.transition.task_rows import Key


class KnownTask(NamedTuple):
    """A task that has the id of a child, in the order of the columns of find_children."""

    task_id: str
    parent_task_id: str | None
    spec: bytes


class ChildOutcome(NamedTuple):
    """A child in the order of the columns of child_outcomes; without a phase it is live."""

    task_id: str
    phase: Phase | None
    result: bytes | None
    error: bytes | None


async def find(tx: Tx, tenant_id: str, task_ids: Sequence[str]) -> dict[str, KnownTask]:
    """Those of these tasks that exist, by id."""
    params = {"tenant_id": tenant_id, "task_ids": arrays.texts(task_ids)}
    return {row[0]: KnownTask(*row) for row in await tx.fetch(statement("find_children"), params)}


async def outcomes(tx: Tx, parent: Key, task_ids: Sequence[str], bound: int) -> list[ChildOutcome]:
    """The outcomes of children, in this order and up to a sum of bytes, but at least the first.

    What is no child of the task is left out. While one of them is live, all are without results.
    """
    params = {"tenant_id": parent[0], "parent_id": parent[1], "task_ids": arrays.texts(task_ids)}
    rows = await tx.fetch(statement("child_outcomes"), params | {"bound": bound})
    return [ChildOutcome(row[0], row[1] and Phase(row[1]), row[2], row[3]) for row in rows]
