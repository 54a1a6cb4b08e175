"""The task as it is after a call that changed it."""

from __future__ import annotations

from taskyard.errors import NotFound
from taskyard.v1 import task_pb2
from taskyard_taskdb.domain.names import task_name
from taskyard_taskdb.rpc import convert
from taskyard_taskdb.storage.pool import Pool
from taskyard_taskdb.storage.read import tasks
from taskyard_taskdb.storage.read.tasks import Key


class ShowMethods:
    """What the methods that answer with a task share."""

    _pool: Pool

    async def _show(self, key: Key, view: int) -> task_pb2.Task:
        async with self._pool.reading() as tx:
            record = await tasks.read(tx, *key)
        if record is None:
            raise NotFound("task", task_name(*key))
        return convert.task_message(record, view)
