"""Repairs of RunDoctor that are more than a statement: seals, webhooks, jobs, leases after an outage."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from services.taskdb.tests.conftest import Caller, RunningTaskDb, make_yard, run_taskdb
from services.taskdb.tests.doctoring import finding, run_doctor
from services.taskdb.tests.sweep.receiver import Receiver, receiving
from services.taskdb.tests.sweep.test_webhooks import ended
from services.taskdb.tests.yard import Yard, started, succeeded
from taskyard.v1 import admin_service_pb2, task_pb2, task_service_pb2
from taskyard_kit import metrics
from taskyard_taskdb.metric_names import DOCTOR_FINDINGS
from taskyard_taskdb.storage.audit import seals
from taskyard_taskdb.storage.tenant import api_keys
from taskyard_taskdb.sweep.leader_election import Leadership
from taskyard_taskdb.sweep.log_seals import SealSweep
from tests.harness.invariants import assert_invariants

ERROR = admin_service_pb2.DOCTOR_SEVERITY_ERROR
NOTICE = admin_service_pb2.DOCTOR_SEVERITY_NOTICE


@pytest.fixture
async def yard(quiet: RunningTaskDb) -> Yard:
    return await make_yard(quiet, await quiet.caller(api_keys.SCHEDULER), await quiet.caller())


@pytest.fixture
async def admin(quiet: RunningTaskDb) -> Caller:
    return await quiet.caller(api_keys.ADMIN)


async def lead(quiet: RunningTaskDb, grace: timedelta = timedelta(0)) -> Leadership:
    """A leader whose term has just begun, after the former leader."""
    await quiet.execute("UPDATE coordinator_state SET expires_at = clock_timestamp()")
    leadership = Leadership(quiet.pool, grace)
    assert await leadership.acquire()
    return leadership


# --- seals


@pytest.fixture
async def sealed(yard: Yard, quiet: RunningTaskDb) -> SealSweep:
    """A sweep that has sealed a log of three changes."""
    await yard.create(3)
    sweep = SealSweep(quiet.pool)
    await sweep.run(await lead(quiet))
    return sweep


async def verify(quiet: RunningTaskDb) -> list[seals.SealFinding]:
    """Return the output of `audit verify`."""
    async with quiet.pool.reading() as tx:
        return await seals.verify_seals(tx)


async def test_damage_of_the_log_is_acknowledged_only_by_name_and_is_a_notice_afterwards(
    sealed: SealSweep, admin: Caller, quiet: RunningTaskDb
) -> None:
    assert (await run_doctor(admin, "seals")).healthy
    await quiet.execute("UPDATE changes SET actor_id = 'nobody'")
    before = await quiet.rows("SELECT * FROM seals")
    # A repair of all checks does not acknowledge tampering.
    for _ in range(2):
        answer = await run_doctor(admin, repair=True)
        found = finding(answer, "seals")
        assert (answer.healthy, found.count, found.repaired_count, found.severity) == (False, 1, 0, ERROR)
        assert "'seals' by name" in found.message
    assert finding(await run_doctor(admin, "seals"), "seals").repaired_count == 0
    named = await run_doctor(admin, "seals", repair=True)
    assert named.healthy and named.findings[0].repaired_count == 1
    for repair in (False, True):
        answer = await run_doctor(admin, repair=repair)
        found = finding(answer, "seals")
        assert (answer.healthy, found.count, found.repaired_count, found.severity) == (True, 1, 0, NOTICE)
        assert "1 of them acknowledged" in found.message
    assert len(await verify(quiet)) == 1
    assert await quiet.rows("SELECT * FROM seals") == before


async def test_an_acknowledgement_names_its_actor_and_range_and_is_sealed(
    sealed: SealSweep, admin: Caller, quiet: RunningTaskDb
) -> None:
    await quiet.execute("UPDATE changes SET actor_id = 'nobody'")
    await run_doctor(admin, "seals", repair=True)
    wanted = task_service_pb2.ListAuditEventsRequest(
        parent="tenants/-", filter='event_type = "audit.damage_acknowledged"'
    )
    (event,) = (await admin.tasks.ListAuditEvents(wanted)).audit_events
    ((key_id,),) = await quiet.rows("SELECT key_id FROM api_keys WHERE kind = %s", api_keys.ADMIN)
    assert (event.resource, event.actor.id) == ("auditRanges/1-5", key_id)
    assert "differs from its seal" in event.details["found"][0]
    await sealed.run(await lead(quiet))
    assert (await run_doctor(admin, "seals")).healthy
    await quiet.execute("UPDATE changes SET actor_id = 'somebody' WHERE event = 96")
    answer = await run_doctor(admin, "seals")
    assert not answer.healthy and answer.findings[0].severity == ERROR


async def test_further_damage_of_an_acknowledged_range_is_a_new_finding(
    sealed: SealSweep, admin: Caller, quiet: RunningTaskDb
) -> None:
    await quiet.execute("UPDATE changes SET actor_id = 'nobody'")
    assert (await run_doctor(admin, "seals", repair=True)).healthy
    await quiet.execute("DELETE FROM changes WHERE id = 3")
    answer = await run_doctor(admin, "seals")
    assert not answer.healthy and answer.findings[0].severity == ERROR
    assert (await run_doctor(admin, "seals", repair=True)).healthy


# --- jobs


async def test_a_failed_job_is_run_again_and_stays_a_finding_until_it_succeeds(
    quiet: RunningTaskDb, admin: Caller
) -> None:
    await quiet.execute("ALTER TABLE idempotency_keys RENAME TO lost")
    await quiet.taskdb.housekeeping.run_job("request-ids")
    for _ in range(2):
        answer = await run_doctor(admin, "jobs", repair=True)
        (found,) = answer.findings
        assert not answer.healthy and list(found.examples) == ["request-ids"]
        assert (found.count, found.repaired_count) == (1, 0)
    assert await quiet.rows("SELECT failure_count FROM job_runs") == [(3,)]
    await quiet.execute("ALTER TABLE lost RENAME TO idempotency_keys")
    repaired = await run_doctor(admin, "jobs", repair=True)
    assert repaired.healthy and repaired.findings[0].repaired_count == 1
    assert (await run_doctor(admin)).healthy


async def test_a_job_that_did_not_run_for_days_is_run(quiet: RunningTaskDb, admin: Caller) -> None:
    await quiet.taskdb.housekeeping.run_job("request-ids")
    old = "start_time = now() - interval '4 days', success_time = now() - interval '4 days'"
    await quiet.execute(f"UPDATE job_runs SET {old}")
    assert not (await run_doctor(admin, "jobs")).healthy
    repaired = await run_doctor(admin, "jobs", repair=True)
    assert repaired.healthy and repaired.findings[0].repaired_count == 1
    assert await quiet.rows("SELECT job FROM job_runs WHERE success_time > now() - interval '1 hour'")


# --- webhooks


@pytest.fixture
async def sending(database_url: str) -> AsyncIterator[RunningTaskDb]:
    """A taskdb with all of its housekeeping, whose webhooks may reach loopback."""
    async for running in run_taskdb(database_url, webhook_networks="127.0.0.0/8"):
        yield running


async def test_a_late_webhook_is_sent_at_once_and_stays_a_finding_until_it_is_delivered(
    sending: RunningTaskDb,
) -> None:
    admin, tenant = await sending.caller(api_keys.ADMIN), await sending.caller()
    async with receiving(Receiver(answer=lambda request: 500)) as receiver:
        name = await ended(sending, tenant, receiver.url())
        await receiver.holds(1)
        await sending.execute(
            "UPDATE webhooks SET create_time = now() - interval '2 days', due_time = now() + interval '1 h'",
        )
        assert not (await run_doctor(admin, "webhooks")).healthy
        refused = await run_doctor(admin, "webhooks", repair=True)
        assert not refused.healthy and refused.findings[0].repaired_count == 0
        assert len(receiver.requests) >= 2
        receiver.answer = lambda request: 204
        repaired = await run_doctor(admin, "webhooks", repair=True)
        assert repaired.healthy and repaired.findings[0].repaired_count == 1
        assert receiver.requests[-1].task["name"] == name
        assert (await run_doctor(admin)).healthy


async def test_a_late_webhook_stays_a_finding_with_a_reason_while_there_is_no_leader(
    quiet: RunningTaskDb, admin: Caller
) -> None:
    await quiet.execute(
        "INSERT INTO webhooks (create_time, due_time, tenant_id, task_id, task) "
        "VALUES (now() - interval '2 days', now() + interval '1 hour', 'default', 't', '{}')",
    )
    answer = await run_doctor(admin, "webhooks", repair=True)
    assert not answer.healthy and "no replica leads" in answer.findings[0].message
    assert await quiet.rows("SELECT FROM webhooks WHERE due_time <= now()")


# --- leases after an outage


async def test_no_lease_is_expired_before_its_runner_could_renew_it(
    yard: Yard, quiet: RunningTaskDb, admin: Caller
) -> None:
    """As after an outage of everything: the leases have been over for long, the leader is new."""
    (name,) = await yard.create()
    runner, _ = await yard.hello()
    (assignment,) = (await yard.claim(runner)).assignments
    await yard.report(runner, started(assignment))
    await quiet.execute("UPDATE leases SET expire_time = now() - interval '10 minutes'")
    alone = await run_doctor(admin, repair=True)
    assert not alone.healthy and "no replica leads" in finding(alone, "lease-overdue").message
    await lead(quiet, timedelta(seconds=40))
    early = await run_doctor(admin, repair=True)
    overdue = finding(early, "lease-overdue")
    assert not early.healthy and overdue.repaired_count == 0
    assert "try again in" in overdue.message
    assert (await yard.task(name)).status.phase == task_pb2.TASK_PHASE_RUNNING
    # The runner is back, and its outcome counts.
    (accepted,) = await yard.report(runner, succeeded(assignment))
    assert not accepted.HasField("error")
    assert (await yard.task(name)).status.phase == task_pb2.TASK_PHASE_SUCCEEDED
    assert_invariants(quiet.url)


async def test_no_lease_is_expired_by_a_term_without_stored_grace_or_after_a_database_restart(
    yard: Yard, quiet: RunningTaskDb, admin: Caller
) -> None:
    await yard.create()
    runner, _ = await yard.hello()
    (assignment,) = (await yard.claim(runner)).assignments
    await yard.report(runner, started(assignment))
    await quiet.execute("UPDATE leases SET expire_time = now() - interval '10 minutes'")
    for damage in (
        "jsonb_set(value::jsonb, '{database_start}', '\"2020-01-01T00:00:00+00:00\"')",
        "jsonb_set(value::jsonb, '{epoch}', '0')",
    ):
        await lead(quiet)
        await quiet.execute(f"UPDATE facts SET value = ({damage})::text WHERE key = 'leader_grace'")
        assert not (await run_doctor(admin, "lease-overdue", repair=True)).healthy
    await lead(quiet)
    assert (await run_doctor(admin, "lease-overdue", repair=True)).healthy


# --- metrics


async def test_only_the_leader_reports_the_metric_of_findings(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = InMemoryMetricReader()
    # Metrics of earlier tests of this process are not counted.
    monkeypatch.setattr(metrics, "_gauges", [])
    monkeypatch.setattr(metrics, "_instruments", {})
    monkeypatch.setattr(metrics, "_meter", MeterProvider([reader]).get_meter("test"))
    async for running in run_taskdb(database_url):
        leadership = running.taskdb.housekeeping.leadership
        while not leadership.held:
            await leadership.changed.wait()
        admin = await running.caller(api_keys.ADMIN)
        await running.execute("INSERT INTO slots (tenant_id, slot) VALUES ('default', 'nobody''s')")
        await run_doctor(admin, "slot-without-head")
        await running.taskdb.housekeeping.measure()
        assert measured(reader) == {"slot-without-head": 1, "durability": 0}
        await running.execute("UPDATE coordinator_state SET value = 'x', expires_at = now() + interval '1 h'")
        assert not await leadership.acquire()
        await running.taskdb.housekeeping.measure()
        assert measured(reader) == {}


def measured(reader: InMemoryMetricReader) -> dict[str, float]:
    """The findings as they are exported now, by check."""
    data = reader.get_metrics_data()
    return {
        str((point.attributes or {})["check"]): point.value  # type: ignore[union-attr]
        for resource in (data.resource_metrics if data else ())
        for scope in resource.scope_metrics
        for metric in scope.metrics
        if metric.name == DOCTOR_FINDINGS.name
        for point in metric.data.data_points
    }
