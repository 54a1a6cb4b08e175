"""RunnerService: what administrators see of runners, drain, labels, delete."""

from __future__ import annotations

import asyncio
import uuid
from datetime import UTC, datetime, timedelta

import pytest
from google.protobuf.field_mask_pb2 import FieldMask

from services.taskdb.tests.conftest import Caller, RunningTaskDb
from services.taskdb.tests.yard import Yard, started, succeeded
from taskyard.errors import (
    FieldImmutable,
    FieldInvalid,
    FilterInvalid,
    NotFound,
    PageTokenInvalid,
    PermissionDenied,
    ResourceVersionMismatch,
    RunnerBusy,
)
from taskyard.v1 import (
    api_key_pb2,
    api_key_service_pb2,
    lease_service_pb2,
    runner_pb2,
    runner_service_pb2,
    session_service_pb2,
    task_pb2,
)
from taskyard_taskdb.storage.runner import admin as runner_admin
from taskyard_taskdb.sweep.jobs import JobAlreadyRunning, no_guard, run_job
from taskyard_taskdb.sweep.maintenance_jobs import RunnerJob
from tests.harness.link_runner import registration

FINISH = runner_pb2.DRAIN_MODE_FINISH


async def get(admin: Caller, runner: str = "runner-1") -> runner_pb2.Runner:
    request = runner_service_pb2.GetRunnerRequest(name=f"runners/{runner}")
    found: runner_pb2.Runner = (await admin.runners.GetRunner(request)).runner
    return found


async def listed(admin: Caller, text: str = "", **fields: object) -> list[str]:
    request = runner_service_pb2.ListRunnersRequest(filter=text, **fields)  # type: ignore[arg-type]
    response = await admin.runners.ListRunners(request)
    return [runner.name.removeprefix("runners/") for runner in response.runners]


async def drain(admin: Caller, runner: str = "runner-1", reason: str = "") -> runner_pb2.Runner:
    wanted = runner_pb2.DrainRequest(mode=FINISH, reason=reason)
    request = runner_service_pb2.DrainRunnerRequest(name=f"runners/{runner}", drain=wanted)
    drained: runner_pb2.Runner = (await admin.runners.DrainRunner(request)).runner
    return drained


async def relabel(
    admin: Caller, labels: dict[str, str], version: int = 0, mask: tuple[str, ...] = ()
) -> runner_pb2.Runner:
    runner = runner_pb2.Runner(name="runners/runner-1", admin_labels=labels, resource_version=version)
    request = runner_service_pb2.UpdateRunnerRequest(runner=runner, update_mask=FieldMask(paths=mask))
    changed: runner_pb2.Runner = (await admin.runners.UpdateRunner(request)).runner
    return changed


async def die(taskdb: RunningTaskDb, runner: str, ago: timedelta = timedelta(0)) -> None:
    """Lets a runner have been silent for so long."""
    async with taskdb.pool.transaction() as tx:
        await tx.execute(
            "UPDATE sessions SET heartbeat_time = now() - %s - interval '30 s', expire_time = now() - %s "
            "WHERE runner_id = %s",
            (ago, ago, runner),
        )


