"""Reports, renewals of pull leases, and the reasons with which the internal API refuses."""

from __future__ import annotations

import asyncio
import json
import uuid
from datetime import UTC, datetime
from typing import Any

import pytest
from google.protobuf.struct_pb2 import Struct

from services.taskdb.tests.conftest import RunningTaskDb
from services.taskdb.tests.yard import (
    Runner,
    Yard,
    duration,
    failed,
    released,
    started,
    succeeded,
    with_start,
)
from taskyard.errors import FieldInvalid
from taskyard.v1 import (
    audit_pb2,
    common_pb2,
    lease_pb2,
    lease_service_pb2,
    session_service_pb2,
    task_pb2,
    task_service_pb2,
)
from taskyard_taskdb.storage.report.rejections import (
    MOST_OF_RUNNER,
    WINDOW,
    RecordedRejections,
    RejectedRun,
)


async def claimed(yard: Yard, **spec: Any) -> tuple[str, Runner, lease_pb2.Assignment]:
    """A task that a runner has claimed."""
    (name,) = await yard.create(**spec)
    runner, _ = await yard.hello()
    (assignment,) = (await yard.claim(runner)).assignments
    return name, runner, assignment


def reason(result: lease_pb2.ReportResult) -> str:
    """The reason of a rejected report."""
    from taskyard.status import from_status

    return from_status(result.error).reason


@pytest.mark.covers("ReportRuns", "STALE_GENERATION")
async def test_a_report_of_a_replaced_run_is_rejected_for_good(yard: Yard) -> None:
    name, runner, first = await claimed(yard)
    await yard.report(
        runner,
        lease_pb2.RunReport(
            lease=first.lease,
            released=lease_pb2.RunReleased(reason=lease_pb2.RELEASE_REASON_NO_CAPACITY),
        ),
    )
    (second,) = (await yard.claim(runner)).assignments
    results = await yard.report(runner, started(first), succeeded(first))
    assert [reason(result) for result in results] == ["STALE_GENERATION"] * 2
    assert (await yard.task(name)).status.generation == second.lease.generation
    await yard.report(runner, succeeded(first))
    (rejected,) = await rejections(yard, name)
    assert (rejected.actor.type, rejected.actor.id) == (common_pb2.ACTOR_TYPE_RUNNER, runner.id)
    assert rejected.details["reason"] == "STALE_GENERATION"
    assert rejected.details["report_generation"] == first.lease.generation
    assert rejected.details["runner"] == f"runners/{runner.id}"


async def rejections(yard: Yard, name: str) -> list[audit_pb2.AuditEvent]:
    """The rejected reports in the audit trail of a task."""
    request = task_service_pb2.ListAuditEventsRequest(
        parent="tenants/default", filter=f'resource = "{name}" AND event_type = "task.report_rejected"'
    )
    return list((await yard.tenant.tasks.ListAuditEvents(request)).audit_events)


async def test_a_runner_leaves_no_trace_in_the_audit_trail_of_a_task_that_it_never_held(yard: Yard) -> None:
    name, runner, first = await claimed(yard)
    await yard.report(runner, started(first), succeeded(first))
    forged = lease_pb2.LeaseRef()
    forged.CopyFrom(first.lease)
    forged.lease_id ^= 1
    results = await yard.report("another-runner", failed(first))
    results += await yard.report(runner, lease_pb2.RunReport(lease=forged, started=lease_pb2.RunStarted()))
    assert all(result.HasField("error") for result in results)
    assert await rejections(yard, name) == []


def test_a_runner_that_reports_what_no_longer_counts_leaves_a_bounded_number_of_changes() -> None:
    recorded, now = RecordedRejections(), datetime.now(UTC)
    runs = [RejectedRun("loops", ("default", f"task-{n}"), 1) for n in range(3 * MOST_OF_RUNNER)]
    changes = 0
    for _ in range(2):
        for run in runs:
            if recorded.admits(run, now):
                recorded.add([run])
                changes += 1
    assert changes == MOST_OF_RUNNER
    assert not any(recorded.admits(run, now + WINDOW) for run in runs)
    assert recorded.admits(RejectedRun("another", ("default", "task-1"), 1), now)
    assert sum(recorded.admits(run, now + 2 * WINDOW) for run in runs) == len(runs)


