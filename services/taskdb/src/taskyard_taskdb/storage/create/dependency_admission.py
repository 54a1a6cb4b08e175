"""Dependencies of new tasks: their prerequisites, locked and judged, or new tasks of the same transaction."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from taskyard.errors import FieldInvalid, NotFound
from taskyard_taskdb.domain.dependency import find_cycle
from taskyard_taskdb.domain.group import as_prerequisite, group_of, prerequisite_name
from taskyard_taskdb.domain.words import Phase
from taskyard_taskdb.storage.create.new_task import NewTask, Refused
from taskyard_taskdb.storage.dependency import edges
from taskyard_taskdb.storage.dependency.edges import Judged, judge
from taskyard_taskdb.storage.group import joining
from taskyard_taskdb.storage.pool import Tx
from taskyard_taskdb.storage.transition.load import Loaded, load_for_update
from taskyard_taskdb.storage.transition.task_rows import Key

Fresh = Sequence[tuple[int, NewTask]]


async def admit(tx: Tx, fresh: Fresh) -> dict[Key, Judged]:
    """Lock and judge the prerequisites of new tasks, and their groups; empty if no task has prerequisites.

    Raises Refused for tasks that name an unknown one or join a closed group, and for one of each cycle.
    """
    waiting = [(position, task) for position, task in fresh if task.after]
    parents = await joining.new_parents(tx, fresh)
    if waiting:
        _refuse_cycle(fresh, waiting)
    together = {task.key for _, task in fresh}
    phases: dict[Key, Phase] = dict.fromkeys(together, Phase.PENDING)
    outside = sorted({key for _, task in waiting for key in _named(task) if key not in together})
    named = [key for key in outside if group_of(key[1]) is None]
    loaded: Loaded | None = None
    if named or parents:
        loaded = await load_for_update(tx, [*named, *parents])
        await edges.mark(tx, loaded, [*named, *parents])
        phases |= await edges.phases_of(tx, named, loaded)
    phases |= await joining.admit(tx, fresh, loaded)
    if not waiting:
        return {}
    _refuse_unknown(waiting, phases.keys())
    return {
        task.key: judge(
            task.key,
            task.after,
            {item.task_id: phases[(task.tenant_id, item.task_id)] for item in task.after},
        )
        for _, task in waiting
    }


async def store(tx: Tx, stored: Sequence[tuple[int, NewTask]], judged: Mapping[Key, Judged]) -> bool:
    """Store the dependencies of new tasks; whether one of them ends at once.

    Raises Refused for a task whose prerequisite of the same batch was not stored.
    """
    waiting = [(position, task) for position, task in stored if task.after]
    if not waiting:
        return False
    new = {task.key for _, task in stored}
    outside = {
        (edge.tenant_id, edge.prerequisite_id)
        for _, task in waiting
        for edge in judged[task.key].edges
        if edge.open
    }
    within = sorted(outside & new)
    if within:
        await edges.mark_new(tx, within)
    found = {task.key: judged[task.key] for _, task in waiting}
    await edges.store(tx, found)
    return any(one.failed is not None for one in found.values())


def refuse_dropped(stored: Fresh, fresh: Fresh) -> None:
    """Raises Refused for tasks that name one of the same batch that its slot did not admit."""
    gone = {task.key for _, task in fresh} - {task.key for _, task in stored}
    if gone:
        _refuse((position, key) for position, task in stored for key in _named(task) if key in gone)


def _refuse_unknown(waiting: Fresh, known: Iterable[Key]) -> None:
    existing = set(known)
    _refuse((position, key) for position, task in waiting for key in _named(task) if key not in existing)


def _refuse(unknown: Iterable[tuple[int, Key]]) -> None:
    refused: dict[int, Exception] = {}
    for position, key in unknown:
        kind = "task" if group_of(key[1]) is None else "group"
        refused.setdefault(position, NotFound(kind, prerequisite_name(*key)))
    if refused:
        raise Refused(refused)


def _refuse_cycle(fresh: Fresh, waiting: Fresh) -> None:
    places = {task.key: position for position, task in fresh}
    # A group waits for its tasks.
    members: dict[Key, list[Key]] = {}
    for _, task in fresh:
        if task.group_id is not None:
            members.setdefault((task.tenant_id, as_prerequisite(task.group_id)), []).append(task.key)
    known = places.keys() | members.keys()
    cycle = find_cycle(
        members | {task.key: [key for key in _named(task) if key in known] for _, task in waiting}
    )
    if cycle:
        chain = " -> ".join(task_id for _, task_id in cycle)
        problem = f"the tasks wait for each other: {chain}; remove one of these dependencies"
        first = next(key for key in cycle if key in places)
        raise Refused({places[first]: FieldInvalid.of("task.spec.after", problem)})


def _named(task: NewTask) -> list[Key]:
    return [(task.tenant_id, item.task_id) for item in task.after]