@pytest.mark.seed("S2.108", "S2.123")
@pytest.mark.seed("S0.28-30", "S0.34-41", "S2.58", "S2.60-61", "S2.63", "S2.65")
async def test_runner_is_shown_with_its_registration(yard: Yard, admin: Caller) -> None:
    described = runner_pb2.RunnerRegistration(
        task_types=["problem-1"],
        execution_kinds=[runner_pb2.EXECUTION_KIND_COMMAND],
        capacity=3,
        backend_type="kind",
        version="1.2",
        host="node-7",
        labels={"region": "eu"},
    )
    described.metadata.update({"kind_cluster": "c-1"})
    request = session_service_pb2.OpenSessionRequest(
        scheduler_id="s",
        runner_id="worker-001-kind",
        key_id=yard.key_id,
        instance_id=str(uuid.uuid4()),
        registration=described,
    )
    before = datetime.now(UTC)
    await yard.scheduler.sessions.OpenSession(request)
    shown = await get(admin, "worker-001-kind")
    assert shown.registration == described
    assert shown.labels == {"region": "eu"}
    assert (shown.state, shown.occupancy) == (
        runner_pb2.RUNNER_STATE_HEALTHY,
        runner_pb2.RUNNER_OCCUPANCY_IDLE,
    )
    for time in (shown.register_time, shown.update_time, shown.heartbeat_time):
        assert abs(time.ToDatetime(UTC) - before) < timedelta(minutes=1)
    (basic,) = (await admin.runners.ListRunners(runner_service_pb2.ListRunnersRequest())).runners
    assert not basic.registration.HasField("metadata") and basic.registration.capacity == 3


@pytest.mark.seed("S0.32", "S2.64")
async def test_a_heartbeat_is_the_time_of_the_last_one(
    yard: Yard, admin: Caller, taskdb: RunningTaskDb
) -> None:
    runner, _ = await yard.hello()
    opened = (await get(admin)).heartbeat_time.ToDatetime(UTC)
    async with taskdb.pool.transaction() as tx:
        await tx.execute("UPDATE sessions SET heartbeat_time = heartbeat_time - interval '20 s'")
    assert (await get(admin)).heartbeat_time.ToDatetime(UTC) == opened - timedelta(seconds=20)
    await yard.renew(runner)
    assert (await get(admin)).heartbeat_time.ToDatetime(UTC) > opened


@pytest.mark.seed("S0.82")
async def test_registration_needs_a_capacity_and_no_backend(yard: Yard, admin: Caller) -> None:
    described = runner_pb2.RunnerRegistration(
        task_types=["*"], execution_kinds=[runner_pb2.EXECUTION_KIND_COMMAND]
    )
    request = session_service_pb2.OpenSessionRequest(
        scheduler_id="s",
        runner_id="worker-001-kind",
        key_id=yard.key_id,
        instance_id=str(uuid.uuid4()),
        registration=described,
    )
    with pytest.raises(FieldInvalid) as refused:
        await yard.scheduler.sessions.OpenSession(request)
    assert [v.field for v in refused.value.violations] == ["registration.capacity"]
    assert await listed(admin) == []
    request.registration.capacity = 1
    await yard.scheduler.sessions.OpenSession(request)
    assert await listed(admin, 'registration.backend_type = ""') == ["worker-001-kind"]


@pytest.mark.seed("S0.31", "S0.33", "S0.45-46", "S0.68-71", "S2.57", "S2.59", "S2.62")
async def test_occupancy_follows_what_a_runner_holds(
    yard: Yard, admin: Caller, taskdb: RunningTaskDb
) -> None:
    runner, _ = await yard.hello()
    names = await yard.create(100)
    idle = await get(admin)
    assert (idle.occupancy, idle.used_capacity, list(idle.tasks)) == (runner_pb2.RUNNER_OCCUPANCY_IDLE, 0, [])
    assignments = (await yard.claim(runner)).assignments
    busy = await get(admin)
    assert (busy.occupancy, busy.used_capacity) == (runner_pb2.RUNNER_OCCUPANCY_BUSY, 100)
    assert sorted(busy.tasks) == sorted(names)
    await yard.report(runner, started(assignments[0]), succeeded(assignments[0]))
    assert (await get(admin)).occupancy == runner_pb2.RUNNER_OCCUPANCY_IDLE
    await die(taskdb, runner.id)
    dead = await get(admin)
    assert (dead.state, dead.occupancy) == (
        runner_pb2.RUNNER_STATE_DEAD,
        runner_pb2.RUNNER_OCCUPANCY_OFFLINE,
    )
    await yard.hello(runner)
    assert (await get(admin)).state == runner_pb2.RUNNER_STATE_HEALTHY


