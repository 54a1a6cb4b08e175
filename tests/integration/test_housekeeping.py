"""Runners steered by an administrator, and webhooks over a killed leader, with real processes."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import grpc
import grpc.aio
import pytest

from taskyard import Phase, command
from taskyard.errors import PermissionDenied
from taskyard.v1 import runner_pb2, runner_service_pb2, runner_service_pb2_grpc, task_pb2, task_service_pb2
from taskyard.v1.task_service_pb2_grpc import TaskServiceStub
from tests.harness.control_plane import ControlPlane, control_plane
from tests.harness.link_runner import LinkRunner, registration

if TYPE_CHECKING:
    from tests.harness.postgres import PostgresServer

PATIENCE = 60


@pytest.fixture(scope="module")
def plane(postgres_server: PostgresServer, migrated_template: str) -> Iterator[ControlPlane]:
    flags = ("--webhook-networks", "127.0.0.0/8")
    with control_plane(postgres_server, migrated_template, taskdb_flags=flags) as running:
        yield running


class Administrator:
    """RunnerService with an administrator's key, for one runner."""

    def __init__(self, channel: grpc.aio.Channel, key: str, runner_id: str) -> None:
        self._stub: Any = runner_service_pb2_grpc.RunnerServiceStub(channel)
        self._metadata = (("authorization", f"Bearer {key}"),)
        self._name = f"runners/{runner_id}"

    async def drain(self) -> None:
        wanted = runner_pb2.DrainRequest(mode=runner_pb2.DRAIN_MODE_FINISH)
        request = runner_service_pb2.DrainRunnerRequest(name=self._name, drain=wanted)
        await self._stub.DrainRunner(request, metadata=self._metadata)

    async def undrain(self) -> None:
        request = runner_service_pb2.UndrainRunnerRequest(name=self._name)
        await self._stub.UndrainRunner(request, metadata=self._metadata)

    async def label(self, labels: dict[str, str]) -> None:
        runner = runner_pb2.Runner(name=self._name, admin_labels=labels)
        request = runner_service_pb2.UpdateRunnerRequest(runner=runner)
        await self._stub.UpdateRunner(request, metadata=self._metadata)

    async def delete(self) -> None:
        request = runner_service_pb2.DeleteRunnerRequest(name=self._name, force=True)
        await self._stub.DeleteRunner(request, metadata=self._metadata)


@asynccontextmanager
async def administering(plane: ControlPlane, runner: LinkRunner) -> AsyncIterator[Administrator]:
    async with grpc.aio.insecure_channel(plane.taskdbs[0].address) as channel:
        yield Administrator(channel, plane.keys["admin"], runner.runner_id)


async def test_drain_labels_and_deletion_reach_the_runner_through_its_scheduler(plane: ControlPlane) -> None:
    own = {"test": uuid.uuid4().hex[:8]}
    runner = plane.runner(f"runner-{own['test']}", described=registration(4, labels=own))
    async with plane.client() as client, runner, administering(plane, runner) as administrator:
        await runner.connect()
        await administrator.drain()
        drained = await runner.message("command", lambda m: m.command.HasField("drain"), timeout=PATIENCE)
        assert drained.command.drain.mode == runner_pb2.DRAIN_MODE_FINISH
        created = await client.create(command("true", runner_labels=own))
        heartbeat = await runner.heartbeat()
        await runner.heartbeat_acked(heartbeat)
        assert runner.waiting_assignments == 0
        await administrator.undrain()
        await runner.message("command", lambda m: m.command.HasField("undrain"), timeout=PATIENCE)
        assignment = await runner.next_assignment(timeout=PATIENCE)
        assert assignment.lease.task.endswith(created.id)
        await runner.complete(assignment)
        # A label that an administrator gives is as good as the runner's own.
        special = await client.create(command("true", runner_labels={**own, "disk": "ssd"}))
        await administrator.label({"disk": "ssd"})
        assignment = await runner.next_assignment(timeout=PATIENCE)
        assert assignment.lease.task.endswith(special.id)
        await runner.complete(assignment)
        assert (await client.wait(special, timeout=PATIENCE)).phase is Phase.SUCCEEDED
        await administrator.delete()
        assert isinstance(await runner.ended(timeout=PATIENCE), PermissionDenied)


async def test_a_webhook_is_delivered_by_the_next_leader_after_the_first_was_killed(
    plane: ControlPlane,
) -> None:
    """The receiver is down and the leader is killed before the call; the webhook is delivered in the end."""
    requests: list[dict[str, Any]] = []
    arrived = asyncio.Event()

    async def receive(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        length = int(head.split("content-length: ")[1].split("\r\n")[0])
        requests.append(json.loads(await reader.readexactly(length)))
        arrived.set()
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
        writer.close()

    probe = await asyncio.start_server(receive, "127.0.0.1", 0)
    port = probe.sockets[0].getsockname()[1]
    probe.close()
    leader = plane.taskdbs[0]
    execution = task_pb2.Execution(external=task_pb2.ExternalExecution())
    names = []
    async with grpc.aio.insecure_channel(leader.address) as channel:
        tasks: Any = TaskServiceStub(channel)
        metadata = (("authorization", f"Bearer {plane.keys['tenant']}"),)
        for _ in range(3):
            spec = task_pb2.TaskSpec(execution=execution)
            spec.callback.url = f"http://127.0.0.1:{port}/"
            create = task_service_pb2.CreateTaskRequest(
                parent="tenants/default", task=task_pb2.Task(spec=spec)
            )
            names.append((await tasks.CreateTask(create, metadata=metadata)).task.name)
            cancel = task_service_pb2.CancelTaskRequest(name=names[-1])
            await tasks.CancelTask(cancel, metadata=metadata)
    leader.kill()
    server = await asyncio.start_server(receive, "127.0.0.1", port)
    try:
        await asyncio.to_thread(leader.start)
        async with asyncio.timeout(PATIENCE):
            while {request["name"] for request in requests} != set(names):
                await arrived.wait()
                arrived.clear()
    finally:
        server.close()
    assert {request["status"]["phase"] for request in requests} == {"TASK_PHASE_CANCELLED"}
