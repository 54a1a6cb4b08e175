"""How many runs of each runner succeeded and failed, counted in the transactions that end them.

A batch of reports writes one row per runner, the last that it locks, so that a runner's batches wait for
each other at the end only. What taskdb ends itself, such as a lost run, counts for nobody.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from taskyard_taskdb.domain.words import RunState
from taskyard_taskdb.storage import arrays
from taskyard_taskdb.storage.pool import Tx
from taskyard_taskdb.storage.statements import statement

_FAILURES = (RunState.FAILED, RunState.TIMED_OUT)


async def add(tx: Tx, ended: Iterable[tuple[str, RunState]]) -> None:
    """Count runs that their holders reported to have ended so."""
    completed: Counter[str] = Counter()
    failed: Counter[str] = Counter()
    for runner_id, state in ended:
        if state is RunState.SUCCEEDED:
            completed[runner_id] += 1
        elif state in _FAILURES:
            failed[runner_id] += 1
    runners = sorted({*completed, *failed})
    if runners:
        params = {
            "runner_ids": arrays.texts(runners),
            "completed": arrays.bigints([completed[runner] for runner in runners]),
            "failed": arrays.bigints([failed[runner] for runner in runners]),
        }
        await tx.execute(statement("count_outcomes"), params)
