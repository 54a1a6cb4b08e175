"""Changes of a task's spec, labels and annotations."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from taskyard.errors import NotFound
from taskyard_taskdb.domain.event import Edited
from taskyard_taskdb.domain.lifecycle import apply
from taskyard_taskdb.domain.names import task_name
from taskyard_taskdb.domain.task import TaskState
from taskyard_taskdb.storage.action.actions import AfterCommit, expect, is_repeat
from taskyard_taskdb.storage.create.placement_classes import ClassCache
from taskyard_taskdb.storage.create.request_ids import Method, Request
from taskyard_taskdb.storage.notify.bus import CommitNotice
from taskyard_taskdb.storage.pool import Pool, Tx
from taskyard_taskdb.storage.read import tasks
from taskyard_taskdb.storage.read.tasks import Key, TaskRecord
from taskyard_taskdb.storage.statements import statement
from taskyard_taskdb.storage.transition.load import load_for_update
from taskyard_taskdb.storage.transition.write import write

_rng = random.Random()


@dataclass(frozen=True, slots=True)
class Edit:
    """The stored documents of a changed task, and the event for the lifecycle."""

    event: Edited
    kind: int
    class_definition: bytes
    spec: bytes
    callback: bytes | None
    annotations: bytes | None
    labels: str | None


Decide = Callable[[TaskRecord, TaskState], Edit | None]
"""The change of a task as it is now; None if there is none."""


class Editor:
    """Applies changes; `after_commit` gets the notice of each committed transaction."""

    def __init__(self, pool: Pool, classes: ClassCache, after_commit: AfterCommit) -> None:
        self._pool = pool
        self._classes = classes
        self._after_commit = after_commit

    async def edit(
        self,
        key: Key,
        resource_version: int,
        decide: Decide,
        request: Request | None,
        *,
        validate_only: bool = False,
    ) -> TaskRecord:
        """Changes a task as `decide` says, or only checks that; returns it as this leaves it.

        Raises NotFound, ResourceVersionMismatch, RequestIdReused, what `decide` raises and what the lifecycle
        refuses with.
        """

        async def work(tx: Tx) -> tuple[CommitNotice, TaskRecord | None]:
            if request is not None and await is_repeat(tx, Method.UPDATE_TASK, request):
                return CommitNotice(), await tasks.read(tx, *key)
            loaded = await load_for_update(tx, [key])
            task = expect(loaded.tasks, key, resource_version)
            record = await tasks.read(tx, *key)
            assert record is not None, "the task is locked"
            edit = decide(record, task)
            if edit is None:
                return CommitNotice(), record
            transition = apply(task, edit.event, loaded.now, _rng)
            if edit.event.class_id is not None:
                await self._classes.ensure_one(tx, key[0], edit.event.class_id, edit.class_definition)
            notice = await write(tx, [transition])
            await tx.execute(
                statement("edit_documents"),
                (edit.kind, edit.spec, edit.callback, edit.annotations, edit.labels, *key),
            )
            return notice, await tasks.read(tx, *key)

        if validate_only:
            await self._pool.rehearse(work)
            async with self._pool.reading() as tx:
                record = await tasks.read(tx, *key)
        else:
            notice, record = await self._pool.run(work)
            self._after_commit(notice)
        if record is None:
            raise NotFound("task", task_name(*key))
        return record