@pytest.mark.seed("S0.48", "S2.66")
async def test_lists_are_filtered_and_paged(yard: Yard, admin: Caller, taskdb: RunningTaskDb) -> None:
    for number in range(5):
        await yard.hello(f"runner-{number}")
    await relabel(admin, {"zone": "a"})
    await drain(admin, "runner-2")
    await die(taskdb, "runner-3")
    everybody = [f"runner-{number}" for number in range(5)]
    assert await listed(admin) == everybody
    assert await listed(admin, "state = DEAD") == ["runner-3"]
    assert await listed(admin, "state = DRAINING OR occupancy = OFFLINE") == ["runner-2", "runner-3"]
    assert await listed(admin, 'labels.zone = "a"') == ["runner-1"]
    assert await listed(admin, "labels:zone AND registration.task_types:*") == ["runner-1"]
    assert await listed(admin, 'id = "runner-4"') == ["runner-4"]
    assert await listed(admin, 'heartbeat_time > "2020-01-01T00:00:00Z"') == everybody
    request = runner_service_pb2.ListRunnersRequest(page_size=2)
    found = []
    while True:
        response = await admin.runners.ListRunners(request)
        assert len(response.runners) <= 2
        found += [runner.name for runner in response.runners]
        if not response.next_page_token:
            break
        request.page_token = response.next_page_token
    assert found == [f"runners/{name}" for name in everybody]


@pytest.mark.covers("ListRunners", "FILTER_INVALID")
@pytest.mark.covers("ListRunners", "PAGE_TOKEN_INVALID")
async def test_bad_filters_and_tokens_are_refused(admin: Caller) -> None:
    for text in ("stat = DEAD", "state = SICK", "labels = 1", "state > DEAD", "state ="):
        with pytest.raises(FilterInvalid):
            await listed(admin, text)
    with pytest.raises(PageTokenInvalid):
        await listed(admin, page_token="nonsense")


@pytest.mark.covers("GetRunner", "NOT_FOUND")
@pytest.mark.covers("UpdateRunner", "NOT_FOUND")
@pytest.mark.covers("DrainRunner", "NOT_FOUND")
@pytest.mark.covers("UndrainRunner", "NOT_FOUND")
@pytest.mark.covers("DeleteRunner", "NOT_FOUND")
async def test_unknown_runners_are_not_found(admin: Caller) -> None:
    undrain = runner_service_pb2.UndrainRunnerRequest(name="runners/runner-1")
    delete = runner_service_pb2.DeleteRunnerRequest(name="runners/runner-1")
    for call in (
        get(admin),
        relabel(admin, {}),
        drain(admin),
        admin.runners.UndrainRunner(undrain),
        admin.runners.DeleteRunner(delete),
    ):
        with pytest.raises(NotFound):
            await call


async def test_a_tenants_key_sees_no_runner(yard: Yard, tenant: Caller) -> None:
    await yard.hello()
    with pytest.raises(PermissionDenied):
        await get(tenant)


async def test_a_key_with_labels_leaves_its_runner_no_others(yard: Yard, admin: Caller) -> None:
    scope = api_key_pb2.RunnerScope(labels={"zone": "public"})
    key = api_key_pb2.ApiKey(kind=api_key_pb2.PRINCIPAL_KIND_RUNNER, runner_scope=scope)
    made = await admin.api_keys.CreateApiKey(api_key_service_pb2.CreateApiKeyRequest(api_key=key))
    request = session_service_pb2.OpenSessionRequest(
        scheduler_id="s",
        runner_id="runner-1",
        key_id=made.api_key.name.removeprefix("apiKeys/"),
        instance_id=str(uuid.uuid4()),
        registration=registration(1, labels={"pci": "yes", "zone": "private"}),
    )
    opened = await yard.scheduler.sessions.OpenSession(request)
    assert opened.runner.labels == (await get(admin)).labels == {"zone": "public"}
    assert (await relabel(admin, {"gpu": "yes"})).labels == {"zone": "public", "gpu": "yes"}


