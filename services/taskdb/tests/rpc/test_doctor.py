"""RunDoctor: each check finds what SQL has damaged, repairs it, and the suite is healthy again."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from typing import Any

import pytest
from google.protobuf.duration_pb2 import Duration

from services.taskdb.tests.conftest import Caller, RunningTaskDb, make_yard
from services.taskdb.tests.yard import Yard, started, succeeded
from taskyard.errors import FieldInvalid, NotFound, PageTokenInvalid, PermissionDenied
from taskyard.v1 import admin_service_pb2, task_pb2
from taskyard_taskdb.domain.event import Claim, Event, LeaseExpired
from taskyard_taskdb.domain.schedule import Nightly
from taskyard_taskdb.domain.task import TaskState
from taskyard_taskdb.storage import doctor, keys
from taskyard_taskdb.storage.doctor_repairs import Repair
from taskyard_taskdb.storage.pool import Tx
from taskyard_taskdb.storage.task_rows import Key
from taskyard_taskdb.storage.transitions import Written
from taskyard_taskdb.sweep.doctor import DoctorJob
from taskyard_taskdb.sweep.jobs import run_job
from taskyard_taskdb.sweep.leader import Office
from taskyard_taskdb.sweep.quarantine import QuarantineSweep
from tests.harness.invariants import assert_invariants


@pytest.fixture
async def yard(quiet: RunningTaskDb) -> Yard:
    return await make_yard(quiet, await quiet.caller(keys.SCHEDULER), await quiet.caller())


@pytest.fixture
async def admin(quiet: RunningTaskDb) -> Caller:
    return await quiet.caller(keys.ADMIN)


async def examine(admin: Caller, *checks: str, repair: bool = False) -> admin_service_pb2.RunDoctorResponse:
    request = admin_service_pb2.RunDoctorRequest(checks=checks, repair=repair)
    response: admin_service_pb2.RunDoctorResponse = await admin.admin.RunDoctor(request)
    return response


async def execute(quiet: RunningTaskDb, sql: str, *params: Any) -> None:
    async with quiet.pool.transaction() as tx:
        await tx.execute(sql, params, prepare=False)


def task_id(name: str) -> str:
    return name.rsplit("/", 1)[1]


async def expect_repaired(admin: Caller, quiet: RunningTaskDb, check: str, count: int = 1) -> None:
    """The check finds the damage, and repairs it; then every check and every invariant holds."""
    (found,) = (await examine(admin, check)).findings
    assert found.count == count and found.severity > 0 and found.examples, found
    assert found.repaired_count == 0
    repaired = await examine(admin, repair=True)
    mine = {finding.check: finding for finding in repaired.findings}[check]
    assert mine.repaired_count == count, mine
    again = await examine(admin)
    assert again.healthy, [finding for finding in again.findings if finding.count]
    assert not [finding.check for finding in again.findings if finding.count]
    assert_invariants(quiet.url)


async def run_on(yard: Yard, name: str = "") -> Any:
    """The assignment of a task that a runner has started."""
    runner, _ = await yard.hello()
    (assignment,) = (await yard.pop(runner)).assignments
    await yard.report(runner, started(assignment))
    return assignment


async def test_a_healthy_suite_has_no_findings(yard: Yard, admin: Caller) -> None:
    await yard.create(3)
    await yard.create(2, slot="one")
    await run_on_all(yard)
    response = await examine(admin)
    assert response.healthy and [finding.check for finding in response.findings] == list(doctor.NAMES)
    assert not any(finding.count or finding.severity for finding in response.findings)


async def run_on_all(yard: Yard) -> None:
    runner, _ = await yard.hello()
    assignments = (await yard.pop(runner)).assignments
    await yard.report(runner, *(started(a) for a in assignments))
    await yard.report(runner, succeeded(assignments[0]))


async def test_a_task_that_lost_its_lease_is_claimed_again(
    yard: Yard, admin: Caller, quiet: RunningTaskDb
) -> None:
    (name,) = await yard.create()
    await run_on(yard)
    # The lease carried phase and version; without it the task is as before the claim.
    await execute(quiet, "DELETE FROM leases")
    await execute(quiet, "DELETE FROM changes WHERE event IN (2, 3)")
    await expect_repaired(admin, quiet, "task-without-queue-row")
    runner, _ = await yard.hello("runner-2")
    (again,) = (await yard.pop(runner)).assignments
    assert again.lease.task == name


async def test_a_task_that_runs_nowhere_is_redistributed(
    yard: Yard, admin: Caller, quiet: RunningTaskDb
) -> None:
    (name,) = await yard.create()
    await run_on(yard)
    await execute(
        quiet,
        "UPDATE tasks t SET phase = 3, pending_reason = 0, version = l.version, generation = l.generation, "
        "attempt = l.attempt FROM leases l WHERE l.task_id = t.task_id",
    )
    await execute(
        quiet,
        "INSERT INTO runs (generation, lease_id, schedule_time, start_time, end_time, attempt, state, "
        "tenant_id, task_id, runner_id) SELECT generation, lease_id, schedule_time, start_time, now(), "
        "attempt, 7, tenant_id, task_id, runner_id FROM leases",
    )
    await execute(quiet, "DELETE FROM leases")
    await expect_repaired(admin, quiet, "running-without-lease")
    assert (await yard.task(name)).status.phase == task_pb2.TASK_PHASE_REDISTRIBUTING


async def test_a_lease_without_its_session_is_ended(yard: Yard, admin: Caller, quiet: RunningTaskDb) -> None:
    (name,) = await yard.create()
    assignment = await run_on(yard)
    runner, _ = await yard.hello(held=[assignment.lease], takeover=True)
    await yard.renew(runner, listed=[assignment.lease])
    await execute(quiet, "DELETE FROM sessions")
    await expect_repaired(admin, quiet, "lease-without-session")
    assert (await yard.task(name)).status.phase == task_pb2.TASK_PHASE_REDISTRIBUTING


async def test_a_lease_that_nobody_expired_is_ended(yard: Yard, admin: Caller, quiet: RunningTaskDb) -> None:
    await yard.create()
    await run_on(yard)
    await execute(quiet, "UPDATE leases SET expire_time = now() - interval '10 minutes'")
    await expect_repaired(admin, quiet, "lease-overdue")


async def test_a_lease_of_an_ended_task_is_removed(yard: Yard, admin: Caller, quiet: RunningTaskDb) -> None:
    await yard.create()
    runner, _ = await yard.hello()
    (assignment,) = (await yard.pop(runner)).assignments
    await execute(quiet, "CREATE TABLE kept AS SELECT * FROM leases")
    await yard.report(runner, started(assignment), succeeded(assignment))
    await execute(quiet, "INSERT INTO leases SELECT * FROM kept")
    await execute(quiet, "DROP TABLE kept")
    await expect_repaired(admin, quiet, "lease-without-task")


async def test_queue_rows_and_timers_without_a_task_are_removed(
    yard: Yard, admin: Caller, quiet: RunningTaskDb
) -> None:
    await yard.create()
    await execute(
        quiet,
        "INSERT INTO queue (class_id, ready_time, priority, tenant_id, task_id) "
        "SELECT class_id, now(), 10, tenant_id, x FROM tasks, unnest(ARRAY['ghost', task_id]) x",
    )
    await execute(
        quiet, "INSERT INTO timers (due_time, kind, tenant_id, task_id) VALUES (now(), 1, 'default', 'ghost')"
    )
    (found,) = (await examine(admin, "timer-without-task")).findings
    assert list(found.examples) == ["tenants/default/tasks/ghost"]
    await expect_repaired(admin, quiet, "queue-row-without-task", 2)


async def test_a_queued_task_gets_its_queue_row_back(yard: Yard, admin: Caller, quiet: RunningTaskDb) -> None:
    names = await yard.create(3)
    await execute(quiet, "DELETE FROM queue")
    await expect_repaired(admin, quiet, "task-without-queue-row", 3)
    runner, _ = await yard.hello()
    assert sorted(a.lease.task for a in (await yard.pop(runner)).assignments) == sorted(names)


async def test_a_delay_gets_its_timer_back(yard: Yard, admin: Caller, quiet: RunningTaskDb) -> None:
    later = task_pb2.TaskSpec()
    later.not_before.FromJsonString("2100-01-01T00:00:00Z")
    await yard.create(not_before=later.not_before)
    await execute(quiet, "DELETE FROM timers")
    await expect_repaired(admin, quiet, "delay-without-timer")
    assert await quiet.rows("SELECT due_time FROM timers") == await quiet.rows(
        "SELECT next_attempt_time FROM tasks"
    )


async def test_slots_get_their_heads_back(yard: Yard, admin: Caller, quiet: RunningTaskDb) -> None:
    await yard.create(2, slot="one")
    await execute(quiet, "UPDATE slots SET head_task_id = NULL")
    # The head that the slot forgot still holds it.
    await expect_repaired(admin, quiet, "holder-without-slot")
    first, second = await quiet.rows("SELECT task_id, pending_reason FROM tasks ORDER BY create_time")
    assert (first[1], second[1]) == (1, 4)


async def test_a_slot_without_an_owner_goes_to_its_next_waiter(
    yard: Yard, admin: Caller, quiet: RunningTaskDb
) -> None:
    first, second = await yard.create(2, slot="one")
    await execute(quiet, "DELETE FROM queue")
    await execute(quiet, "DELETE FROM changes WHERE resource_id = %s", task_id(first))
    await execute(quiet, "DELETE FROM tasks WHERE task_id = %s", task_id(first))
    await expect_repaired(admin, quiet, "slot-without-head")
    runner, _ = await yard.hello()
    assert [a.lease.task for a in (await yard.pop(runner)).assignments] == [second]


async def test_counters_are_set_to_a_recount(yard: Yard, admin: Caller, quiet: RunningTaskDb) -> None:
    await execute(quiet, "UPDATE tenants SET max_concurrent_tasks = 50 WHERE tenant_id = 'default'")
    await execute(
        quiet,
        "INSERT INTO tenant_counters (tenant_id, pending, leased, max_concurrent_tasks, max_queue_depth, "
        "rate_limit_per_sec, rate_burst) VALUES ('default', 0, 0, 50, 0, 0, 0)",
    )
    await yard.create(3)
    await execute(quiet, "UPDATE tenant_counters SET pending = 7, leased = 2")
    await expect_repaired(admin, quiet, "counters")
    assert await quiet.rows("SELECT pending, leased FROM tenant_counters") == [(3, 0)]


async def test_the_log_learns_what_it_was_not_told(yard: Yard, admin: Caller, quiet: RunningTaskDb) -> None:
    behind, ahead = await yard.create(2)
    await execute(quiet, "UPDATE tasks SET version = 2 WHERE task_id = %s", task_id(behind))
    await execute(
        quiet,
        "INSERT INTO changes (time, version, event, actor_type, phase, previous_phase, pending_reason, "
        "tenant_id, resource_id) VALUES (now(), 2, 20, 3, 1, 1, 1, 'default', %s)",
        task_id(ahead),
    )
    await expect_repaired(admin, quiet, "change-log", 2)
    assert await quiet.rows("SELECT DISTINCT version FROM tasks") == [(2,)]


async def test_rows_of_a_default_partition_are_found_and_moved(
    yard: Yard, admin: Caller, quiet: RunningTaskDb
) -> None:
    await execute(
        quiet,
        "INSERT INTO changes (time, event, actor_type, resource_kind, tenant_id, resource_id) "
        "VALUES ('2019-05-05', 40, 3, 2, 'system', 'x')",
    )
    await expect_repaired(admin, quiet, "partitions")
    assert await quiet.rows("SELECT count(*) FROM changes_2019_05") == [(1,)]


async def test_an_edited_log_is_found_and_left_to_people(
    yard: Yard, admin: Caller, quiet: RunningTaskDb
) -> None:
    from taskyard_taskdb.storage import seals

    await yard.create(3)

    async def seal(tx: Any) -> bool:
        (last,) = (await tx.fetch("SELECT max(id) FROM changes"))[0]
        made = await seals.next_seal(tx, None, last)
        assert made is not None
        return await seals.store(tx, made)

    assert await quiet.pool.run(seal)
    assert (await examine(admin, "seals")).healthy
    await execute(quiet, "CREATE TABLE kept AS SELECT id, actor_id FROM changes")
    await execute(quiet, "UPDATE changes SET actor_id = 'nobody'")
    response = await examine(admin, "seals", repair=True)
    assert not response.healthy and response.findings[0].repaired_count == 0
    assert response.findings[0].severity == admin_service_pb2.DOCTOR_SEVERITY_ERROR
    await execute(quiet, "UPDATE changes c SET actor_id = kept.actor_id FROM kept WHERE kept.id = c.id")
    await execute(quiet, "DROP TABLE kept")
    assert (await examine(admin)).healthy


async def test_late_webhooks_and_failing_jobs_are_told(
    yard: Yard, admin: Caller, quiet: RunningTaskDb
) -> None:
    await execute(
        quiet,
        "INSERT INTO webhooks (create_time, due_time, tenant_id, task_id, task) "
        "VALUES (now() - interval '2 days', now() + interval '1 hour', 'default', 't', '{}')",
    )
    await execute(quiet, "INSERT INTO job_runs (job, start_time, error) VALUES ('audit', now(), 'no disk')")
    response = await examine(admin, "webhooks", "jobs", repair=True)
    assert not response.healthy
    assert [(finding.check, finding.count) for finding in response.findings] == [("webhooks", 1), ("jobs", 1)]
    assert await quiet.rows("SELECT FROM webhooks WHERE due_time <= now()")
    # Delivered, and run well the next time.
    await execute(quiet, "DELETE FROM webhooks")
    await execute(quiet, "UPDATE job_runs SET error = NULL")
    assert (await examine(admin)).healthy


def repairing(repair: Repair, found: Sequence[Key]) -> Callable[[Tx], Awaitable[Written]]:
    """The repair of these as a transaction."""
    return lambda tx: repair(tx, found)


async def test_a_repair_is_safe_beside_work(yard: Yard, admin: Caller, quiet: RunningTaskDb) -> None:
    """What is repaired is looked at again under locks: nothing of a healthy task is touched."""
    await yard.create(5)
    await run_on_all(yard)
    every = [(row[0], row[1]) for row in await quiet.rows("SELECT tenant_id, task_id FROM tasks")]
    slots = [("default", "one")]
    for check in doctor.CHECKS:
        if check.repair is not None:
            found = slots if check.name.startswith("slot") else every
            await quiet.pool.run(repairing(check.repair, found))
    assert (await examine(admin)).healthy
    assert_invariants(quiet.url)


@pytest.mark.covers("RunDoctor", "FIELD_INVALID")
async def test_unknown_checks_are_refused_and_tenants_may_not_ask(
    quiet: RunningTaskDb, admin: Caller, yard: Yard
) -> None:
    with pytest.raises(FieldInvalid) as refused:
        await examine(admin, "seals", "humour")
    assert refused.value.violations[0].field == "checks[1]"
    with pytest.raises(PermissionDenied):
        await examine(yard.tenant)


async def test_the_nightly_job_looks_and_repairs_nothing(yard: Yard, quiet: RunningTaskDb) -> None:
    await yard.create(2)
    await execute(quiet, "DELETE FROM queue")
    told: dict[str, int] = {}

    async def by_hand(tx: Any) -> None:
        """Nothing to prove."""

    job = DoctorJob(quiet.pool, lambda check, left, repaired: told.update({check: left}), Nightly())
    assert await run_job(quiet.pool, job, by_hand) == 2
    assert told.pop("task-without-queue-row") == 2 and set(told.values()) == {0}
    assert not await quiet.rows("SELECT FROM queue")


async def lose_runners(quiet: RunningTaskDb, name: str, times: int) -> None:
    """Runners claim and start the task, and are never heard of again."""

    def claim(task: TaskState, now: Any) -> Event:
        return Claim(
            runner_id="r", lease_id=1, session_epoch=0, expire_time=now - timedelta(seconds=1), request_id="p"
        )

    def expire(task: TaskState, now: Any) -> Event:
        return LeaseExpired(generation=task.generation)

    for _ in range(times):
        await quiet.start(name)
        await execute(quiet, "UPDATE leases SET expire_time = now() - interval '1 s'")
        await quiet.apply(name, expire)


@pytest.mark.covers("ListQuarantines", "PAGE_TOKEN_INVALID")
@pytest.mark.covers("ReleaseQuarantine", "NOT_FOUND")
async def test_a_spec_that_keeps_killing_runners_is_quarantined_until_it_is_released(
    quiet: RunningTaskDb, yard: Yard, admin: Caller
) -> None:
    execution = task_pb2.Execution(command=task_pb2.CommandExecution(program="poison"))
    (name,) = await yard.create(execution=execution)
    await lose_runners(quiet, name, 4)
    task = await yard.task(name)
    assert task.status.phase == task_pb2.TASK_PHASE_EXHAUSTED and task.status.error.code == "QUARANTINED"
    request = admin_service_pb2.ListQuarantinesRequest(parent="tenants/-")
    (held,) = (await admin.admin.ListQuarantines(request)).quarantines
    assert held.example_task == name and held.runner_loss_count == 4
    own = admin_service_pb2.ListQuarantinesRequest(parent="tenants/default", page_size=1)
    assert len((await admin.admin.ListQuarantines(own)).quarantines) == 1
    release = admin_service_pb2.ReleaseQuarantineRequest(name=held.name)
    for _ in range(2):
        await admin.admin.ReleaseQuarantine(release)
    assert not (await admin.admin.ListQuarantines(request)).quarantines
    events = await quiet.rows("SELECT event FROM changes WHERE resource_kind = 6 ORDER BY id")
    assert events == [(90,), (91,)]
    # The same thing with another payload is the same spec.
    (again,) = await yard.create(execution=execution, retention=Duration(seconds=5))
    await lose_runners(quiet, again, 4)
    (found,) = (await admin.admin.ListQuarantines(request)).quarantines
    assert (found.name, found.example_task) == (held.name, again)
    with pytest.raises(NotFound):
        await admin.admin.ReleaseQuarantine(
            admin_service_pb2.ReleaseQuarantineRequest(name="tenants/default/quarantines/00")
        )
    with pytest.raises(PageTokenInvalid):
        await admin.admin.ListQuarantines(
            admin_service_pb2.ListQuarantinesRequest(parent="tenants/-", page_token="x")
        )


async def test_what_waits_of_a_quarantined_spec_is_held_back_and_resumed_by_its_release(
    quiet: RunningTaskDb, yard: Yard, admin: Caller
) -> None:
    execution = task_pb2.Execution(command=task_pb2.CommandExecution(program="poison"))
    (name,) = await yard.create(execution=execution)
    await lose_runners(quiet, name, 4)
    (harmless,) = await yard.create()
    waiting = await yard.create(3, execution=execution)
    office = Office(quiet.pool, timedelta(0))
    assert await office.seek()
    sweep = QuarantineSweep(quiet.pool, quiet.taskdb._after_commit)
    for _ in range(2):
        await sweep.run(office)
    runner, _ = await yard.hello()
    assert [a.lease.task for a in (await yard.pop(runner)).assignments] == [harmless]
    for task in waiting:
        assert (await yard.task(task)).status.phase == task_pb2.TASK_PHASE_PAUSED
    request = admin_service_pb2.ListQuarantinesRequest(parent="tenants/default")
    (held,) = (await admin.admin.ListQuarantines(request)).quarantines
    await admin.admin.ReleaseQuarantine(admin_service_pb2.ReleaseQuarantineRequest(name=held.name))
    await sweep.run(office)
    assert sorted(a.lease.task for a in (await yard.pop(runner)).assignments) == sorted(waiting)
    assert not await quiet.rows("SELECT FROM quarantine_holds")
    assert_invariants(quiet.url)


@pytest.mark.covers("GetWebhookSecret", "NOT_FOUND")
async def test_a_tenant_reads_the_secret_of_its_own_webhooks(
    quiet: RunningTaskDb, yard: Yard, admin: Caller
) -> None:
    request = admin_service_pb2.GetWebhookSecretRequest(parent="tenants/default")
    first = (await yard.tenant.admin.GetWebhookSecret(request)).secret
    assert first.startswith("whsec_")
    assert (await admin.admin.GetWebhookSecret(request)).secret == first
    request.rotate = True
    assert (await admin.admin.GetWebhookSecret(request)).secret != first
    other = admin_service_pb2.GetWebhookSecretRequest(parent="tenants/system")
    with pytest.raises(NotFound):
        await yard.tenant.admin.GetWebhookSecret(other)
    with pytest.raises(PermissionDenied):
        await (await quiet.caller(read_only=True)).admin.GetWebhookSecret(request)
