"""The audit of rejected reports: who wrote what could not be applied any more, and why."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Hashable, Iterable
from datetime import datetime

from taskyard.errors import TaskyardError
from taskyard_taskdb.domain.change import ChangeEvent
from taskyard_taskdb.domain.task import Actor, TaskState
from taskyard_taskdb.storage.change_log.append import TASK, ChangeRow


def rejection(
    task: TaskState, actor: Actor, now: datetime, error: TaskyardError, runner_id: str | None = None
) -> ChangeRow:
    """The change that records why a report was rejected; the task stays as it is."""
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
        runner_id=runner_id,
        error_code=None,
        request_id=None,
        details=json.dumps({"reason": error.reason, "message": error.message[:1000]}),
    )


class RecordedRejections:
    """The rejections that this process has recorded, so that a report that is repeated leaves one change."""

    def __init__(self, size: int = 10_000) -> None:
        self._size = size
        self._recorded: OrderedDict[Hashable, None] = OrderedDict()

    def __contains__(self, rejected: Hashable) -> bool:
        return rejected in self._recorded

    def add(self, rejected: Iterable[Hashable]) -> None:
        """Remember what was recorded, and forget the oldest beyond the size."""
        self._recorded.update(dict.fromkeys(rejected))
        while len(self._recorded) > self._size:
            self._recorded.popitem(last=False)