@pytest.mark.covers("UpdateRunner", "RESOURCE_VERSION_MISMATCH")
async def test_labels_of_an_administrator_win_and_are_versioned(
    yard: Yard, admin: Caller, taskdb: RunningTaskDb
) -> None:
    await yard.hello()
    version = (await get(admin)).resource_version
    changed = await relabel(admin, {"gpu": "yes"}, version)
    assert changed.labels == {"gpu": "yes"} and changed.resource_version == version + 1
    with pytest.raises(ResourceVersionMismatch):
        await relabel(admin, {}, version)
    assert (await relabel(admin, {"gpu": "yes"})).resource_version == version + 1
    assert not (await relabel(admin, {}, mask=("admin_labels",))).labels
    with pytest.raises(FieldImmutable):
        await relabel(admin, {}, mask=("state",))
    with pytest.raises(FieldInvalid):
        await relabel(admin, {}, mask=("colour",))
    for labels in ({"": "x"}, {"k" * 129: "x"}, {"k": "v" * 257}, {"k": "\0"}):
        with pytest.raises(FieldInvalid):
            await relabel(admin, labels)


async def test_drain_is_stored_sent_to_schedulers_and_ended(
    yard: Yard, admin: Caller, taskdb: RunningTaskDb
) -> None:
    runner, _ = await yard.hello()
    watch = yard.scheduler.leases.WatchQueue(lease_service_pb2.WatchQueueRequest(scheduler_id="s"))
    assert (await watch.read()).full

    async def sent_runner() -> runner_pb2.Runner:
        async with asyncio.timeout(20):
            while True:
                response = await watch.read()
                if response.runners:
                    found: runner_pb2.Runner = response.runners[0]
                    return found

    first = await drain(admin, reason="new disk")
    assert first.state == runner_pb2.RUNNER_STATE_DRAINING
    assert first.drain.reason == "new disk" and first.drain.HasField("request_time")
    assert (await sent_runner()).drain.mode == FINISH
    again = await drain(admin, reason="new disk")
    assert again.resource_version == first.resource_version
    # A restart of the agent does not end it.
    _, opened = await yard.hello(runner)
    assert opened.runner.drain == first.drain
    request = runner_service_pb2.UndrainRunnerRequest(name="runners/runner-1")
    assert (await admin.runners.UndrainRunner(request)).runner.state == runner_pb2.RUNNER_STATE_HEALTHY
    while (await sent_runner()).HasField("drain"):
        pass
    watch.cancel()
    events = await taskdb.rows("SELECT event FROM changes WHERE resource_kind = 2 ORDER BY id")
    # Registered, connected, requested to drain, drained as it held nothing, connected again, undrained.
    assert [event for (event,) in events if event != 46] == [40, 41, 45, 41, 47]
    with pytest.raises(FieldInvalid):
        await drain(admin, reason="\0")


async def test_audit_records_a_drained_runner_once(yard: Yard, admin: Caller, taskdb: RunningTaskDb) -> None:
    await taskdb.taskdb.housekeeping.stop()
    runner, _ = await yard.hello()
    await yard.create()
    (assignment,) = (await yard.claim(runner)).assignments
    await drain(admin)
    assert await taskdb.pool.run(lambda tx: runner_admin.note_drained(tx, 10)) == 0
    await yard.report(runner, started(assignment), succeeded(assignment))
    assert await taskdb.pool.run(lambda tx: runner_admin.note_drained(tx, 10)) == 1
    assert await taskdb.pool.run(lambda tx: runner_admin.note_drained(tx, 10)) == 0
    assert await taskdb.rows("SELECT resource_id FROM changes WHERE event = 46") == [("runner-1",)]


