"""ExplainTask on real services: each obstacle of a runner, named and then taken away; and who may ask."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from taskyard import command, function
from taskyard.errors import FieldInvalid, NotFound, Unauthenticated
from taskyard.v1 import common_pb2, explain_service_pb2, lease_pb2, runner_pb2, task_pb2, task_type_pb2
from taskyard.v1 import runner_link_service_pb2 as link
from taskyard_taskdb.storage.tenant import api_keys
from tests.harness.control_plane import ControlPlane, control_plane
from tests.harness.link_runner import LinkRunner, registration
from tests.integration.explaining import (
    OBSTACLES,
    Tenancy,
    add_type,
    ask,
    closed,
    gate,
    insert_key,
    new_tenancy,
    placed,
)

if TYPE_CHECKING:
    from tests.harness.postgres import PostgresServer


@pytest.fixture(scope="module")
def plane(postgres_server: PostgresServer, migrated_template: str) -> Iterator[ControlPlane]:
    with control_plane(postgres_server, migrated_template, schedulers=2) as running:
        yield running


@pytest.fixture
async def place(plane: ControlPlane) -> AsyncIterator[Tenancy]:
    async with new_tenancy(plane) as made:
        yield made


def _zone(spec: task_pb2.TaskSpec) -> None:
    spec.placement.required.selector.match_labels["zone"] = "eu"


def _no_spot(spec: task_pb2.TaskSpec) -> None:
    spec.placement.avoid.selector.match_labels["spot"] = "yes"


def _typed(spec: task_pb2.TaskSpec) -> None:
    spec.task_type = "encode"


def _heavy(spec: task_pb2.TaskSpec) -> None:
    spec.resources.memory_mb = 4096


def _plain(spec: task_pb2.TaskSpec) -> None:
    pass


SMALL, LARGE = common_pb2.Resources(memory_mb=1024), common_pb2.Resources(memory_mb=8192)
LACKS: list[tuple[str, Callable[[task_pb2.TaskSpec], None], dict[str, Any], dict[str, Any]]] = [
    ("KIND", _plain, {"execution_kinds": [runner_pb2.EXECUTION_KIND_SCRIPT]}, {}),
    ("TASK_TYPE", _typed, {"task_types": ["render"]}, {"task_types": ["enc*"]}),
    ("REQUIRED", _zone, {"labels": {"zone": "us"}}, {"labels": {"zone": "eu"}}),
    ("AVOID", _no_spot, {"labels": {"spot": "yes"}}, {"labels": {"spot": "no"}}),
    ("RESOURCES", _heavy, {"resources": SMALL}, {"resources": LARGE}),
]


@pytest.mark.parametrize(("obstacle", "change", "before", "after"), LACKS, ids=[lack[0] for lack in LACKS])
async def test_runner_that_lacks(
    place: Tenancy,
    obstacle: str,
    change: Callable[[task_pb2.TaskSpec], None],
    before: dict[str, Any],
    after: dict[str, Any],
) -> None:
    runner = await place.runner(**before)
    task = await place.create(placed(change))
    response = await place.explain(task)
    assert closed(response) == ["RUNNER"]
    (explained,) = response.runners
    assert explained.obstacle == OBSTACLES.Value(f"RUNNER_OBSTACLE_{obstacle}")
    assert explained.message and explained.remedy == gate(response).remedy
    await place.reconnect(runner, **after)
    await place.runs(runner, task)


async def test_runner_that_the_task_does_not_name(place: Tenancy) -> None:
    runner = await place.runner()
    task = await place.create(command("true", runner_ids=("another",)))
    response = await place.explain(task)
    assert closed(response) == ["RUNNER"]
    assert response.runners[0].obstacle == OBSTACLES.RUNNER_OBSTACLE_REQUIRED
    assert '"another"' in response.summary
    other = await place.runner("another")
    await place.runs(other, task)
    assert runner.waiting_assignments == 0


async def test_runner_that_the_type_does_not_let_in(place: Tenancy) -> None:
    definition = task_type_pb2.TaskType(runner_id_pattern="^worker-").SerializeToString()
    await add_type(place, definition)
    runner = await place.runner()
    task = await place.create(command("true", task_type="render"))
    response = await place.explain(task)
    assert closed(response) == ["RUNNER"]
    (explained,) = response.runners
    assert explained.obstacle == OBSTACLES.RUNNER_OBSTACLE_SCOPE
    assert explained.message and explained.remedy == gate(response).remedy
    await place.runs(await place.runner(f"worker-{place.tenant}"), task)
    assert runner.waiting_assignments == 0


async def test_no_runner_at_all(place: Tenancy) -> None:
    task = await place.create(command("true"))
    response = await place.explain(task)
    assert closed(response) == ["RUNNER"]
    assert "no runner serves" in response.summary
    await place.runs(await place.runner(), task)


async def test_offline_runner(place: Tenancy) -> None:
    runner = await place.runner()
    await runner.send_goodbye()
    await runner.ended()
    task = await place.create(command("true"))
    response = await place.explain(task)
    assert closed(response) == ["RUNNER"]
    assert response.runners[0].obstacle == OBSTACLES.RUNNER_OBSTACLE_OFFLINE
    await runner.connect()
    await place.runs(runner, task)


async def test_draining_runner(place: Tenancy) -> None:
    runner = await place.runner()
    runner.draining = True
    await runner.heartbeat_acked(await runner.heartbeat())
    task = await place.create(command("true"))
    response = await place.explain(task)
    assert closed(response) == ["RUNNER"]
    assert response.runners[0].obstacle == OBSTACLES.RUNNER_OBSTACLE_DRAINING
    runner.draining = False
    await runner.heartbeat_acked(await runner.heartbeat())
    await place.runs(runner, task)


async def test_runner_that_refused(place: Tenancy) -> None:
    runner = await place.runner()
    task = await place.create(command("true"))
    assignment = await runner.next_assignment()
    await runner.acked(await runner.released(assignment, lease_pb2.RELEASE_REASON_UNSUPPORTED))
    await runner.connect()
    response = await place.explain(task)
    assert closed(response) == ["RUNNER"], "refusals outlive a reconnect"
    assert response.runners[0].obstacle == OBSTACLES.RUNNER_OBSTACLE_REFUSED
    assert "restart its agent" in gate(response).remedy
    assert response.earliest_time == gate(response).open_time
    left = response.earliest_time.ToDatetime(UTC) - datetime.now(UTC)
    assert timedelta(minutes=9) < left <= timedelta(minutes=10)
    runner.instance_id = str(uuid.uuid4())
    await runner.connect(takeover=True)
    await place.runs(runner, task)


async def test_runner_without_the_function(place: Tenancy) -> None:
    runner = await place.runner(functions=["receive"])
    task = await place.create(function("send"))
    response = await place.explain(task)
    assert closed(response) == ["RUNNER"]
    (explained,) = response.runners
    assert explained.obstacle == OBSTACLES.RUNNER_OBSTACLE_TASK_TYPE
    assert explained.message == 'it has no function "send"' and "register" in explained.remedy
    await place.reconnect(runner, functions=["receive", "send"])
    await place.runs(runner, task)


def memory_free(runner: LinkRunner, memory_mb: int) -> link.Capacity:
    return link.Capacity(tasks=runner.free(), resources=common_pb2.Resources(memory_mb=memory_mb))


@pytest.mark.parametrize("scheduler", [0, 1], ids=["connected here", "connected at another scheduler"])
async def test_runner_without_free_memory(place: Tenancy, scheduler: int) -> None:
    """It has free places; the memory it reports as free counts at every replica."""
    described = registration(4, resources=LARGE)
    runner = await place.agent(scheduler=scheduler, described=described, heartbeats=False)
    await runner.connect()
    await runner.heartbeat_acked(await runner.heartbeat(free=memory_free(runner, 1024)))
    task = await place.create(placed(_heavy))
    response = await place.explain(task)
    assert closed(response) == ["TURN"]
    (explained,) = response.runners
    assert explained.obstacle == OBSTACLES.RUNNER_OBSTACLE_CAPACITY
    assert explained.message == "the task needs 4096 memory_mb and it has free 1024"
    await runner.heartbeat_acked(await runner.heartbeat(free=memory_free(runner, 8192)))
    await place.runs(runner, task)


async def test_turn(place: Tenancy) -> None:
    runner = await place.runner(capacity=1)
    await place.create(command("true"))
    assignment = await runner.next_assignment()
    waiting = [await place.create(command("true")) for _ in range(3)]
    response = await place.explain(waiting[2])
    assert closed(response) == ["TURN"]
    assert response.lane_position == 2
    assert "2 tasks are ahead" in response.summary
    assert response.runners[0].obstacle == OBSTACLES.RUNNER_OBSTACLE_CAPACITY
    await runner.complete(assignment)
    for task in waiting:
        await place.runs(runner, task)


async def test_anti_affinity_on_a_runner(place: Tenancy) -> None:
    runner = await place.runner()
    await place.create(command("true", task_type="heavy"))
    assignment = await runner.next_assignment()
    await runner.acked(await runner.started(assignment))

    def apart(spec: task_pb2.TaskSpec) -> None:
        spec.placement.avoid.task_types.append("heavy")

    task = await place.create(placed(apart))
    response = await place.explain(task)
    assert closed(response) == ["RUNNER"]
    assert response.runners[0].obstacle == OBSTACLES.RUNNER_OBSTACLE_AVOID
    await runner.connect()
    assert closed(await place.explain(task)) == ["RUNNER"], (
        "running tasks are still counted after a reconnect"
    )
    await runner.acked(await runner.succeeded(assignment))
    await place.runs(runner, task)


async def test_scores_and_order_of_runners(place: Tenancy) -> None:
    for name, zone in (("a", "us"), ("b", "eu"), ("c", "eu")):
        await place.runner(f"{name}-{place.tenant}", labels={"zone": zone})

    def prefer(spec: task_pb2.TaskSpec) -> None:
        wish = spec.placement.preferred.add(weight=1)
        wish.runners.selector.match_labels["zone"] = "eu"
        wish.runners.runner_ids.append(f"c-{place.tenant}")

    response = await place.explain(placed(prefer))
    assert [(explained.runner.split("/")[1][0], explained.score) for explained in response.runners] == [
        ("c", 100),
        ("b", 55),
        ("a", 50),
    ]


# ---- who may ask


async def test_another_tenants_task_and_runners_do_not_exist(plane: ControlPlane, place: Tenancy) -> None:
    await place.runner()
    task = await place.create(command("true", id="secret"))
    stranger = await insert_key(plane.url, api_keys.TENANT, "default")
    with pytest.raises(NotFound):
        await place.explain(task, key=stranger)
    with pytest.raises(NotFound):
        await place.explain(task, key=stranger, parent="tenants/default")
    with pytest.raises(NotFound):
        await place.explain(command("true"), key=stranger)
    seen = await place.explain(command("true"), key=stranger, parent="tenants/default")
    assert [explained.runner for explained in seen.runners] == [], "it serves another tenant only"
    assert (await place.explain(task, key=plane.keys["admin"])).gates
    with pytest.raises(NotFound):
        missing = explain_service_pb2.ExplainTaskRequest(
            parent=f"tenants/{place.tenant}", name=f"tenants/{place.tenant}/tasks/none"
        )
        await ask(plane, place.key, missing)


async def test_invalid_requests_name_their_field(plane: ControlPlane, place: Tenancy) -> None:
    bad = command("true")
    bad.request.task.spec.priority = 5000
    with pytest.raises(FieldInvalid) as refused:
        await place.explain(bad)
    assert [violation.field for violation in refused.value.violations] == ["spec.priority"]
    mixed = explain_service_pb2.ExplainTaskRequest(
        parent="tenants/default", name=f"tenants/{place.tenant}/tasks/x"
    )
    with pytest.raises(FieldInvalid):
        await ask(plane, plane.keys["admin"], mixed)
    with pytest.raises(Unauthenticated):
        await ask(plane, "ty_nokey_" + "x" * 40, mixed)
