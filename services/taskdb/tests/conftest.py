"""A taskdb in the test's event loop, on a real socket and a real database, and callers with keys for it."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import grpc
import grpc.aio
import pytest

from services.taskdb.tests.yard import Yard
from taskyard.v1 import (
    admin_service_pb2_grpc,
    api_key_service_pb2_grpc,
    embedded_service_pb2_grpc,
    entity_service_pb2_grpc,
    group_service_pb2_grpc,
    lease_service_pb2_grpc,
    limit_service_pb2_grpc,
    runner_service_pb2_grpc,
    schedule_service_pb2_grpc,
    session_service_pb2_grpc,
    task_pb2,
    task_service_pb2,
    task_service_pb2_grpc,
    task_type_service_pb2_grpc,
    tenant_service_pb2_grpc,
)
from taskyard_kit.keys import ApiKey
from taskyard_taskdb.domain.event import Claimed, Event, Failed, Started, Succeeded
from taskyard_taskdb.domain.lifecycle import apply
from taskyard_taskdb.domain.names import parse_task_name
from taskyard_taskdb.domain.task import RunError, TaskState
from taskyard_taskdb.domain.words import ErrorClass
from taskyard_taskdb.server import TaskDb
from taskyard_taskdb.settings import ServerSettings
from taskyard_taskdb.storage.pool import Pool, Tx
from taskyard_taskdb.storage.tenant import api_keys
from taskyard_taskdb.storage.transition.load import load_for_update
from taskyard_taskdb.storage.transition.write import write
from tests.harness.caller import translated


class Caller:
    """A channel with a key. `caller.tasks.CreateTask(request)` raises taskyard.errors."""

    def __init__(self, address: str, key: str) -> None:
        self.channel = grpc.aio.insecure_channel(address, options=[("grpc.use_local_subchannel_pool", 1)])
        self._metadata = (("authorization", f"Bearer {key}"),)
        self.tasks = self._stub(task_service_pb2_grpc.TaskServiceStub)
        self.leases = self._stub(lease_service_pb2_grpc.LeaseServiceStub)
        self.sessions = self._stub(session_service_pb2_grpc.SessionServiceStub)
        self.runners = self._stub(runner_service_pb2_grpc.RunnerServiceStub)
        self.admin = self._stub(admin_service_pb2_grpc.AdminServiceStub)
        self.tenants = self._stub(tenant_service_pb2_grpc.TenantServiceStub)
        self.api_keys = self._stub(api_key_service_pb2_grpc.ApiKeyServiceStub)
        self.task_types = self._stub(task_type_service_pb2_grpc.TaskTypeServiceStub)
        self.entities = self._stub(entity_service_pb2_grpc.EntityServiceStub)
        self.embedded = self._stub(embedded_service_pb2_grpc.EmbeddedServiceStub)
        self.groups = self._stub(group_service_pb2_grpc.GroupServiceStub)
        self.limits = self._stub(limit_service_pb2_grpc.LimitServiceStub)
        self.schedules = self._stub(schedule_service_pb2_grpc.ScheduleServiceStub)

    def _stub(self, stub: Callable[[Any], Any]) -> Any:
        return _Translating(stub(self.channel), self._metadata)

    async def create(self, **fields: Any) -> task_pb2.Task:
        """The task that new_task(**fields) makes."""
        task: task_pb2.Task = (await self.tasks.CreateTask(new_task(**fields))).task
        return task

    async def get(self, name: str) -> task_pb2.Task:
        """The task as it is now."""
        found = await self.tasks.GetTask(task_service_pb2.GetTaskRequest(name=name))
        task: task_pb2.Task = found.task
        return task

    async def close(self) -> None:
        await self.channel.close()


def new_task(
    parent: str = "tenants/default",
    *,
    task_id: str = "",
    request_id: str = "",
    labels: Mapping[str, str] | None = None,
    external: bool = False,
    group: str = "",
    **spec: Any,
) -> task_service_pb2.CreateTaskRequest:
    """A request for a command, or for external work; `spec` are fields of the spec."""
    if "execution" not in spec:
        command = task_pb2.CommandExecution(program="true")
        spec["execution"] = (
            task_pb2.Execution(external=task_pb2.ExternalExecution())
            if external
            else task_pb2.Execution(command=command)
        )
    task = task_pb2.Task(spec=task_pb2.TaskSpec(**spec))
    task.metadata.labels.update(labels or {})
    task.metadata.group = group
    return task_service_pb2.CreateTaskRequest(
        parent=parent, task=task, task_id=task_id, request_id=request_id
    )


class _Translating:
    """A stub whose unary calls carry the key and raise taskyard.errors; streams are passed through."""

    def __init__(self, stub: Any, metadata: tuple[tuple[str, str], ...]) -> None:
        self._stub = stub
        self._metadata = metadata

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = getattr(self._stub, name)

        def call(request: Any, *, metadata: tuple[tuple[str, str], ...] = (), **options: Any) -> Any:
            made = method(request, metadata=self._metadata + metadata, **options)
            return translated(made) if isinstance(made, Awaitable) else made

        return call


async def make_key(pool: Pool, kind: int, tenant_id: str | None = None, **fields: Any) -> str:
    """A new key in the database."""
    key = ApiKey.make()
    stored = api_keys.StoredKey(key.id, kind, key.digest, tenant_id=tenant_id, **fields)
    await pool.run(lambda tx: api_keys.insert_key(tx, stored))
    return key.text


@dataclass
class RunningTaskDb:
    """A served taskdb: its parts, its address, and callers made for it."""

    taskdb: TaskDb
    address: str
    url: str
    callers: list[Caller] = field(default_factory=list)

    @property
    def pool(self) -> Pool:
        return self.taskdb.pool

    async def caller(
        self, kind: int = api_keys.TENANT, tenant_id: str | None = "default", **fields: Any
    ) -> Caller:
        """A caller with a new key; tenant keys act for `tenant_id`."""
        key = await make_key(self.pool, kind, tenant_id if kind == api_keys.TENANT else None, **fields)
        made = Caller(self.address, key)
        self.callers.append(made)
        return made

    async def add_tenant(self, tenant_id: str, *, suspended: bool = False) -> None:
        """A tenant without limits."""
        async with self.pool.transaction() as tx:
            await tx.execute(
                "INSERT INTO tenants (tenant_id, display_name, tier, max_concurrent_tasks, max_queue_depth, "
                "rate_limit_per_sec, suspended) VALUES (%s, %s, 4, 0, 0, 0, %s)",
                (tenant_id, tenant_id, suspended),
            )

    async def apply(self, name: str, *made: Callable[[TaskState, datetime], Event]) -> TaskState:
        """Lets events happen to a task as if its runner or a timer had caused them."""
        key = parse_task_name(name)

        async def work(tx: Tx) -> TaskState:
            loaded = await load_for_update(tx, [key])
            task = loaded.tasks[key]
            transitions = []
            for make in made:
                transitions.append(apply(task, make(task, loaded.now), loaded.now, random.Random(1)))
                task = transitions[-1].task
            await write(tx, transitions)
            return task

        return await self.pool.run(work)

    async def claim(self, name: str, runner_id: str = "r1") -> TaskState:
        """A runner takes the task."""

        def event(task: TaskState, now: datetime) -> Event:
            return Claimed(
                runner_id=runner_id,
                lease_id=random.getrandbits(62),
                session_epoch=0,
                expire_time=now + timedelta(minutes=1),
                request_id="claim",
            )

        return await self.apply(name, event)

    async def start(self, name: str) -> TaskState:
        """A runner takes and starts the task."""
        await self.claim(name)
        return await self.apply(name, lambda task, now: Started(**_holder(task)))

    async def fail(self, name: str, code: str = "EXIT_NONZERO") -> TaskState:
        """A runner runs the task, which fails for good."""
        await self.start(name)
        error = RunError(code, ErrorClass.PERMANENT, "it failed")
        return await self.apply(name, lambda task, now: Failed(**_holder(task), error=error))

    async def succeed(self, name: str) -> TaskState:
        """A runner runs the task, which succeeds."""
        await self.start(name)
        return await self.end(name)

    async def end(self, name: str) -> TaskState:
        """Reports the success of a task by its runner."""
        return await self.apply(name, lambda task, now: Succeeded(**_holder(task)))

    async def rows(self, sql: str, *params: Any) -> list[tuple[Any, ...]]:
        """What the database holds."""
        async with self.pool.reading() as tx:
            return await tx.fetch(sql, params, prepare=False)

    async def execute(self, sql: str, *params: Any) -> None:
        """Change the database behind the server's back."""
        async with self.pool.transaction() as tx:
            await tx.execute(sql, params, prepare=False)