@pytest.mark.covers("ReportRuns", "LEASE_NOT_HELD")
async def test_only_the_holder_of_a_lease_may_report(yard: Yard) -> None:
    _, runner, assignment = await claimed(yard)
    (foreign,) = await yard.report("another-runner", started(assignment))
    assert reason(foreign) == "LEASE_NOT_HELD"
    forged = lease_pb2.LeaseRef()
    forged.CopyFrom(assignment.lease)
    forged.lease_id ^= 1
    (wrong,) = await yard.report(runner, lease_pb2.RunReport(lease=forged, started=lease_pb2.RunStarted()))
    assert reason(wrong) == "LEASE_NOT_HELD"


@pytest.mark.covers("ReportRuns", "TASK_TERMINAL")
@pytest.mark.seed("S0.84", "S1.48")
async def test_an_outcome_that_contradicts_the_stored_one_is_rejected(yard: Yard) -> None:
    name, runner, assignment = await claimed(yard)
    await yard.report(runner, started(assignment), succeeded(assignment))
    (late,) = await yard.report(runner, failed(assignment))
    assert reason(late) == "TASK_TERMINAL" and "has ended as SUCCEEDED" in late.error.message
    assert (await yard.task(name)).status.phase == task_pb2.TASK_PHASE_SUCCEEDED


async def test_an_ended_task_shows_the_runner_that_ran_it(yard: Yard) -> None:
    name, runner, assignment = await claimed(yard)
    held = (await yard.task(name)).status
    assert held.runner == held.last_runner == f"runners/{runner.id}"
    await yard.report(runner, started(assignment), succeeded(assignment))
    ended = (await yard.task(name)).status
    assert (ended.runner, ended.last_runner) == ("", f"runners/{runner.id}")


async def test_a_repeated_call_is_acknowledged_whole(yard: Yard) -> None:
    name, runner, assignment = await claimed(yard)
    progress = lease_pb2.RunReport(lease=assignment.lease, progress=common_pb2.Progress(percent=50))
    call = (started(assignment), progress, succeeded(assignment))
    assert not any(result.duplicate for result in await yard.report(runner, *call))
    repeated = await yard.report(runner, *call)
    assert [(result.duplicate, result.error.code) for result in repeated] == [(True, 0)] * 3
    assert (await yard.task(name)).status.progress.percent == 50


async def events_of(yard: Yard, name: str) -> list[str]:
    """The audit events of a task, oldest first."""
    request = task_service_pb2.ListAuditEventsRequest(parent="tenants/default", filter=f'resource = "{name}"')
    found = (await yard.tenant.tasks.ListAuditEvents(request)).audit_events
    return [event.event_type for event in reversed(found)]


async def test_start_and_success_in_one_report_have_one_result_and_two_events(yard: Yard) -> None:
    name, runner, assignment = await claimed(yard)
    report = with_start(succeeded(assignment, exit_code=0))
    (result,) = await yard.report(runner, report)
    assert (result.phase, result.duplicate) == (task_pb2.TASK_PHASE_SUCCEEDED, False)
    (repeated,) = await yard.report(runner, report)
    assert (repeated.phase, repeated.duplicate) == (task_pb2.TASK_PHASE_SUCCEEDED, True)
    task = await yard.task(name)
    assert (task.status.attempt, task.status.exit_code) == (1, 0)
    assert await events_of(yard, name) == ["task.created", "task.scheduled", "task.started", "task.succeeded"]


async def test_start_and_failure_in_one_report_charge_the_attempt(yard: Yard) -> None:
    name, runner, assignment = await claimed(yard)
    (result,) = await yard.report(runner, with_start(failed(assignment, permanent=True)))
    assert result.phase == task_pb2.TASK_PHASE_FAILED
    status = (await yard.task(name)).status
    # An implied start would be that of the claim.
    assert status.attempt == 1 and status.start_time.ToNanoseconds() > status.schedule_time.ToNanoseconds()
    assert await events_of(yard, name) == ["task.created", "task.scheduled", "task.started", "task.failed"]


