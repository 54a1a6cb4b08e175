"""Admission: the decision on a new task whose slot already has live tasks."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from taskyard.errors import SlotQueueFull
from taskyard_taskdb.domain.words import Admission

MAX_WAITING = 100
# A slot frees one place per task that ends; sooner than this a retry only adds load.
RETRY_AFTER = timedelta(seconds=5)


@dataclass(frozen=True, slots=True)
class Admitted:
    """The task is created. `replaced` are the live tasks to cancel (apply Replaced to each)."""

    replaced: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Dropped:
    """Nothing is created; this live task is the answer."""

    task_id: str


def admit(
    admission: Admission, tenant_id: str, slot: str, head: str | None, live: Sequence[str]
) -> Admitted | Dropped:
    """The decision, given the slot's head and all of its live tasks, the head included.

    A replaced task that is running holds the slot until it has stopped, so it counts as no waiter.
    QUEUE_LATEST never replaces the head, whether it runs or waits for a runner. Raises SlotQueueFull when as
    many tasks wait as may.
    """
    if admission is Admission.DROP_IF_RUNNING and live:
        return Dropped(head or live[0])
    if admission is Admission.REPLACE:
        return Admitted(tuple(live))
    if admission is Admission.QUEUE_LATEST:
        return Admitted(tuple(task_id for task_id in live if task_id != head))
    waiting = len(live) - (head is not None)
    if waiting >= MAX_WAITING:
        raise SlotQueueFull(f"tenants/{tenant_id}", str(MAX_WAITING), slot, retry_after=RETRY_AFTER)
    return Admitted()
