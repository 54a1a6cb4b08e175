"""Retries of tasks with dependencies: prerequisites are judged anew, dependents are revived on request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from taskyard.errors import NotFound, PhaseConflict
from taskyard_taskdb.domain.event import RetryRequested
from taskyard_taskdb.domain.group import as_prerequisite, group_of, prerequisite_name
from taskyard_taskdb.domain.task import TaskState
from taskyard_taskdb.storage.dependency import edges, release
from taskyard_taskdb.storage.dependency.backlog import rejudge, without_waits
from taskyard_taskdb.storage.dependency.edges import Edge, Judged
from taskyard_taskdb.storage.dependency.release import Cause, Ended
from taskyard_taskdb.storage.notify.bus import CommitNotice
from taskyard_taskdb.storage.pool import Tx
from taskyard_taskdb.storage.transition.load import Loaded
from taskyard_taskdb.storage.transition.task_rows import Key


@dataclass(slots=True)
class Retries:
    """The dependencies of tasks that are to be retried, and what was decided about them."""

    needed: Mapping[Key, Sequence[Edge]] = field(default_factory=dict)
    # Of every task that was judged, and of those whose retry was accepted.
    judged: dict[Key, Judged] = field(default_factory=dict)
    accepted: dict[Key, Judged] = field(default_factory=dict)
    cascading: list[Ended] = field(default_factory=list)

    @classmethod
    async def of(cls, tx: Tx, keys: Sequence[Key]) -> Retries:
        """Read the dependencies of these tasks, which never change; a wait for children is over."""
        return cls(without_waits(await edges.of_tasks(tx, keys)) if keys else {})

    def prerequisites(self) -> list[Key]:
        """The tasks to load along with those that are to be retried."""
        return [(edge.tenant_id, edge.prerequisite_id) for found in self.needed.values() for edge in found]

    async def judge(self, tx: Tx, task: TaskState, event: RetryRequested, loaded: Loaded) -> RetryRequested:
        """The event with what the task has to wait for.

        Raises PhaseConflict if a prerequisite ended otherwise than required, NotFound if one is gone.
        """
        key = (task.tenant_id, task.task_id)
        if key not in self.needed:
            return event
        needed = self.needed[key]
        named = [(edge.tenant_id, edge.prerequisite_id) for edge in needed]
        phases = await edges.phases_of(tx, named, loaded)
        judged = rejudge(needed, phases)
        if judged is None:
            gone = next(key for key in named if key not in phases)
            raise NotFound("task" if group_of(gone[1]) is None else "group", prerequisite_name(*gone))
        if judged.failed is not None:
            failed_id, phase = judged.failed
            name = prerequisite_name(task.tenant_id, failed_id)
            remedy = f"another outcome of {name}, which ended as {phase.name}; retry that with cascade"
            raise PhaseConflict(task.name, task.phase.name, remedy)
        self.judged[key] = judged
        return replace(event, blocked=judged.blocked)

    def accept(self, task: TaskState, event: RetryRequested) -> None:
        """Note a task that is retried, with its dependents if that is requested."""
        key = (task.tenant_id, task.task_id)
        if key in self.judged:
            self.accepted[key] = self.judged[key]
        if event.cascade and task.has_dependents:
            self.cascading.append(Ended(key, task.phase))
        if event.cascade and task.group_id is not None:
            self.cascading.append(Ended((key[0], as_prerequisite(task.group_id)), task.phase))

    async def store(self, tx: Tx, notice: CommitNotice, loaded: Loaded) -> None:
        """Store what the retried tasks wait for, and leave the dependents of others to the sweep."""
        if self.accepted:
            # An id that was used again after its task was archived has no mark yet.
            await edges.mark(tx, loaded, self.prerequisites())
            await edges.forget_waits(tx, list(self.accepted))
            await edges.reopen(tx, self.accepted)
        if self.cascading:
            await release.remember(tx, self.cascading, Cause.RETRIED)
            notice.dependencies = True