async def test_an_outcome_with_its_start_is_applied_after_that_start_was_reported_alone(yard: Yard) -> None:
    name, runner, assignment = await claimed(yard)
    await yard.report(runner, started(assignment))
    (result,) = await yard.report(runner, with_start(succeeded(assignment)))
    assert (result.phase, result.duplicate) == (task_pb2.TASK_PHASE_SUCCEEDED, False)
    assert (await yard.task(name)).status.attempt == 1
    assert (await events_of(yard, name)).count("task.started") == 1


async def test_an_outcome_with_its_start_is_fenced_as_one(yard: Yard) -> None:
    name, runner, first = await claimed(yard)
    await yard.report(runner, released(first))
    (second,) = (await yard.claim(runner)).assignments
    (result,) = await yard.report(runner, with_start(succeeded(first)))
    assert reason(result) == "STALE_GENERATION"
    status = (await yard.task(name)).status
    assert (status.generation, status.attempt) == (second.lease.generation, 0)


async def test_a_start_that_comes_with_no_outcome_is_refused_with_its_field(yard: Yard) -> None:
    _, runner, assignment = await claimed(yard)
    progress = lease_pb2.RunReport(lease=assignment.lease, progress=common_pb2.Progress(percent=1))
    for report in (started(assignment), progress, released(assignment)):
        with pytest.raises(FieldInvalid, match=r"reports\[0\]\.report\.start"):
            await yard.report(runner, with_start(report))


@pytest.mark.parametrize("percent", [-1, 101])
async def test_a_percentage_outside_of_0_to_100_is_refused(yard: Yard, percent: int) -> None:
    name, runner, assignment = await claimed(yard)
    progress = lease_pb2.RunReport(lease=assignment.lease, progress=common_pb2.Progress(percent=percent))
    with pytest.raises(FieldInvalid, match=r"reports\[1\]\.report\.progress\.percent"):
        await yard.report(runner, started(assignment), progress)
    assert not (await yard.task(name)).status.HasField("progress")


async def test_a_repeated_stop_of_a_run_that_never_started_is_acknowledged(yard: Yard) -> None:
    name, runner, assignment = await claimed(yard)
    stop = lease_pb2.RunReport(lease=assignment.lease, cancelled=lease_pb2.RunCancelled())
    (first,) = await yard.report(runner, stop)
    (second,) = await yard.report(runner, stop)
    assert first.phase == second.phase == task_pb2.TASK_PHASE_PENDING
    assert not first.duplicate and second.duplicate
    assert (await yard.task(name)).metadata.resource_version == 3


async def test_progress_of_a_released_run_is_fenced(yard: Yard) -> None:
    _, runner, assignment = await claimed(yard)
    release = lease_pb2.RunReport(lease=assignment.lease)
    release.released.reason = lease_pb2.RELEASE_REASON_DRAINED
    await yard.report(runner, started(assignment), release)
    progress = lease_pb2.RunReport(lease=assignment.lease, progress=common_pb2.Progress(percent=50))
    (late,) = await yard.report(runner, progress)
    assert reason(late) == "LEASE_NOT_HELD"


@pytest.mark.covers("ReportRuns", "PHASE_CONFLICT")
@pytest.mark.seed("S1.48")
async def test_progress_before_the_start_is_refused(yard: Yard) -> None:
    _, runner, assignment = await claimed(yard)
    report = lease_pb2.RunReport(lease=assignment.lease, progress=common_pb2.Progress(percent=1))
    (result,) = await yard.report(runner, report)
    assert reason(result) == "PHASE_CONFLICT"
    assert "is SCHEDULED; this needs RUNNING" in result.error.message


