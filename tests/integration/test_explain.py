"""ExplainTask on real services: each gate as the only obstacle, named; its remedy applied, the task runs."""

from __future__ import annotations

import contextlib
import json
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from taskyard import Client, Created, NewTask, Phase, command
from taskyard.channel import open_channel
from taskyard.errors import FieldInvalid, NotFound, Unauthenticated
from taskyard.status import from_rpc_error
from taskyard.v1 import (
    admin_service_pb2,
    common_pb2,
    explain_service_pb2,
    lease_pb2,
    runner_pb2,
    task_pb2,
    task_type_pb2,
)
from taskyard.v1.admin_service_pb2_grpc import AdminServiceStub
from taskyard.v1.explain_service_pb2_grpc import ExplainServiceStub
from taskyard_kit.keys import ApiKey
from taskyard_taskdb.domain.spec_digest import spec_digest
from taskyard_taskdb.storage import keys
from taskyard_taskdb.storage.keys import RunnerScope, StoredKey
from taskyard_taskdb.storage.pool import Tx
from tests.harness.control_plane import ControlPlane, control_plane
from tests.harness.link_runner import LinkRunner, registration

if TYPE_CHECKING:
    from tests.harness.postgres import PostgresServer

Response = explain_service_pb2.ExplainTaskResponse
OBSTACLES = explain_service_pb2.RunnerObstacle


@pytest.fixture(scope="module")
def plane(postgres_server: PostgresServer, migrated_template: str) -> Iterator[ControlPlane]:
    with control_plane(postgres_server, migrated_template) as running:
        yield running


class Tenancy:
    """A tenant of its own with a client, and runners that serve nobody else."""

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
        described = registration(capacity, **fields)
        made = LinkRunner(
            self.plane.schedulers[0].address,
            self.runner_key,
            runner_id or f"runner-{self.tenant}",
            described=described,
        )
        await self._stack.enter_async_context(made)
        await made.connect()
        return made

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
        """Change the tenant behind taskdb's back, and let schedulers hear of it."""
        async with await psycopg.AsyncConnection.connect(self.plane.url, autocommit=True) as connection:
            await connection.execute(sql, params)
            told = json.dumps({"from": "test", "everything": True})
            await connection.execute("SELECT pg_notify('taskyard_queue', %s)", (told,))

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
        await keys.insert_key(
            Tx(connection),
            StoredKey(key.id, kind, key.digest, tenant_id=tenant if kind == keys.TENANT else None, **fields),
        )
    return key.text


@pytest.fixture
async def place(plane: ControlPlane) -> AsyncIterator[Tenancy]:
    tenant = f"t{uuid.uuid4().hex[:8]}"
    async with await psycopg.AsyncConnection.connect(plane.url, autocommit=True) as connection:
        await connection.execute(
            "INSERT INTO tenants (tenant_id, display_name, tier, max_concurrent_tasks, max_queue_depth, "
            "rate_limit_per_sec, rate_burst) VALUES (%s, 'test', 1, 0, 0, 0, 0)",
            (tenant,),
        )
    key = await insert_key(plane.url, keys.TENANT, tenant)
    scope = RunnerScope(tenants=(tenant,))
    runner_key = await insert_key(plane.url, keys.RUNNER, tenant, runner_scope=scope)
    async with Tenancy(plane, tenant, key, runner_key) as made:
        yield made


def closed(response: Response) -> list[str]:
    return [
        explain_service_pb2.Gate.Name(gate.gate).removeprefix("GATE_")
        for gate in response.gates
        if not gate.passed
    ]


def gate(response: Response) -> explain_service_pb2.GateVerdict:
    """The only closed gate, which has all it needs to be told."""
    (found,) = [gate for gate in response.gates if not gate.passed]
    assert not response.runnable
    assert response.summary == found.message
    assert found.message and found.remedy
    assert "\n" not in found.message + found.remedy
    return found


# ---- the task itself


async def test_nothing_in_its_way(place: Tenancy) -> None:
    runner = await place.runner()
    response = await place.explain(command("true"))
    assert response.runnable and closed(response) == []
    assert [(found.runner, found.obstacle) for found in response.runners] == [
        (f"runners/{runner.runner_id}", OBSTACLES.RUNNER_OBSTACLE_UNSPECIFIED)
    ]
    assert response.phase == task_pb2.TASK_PHASE_UNSPECIFIED


async def test_phase_paused(place: Tenancy) -> None:
    task = await place.create(command("true"))
    await place.client.pause(task)
    runner = await place.runner()
    response = await place.explain(task)
    assert closed(response) == ["PHASE"]
    assert "resume" in gate(response).remedy
    await place.client.resume(task)
    await place.runs(runner, task)


