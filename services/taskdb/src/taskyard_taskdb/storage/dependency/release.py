"""Releases tasks whose prerequisites have ended, in the transaction of the outcome or of the sweep.

An outcome closes a page of the dependencies on its task and counts down what their tasks wait for; who waits
no longer is locked without waiting and becomes ready, or ends because a condition can no longer hold. What is
beyond the page, the dependents of tasks that end here, and tasks that another transaction has locked are left
to the sweep.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from random import Random
from typing import NamedTuple

from taskyard_taskdb.domain import lifecycle
from taskyard_taskdb.domain.dependency import Condition, is_met
from taskyard_taskdb.domain.event import DependencyFailed, Event, Unblocked
from taskyard_taskdb.domain.words import Phase
from taskyard_taskdb.storage import arrays
from taskyard_taskdb.storage.dependency.edges import key_arrays
from taskyard_taskdb.storage.pool import Row, Tx
from taskyard_taskdb.storage.statements import statement
from taskyard_taskdb.storage.transition.task_rows import Key, Steps, read_task

# Dependents that one outcome's transaction releases; the sweep takes larger pages.
OUTCOME_PAGE = 100
SWEEP_PAGE = 1000


class Cause(IntEnum):
    """Why the sweep looks at the dependents of a task (dependency_backlog.kind)."""

    ENDED = 1
    RETRIED = 2


class Ended(NamedTuple):
    """A prerequisite and how it ended."""

    key: Key
    phase: Phase


@dataclass(slots=True)
class Released:
    """The steps of dependents, and whether something is left to the sweep."""

    steps: list[Steps] = field(default_factory=list)
    left: bool = False


def ended_prerequisites(steps: Iterable[Steps]) -> list[Ended]:
    """The tasks with dependents that these steps end."""
    return [
        Ended(step.key, step.task.phase)
        for step in steps
        if step.before.has_dependents and step.task.phase.terminal and not step.before.phase.terminal
    ]


async def release(tx: Tx, ended: Sequence[Ended], page: int = OUTCOME_PAGE) -> Released:
    """Release the dependents of ended tasks, at most a page of them."""
    closed = await tx.fetch(
        statement("close_dependencies"),
        {
            **key_arrays([one.key for one in ended]),
            "phases": arrays.smallints([one.phase for one in ended]),
            "page": page,
        },
    )
    released = Released()
    if len(closed) == page:
        await remember(tx, ended, Cause.ENDED)
        released.left = True
    settled = await _count_down(tx, closed)
    if settled:
        await settle(tx, settled, released)
    return released


async def settle(tx: Tx, settled: Sequence[Row], released: Released) -> None:
    """Apply the end of the wait to tasks of `blocked_tasks` rows that this transaction has locked."""
    events: dict[Key, Event] = {(row[0], row[1]): _event(row[2], row[3]) for row in settled}
    rows = await tx.fetch(statement("lock_dependents"), key_arrays(sorted(events)))
    released.left |= len(rows) < len(events)
    rng = Random()
    for row in rows:
        task = read_task(row[:-1])
        step = lifecycle.apply(task, events[(row[0], row[1])], row[-1], rng)
        if not step.duplicate:
            released.steps.append(Steps([step]))
    deeper = ended_prerequisites(released.steps)
    if deeper:
        await remember(tx, deeper, Cause.ENDED)
        released.left = True


def _event(failed_id: str | None, failed_phase: int | None) -> Event:
    if failed_id is None or failed_phase is None:
        return Unblocked()
    return DependencyFailed(prerequisite=failed_id, phase=Phase(failed_phase))


async def _count_down(tx: Tx, closed: Sequence[Row]) -> list[Row]:
    """Count down what tasks wait for; returns the rows of those that wait no longer."""
    counts: Counter[Key] = Counter()
    failed: dict[Key, tuple[str, int]] = {}
    for tenant_id, task_id, prerequisite_id, condition, phase in closed:
        key = (tenant_id, task_id)
        counts[key] += 1
        if not is_met(Condition(condition), Phase(phase)):
            failed.setdefault(key, (prerequisite_id, phase))
    if not counts:
        return []
    keys = sorted(counts)
    params = {
        **key_arrays(keys),
        "counts": arrays.integers([counts[key] for key in keys]),
        "failed_ids": arrays.texts([failed[key][0] if key in failed else None for key in keys]),
        "failed_phases": arrays.smallints([failed[key][1] if key in failed else None for key in keys]),
    }
    rows = await tx.fetch(statement("count_down"), params)
    return [row[:4] for row in rows if row[4] == 0 or row[2] is not None]


async def remember(tx: Tx, ended: Sequence[Ended], cause: Cause) -> None:
    """Leave the dependents of tasks to the sweep."""
    params = {
        **key_arrays([one.key for one in ended]),
        "phases": arrays.smallints([one.phase if cause is Cause.ENDED else 0 for one in ended]),
        "kind": cause,
    }
    await tx.execute(statement("remember_prerequisites"), params)


async def forget(tx: Tx, keys: Sequence[Key], cause: Cause) -> None:
    """Leave nothing about these tasks to the sweep."""
    await tx.execute(statement("forget_prerequisites"), key_arrays(keys) | {"kind": cause})
