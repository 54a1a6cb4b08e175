"""Reports that the scheduler refuses before taskdb reads them."""

from __future__ import annotations

import pytest

from taskyard.errors import InvalidArgument
from taskyard.v1 import lease_pb2
from taskyard.v1.runner_link_service_pb2 import ReportBatch
from taskyard_scheduler.rpc.check import check_reports

TASK = "tenants/default/tasks/a"
WAITING, DRAINED = lease_pb2.RELEASE_REASON_WAITING, lease_pb2.RELEASE_REASON_DRAINED


def release(reason: lease_pb2.ReleaseReason.ValueType, *wait_for: str) -> ReportBatch:
    lease = lease_pb2.LeaseRef(task=TASK, generation=1, lease_id=1)
    released = lease_pb2.RunReleased(reason=reason, wait_for=wait_for)
    return ReportBatch(reports=[lease_pb2.RunReport(lease=lease, seq=1, released=released)])


@pytest.mark.parametrize(("reason", "wait_for"), [(WAITING, []), (DRAINED, [TASK])])
def test_only_a_run_that_waits_names_tasks(
    reason: lease_pb2.ReleaseReason.ValueType, wait_for: list[str]
) -> None:
    with pytest.raises(InvalidArgument, match="wait_for"):
        check_reports(release(reason, *wait_for))


def test_a_run_may_wait_for_tasks() -> None:
    assert check_reports(release(WAITING, TASK))[0].kind == "released"