async def test_phase_running_and_ended(place: Tenancy) -> None:
    runner = await place.runner()
    task = await place.create(command("true"))
    assignment = await runner.next_assignment()
    await runner.acked(await runner.started(assignment))
    response = await place.explain(task)
    assert response.runnable and runner.runner_id in response.summary
    assert response.phase == task_pb2.TASK_PHASE_RUNNING
    await runner.acked(await runner.succeeded(assignment))
    response = await place.explain(task)
    assert closed(response) == ["PHASE"]
    assert "SUCCEEDED" in response.summary


async def test_delay_not_before(place: Tenancy) -> None:
    runner = await place.runner()
    due = datetime.now(UTC) + timedelta(seconds=4)
    task = await place.create(command("true", not_before=due))
    response = await place.explain(task)
    assert closed(response) == ["DELAY"]
    told = gate(response).open_time.ToDatetime(UTC)
    assert abs((told - due).total_seconds()) < 1
    assert response.earliest_time == gate(response).open_time
    await place.runs(runner, task)


async def test_delay_before_the_next_attempt(place: Tenancy) -> None:
    runner = await place.runner()

    def patient(spec: task_pb2.TaskSpec) -> None:
        spec.retry.max_retries = 2
        spec.retry.backoff.initial.seconds = 4
        spec.retry.backoff.max.seconds = 4
        spec.retry.backoff.jitter = common_pb2.JITTER_POLICY_NONE

    task = await place.create(placed(patient))
    assignment = await runner.next_assignment()
    failed = lease_pb2.RunFailed(error=common_pb2.TaskError(code="BROKEN", message="broken"))
    await runner.acked(await runner.started(assignment))
    await runner.acked(await runner.report(assignment.lease, failed=failed))
    response = await place.explain(task)
    assert closed(response) == ["DELAY"]
    assert "next attempt" in gate(response).message
    await place.runs(runner, task)


async def test_slot(place: Tenancy) -> None:
    runner = await place.runner()
    first = await place.create(command("true", slot="one"))
    assignment = await runner.next_assignment()
    await runner.acked(await runner.started(assignment))
    task = await place.create(command("true", slot="one"))
    response = await place.explain(task)
    assert closed(response) == ["SLOT"]
    assert gate(response).blocker == f"tenants/{place.tenant}/tasks/{first.id}"
    dry = await place.explain(command("true", slot="one"))
    assert closed(dry) == ["SLOT"] and "1 more waits" in dry.summary
    await runner.acked(await runner.succeeded(assignment))
    await place.runs(runner, task)


# ---- tenant and type


@pytest.mark.parametrize("column", ["suspended", "queue_paused"])
async def test_paused_tenant(place: Tenancy, column: str) -> None:
    task = await place.create(command("true"))
    await place.change(f"UPDATE tenants SET {column} = true WHERE tenant_id = %s", place.tenant)
    runner = await place.runner()
    response = await place.explain(task)
    assert closed(response) == ["PAUSED"]
    assert gate(response).blocker == f"tenants/{place.tenant}"
    assert runner.waiting_assignments == 0
    await place.change(f"UPDATE tenants SET {column} = false WHERE tenant_id = %s", place.tenant)
    await place.runs(runner, task)


async def add_type(place: Tenancy, definition: bytes = b"", **columns: str) -> None:
    names = ", ".join(["tenant_id", "task_type", "definition", *columns])
    values = ", ".join(
        [f"'{place.tenant}'", "'render'", f"decode('{definition.hex()}', 'hex')", *columns.values()]
    )
    await place.change(f"INSERT INTO task_types ({names}) VALUES ({values})")


async def test_paused_type(place: Tenancy) -> None:
    await add_type(place, queue_paused="true")
    runner = await place.runner()
    task = await place.create(command("true", task_type="render"))
    response = await place.explain(task)
    assert closed(response) == ["PAUSED"]
    assert gate(response).blocker == f"tenants/{place.tenant}/taskTypes/render"
    await place.change("UPDATE task_types SET queue_paused = false WHERE tenant_id = %s", place.tenant)
    await place.runs(runner, task)


async def test_concurrency(place: Tenancy) -> None:
    runner = await place.runner()
    first = await place.create(command("true"))
    assignment = await runner.next_assignment()
    await place.limit(max_concurrent_tasks=1, leased=1)
    task = await place.create(command("true"))
    response = await place.explain(task)
    assert closed(response) == ["CONCURRENCY"]
    assert "1 of at most 1" in gate(response).message
    await place.change(
        "UPDATE tenant_counters SET max_concurrent_tasks = 2 WHERE tenant_id = %s", place.tenant
    )
    await place.runs(runner, task)
    await runner.complete(assignment)
    assert (await place.client.wait(first, timeout=10)).phase is Phase.SUCCEEDED


async def test_queue_depth_of_a_dry_run(place: Tenancy) -> None:
    runner = await place.runner()
    await place.limit(max_queue_depth=5, pending=5)
    response = await place.explain(command("true"))
    assert closed(response) == ["QUEUE_DEPTH"]
    assert "5 of at most 5" in gate(response).message
    await place.limit(max_queue_depth=6, pending=5)
    assert (await place.explain(command("true"))).runnable
    await place.runs(runner, await place.create(command("true")))