@pytest.mark.covers("ReportRuns", "NOT_FOUND")
@pytest.mark.seed("S1.47")
async def test_a_report_for_an_unknown_task_fails_alone(yard: Yard) -> None:
    _, runner, assignment = await claimed(yard)
    unknown = lease_pb2.LeaseRef(task="tenants/default/tasks/nobody", generation=1, lease_id=1)
    results = await yard.report(
        runner, lease_pb2.RunReport(lease=unknown, started=lease_pb2.RunStarted()), started(assignment)
    )
    assert reason(results[0]) == "NOT_FOUND" and "tasks/nobody" in results[0].error.message
    assert results[1].phase == task_pb2.TASK_PHASE_RUNNING


@pytest.mark.covers("ReportRuns", "FIELD_INVALID")
async def test_empty_report_is_rejected_with_its_field(yard: Yard) -> None:
    _, runner, assignment = await claimed(yard)
    with pytest.raises(FieldInvalid, match=r"reports\[1\]\.report\.report"):
        await yard.report(runner, started(assignment), lease_pb2.RunReport(lease=assignment.lease))
    bad = lease_pb2.RunReport(lease=lease_pb2.LeaseRef(task="tasks/x"), started=lease_pb2.RunStarted())
    with pytest.raises(FieldInvalid, match=r"reports\[0\]\.report\.lease\.task"):
        await yard.report(runner, bad)
    with pytest.raises(FieldInvalid, match="1001"):
        await yard.report(runner, *[started(assignment)] * 1001)
    # Nothing was applied.
    assert (await yard.task(assignment.lease.task)).status.phase == task_pb2.TASK_PHASE_SCHEDULED


async def test_one_poisoned_report_does_not_fail_its_neighbours(yard: Yard) -> None:
    names = await yard.create(30)
    runner, _ = await yard.hello()
    assignments = (await yard.claim(runner)).assignments
    reports = [failed(assignment) for assignment in assignments]
    # PostgreSQL stores no NUL in text.
    reports[17].failed.error.code = "BAD\0CODE"
    results = await yard.report(runner, *reports)
    assert reason(results[17]) == "FIELD_INVALID"
    assert {result.phase for n, result in enumerate(results) if n != 17} == {task_pb2.TASK_PHASE_PENDING}
    assert (await yard.task(names[17])).status.phase == task_pb2.TASK_PHASE_SCHEDULED


async def test_details_of_reports_are_merged(yard: Yard) -> None:
    name, runner, assignment = await claimed(yard)
    reported: tuple[dict[str, Any], ...] = ({"a": 1, "b": "x"}, {"b": "y", "c": True})
    for fields in reported:
        details = Struct()
        details.update(fields)
        report = started(assignment) if "a" in fields else succeeded(assignment)
        report.details.CopyFrom(details)
        await yard.report(runner, report)
    assert dict((await yard.task(name)).status.details) == {"a": 1, "b": "y", "c": True}


async def test_progress_with_a_heartbeat_is_stored(yard: Yard) -> None:
    name, runner, assignment = await claimed(yard)
    await yard.report(runner, started(assignment))
    renewal = session_service_pb2.SessionRenewal(
        runner_id=runner.id, session_epoch=runner.epoch, lease_duration=duration(30)
    )
    renewal.progress.add(lease=assignment.lease, progress=common_pb2.Progress(percent=40))
    await yard.scheduler.sessions.RenewSessions(
        session_service_pb2.RenewSessionsRequest(scheduler_id="s", sessions=[renewal])
    )
    async with asyncio.timeout(5):
        while (await yard.task(name)).status.progress.percent != 40:
            pass


async def test_a_payload_reaches_the_runner_raw(yard: Yard) -> None:
    document = Struct()
    document.update({"user": "ä", "n": 1.5, "whole": 3})
    _, _, assignment = await claimed(yard, payload=common_pb2.Payload(json=document))
    assert json.loads(assignment.spec.payload.raw) == {"user": "ä", "n": 1.5, "whole": 3}
    assert assignment.spec.payload.content_type == "application/json"


async def pull(yard: Yard, lease_seconds: float = 15) -> lease_pb2.Assignment:
    """A task claimed by a pull worker, which has no session."""
    await yard.create()
    worker = Runner("worker-1", yard.key_id)
    (assignment,) = (await yard.claim(worker, lease_seconds=lease_seconds)).assignments
    return assignment


