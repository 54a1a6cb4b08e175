"""The pattern that a task type has for ids of its runners, from the registration of the type to the claim."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from taskyard import command
from taskyard.channel import open_channel
from taskyard.v1 import task_pb2, task_service_pb2, task_type_pb2, task_type_service_pb2
from taskyard.v1.task_service_pb2_grpc import TaskServiceStub
from taskyard.v1.task_type_service_pb2_grpc import TaskTypeServiceStub
from tests.harness.control_plane import ControlPlane, control_plane

if TYPE_CHECKING:
    from tests.harness.postgres import PostgresServer

PARENT = "tenants/default"


@pytest.fixture
def plane(postgres_server: PostgresServer, migrated_template: str) -> Iterator[ControlPlane]:
    with control_plane(postgres_server, migrated_template) as running:
        yield running


async def create_typed(plane: ControlPlane, count: int) -> set[str]:
    """Tasks of a type for runners of one form of id."""
    async with open_channel(plane.taskdbs[0].address, key=plane.keys["tenant"]) as channel:
        types: Any = TaskTypeServiceStub(channel)
        execution = task_pb2.Execution(command=task_pb2.CommandExecution(program="true"))
        problem = task_type_pb2.TaskType(execution=execution, runner_id_pattern=r"^worker-\d{3}-kind$")
        await types.CreateTaskType(
            task_type_service_pb2.CreateTaskTypeRequest(
                parent=PARENT, task_type_id="problem", task_type=problem
            )
        )
        tasks: Any = TaskServiceStub(channel)
        request = task_service_pb2.CreateTaskRequest(parent=PARENT)
        request.task.spec.task_type = "problem"
        return {(await tasks.CreateTask(request)).task.name for _ in range(count)}


@pytest.mark.seed("S0.44")
async def test_tasks_go_only_to_runners_whose_id_matches_the_pattern_of_their_type(
    plane: ControlPlane,
) -> None:
    async with contextlib.AsyncExitStack() as stack:
        others = []
        for runner_id in ("builder-1", "worker-1-kind", "worker-001-kind-2"):
            others.append(await stack.enter_async_context(plane.runner(runner_id)))
            await others[-1].connect()
        client = await stack.enter_async_context(plane.client())
        worker = await stack.enter_async_context(plane.runner("worker-001-kind"))
        names = await create_typed(plane, 3)
        await worker.connect()
        taken = [await worker.next_assignment() for _ in names]
        assert {assignment.lease.task for assignment in taken} == names
        # The others were there first, and had room: what they get is the work that is open to them.
        for other in others:
            created = await client.create(command("true", runner_ids=(other.runner_id,)))
            assert (await other.next_assignment()).lease.task.endswith(created.id)
            assert len(other.held) == 1
