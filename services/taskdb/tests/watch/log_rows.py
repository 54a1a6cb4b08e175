"""Rows of the change log for the tests of watches."""

from datetime import UTC, datetime

from taskyard_taskdb.domain.change import ChangeEvent, ResourceKind
from taskyard_taskdb.domain.words import ActorType, PendingReason, Phase
from taskyard_taskdb.storage.change_log.append import ChangeRow


def change(task_id: str, version: int, tenant_id: str = "default") -> ChangeRow:
    """Return the change of an edit of a pending task."""
    return ChangeRow(
        time=datetime.now(UTC),
        version=version,
        generation=0,
        next_attempt_time=None,
        attempt=0,
        retry_count=0,
        runner_loss_count=0,
        exit_code=None,
        resource_kind=ResourceKind.TASK,
        event=ChangeEvent.TASK_UPDATED,
        actor_type=ActorType.USER,
        phase=Phase.PENDING,
        previous_phase=Phase.PENDING,
        pending_reason=PendingReason.QUEUED,
        tenant_id=tenant_id,
        resource_id=task_id,
        actor_id="",
        runner_id=None,
        error_code=None,
        request_id=None,
        details=None,
    )
