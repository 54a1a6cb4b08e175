"""Rows of `timers`: set and cleared by transitions, read by the sweep when they are due."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import NamedTuple

from taskyard_taskdb.domain.transition import ClearTimer, ClearTimers, SetTimer
from taskyard_taskdb.domain.words import TimerKind
from taskyard_taskdb.storage import arrays
from taskyard_taskdb.storage.pool import Tx
from taskyard_taskdb.storage.statements import statement
from taskyard_taskdb.storage.transition.task_rows import Key, Steps

_ALL = 0


class Timer(NamedTuple):
    """One row of `timers`."""

    tenant_id: str
    task_id: str
    kind: TimerKind
    due_time: datetime

    @property
    def key(self) -> Key:
        """Tenant and task id."""
        return self.tenant_id, self.task_id


async def write(tx: Tx, steps: Iterable[Steps]) -> None:
    """Set and clear the timers of tasks; the last effect on a timer counts."""
    cleared: dict[tuple[str, str, int], None] = {}
    due: dict[tuple[str, str, int], datetime] = {}
    for step in steps:
        for effect in step.effects():
            if isinstance(effect, SetTimer):
                due[(*step.key, effect.kind)] = effect.due_time
            elif isinstance(effect, ClearTimer | ClearTimers):
                kinds = (effect.kind,) if isinstance(effect, ClearTimer) else tuple(TimerKind)
                for kind in kinds:
                    due.pop((*step.key, kind), None)
                stored = effect.kind if isinstance(effect, ClearTimer) else _ALL
                cleared[(*step.key, stored)] = None
    if cleared:
        await tx.execute(statement("clear_timers"), _arrays(list(cleared)))
    if due:
        params = _arrays(list(due)) | {"due_times": arrays.timestamps(list(due.values()))}
        await tx.execute(statement("set_timers"), params)


async def due_page(tx: Tx, page: int) -> list[Timer]:
    """The timers that are due, the oldest first."""
    return [_timer(row) for row in await tx.fetch(statement("due_timers"), {"page": page})]


async def of_tasks(tx: Tx, keys: Sequence[Key]) -> list[Timer]:
    """The timers of tasks that the caller has locked."""
    params = {
        "tenant_ids": arrays.texts([k[0] for k in keys]),
        "task_ids": arrays.texts([k[1] for k in keys]),
    }
    return [_timer(row) for row in await tx.fetch(statement("timers_of"), params)]


def _timer(row: Sequence[object]) -> Timer:
    tenant_id, task_id, kind, due_time = row
    return Timer(tenant_id, task_id, TimerKind(kind), due_time)  # type: ignore[arg-type]


def _arrays(keys: Sequence[tuple[str, str, int]]) -> dict[str, object]:
    return {
        "tenant_ids": arrays.texts([key[0] for key in keys]),
        "task_ids": arrays.texts([key[1] for key in keys]),
        "kinds": arrays.smallints([key[2] for key in keys]),
    }
