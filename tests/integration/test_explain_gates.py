"""ExplainTask on real services: each gate as the only obstacle, named; its remedy applied, the task runs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from taskyard import Created, Phase, command, external
from taskyard.channel import open_channel
from taskyard.errors import TaskyardError
from taskyard.v1 import admin_service_pb2, common_pb2, explain_service_pb2, lease_pb2, task_pb2
from taskyard.v1.admin_service_pb2_grpc import AdminServiceStub
from tests.harness.control_plane import ControlPlane, control_plane
from tests.harness.link_runner import LinkRunner
from tests.integration.explaining import OBSTACLES, Tenancy, add_type, closed, gate, new_tenancy, placed

if TYPE_CHECKING:
    from tests.harness.postgres import PostgresServer

BROKEN = lease_pb2.RunFailed(error=common_pb2.TaskError(code="BROKEN", message="broken"))


@pytest.fixture(scope="module")
def plane(postgres_server: PostgresServer, migrated_template: str) -> Iterator[ControlPlane]:
    with control_plane(postgres_server, migrated_template) as running:
        yield running


@pytest.fixture
async def place(plane: ControlPlane) -> AsyncIterator[Tenancy]:
    async with new_tenancy(plane) as made:
        yield made


# ---- the task itself


async def test_no_gate_is_closed(place: Tenancy) -> None:
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


async def test_dependency(place: Tenancy) -> None:
    runner = await place.runner()
    first = await place.create(command("true", runner_labels={"zone": "moon"}))
    task = await place.create(command("true", after=[first]))
    response = await place.explain(task)
    assert closed(response) == ["DEPENDENCY"]
    assert gate(response).blocker == first.name and "PENDING" in response.summary
    await place.client.cancel(first)
    assert (await place.client.wait(task)).phase is Phase.CANCELLED
    response = await place.explain(command("true", after=[first]))
    assert closed(response) == ["DEPENDENCY"] and "cascade" in gate(response).remedy
    response = await place.explain(command("true", after=["no-such-task"]))
    assert closed(response) == ["DEPENDENCY"] and "does not exist" in response.summary
    done = await place.create(command("true"))
    await place.runs(runner, done)
    response = await place.explain(command("true", after=[done]))
    assert response.runnable
    await place.runs(runner, await place.create(command("true", after=[done])))


async def test_dependency_on_a_group(place: Tenancy) -> None:
    await place.runner()
    member = await place.create(command("true", group="parts", runner_labels={"zone": "moon"}))
    task = await place.create(command("true", after=["groups/parts"]))
    response = await place.explain(task)
    assert closed(response) == ["DEPENDENCY"] and "not complete" in response.summary
    assert gate(response).blocker.endswith("/groups/parts")
    await place.client.cancel(member)
    await place.client.groups.wait("parts", timeout=60)
    assert (await place.client.wait(task, timeout=60)).phase is Phase.CANCELLED
    response = await place.explain(command("true", after=["groups/parts"]))
    assert closed(response) == ["DEPENDENCY"] and "its tasks that did not succeed" in gate(response).remedy
    response = await place.explain(command("true", after=["groups/none"]))
    assert closed(response) == ["DEPENDENCY"] and "does not exist" in response.summary


async def test_limit(place: Tenancy) -> None:
    runner = await place.runner()
    await place.client.limits.create("api", max_running_per_key=1)
    await place.client.limits.create("rate", starts=(1, timedelta(hours=1)))
    first = await place.create(command("true", limits=["api:k"]))
    task = await place.create(command("true", limits=["api:k"]))
    response = await place.explain(task)
    assert closed(response) == ["LIMIT"]
    assert gate(response).blocker.endswith("/limits/api") and "max_running_per_key" in response.summary
    response = await place.explain(command("true", limits=["api:k"]))
    assert closed(response) == ["LIMIT"] and "1 tasks of its key" in response.summary
    assert (await place.explain(command("true", limits=["api:other"]))).runnable
    response = await place.explain(command("true", limits=["none"]))
    assert closed(response) == ["LIMIT"] and "does not exist" in response.summary
    await place.runs(runner, first)
    await place.runs(runner, task)
    await place.runs(runner, await place.create(command("true", limits=["rate"])))
    late = await place.create(command("true", limits=["rate"]))
    response = await place.explain(late)
    assert closed(response) == ["LIMIT"]
    opens = gate(response).open_time.ToDatetime(UTC)
    assert timedelta(minutes=59) < opens - datetime.now(UTC) < timedelta(minutes=61)
    assert response.earliest_time == gate(response).open_time
    await place.client.limits.delete("rate")
    await place.runs(runner, late)


async def test_phase_running_and_succeeded(place: Tenancy) -> None:
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
    assert "create it again" in gate(response).remedy and "retry " not in gate(response).remedy
    with pytest.raises(TaskyardError):
        await place.client.retry(task)
    await place.runs(runner, await place.create(command("true")))


async def test_phase_failed(place: Tenancy) -> None:
    runner = await place.runner()
    task = await place.create(command("true", retry=0))
    assignment = await runner.next_assignment()
    await runner.acked(await runner.started(assignment))
    await runner.acked(await runner.report(assignment.lease, failed=BROKEN))
    response = await place.explain(task)
    assert closed(response) == ["PHASE"]
    assert gate(response).remedy == f"retry tenants/{place.tenant}/tasks/{task.id} to run it again"
    await place.client.retry(task)
    await place.runs(runner, task)


async def test_phase_of_an_external_task(place: Tenancy) -> None:
    await place.runner()
    dry = await place.explain(external())
    assert closed(dry) == ["PHASE"] and "external" in gate(dry).message
    assert not dry.runners, "no runner is asked"
    task = await place.create(external())
    response = await place.explain(task)
    assert closed(response) == ["PHASE"]
    assert gate(response).remedy == f"report the status of tenants/{place.tenant}/tasks/{task.id}"
    await place.client.report(task, "running")
    assert (await place.explain(task)).runnable
    await place.client.report(task, "succeeded")
    assert (await place.client.wait(task, timeout=20)).phase is Phase.SUCCEEDED


async def test_phase_redistributing(place: Tenancy) -> None:
    """The runner has forgotten the run, whose lease has not ended: it may be handed out, unless it is
    being cancelled."""
    runner = await place.runner()
    task = await place.create(command("true"))
    assignment = await runner.next_assignment()
    await runner.acked(await runner.started(assignment))
    runner.held.clear()
    runner.draining = True
    await runner.connect()
    await place.becomes(task, Phase.REDISTRIBUTING)
    response = await place.explain(task)
    assert closed(response) == ["RUNNER"], "it could be claimed"
    assert response.runners[0].obstacle == OBSTACLES.RUNNER_OBSTACLE_DRAINING
    await place.client.cancel(task, grace=60)
    runner.draining = False
    await runner.heartbeat_acked(await runner.heartbeat())
    response = await place.explain(task)
    assert closed(response) == ["PHASE"]
    assert "cancelled" in gate(response).message and "retry" in gate(response).remedy
    await runner.acked(await runner.released(assignment, lease_pb2.RELEASE_REASON_LOST))
    await place.becomes(task, Phase.CANCELLED)
    await place.client.retry(task)
    await place.runs(runner, task)


async def test_delay_not_before(place: Tenancy) -> None:
    runner = await place.runner()
    due = datetime.now(UTC) + timedelta(seconds=4)
    task = await place.create(command("true", not_before=due))
    response = await place.explain(task)
    assert closed(response) == ["DELAY"]
    open_time = gate(response).open_time.ToDatetime(UTC)
    assert abs((open_time - due).total_seconds()) < 1
    assert response.earliest_time == gate(response).open_time
    await place.runs(runner, task)


async def test_delay_of_a_dry_run(place: Tenancy) -> None:
    runner = await place.runner()
    due = datetime.now(UTC) + timedelta(hours=1)
    response = await place.explain(command("true", not_before=due))
    assert closed(response) == ["DELAY"]
    assert response.earliest_time == gate(response).open_time
    assert abs((response.earliest_time.ToDatetime(UTC) - due).total_seconds()) < 1
    past = command("true", not_before=datetime.now(UTC) - timedelta(hours=1))
    assert (await place.explain(past)).runnable
    await place.runs(runner, await place.create(past))


async def test_delay_that_an_edit_ends(place: Tenancy) -> None:
    runner = await place.runner()
    task = await place.create(command("true", not_before=datetime.now(UTC) + timedelta(hours=1)))
    assert "change spec.not_before" in gate(await place.explain(task)).remedy
    task.proto.spec.not_before.FromDatetime(datetime.now(UTC))
    await place.client.update(task, "spec.not_before")
    await place.runs(runner, task)


async def test_delay_before_the_next_attempt(place: Tenancy) -> None:
    runner = await place.runner()

    def patient(spec: task_pb2.TaskSpec) -> None:
        spec.retry.max_retries = 2
        spec.retry.backoff.initial.seconds = 3600
        spec.retry.backoff.max.seconds = 3600
        spec.retry.backoff.jitter = common_pb2.JITTER_POLICY_NONE

    task = await place.create(placed(patient))
    assignment = await runner.next_assignment()
    await runner.acked(await runner.started(assignment))
    await runner.acked(await runner.report(assignment.lease, failed=BROKEN))
    response = await place.explain(task)
    assert closed(response) == ["DELAY"]
    assert "next attempt" in gate(response).message
    assert "cancel it and retry it" in gate(response).remedy
    assert "not_before" not in gate(response).remedy, "the spec of what has started is fixed"
    await place.client.cancel(task)
    await place.client.retry(task)
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
    assert gate(dry).remedy == f"wait until {gate(dry).blocker} ends, or cancel it"
    await runner.acked(await runner.succeeded(assignment))
    await place.runs(runner, task)


async def test_slot_of_a_schedule(place: Tenancy) -> None:
    await place.client.schedules.create("s", command("true"), every=3600, overlap="queue", paused=True)
    first, second = [await place.client.schedules.run("s") for _ in range(2)]
    response = await place.explain(Created(second.proto))
    assert "SLOT" in closed(response)
    assert first.name in {verdict.blocker for verdict in response.gates}


async def test_slot_whose_head_waits_itself(place: Tenancy) -> None:
    runner = await place.runner()
    head = await place.create(command("true", slot="one", runner_labels={"zone": "nowhere"}))
    task = await place.create(command("true", slot="one"))
    response = await place.explain(task)
    assert closed(response) == ["SLOT"]
    assert "has not started" in response.summary and "see what" in gate(response).remedy
    assert closed(await place.explain(head)) == ["RUNNER"], "the explanation of the head names its gate"
    await place.client.cancel(head)
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


async def cost_a_runner(place: Tenancy, runner: LinkRunner) -> None:
    """Have `command("true")` quarantined: a task of it takes its runner down, and may do so never."""

    def fragile(spec: task_pb2.TaskSpec) -> None:
        spec.retry.max_runner_losses = 0

    poison = await place.create(placed(fragile))
    assignment = await runner.next_assignment()
    await runner.acked(await runner.started(assignment))
    runner.draining = True
    await runner.heartbeat_acked(await runner.heartbeat())
    await runner.acked(await runner.released(assignment, lease_pb2.RELEASE_REASON_LOST))
    assert (await place.client.wait(poison, timeout=20)).phase is Phase.EXHAUSTED


async def release_quarantine(plane: ControlPlane, name: str) -> None:
    async with open_channel(plane.taskdbs[0].address, key=plane.keys["admin"]) as channel:
        stub: Any = AdminServiceStub(channel)
        await stub.ReleaseQuarantine(admin_service_pb2.ReleaseQuarantineRequest(name=name))


async def test_quarantine(plane: ControlPlane, place: Tenancy) -> None:
    runner = await place.runner()
    await cost_a_runner(place, runner)
    task = await place.create(command("true"))
    await place.becomes(task, Phase.PAUSED)
    runner.draining = False
    await runner.heartbeat_acked(await runner.heartbeat())
    response = await place.explain(task)
    assert closed(response) == ["QUARANTINE"]
    name = gate(response).blocker
    assert name.startswith(f"tenants/{place.tenant}/quarantines/") and name in gate(response).remedy
    dry = await place.explain(command("true"))
    assert closed(dry) == ["QUARANTINE"] and gate(dry).blocker == name
    await release_quarantine(plane, name)
    await place.runs(runner, task)


async def test_quarantine_does_not_hide_that_the_user_paused_the_task(
    plane: ControlPlane, place: Tenancy
) -> None:
    task = await place.create(command("true"))
    await place.client.pause(task)
    runner = await place.runner()
    await cost_a_runner(place, runner)
    runner.draining = False
    await runner.heartbeat_acked(await runner.heartbeat())
    response = await place.explain(task)
    assert closed(response) == ["PHASE", "QUARANTINE"]
    assert "resume" in response.gates[0].remedy
    (held,) = [found for found in response.gates if found.gate == explain_service_pb2.GATE_QUARANTINE]
    await release_quarantine(plane, held.blocker)
    assert closed(await place.explain(task)) == ["PHASE"], "a release resumes what was paused for it only"
    await place.client.resume(task)
    await place.runs(runner, task)
