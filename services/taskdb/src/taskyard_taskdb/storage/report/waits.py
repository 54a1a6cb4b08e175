"""Runs that end to wait for children of their task: which of these are live, and whether one waits for it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from taskyard_taskdb.domain.event import HolderEvent, Released
from taskyard_taskdb.domain.names import parse_task_name
from taskyard_taskdb.domain.task import TaskState
from taskyard_taskdb.domain.transition import Transition
from taskyard_taskdb.storage import arrays
from taskyard_taskdb.storage.dependency import edges
from taskyard_taskdb.storage.pool import Tx
from taskyard_taskdb.storage.statements import statement
from taskyard_taskdb.storage.transition.load import Loaded
from taskyard_taskdb.storage.transition.task_rows import Key

# Dependencies that are followed to find whether a child waits for the task that is to wait for it.
MOST_FOLLOWED = 20_000


@dataclass(slots=True)
class Waits:
    """The waits of a batch of reports, by task."""

    named: dict[Key, tuple[str, ...]]
    # Those of the named tasks that are live children of the task, which locked rows show.
    _children: set[tuple[Key, str]] = field(default_factory=set)
    _accepted: dict[Key, Sequence[str]] = field(default_factory=dict)

    @classmethod
    def of(cls, events: Iterable[tuple[Key, HolderEvent | None]]) -> Waits:
        """The waits among the events of a batch."""
        waiting = ((key, event) for key, event in events if isinstance(event, Released) and event.wait_for)
        return cls({key: _ids(key[0], event.wait_for) for key, event in waiting})

    def named_tasks(self) -> list[Key]:
        """The tasks to lock along with those that wait for them."""
        return [(key[0], id) for key, ids in self.named.items() for id in ids]

    def last(self, groups: Mapping[Key, list[int]]) -> list[tuple[Key, list[int]]]:
        """The groups of reports, those with a wait last: the children may end in the same batch."""
        if not self.named:
            return list(groups.items())
        return sorted(groups.items(), key=lambda item: item[0] in self.named)

    async def read_children(self, tx: Tx) -> None:
        """Read which of the named tasks, which are locked, are children of the task that waits."""
        pairs = [(key, id) for key, ids in self.named.items() for id in ids]
        if pairs:
            params = edges.key_arrays([(key[0], id) for key, id in pairs])
            parents = arrays.texts([key[1] for key, _ in pairs])
            rows = await tx.fetch(statement("live_children"), params | {"parent_ids": parents})
            self._children = {((row[0], row[1]), row[2]) for row in rows}

    async def judge(
        self, tx: Tx, key: Key, event: HolderEvent, tasks: Mapping[Key, TaskState]
    ) -> HolderEvent:
        """The event with the children that are live after the other reports of the batch."""
        if not isinstance(event, Released) or not event.wait_for:
            return event
        found = {id: tasks.get((key[0], id)) for id in self.named[key]}
        live = {
            id: task
            for id, task in found.items()
            if (key, id) in self._children and task is not None and not task.phase.terminal
        }
        blocked = [id for id, task in live.items() if task.blocked]
        cycle = await _waiting_for(tx, key, blocked) if blocked else ""
        return replace(event, live=tuple(live), cycle=cycle)

    def accept(self, key: Key, event: HolderEvent, step: Transition) -> None:
        """Note a wait that the lifecycle has accepted."""
        if step.task.blocked and isinstance(event, Released) and event.live:
            self._accepted[key] = event.live

    async def store(self, tx: Tx, loaded: Loaded) -> None:
        """Store what the tasks wait for; their rows are for the caller to write."""
        if self._accepted:
            await edges.wait(tx, loaded, self._accepted)


def _ids(tenant_id: str, names: Iterable[str]) -> tuple[str, ...]:
    """The ids of the tasks of this tenant among those named, each once."""
    keys = dict.fromkeys(parse_task_name(name) for name in names)
    return tuple(key[1] for key in keys if key[0] == tenant_id)


async def _waiting_for(tx: Tx, key: Key, children: Sequence[str]) -> str:
    """What one of these children waits for, directly or not, that waits for the task; empty if nothing does.

    Two tasks that are about to wait do this one after the other, so that the second sees the first.
    """
    await tx.execute(statement("lock_waits"), {"tenant_id": key[0]})
    params = {"tenant_id": key[0], "task_id": key[1], "most": MOST_FOLLOWED}
    row = await tx.fetch_row(statement("find_wait"), params | {"task_ids": arrays.texts(children)})
    return str(row[0]) if row is not None else ""