async def renew(yard: Yard, *leases: lease_pb2.LeaseRef, seconds: float = 60) -> list[lease_pb2.LeaseVerdict]:
    response = await yard.scheduler.leases.RenewLeases(
        lease_service_pb2.RenewLeasesRequest(
            runner_id="worker-1", leases=leases, lease_duration=duration(seconds)
        )
    )
    return list(response.verdicts)


async def test_a_pull_worker_renews_its_own_lease(yard: Yard, taskdb: RunningTaskDb) -> None:
    assignment = await pull(yard)
    assert not await renew(yard, assignment.lease)
    rows = await taskdb.rows("SELECT expire_time > now() + interval '50 seconds' FROM leases")
    assert rows == [(True,)]
    await yard.tenant.tasks.CancelTask(task_service_pb2.CancelTaskRequest(name=assignment.lease.task))
    (verdict,) = await renew(yard, assignment.lease)
    assert verdict.action == lease_pb2.LEASE_ACTION_CANCEL
    foreign = lease_pb2.LeaseRef(task=assignment.lease.task, generation=1, lease_id=1)
    (aborted,) = await renew(yard, foreign)
    assert (aborted.action, aborted.reason) == (lease_pb2.LEASE_ACTION_ABORT, "LEASE_NOT_HELD")


@pytest.mark.covers("RenewLeases", "FIELD_INVALID")
async def test_a_renewal_with_a_bad_lease_names_its_field(yard: Yard) -> None:
    with pytest.raises(FieldInvalid, match=r"leases\[0\]\.task"):
        await renew(yard, lease_pb2.LeaseRef(task="x"))
    with pytest.raises(FieldInvalid, match="lease_duration"):
        await renew(yard, seconds=0.5)


@pytest.mark.covers("ClaimForRunners", "FIELD_INVALID")
async def test_a_pop_with_bad_fields_names_them(yard: Yard) -> None:
    runner, _ = await yard.hello()
    await yard.create()
    lanes = await yard.lane_claims()
    with pytest.raises(FieldInvalid, match=r"runners\[0\]\.max_tasks"):
        await yard.claim(runner, 0, lanes=lanes)
    with pytest.raises(FieldInvalid, match="request_id"):
        await yard.claim(runner, lanes=lanes, request_id="x" * 65)
    with pytest.raises(FieldInvalid, match=r"runners\[0\]\.lease_duration"):
        await yard.claim(runner, lanes=lanes, lease_seconds=0.1)
    with pytest.raises(FieldInvalid, match="runners"):
        await yard.scheduler.leases.ClaimForRunners(
            lease_service_pb2.ClaimForRunnersRequest(scheduler_id="s", request_id=uuid.uuid4().hex)
        )


@pytest.mark.covers("RenewSessions", "FIELD_INVALID")
async def test_a_heartbeat_without_an_epoch_names_its_field(yard: Yard) -> None:
    with pytest.raises(FieldInvalid, match=r"sessions\[0\]\.session_epoch"):
        await yard.renew(Runner("r1", yard.key_id))


async def test_lanes_are_merged_by_time_and_offset_within_the_budget(yard: Yard) -> None:
    low = await yard.create(2, priority=1)
    high = await yard.create(2, priority=100)
    runner, _ = await yard.hello()
    lanes = await yard.lane_claims()
    for lane in lanes:
        lane.cost.cpu_millis = 100
        lane.offset.CopyFrom(duration(12 * lane.lane.priority))
    response = await yard.scheduler.leases.ClaimForRunners(
        lease_service_pb2.ClaimForRunnersRequest(
            scheduler_id="s",
            request_id=uuid.uuid4().hex,
            runners=[
                lease_service_pb2.RunnerClaim(
                    runner_id=runner.id,
                    session_epoch=runner.epoch,
                    max_tasks=10,
                    budget=common_pb2.Resources(cpu_millis=350),
                    tenants=[lease_service_pb2.TenantClaim(tenant="default", max_tasks=10, lanes=lanes)],
                )
            ],
        )
    )
    (result,) = response.results
    assert [a.lease.task for a in result.assignments] == [*high, low[0]]
