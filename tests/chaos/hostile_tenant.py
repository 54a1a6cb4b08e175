"""The processes of a hostile tenant: all that it can do with its keys, as fast as it can; or cheap reads.

python -m tests.chaos.hostile_tenant TASKDB SCHEDULER TENANT KEY READ_ONLY_KEY {cheap|hostile|MISUSE}
"""

from __future__ import annotations

import asyncio
import base64
import itertools
import random
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import grpc
import grpc.aio

from taskyard.v1 import common_pb2, task_type_pb2
from taskyard.v1 import task_service_pb2 as S
from taskyard.v1 import task_type_service_pb2 as Y
from tests.fuzz.messages import Mutator
from tests.fuzz.service import Service, bearer
from tests.fuzz.values import Values
from tests.fuzz.world import World
from tests.harness.leash import end_with_parent
from tests.harness.rpc_requests import Objects, create_task

TASKS = "/taskyard.v1.TaskService/"
TYPES = "/taskyard.v1.TaskTypeService/"
# The methods of Tenant that a hostile one calls, in turn.
MISUSES = (
    *("schemas", "forged_tokens", "creates", "statistics"),
    *("streams", "huge_batches", "poisoned_values"),
)
PARALLEL = 24
STREAMS = 200
# Alternatives that a document is compared with one after the other: close to the cost that is still accepted.
SCHEMA = (
    b'{"type": "array", "items": {"anyOf": ['
    + b",".join(b'{"type": "string", "pattern": "^(a|b)*%d$"}' % n for n in range(60))
    + b"]}}"
)


class Tenant:
    """One process of the tenant; each method is one kind of misuse, repeated for ever."""

    def __init__(self, service: Service, tenant: str, key: str, read_only: str) -> None:
        self._service = service
        self._parent = f"tenants/{tenant}"
        self._key, self._read_only = key, read_only
        self._rng = random.Random(18)
        self._objects = Objects(tenant)
        self._large: list[str] = []

    async def prepare(self) -> None:
        made = Y.CreateTaskTypeRequest(
            parent=self._parent,
            task_type_id="costly",
            task_type=task_type_pb2.TaskType(payload_schema=SCHEMA),
        )
        await self._try(TYPES + "CreateTaskType", made)
        small = create_task(self._objects)
        small.task.metadata.parent_task = ""
        small.task_id = "small"
        await self._try(TASKS + "CreateTask", small)
        for number in range(40):
            request = create_task(self._objects)
            request.task.metadata.parent_task = ""
            request.task_id = f"large-{number}"
            request.task.spec.payload.raw = b'"' + b"x" * 900_000 + b'"'
            await self._try(TASKS + "CreateTask", request)
            self._large.append(f"{self._parent}/tasks/large-{number}")

    async def _try(self, path: str, request: Any, key: str = "") -> Any:
        try:
            return await self._service.call(path, request, key or self._key, 60)
        except grpc.aio.AioRpcError:
            # A refusal costs the tenant as little as an answer does; it goes on.
            await asyncio.sleep(0)
            return None

    async def cheap_reads(self) -> None:
        await self._try(TASKS + "GetTask", S.GetTaskRequest(name=f"{self._parent}/tasks/small"))

    async def schemas(self) -> None:
        document = b"[" + b",".join(b'"%s"' % (b"ab" * 20) for _ in range(600)) + b"]"
        name = f"{self._parent}/taskTypes/costly"
        request = Y.ValidatePayloadRequest(name=name, payload=common_pb2.Payload(raw=document))
        await self._try(TYPES + "ValidatePayload", request, self._read_only)

    async def forged_tokens(self) -> None:
        token = base64.urlsafe_b64encode(self._rng.randbytes(48)).decode()
        await self._try(TASKS + "ListTasks", S.ListTasksRequest(parent=self._parent, page_token=token))
        await self._stream("WatchTasks", S.WatchTasksRequest(parent=self._parent, resume_token=token), 0.2)

    async def creates(self) -> None:
        request = create_task(self._objects)
        request.task.metadata.parent_task = request.task_id = ""
        await self._try(TASKS + "CreateTask", request)

    async def statistics(self) -> None:
        await self._try(TASKS + "GetTaskStats", S.GetTaskStatsRequest(parent=self._parent))
        listed = S.ListTasksRequest(
            parent=self._parent, page_size=1000, count_total=True, filter="metadata.labels:nothing"
        )
        await self._try(TASKS + "ListTasks", listed)

    async def streams(self) -> None:
        watch = S.WatchTasksRequest(parent=self._parent, snapshot=True, view=S.TASK_VIEW_FULL)
        tail = S.TailTaskLogsRequest(parent=self._large[0], follow=True)
        await asyncio.gather(
            *(self._stream("WatchTasks", watch, 2.0) for _ in range(STREAMS // 2)),
            *(self._stream("TailTaskLogs", tail, 2.0) for _ in range(STREAMS // 2)),
        )

    async def _stream(self, rpc: str, request: Any, seconds: float) -> None:
        multi: Any = self._service.channel(TASKS + rpc).unary_stream(TASKS + rpc)
        call = multi(request.SerializeToString(), metadata=bearer(self._key), timeout=60)
        try:
            async with asyncio.timeout(seconds):
                while await call.read() is not grpc.aio.EOF:
                    pass
        except (TimeoutError, grpc.aio.AioRpcError):
            call.cancel()

    async def huge_batches(self) -> None:
        requests = [create_task(self._objects) for _ in range(1000)]
        for request in requests:
            request.task.metadata.parent_task = request.task_id = ""
            request.task.spec.payload.raw = b'"' + b"x" * 3000 + b'"'
        batch = S.BatchCreateTasksRequest(
            parent=self._parent, requests=requests, mode=common_pb2.BATCH_MODE_PER_ITEM
        )
        await self._try(TASKS + "BatchCreateTasks", batch)
        read = S.BatchGetTasksRequest(parent=self._parent, names=self._large, view=S.TASK_VIEW_FULL)
        await self._try(TASKS + "BatchGetTasks", read)

    async def poisoned_values(self) -> None:
        mutator = Mutator(Values(self._rng, World(self._service), tame=0.2))
        request = create_task(self._objects)
        mutator.mutate(request, 3)
        request.parent = self._parent
        await self._try(TASKS + "CreateTask", request)

    async def run(self, kind: str) -> None:
        kinds = {"hostile": MISUSES, "cheap": ("cheap_reads",)}.get(kind, (kind,))
        misuses: list[Callable[[], Awaitable[None]]] = [getattr(self, name) for name in kinds]
        await self.prepare()
        print("ready", flush=True)
        async with asyncio.TaskGroup() as group:
            for misuse, _ in zip(itertools.cycle(misuses), range(PARALLEL), strict=False):
                group.create_task(_for_ever(misuse))


async def _for_ever(act: Callable[[], Awaitable[None]]) -> None:
    while True:
        await act()


def main() -> None:
    taskdb, scheduler, tenant, key, read_only, kind = sys.argv[1:]
    end_with_parent()
    asyncio.run(Tenant(Service(taskdb, scheduler, ""), tenant, key, read_only).run(kind))


if __name__ == "__main__":
    main()
