"""Results of prerequisites, which the workload of a claimed task reads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from taskyard_taskdb.domain.words import Phase
from taskyard_taskdb.storage.dependency.edges import key_arrays
from taskyard_taskdb.storage.pool import Tx
from taskyard_taskdb.storage.statements import statement
from taskyard_taskdb.storage.transition.task_rows import Key


class Outcome(NamedTuple):
    """How a task ended, and its result as it is stored."""

    phase: Phase
    result: bytes | None
    # The result is beyond the bound.
    omitted: bool


async def read(tx: Tx, keys: Sequence[Key], bound: int) -> dict[Key, Outcome]:
    """The outcomes of tasks, archived ones included; the results, in this order, up to a sum of bytes."""
    rows = await tx.fetch(statement("read_inputs"), key_arrays(keys) | {"bound": bound})
    return {(row[0], row[1]): Outcome(Phase(row[2]), row[3], row[4]) for row in rows}