@pytest.mark.covers("DeleteRunner", "RUNNER_BUSY")
async def test_a_busy_runner_is_deleted_by_force_only_and_its_work_goes_on_elsewhere(
    yard: Yard, admin: Caller, taskdb: RunningTaskDb
) -> None:
    runner, _ = await yard.hello()
    (free,) = await yard.create()
    (bound,) = await yard.create(slot="one")
    assignments = {a.lease.task: a for a in (await yard.claim(runner)).assignments}
    await yard.report(runner, *(started(a) for a in assignments.values()))
    request = runner_service_pb2.DeleteRunnerRequest(name="runners/runner-1")
    with pytest.raises(RunnerBusy):
        await admin.runners.DeleteRunner(request)
    request.force = True
    await admin.runners.DeleteRunner(request)
    assert (await yard.task(free)).status.phase == task_pb2.TASK_PHASE_REDISTRIBUTING
    # Tasks that must not overlap wait for the recorded expiry.
    assert (await yard.task(bound)).status.phase == task_pb2.TASK_PHASE_RUNNING
    assert await listed(admin) == [] and await listed(admin, show_deleted=True) == ["runner-1"]
    assert (await get(admin)).HasField("delete_time")
    # The process that was cut off stays out; the id may register anew.
    with pytest.raises(PermissionDenied):
        await yard.hello(runner)
    await yard.hello("runner-1")
    assert await listed(admin) == ["runner-1"]
    assert not (await get(admin)).HasField("delete_time")


async def run_in_turn(taskdb: RunningTaskDb, job: RunnerJob) -> int:
    async with asyncio.timeout(30):
        while True:
            try:
                return await run_job(taskdb.pool, job, no_guard)
            except JobAlreadyRunning:
                await asyncio.sleep(0.05)


@pytest.mark.seed("S0.93", "S2.141", "S2.144")
async def test_a_runner_that_was_dead_for_a_week_is_deleted_softly_and_may_come_back(
    yard: Yard, admin: Caller, taskdb: RunningTaskDb
) -> None:
    dead, _ = await yard.hello("dead")
    await yard.hello("alive")
    await yard.hello("lately")
    await die(taskdb, "dead", timedelta(days=8))
    await die(taskdb, "lately", timedelta(days=6))
    job = RunnerJob(taskdb.pool, timedelta(days=7))
    # The leader's own job may have come first, or be under way.
    await run_in_turn(taskdb, job)
    assert await run_in_turn(taskdb, job) == 0
    assert await listed(admin) == ["alive", "lately"]
    assert await listed(admin, show_deleted=True) == ["alive", "dead", "lately"]
    assert await taskdb.rows("SELECT resource_id FROM changes WHERE event = 49") == [("dead",)]
    await yard.hello(dead)
    assert await listed(admin) == ["alive", "dead", "lately"]


@pytest.mark.seed("S0.45", "S0.48", "S0.88", "S2.66-67")
async def test_live_runners_have_a_heartbeat_within_a_minute(
    yard: Yard, admin: Caller, taskdb: RunningTaskDb
) -> None:
    runner, _ = await yard.hello("alive")
    await yard.hello("silent")
    (name,) = await yard.create()
    await yard.claim(runner)
    await die(taskdb, "silent", timedelta(seconds=31))
    minute_ago = (datetime.now(UTC) - timedelta(seconds=60)).isoformat().replace("+00:00", "Z")
    request = runner_service_pb2.ListRunnersRequest(filter=f'heartbeat_time > "{minute_ago}"')
    (found,) = (await admin.runners.ListRunners(request)).runners
    assert (found.name, found.state) == ("runners/alive", runner_pb2.RUNNER_STATE_HEALTHY)
    assert found.heartbeat_time.ToDatetime(UTC) > datetime.now(UTC) - timedelta(seconds=60)
    assert list((await get(admin, "alive")).tasks) == [name]
    assert await listed(admin, "state = HEALTHY") == ["alive"]
    silent = await get(admin, "silent")
    assert (silent.state, silent.occupancy) == (
        runner_pb2.RUNNER_STATE_DEAD,
        runner_pb2.RUNNER_OCCUPANCY_OFFLINE,
    )