def _holder(task: TaskState) -> dict[str, Any]:
    assert task.lease is not None, "the task is leased"
    lease = task.lease
    return {"runner_id": lease.runner_id, "generation": task.generation, "lease_id": lease.lease_id}


async def run_taskdb(url: str, **settings: Any) -> AsyncIterator[RunningTaskDb]:
    """A taskdb on a free port of loopback."""
    async with TaskDb(ServerSettings(database_url=url, listen="127.0.0.1:0", **settings)) as taskdb:
        await taskdb.server.start()
        running = RunningTaskDb(taskdb, taskdb.server.address, url)
        try:
            yield running
        finally:
            for caller in running.callers:
                await caller.close()
            await taskdb.server.stop_now()


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "covers(rpc, reason): the test shows that the RPC answers this reason")


@pytest.fixture
def make_task() -> Callable[..., task_service_pb2.CreateTaskRequest]:
    """The factory of requests."""
    return new_task


@pytest.fixture
async def pool(database_url: str) -> AsyncIterator[Pool]:
    """Connections to a database without a server."""
    pool = Pool(database_url)
    await pool.open()
    yield pool
    await pool.close()


@pytest.fixture
async def taskdb(database_url: str) -> AsyncIterator[RunningTaskDb]:
    """A taskdb of its own for this test."""
    async for running in run_taskdb(database_url):
        yield running


@pytest.fixture
async def quiet(database_url: str) -> AsyncIterator[RunningTaskDb]:
    """A taskdb that leaves housekeeping to the test."""
    async for running in run_taskdb(database_url, housekeeping=False):
        yield running


@pytest.fixture
async def tenant(taskdb: RunningTaskDb) -> Caller:
    """A caller that acts for the tenant "default"."""
    return await taskdb.caller()


@pytest.fixture
async def admin(taskdb: RunningTaskDb) -> Caller:
    """An administrator."""
    return await taskdb.caller(api_keys.ADMIN)


@pytest.fixture
async def scheduler(taskdb: RunningTaskDb) -> Caller:
    """A scheduler."""
    return await taskdb.caller(api_keys.SCHEDULER)


@pytest.fixture
async def yard(taskdb: RunningTaskDb, tenant: Caller, scheduler: Caller) -> Yard:
    """A scheduler that plays runners against this taskdb."""
    return await make_yard(taskdb, scheduler, tenant)


async def make_yard(
    taskdb: RunningTaskDb, scheduler: Caller, tenant: Caller, name: str = "scheduler-1"
) -> Yard:
    """A scheduler of its own name, with a key for its runners."""
    key = ApiKey.parse(await make_key(taskdb.pool, api_keys.RUNNER))
    return Yard(scheduler, tenant, key.id, name)
