"""Which flush a new task waits for: small ones of all tenants share one, others wait for their tenant's."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from taskyard.errors import StorageUnavailable
from taskyard_taskdb.storage.batch import Batcher
from taskyard_taskdb.storage.create.creator import Result, TaskCreator
from taskyard_taskdb.storage.create.new_task import CreateResult, NewTask
from taskyard_taskdb.storage.create.placement_classes import ClassCache

SMALL_BYTES = 16 * 1024
SHARED_BYTES = 1024 * 1024
# How long the tasks of a tenant stay apart after one of them could not be stored.
APART_SECONDS = 10.0
_MAX_TENANTS = 1000

_Queue = Batcher[NewTask, CreateResult]


class CreateQueues:
    """New tasks of concurrent calls share transactions, and no tenant's tasks wait for what another's cost.

    A task is apart from other tenants' if it is large, needs a lock or a row of its tenant first, or if its
    tenant has a batch in flight, whose locks it may wait for, or sent one lately that had to be left out.
    """

    def __init__(self, creator: TaskCreator, classes: ClassCache) -> None:
        self._creator = creator
        self._classes = classes
        self._shared: _Queue = Batcher(self._create_shared, weigh=_weight, max_weight=SHARED_BYTES)
        self._own: dict[str, _Queue] = {}
        self._apart_until: dict[str, float] = {}
        self._batches: Counter[str] = Counter()

    async def submit(self, task: NewTask) -> CreateResult:
        """The result of one task. Raises what became of it, Overloaded or ServerDraining."""
        queue = self._shared if self._may_share(task) else self._own_queue(task.tenant_id)
        return await queue.submit(task)

    @contextmanager
    def batch(self, tenant_id: str) -> Iterator[None]:
        """Within it, a batch of this tenant is being stored."""
        self._batches[tenant_id] += 1
        try:
            yield
        finally:
            self._batches[tenant_id] -= 1
            if not self._batches[tenant_id]:
                del self._batches[tenant_id]

    async def close(self) -> None:
        """Store the tasks that were accepted and are still queued."""
        for queue in (self._shared, *self._own.values()):
            await queue.close()

    def _may_share(self, task: NewTask) -> bool:
        return (
            len(task.spec) <= SMALL_BYTES
            and not task.limited
            and not task.replaces
            and not task.limits
            and task.tenant_id not in self._batches
            and self._classes.knows(task.tenant_id, task.class_id)
            and self._apart_until.get(task.tenant_id, 0.0) <= time.monotonic()
        )

    def _own_queue(self, tenant_id: str) -> _Queue:
        queue = self._own.get(tenant_id)
        if queue is None:
            if len(self._own) >= _MAX_TENANTS:
                self._own = {tenant: queue for tenant, queue in self._own.items() if not queue.idle}
            queue = self._own[tenant_id] = Batcher(self._creator.create_each, weigh=_weight, shared=False)
        return queue

    async def _create_shared(self, tasks: Sequence[NewTask]) -> list[Result]:
        results = await self._creator.create_each(tasks)
        for task, result in zip(tasks, results, strict=True):
            if isinstance(result, Exception) and not isinstance(result, StorageUnavailable):
                self._set_apart(task.tenant_id)
        return results

    def _set_apart(self, tenant_id: str) -> None:
        now = time.monotonic()
        if len(self._apart_until) >= _MAX_TENANTS:
            self._apart_until = {tenant: end for tenant, end in self._apart_until.items() if end > now}
        self._apart_until[tenant_id] = now + APART_SECONDS


def _weight(task: NewTask) -> int:
    return len(task.spec)