async def test_rate_of_a_dry_run(place: Tenancy) -> None:
    runner = await place.runner()
    await place.limit(rate_limit_per_sec=1, rate_burst=1, tokens=-30)
    response = await place.explain(command("true"))
    assert closed(response) == ["RATE"]
    assert response.earliest_time == gate(response).open_time
    await place.limit(rate_limit_per_sec=1, rate_burst=5, tokens=5)
    assert (await place.explain(command("true"))).runnable
    await place.runs(runner, await place.create(command("true")))


async def test_disabled_type_of_a_dry_run(place: Tenancy) -> None:
    await add_type(place, disabled="true")
    runner = await place.runner()
    wish = command("true", task_type="render")
    response = await place.explain(wish)
    assert closed(response) == ["TASK_TYPE"]
    assert gate(response).blocker == f"tenants/{place.tenant}/taskTypes/render"
    await place.change("UPDATE task_types SET disabled = false WHERE tenant_id = %s", place.tenant)
    assert (await place.explain(wish)).runnable
    await place.runs(runner, await place.create(wish))


async def test_quarantine(plane: ControlPlane, place: Tenancy) -> None:
    runner = await place.runner()
    task = await place.create(command("true", "poison", not_before=datetime.now(UTC) + timedelta(hours=1)))
    async with await psycopg.AsyncConnection.connect(plane.url) as connection:
        row = await (
            await connection.execute("SELECT spec FROM tasks WHERE tenant_id = %s", (place.tenant,))
        ).fetchone()
    assert row is not None
    digest = spec_digest(row[0])
    await place.change(
        "INSERT INTO quarantines (tenant_id, digest, runner_loss_count, example_task_id) "
        "VALUES (%s, %s, 3, 'example')",
        place.tenant,
        digest,
    )
    dry = await place.explain(command("true", "poison"))
    assert closed(dry) == ["QUARANTINE"]
    assert gate(dry).blocker == f"tenants/{place.tenant}/quarantines/{digest}"
    # What waits of it is paused by the leader; here the user has done so.
    await place.client.pause(task)
    assert closed(await place.explain(task)) == ["QUARANTINE"]
    async with open_channel(plane.taskdbs[0].address, key=plane.keys["admin"]) as channel:
        stub: Any = AdminServiceStub(channel)
        await stub.ReleaseQuarantine(admin_service_pb2.ReleaseQuarantineRequest(name=gate(dry).blocker))
    assert (await place.explain(command("true", "poison"))).runnable
    await place.runs(runner, await place.create(command("true", "poison")))


# ---- runners


def placed(change: Callable[[task_pb2.TaskSpec], None]) -> NewTask:
    task = command("true")
    change(task.request.task.spec)
    return task


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
    (said,) = response.runners
    assert said.obstacle == OBSTACLES.Value(f"RUNNER_OBSTACLE_{obstacle}")
    assert said.message and said.remedy == gate(response).remedy
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
    (said,) = response.runners
    assert said.obstacle == OBSTACLES.RUNNER_OBSTACLE_SCOPE
    assert said.message and said.remedy == gate(response).remedy
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
    await runner.say_goodbye()
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
    response = await place.explain(task)
    assert closed(response) == ["RUNNER"]
    assert response.runners[0].obstacle == OBSTACLES.RUNNER_OBSTACLE_REFUSED
    await runner.connect()
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


async def test_company_on_a_runner(place: Tenancy) -> None:
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
    assert closed(await place.explain(task)) == ["RUNNER"], "a reconnect makes nobody forget what runs there"
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
    assert [(said.runner.split("/")[1][0], said.score) for said in response.runners] == [
        ("c", 100),
        ("b", 55),
        ("a", 50),
    ]


# ---- who may ask


async def test_another_tenants_task_and_runners_do_not_exist(plane: ControlPlane, place: Tenancy) -> None:
    await place.runner()
    task = await place.create(command("true", id="secret"))
    stranger = await insert_key(plane.url, keys.TENANT, "default")
    with pytest.raises(NotFound):
        await place.explain(task, key=stranger)
    with pytest.raises(NotFound):
        await place.explain(task, key=stranger, parent="tenants/default")
    with pytest.raises(NotFound):
        await place.explain(command("true"), key=stranger)
    seen = await place.explain(command("true"), key=stranger, parent="tenants/default")
    assert [said.runner for said in seen.runners] == [], "it serves another tenant only"
    assert (await place.explain(task, key=plane.keys["admin"])).gates
    with pytest.raises(NotFound):
        missing = explain_service_pb2.ExplainTaskRequest(
            parent=f"tenants/{place.tenant}", name=f"tenants/{place.tenant}/tasks/none"
        )
        await ask(plane, place.key, missing)


async def test_bad_questions_are_told_which_field(plane: ControlPlane, place: Tenancy) -> None:
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
