"""The audit of rejected reports: who wrote what could not be applied any more, and why."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import NamedTuple

from taskyard.errors import TaskyardError
from taskyard_taskdb.domain.change import ChangeEvent
from taskyard_taskdb.domain.task import Actor, TaskState
from taskyard_taskdb.storage.change_log.append import TASK, ChangeRow
from taskyard_taskdb.storage.transition.task_rows import Key

WINDOW = timedelta(hours=1)
MOST_OF_RUNNER = 1000


class RejectedRun(NamedTuple):
    """A run whose holder reported after it had ended."""

    runner_id: str
    key: Key
    generation: int


def rejection(
    task: TaskState, actor: Actor, now: datetime, error: TaskyardError, run: RejectedRun | None = None
) -> ChangeRow:
    """The change that records why a report was rejected; the task stays as it is."""
    details: dict[str, object] = {"reason": error.reason, "message": error.message[:1000]}
    if run is not None:
        # The change's own generation is the task's, as that of every change.
        details["report_generation"] = run.generation
    return ChangeRow(
        time=now,
        version=task.version,
        generation=task.generation,
        next_attempt_time=task.next_attempt_time,
        attempt=task.attempt,
        retry_count=task.retry_count,
        runner_loss_count=task.runner_loss_count,
        exit_code=task.exit_code,
        resource_kind=TASK,
        event=ChangeEvent.TASK_REPORT_REJECTED,
        actor_type=actor.type,
        phase=task.phase,
        previous_phase=0,
        pending_reason=task.pending_reason,
        tenant_id=task.tenant_id,
        resource_id=task.task_id,
        actor_id=actor.id,
        runner_id=run.runner_id if run else None,
        error_code=None,
        request_id=None,
        details=json.dumps(details),
    )


class RecordedRejections:
    """The runs whose rejections this process has recorded within the hour.

    A runner that repeats itself leaves one change for each run, and one that goes through many runs again and
    again at most MOST_OF_RUNNER changes an hour: the log stays for a year.
    """

    def __init__(self) -> None:
        self._began: datetime | None = None
        self._runs: dict[str, set[RejectedRun]] = {}

    def admits(self, run: RejectedRun, now: datetime) -> bool:
        """Whether a rejection of this run is worth a change."""
        if self._began is None or now - self._began > WINDOW:
            self._began = now
            self._runs.clear()
        recorded = self._runs.get(run.runner_id, ())
        return run not in recorded and len(recorded) < MOST_OF_RUNNER

    def add(self, runs: Iterable[RejectedRun]) -> None:
        """Remember what was recorded, after its commit."""
        for run in runs:
            self._runs.setdefault(run.runner_id, set()).add(run)
