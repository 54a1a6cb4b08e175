"""RunDoctor: each check finds what SQL has damaged, repairs it, and the suite is healthy again."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from services.taskdb.tests.conftest import Caller, RunningTaskDb, make_yard
from services.taskdb.tests.doctoring import expect_repaired, run_doctor, task_id
from services.taskdb.tests.yard import Yard, started, succeeded
from taskyard.errors import FieldInvalid, NotFound, PermissionDenied
from taskyard.v1 import admin_service_pb2, task_pb2
from taskyard_taskdb.domain.schedule import Nightly
from taskyard_taskdb.storage.doctor import checks as doctor_checks
from taskyard_taskdb.storage.tenant import api_keys
from taskyard_taskdb.sweep.jobs import no_guard, run_job
from taskyard_taskdb.sweep.leader_election import Leadership
from taskyard_taskdb.sweep.maintenance_jobs import DoctorJob


@pytest.fixture
async def yard(quiet: RunningTaskDb) -> Yard:
    return await make_yard(quiet, await quiet.caller(api_keys.SCHEDULER), await quiet.caller())


@pytest.fixture
async def admin(quiet: RunningTaskDb) -> Caller:
    return await quiet.caller(api_keys.ADMIN)


@pytest.fixture
async def leadership(quiet: RunningTaskDb) -> Leadership:
    """A leader past its grace period."""
    leadership = Leadership(quiet.pool, timedelta(0))
    assert await leadership.acquire()
    return leadership


async def run_on(yard: Yard, name: str = "") -> Any:
    """The assignment of a task that a runner has started."""
    runner, _ = await yard.hello()
    (assignment,) = (await yard.claim(runner)).assignments
    await yard.report(runner, started(assignment))
    return assignment


async def test_a_healthy_suite_has_no_findings(yard: Yard, admin: Caller) -> None:
    await yard.create(3)
    await yard.create(2, slot="one")
    await run_on_all(yard)
    response = await run_doctor(admin)
    assert response.healthy and [finding.check for finding in response.findings] == list(doctor_checks.NAMES)
    assert not any(finding.count or finding.severity for finding in response.findings)


async def run_on_all(yard: Yard) -> None:
    runner, _ = await yard.hello()
    assignments = (await yard.claim(runner)).assignments
    await yard.report(runner, *(started(a) for a in assignments))
    await yard.report(runner, succeeded(assignments[0]))


async def test_a_task_that_lost_its_lease_is_claimed_again(
    yard: Yard, admin: Caller, quiet: RunningTaskDb
) -> None:
    (name,) = await yard.create()
    await run_on(yard)
    # The lease carried phase and version; without it the task is as before the claim.
    await quiet.execute("DELETE FROM leases")
    await quiet.execute("DELETE FROM changes WHERE event IN (2, 3)")
    await expect_repaired(admin, quiet, "task-without-queue-row")
    runner, _ = await yard.hello("runner-2")
    (again,) = (await yard.claim(runner)).assignments
    assert again.lease.task == name


async def test_a_running_task_without_a_lease_is_redistributed(
    yard: Yard, admin: Caller, quiet: RunningTaskDb
) -> None:
    (name,) = await yard.create()
    await run_on(yard)
    await quiet.execute(
        "UPDATE tasks t SET phase = 3, pending_reason = 0, version = l.version, generation = l.generation, "
        "attempt = l.attempt FROM leases l WHERE l.task_id = t.task_id",
    )
    await quiet.execute(
        "INSERT INTO runs (generation, lease_id, schedule_time, start_time, end_time, attempt, state, "
        "tenant_id, task_id, runner_id) SELECT generation, lease_id, schedule_time, start_time, now(), "
        "attempt, 7, tenant_id, task_id, runner_id FROM leases",
    )
    await quiet.execute("DELETE FROM leases")
    await expect_repaired(admin, quiet, "running-without-lease")
    assert (await yard.task(name)).status.phase == task_pb2.TASK_PHASE_REDISTRIBUTING


@pytest.mark.usefixtures("leadership")
async def test_a_lease_without_its_session_is_expired(
    yard: Yard, admin: Caller, quiet: RunningTaskDb
) -> None:
    (name,) = await yard.create()
    assignment = await run_on(yard)
    runner, _ = await yard.hello(held=[assignment.lease], takeover=True)
    await yard.renew(runner, listed=[assignment.lease])
    await quiet.execute("DELETE FROM sessions")
    await expect_repaired(admin, quiet, "lease-without-session")
    assert (await yard.task(name)).status.phase == task_pb2.TASK_PHASE_REDISTRIBUTING


@pytest.mark.usefixtures("leadership")
async def test_an_overdue_lease_is_expired(yard: Yard, admin: Caller, quiet: RunningTaskDb) -> None:
    await yard.create()
    await run_on(yard)
    await quiet.execute("UPDATE leases SET expire_time = now() - interval '10 minutes'")
    await expect_repaired(admin, quiet, "lease-overdue")


async def test_a_lease_of_an_ended_task_is_removed(yard: Yard, admin: Caller, quiet: RunningTaskDb) -> None:
    await yard.create()
    runner, _ = await yard.hello()
    (assignment,) = (await yard.claim(runner)).assignments
    await quiet.execute("CREATE TABLE kept AS SELECT * FROM leases")
    await yard.report(runner, started(assignment), succeeded(assignment))
    await quiet.execute("INSERT INTO leases SELECT * FROM kept")
    await quiet.execute("DROP TABLE kept")
    await expect_repaired(admin, quiet, "lease-without-task")


async def test_queue_rows_and_timers_without_a_task_are_removed(
    yard: Yard, admin: Caller, quiet: RunningTaskDb
) -> None:
    await yard.create()
    await quiet.execute(
        "INSERT INTO queue (class_id, ready_time, priority, tenant_id, task_id) "
        "SELECT class_id, now(), 10, tenant_id, x FROM tasks, unnest(ARRAY['ghost', task_id]) x",
    )
    await quiet.execute(
        "INSERT INTO timers (due_time, kind, tenant_id, task_id) VALUES (now(), 1, 'default', 'ghost')"
    )
    (found,) = (await run_doctor(admin, "timer-without-task")).findings
    assert list(found.examples) == ["tenants/default/tasks/ghost"]
    await expect_repaired(admin, quiet, "queue-row-without-task", 2)


async def test_the_queue_row_of_a_queued_task_is_restored(
    yard: Yard, admin: Caller, quiet: RunningTaskDb
) -> None:
    names = await yard.create(3)
    await quiet.execute("DELETE FROM queue")
    await expect_repaired(admin, quiet, "task-without-queue-row", 3)
    runner, _ = await yard.hello()
    assert sorted(a.lease.task for a in (await yard.claim(runner)).assignments) == sorted(names)


async def test_the_timer_of_a_delayed_task_is_restored(
    yard: Yard, admin: Caller, quiet: RunningTaskDb
) -> None:
    later = task_pb2.TaskSpec()
    later.not_before.FromJsonString("2100-01-01T00:00:00Z")
    await yard.create(not_before=later.not_before)
    await quiet.execute("DELETE FROM timers")
    await expect_repaired(admin, quiet, "delay-without-timer")
    assert await quiet.rows("SELECT due_time FROM timers") == await quiet.rows(
        "SELECT next_attempt_time FROM tasks"
    )


async def test_the_heads_of_slots_are_restored(yard: Yard, admin: Caller, quiet: RunningTaskDb) -> None:
    await yard.create(2, slot="one")
    await quiet.execute("UPDATE slots SET head_task_id = NULL")
    # The head that the slot forgot still holds it.
    await expect_repaired(admin, quiet, "holder-without-slot")
    first, second = await quiet.rows("SELECT task_id, pending_reason FROM tasks ORDER BY create_time")
    assert (first[1], second[1]) == (1, 4)


async def test_a_slot_without_an_owner_goes_to_its_next_waiter(
    yard: Yard, admin: Caller, quiet: RunningTaskDb
) -> None:
    first, second = await yard.create(2, slot="one")
    await quiet.execute("DELETE FROM queue")
    await quiet.execute("DELETE FROM changes WHERE resource_id = %s", task_id(first))
    await quiet.execute("DELETE FROM tasks WHERE task_id = %s", task_id(first))
    await expect_repaired(admin, quiet, "slot-without-head")
    runner, _ = await yard.hello()
    assert [a.lease.task for a in (await yard.claim(runner)).assignments] == [second]


async def test_counters_are_set_to_a_recount(yard: Yard, admin: Caller, quiet: RunningTaskDb) -> None:
    await quiet.execute("UPDATE tenants SET max_concurrent_tasks = 50 WHERE tenant_id = 'default'")
    await quiet.execute(
        "INSERT INTO tenant_counters (tenant_id, pending, leased, max_concurrent_tasks, max_queue_depth, "
        "rate_limit_per_sec, rate_burst) VALUES ('default', 0, 0, 50, 0, 0, 0)",
    )
    await yard.create(3)
    await quiet.execute("UPDATE tenant_counters SET pending = 7, leased = 2")
    await expect_repaired(admin, quiet, "counters")
    assert await quiet.rows("SELECT pending, leased FROM tenant_counters") == [(3, 0)]


async def test_missing_changes_are_appended_to_the_log(
    yard: Yard, admin: Caller, quiet: RunningTaskDb
) -> None:
    behind, ahead = await yard.create(2)
    await quiet.execute("UPDATE tasks SET version = 2 WHERE task_id = %s", task_id(behind))
    await quiet.execute(
        "INSERT INTO changes (time, version, event, actor_type, phase, previous_phase, pending_reason, "
        "tenant_id, resource_id) VALUES (now(), 2, 20, 3, 1, 1, 1, 'default', %s)",
        task_id(ahead),
    )
    await expect_repaired(admin, quiet, "change-log", 2)
    assert await quiet.rows("SELECT DISTINCT version FROM tasks") == [(2,)]


async def test_rows_of_a_default_partition_are_found_and_moved(
    yard: Yard, admin: Caller, quiet: RunningTaskDb
) -> None:
    await quiet.execute(
        "INSERT INTO changes (time, event, actor_type, resource_kind, tenant_id, resource_id) "
        "VALUES ('2019-05-05', 40, 3, 2, 'system', 'x')",
    )
    await expect_repaired(admin, quiet, "partitions")
    assert await quiet.rows("SELECT count(*) FROM changes_2019_05") == [(1,)]


@pytest.mark.covers("RunDoctor", "FIELD_INVALID")
async def test_unknown_checks_are_rejected_and_tenants_may_not_run_the_doctor(
    quiet: RunningTaskDb, admin: Caller, yard: Yard
) -> None:
    with pytest.raises(FieldInvalid) as refused:
        await run_doctor(admin, "seals", "humour")
    assert refused.value.violations[0].field == "checks[1]"
    with pytest.raises(PermissionDenied):
        await run_doctor(yard.tenant)


async def test_the_nightly_job_reports_findings_and_repairs_nothing(yard: Yard, quiet: RunningTaskDb) -> None:
    await yard.create(2)
    await quiet.execute("DELETE FROM queue")
    reported: dict[str, int] = {}

    job = DoctorJob(quiet.pool, lambda check, left, repaired: reported.update({check: left}), Nightly())
    assert await run_job(quiet.pool, job, no_guard) == 2
    assert reported.pop("task-without-queue-row") == 2 and set(reported.values()) == {0}
    assert not await quiet.rows("SELECT FROM queue")


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
