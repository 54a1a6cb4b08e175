"""The counts of groups: outcomes leave deltas, which the leader adds up; then groups may be complete.

A task joins a group while it holds a shared lock of it; a transaction that closes the group waits for that
lock. So when a closed group has neither live tasks nor deltas, read in this order, none of its tasks is live.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from taskyard_taskdb.domain.change import ChangeEvent
from taskyard_taskdb.domain.event import CancelRequested, Event
from taskyard_taskdb.domain.group import as_prerequisite, children_group, outcome
from taskyard_taskdb.domain.task import Actor, TaskState
from taskyard_taskdb.domain.words import ActorType, Phase
from taskyard_taskdb.storage import arrays
from taskyard_taskdb.storage.change_log.append import insert_changes, resource_change
from taskyard_taskdb.storage.dependency import release
from taskyard_taskdb.storage.dependency.release import Cause, Ended
from taskyard_taskdb.storage.group.groups import GroupKey, GroupRow, key_arrays
from taskyard_taskdb.storage.pool import Tx
from taskyard_taskdb.storage.statements import statement
from taskyard_taskdb.storage.transition.task_rows import Key, Steps
from taskyard_taskdb.storage.webhook import outbox as webhook_outbox

SWEEP = Actor(ActorType.SYSTEM, "groups")
FOLD_PAGE = 10_000
COMPLETE_PAGE = 500
CANCEL_PAGE = 500


@dataclass(slots=True)
class Delta:
    """What a transaction adds to the counts of a group."""

    live: int = 0
    succeeded: int = 0
    not_succeeded: int = 0

    def __bool__(self) -> bool:
        return bool(self.live or self.succeeded or self.not_succeeded)


def deltas_of(steps: Iterable[Steps]) -> dict[GroupKey, Delta]:
    """What the steps of tasks add to the counts of their groups."""
    found: dict[GroupKey, Delta] = {}
    for step in steps:
        group_id = step.before.group_id
        if group_id is not None and step.before.phase is not step.task.phase:
            delta = found.setdefault((step.before.tenant_id, group_id), Delta())
            _count(delta, step.before, -1)
            _count(delta, step.task, 1)
    return {key: delta for key, delta in found.items() if delta}


def _count(delta: Delta, task: TaskState, by: int) -> None:
    if not task.phase.terminal:
        delta.live += by
    elif task.phase is Phase.SUCCEEDED:
        delta.succeeded += by
    else:
        delta.not_succeeded += by


async def add(tx: Tx, deltas: Mapping[GroupKey, Delta]) -> None:
    """Leave deltas to the leader."""
    keys = sorted(deltas)
    await tx.execute(
        statement("add_group_deltas"),
        {
            **key_arrays(keys),
            "lives": arrays.integers([deltas[key].live for key in keys]),
            "succeeded": arrays.integers([deltas[key].succeeded for key in keys]),
            "not_succeeded": arrays.integers([deltas[key].not_succeeded for key in keys]),
        },
    )


async def close_groups_of_children(tx: Tx, parents: Sequence[Key], *, closes: bool) -> None:
    """Leave to the leader that tasks have ended, or are retried, which may have a group of children."""
    keys = [(tenant_id, children_group(task_id)) for tenant_id, task_id in sorted(parents)]
    await tx.execute(statement("close_groups_of_children"), key_arrays(keys) | {"closes": closes})


async def exists(tx: Tx) -> bool:
    """Whether the leader has something to do."""
    row = await tx.fetch_row(statement("group_work_exists"))
    return row is not None and bool(row[0])


@dataclass(slots=True)
class Folded:
    """How many deltas were added, and the groups that became complete."""

    count: int
    completed: list[GroupRow] = field(default_factory=list)


async def fold(tx: Tx, page: int = FOLD_PAGE) -> Folded:
    """Add a page of deltas to the counts, then complete the groups whose tasks have all ended."""
    row = await tx.fetch_row(statement("fold_group_deltas"), {"page": page})
    assert row is not None
    reopened = list(zip(row[1], row[2], strict=True))
    if reopened:
        await release.forget(tx, [(key[0], as_prerequisite(key[1])) for key in reopened], Cause.ENDED)
    rows = await tx.fetch(statement("complete_groups"), {"page": COMPLETE_PAGE})
    return Folded(row[0], [GroupRow(*found) for found in rows])


async def announce(tx: Tx, completed: Sequence[GroupRow]) -> None:
    """Leave the tasks that wait for these groups to their sweep; store webhooks, record the completions."""
    awaited = [
        Ended((group.tenant_id, as_prerequisite(group.group_id)), outcome(group.not_succeeded_count))
        for group in completed
        if group.awaited
    ]
    if awaited:
        await release.remember(tx, awaited, Cause.ENDED)
    called = [group.key for group in completed if group.callback is not None]
    if called:
        await webhook_outbox.store_groups(tx, called)
    await insert_changes(
        tx,
        [
            resource_change(
                ChangeEvent.GROUP_COMPLETED,
                *group.key,
                SWEEP,
                group.complete_time or group.create_time,
                version=group.completion_count,
                details={
                    "succeeded": group.succeeded_count,
                    "not_succeeded": group.not_succeeded_count,
                    "completion": group.completion_count,
                },
            )
            for group in completed
        ],
    )


@dataclass(frozen=True, slots=True)
class CancelPage:
    """The cancels of a page of the tasks of a group, and how far the group is then."""

    events: list[tuple[Key, Event]]
    place: Mapping[str, object]


async def next_to_cancel(tx: Tx, page: int) -> CancelPage | None:
    """A page of the tasks of a cancelled group; None without such a group.

    The group is not locked: who waits for a group has locked tasks before.
    """
    group = await tx.fetch_row(statement("cancelled_group"))
    if group is None:
        return None
    tenant_id, group_id, after_time, after_id, actor_type, actor_id, reason = group
    params = {"tenant_id": tenant_id, "group_id": group_id, "after_time": after_time, "after_id": after_id}
    rows = await tx.fetch(statement("group_members"), params | {"page": page})
    if rows:
        params |= {"after_time": rows[-1][0], "after_id": rows[-1][1]}
    event = CancelRequested(actor=Actor(ActorType(actor_type), actor_id), reason=reason or "")
    events: list[tuple[Key, Event]] = [((tenant_id, row[1]), event) for row in rows if row[2]]
    return CancelPage(events, {**params, "was_id": after_id, "more": len(rows) == page})


async def continue_cancel(tx: Tx, page: CancelPage) -> None:
    """Note how far the tasks of a group are cancelled."""
    await tx.execute(statement("continue_cancel"), page.place)
