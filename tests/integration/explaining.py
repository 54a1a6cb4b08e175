"""A tenant of its own with its runners, and the explanations it is given, for tests of ExplainTask."""

from __future__ import annotations

import contextlib
import json
import uuid
from collections.abc import AsyncIterator, Callable
from typing import Any

import psycopg

from taskyard import Client, Created, NewTask, Phase, command
from taskyard.channel import open_channel
from taskyard.status import from_rpc_error
from taskyard.v1 import explain_service_pb2, task_pb2
from taskyard.v1.explain_service_pb2_grpc import ExplainServiceStub
from taskyard_kit.keys import ApiKey
from taskyard_taskdb.storage.pool import Tx
from taskyard_taskdb.storage.tenant import api_keys
from taskyard_taskdb.storage.tenant.api_keys import RunnerScope, StoredKey
from tests.harness.control_plane import ControlPlane
from tests.harness.link_runner import LinkRunner, registration

Response = explain_service_pb2.ExplainTaskResponse
OBSTACLES = explain_service_pb2.RunnerObstacle


class Tenancy:
    """A tenant of its own with a client, and runners that serve this tenant only."""

    def __init__(self, plane: ControlPlane, tenant: str, key: str, runner_key: str) -> None:
        self.plane = plane
        self.tenant = tenant
        self.key = key
        self.runner_key = runner_key
        self._stack = contextlib.AsyncExitStack()

    async def __aenter__(self) -> Tenancy:
        address = self.plane.taskdbs[0].address
        self.client = await self._stack.enter_async_context(Client(address, key=self.key, tenant=self.tenant))
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def runner(self, runner_id: str = "", capacity: int = 4, **fields: Any) -> LinkRunner:
        """A connected runner."""
        made = await self.agent(runner_id, described=registration(capacity, **fields))
        await made.connect()
        return made

    async def agent(self, runner_id: str = "", scheduler: int = 0, **options: Any) -> LinkRunner:
        """A runner that has not connected yet."""
        address = self.plane.schedulers[scheduler].address
        made = LinkRunner(address, self.runner_key, runner_id or f"runner-{self.tenant}", **options)
        return await self._stack.enter_async_context(made)

    async def reconnect(self, runner: LinkRunner, capacity: int = 4, **fields: Any) -> None:
        """The runner comes back as another."""
        runner.registration.CopyFrom(registration(capacity, **fields))
        await runner.connect()

    async def create(self, task: NewTask) -> Created:
        return await self.client.create(task)

    async def explain(self, task: Created | NewTask, key: str = "", parent: str = "") -> Response:
        """The explanation of a task, or of one that was not created."""
        request = explain_service_pb2.ExplainTaskRequest(parent=parent or f"tenants/{self.tenant}")
        if isinstance(task, NewTask):
            request.spec.CopyFrom(task.request.task.spec)
        else:
            request.name = f"tenants/{self.tenant}/tasks/{task.id}"
        return await ask(self.plane, key or self.key, request)

    async def change(self, sql: str, *params: Any) -> None:
        """Change the tenant directly in the database, and notify the schedulers."""
        async with await psycopg.AsyncConnection.connect(self.plane.url, autocommit=True) as connection:
            await connection.execute(sql, params)
            notification = json.dumps({"from": "test", "everything": True})
            await connection.execute("SELECT pg_notify('taskyard_queue', %s)", (notification,))

    async def limit(self, **limits: int) -> None:
        """Put limits in force."""
        columns = {
            "max_concurrent_tasks": 0,
            "max_queue_depth": 0,
            "rate_limit_per_sec": 0,
            "rate_burst": 0,
            "pending": 0,
            "leased": 0,
            "tokens": 0,
            **limits,
        }
        names = ", ".join(columns)
        values = ", ".join(str(value) for value in columns.values())
        await self.change(
            f"WITH old AS (DELETE FROM tenant_counters WHERE tenant_id = '{self.tenant}') "
            f"INSERT INTO tenant_counters (tenant_id, {names}) VALUES ('{self.tenant}', {values}) "
            f"ON CONFLICT (tenant_id) DO UPDATE SET ({names}) = ({values})"
        )

    async def becomes(self, task: Created, phase: Phase) -> None:
        """Wait until the task is in this phase."""
        async for event in self.client.watch(task, snapshot=True):
            if event.task.phase is phase:
                return

    async def runs(self, runner: LinkRunner, task: Created) -> None:
        """The task starts on the runner and ends well."""
        assignment = await runner.next_assignment()
        assert assignment.lease.task.endswith(f"/{task.id}")
        await runner.complete(assignment)
        assert (await self.client.wait(task, timeout=20)).phase is Phase.SUCCEEDED


async def ask(plane: ControlPlane, key: str, request: explain_service_pb2.ExplainTaskRequest) -> Response:
    async with open_channel(plane.schedulers[0].address, key=key) as channel:
        stub: Any = ExplainServiceStub(channel)
        try:
            answer: Response = await stub.ExplainTask(request)
        except Exception as error:
            raise from_rpc_error(error) from None  # type: ignore[arg-type]
        return answer


async def insert_key(url: str, kind: int, tenant: str, **fields: Any) -> str:
    key = ApiKey.make()
    async with await psycopg.AsyncConnection.connect(url) as connection:
        await api_keys.insert_key(
            Tx(connection),
            StoredKey(
                key.id, kind, key.digest, tenant_id=tenant if kind == api_keys.TENANT else None, **fields
            ),
        )
    return key.text


@contextlib.asynccontextmanager
async def new_tenancy(plane: ControlPlane) -> AsyncIterator[Tenancy]:
    """A new tenant without limits."""
    tenant = f"t{uuid.uuid4().hex[:8]}"
    async with await psycopg.AsyncConnection.connect(plane.url, autocommit=True) as connection:
        await connection.execute(
            "INSERT INTO tenants (tenant_id, display_name, tier, max_concurrent_tasks, max_queue_depth, "
            "rate_limit_per_sec, rate_burst) VALUES (%s, 'test', 1, 0, 0, 0, 0)",
            (tenant,),
        )
    key = await insert_key(plane.url, api_keys.TENANT, tenant)
    scope = RunnerScope(tenants=(tenant,))
    runner_key = await insert_key(plane.url, api_keys.RUNNER, tenant, runner_scope=scope)
    async with Tenancy(plane, tenant, key, runner_key) as made:
        yield made


def closed(response: Response) -> list[str]:
    return [
        explain_service_pb2.Gate.Name(gate.gate).removeprefix("GATE_")
        for gate in response.gates
        if not gate.passed
    ]


def gate(response: Response) -> explain_service_pb2.GateVerdict:
    """The only closed gate, with all of its required fields set."""
    (found,) = [gate for gate in response.gates if not gate.passed]
    assert not response.runnable
    assert response.summary == found.message
    assert found.message and found.remedy
    assert "\n" not in found.message + found.remedy
    return found


def placed(change: Callable[[task_pb2.TaskSpec], None]) -> NewTask:
    task = command("true")
    change(task.request.task.spec)
    return task


async def add_type(place: Tenancy, definition: bytes = b"", **columns: str) -> None:
    names = ", ".join(["tenant_id", "task_type", "definition", *columns])
    values = ", ".join(
        [f"'{place.tenant}'", "'render'", f"decode('{definition.hex()}', 'hex')", *columns.values()]
    )
    await place.change(f"INSERT INTO task_types ({names}) VALUES ({values})")
