"""Helpers of the tests of RunDoctor: the call, and the state that a repair must leave."""

from __future__ import annotations

from services.taskdb.tests.conftest import Caller, RunningTaskDb
from taskyard.v1 import admin_service_pb2
from tests.harness.invariants import assert_invariants

Answer = admin_service_pb2.RunDoctorResponse


async def run_doctor(admin: Caller, *checks: str, repair: bool = False) -> Answer:
    """Run these checks of RunDoctor, or all of them."""
    request = admin_service_pb2.RunDoctorRequest(checks=checks, repair=repair)
    response: Answer = await admin.admin.RunDoctor(request)
    return response


def finding(answer: Answer, check: str) -> admin_service_pb2.DoctorFinding:
    """Return the finding of one check."""
    return next(found for found in answer.findings if found.check == check)


def task_id(name: str) -> str:
    """Return the id of a task name."""
    return name.rsplit("/", 1)[1]


async def expect_repaired(admin: Caller, taskdb: RunningTaskDb, check: str, count: int = 1) -> None:
    """Assert that the check finds and repairs the damage, and that every check and invariant holds then."""
    (found,) = (await run_doctor(admin, check)).findings
    assert found.count == count and found.severity > 0 and found.examples, found
    assert found.repaired_count == 0
    mine = finding(await run_doctor(admin, repair=True), check)
    assert mine.repaired_count == count, mine
    again = await run_doctor(admin)
    assert again.healthy, [found for found in again.findings if found.count]
    assert not [found.check for found in again.findings if found.count]
    assert_invariants(taskdb.url)
