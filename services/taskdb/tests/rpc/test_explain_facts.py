"""LeaseService.ReadExplainFacts: the facts from which a scheduler explains why a task is not running."""

from __future__ import annotations

import pytest

from services.taskdb.tests.yard import Yard
from taskyard.errors import FieldInvalid, NotFound, TaskTypeUnknown
from taskyard.v1 import lease_service_pb2, task_pb2

Request = lease_service_pb2.ReadExplainFactsRequest


def spec(**fields: object) -> task_pb2.TaskSpec:
    made = task_pb2.TaskSpec(**fields)  # type: ignore[arg-type]
    made.execution.command.program = "true"
    return made


@pytest.mark.covers("ReadExplainFacts", "NOT_FOUND")
async def test_unknown_tasks_and_tenants_are_not_found(yard: Yard) -> None:
    with pytest.raises(NotFound):
        await yard.scheduler.leases.ReadExplainFacts(Request(tenant="default", task_id="none"))
    with pytest.raises(NotFound):
        await yard.scheduler.leases.ReadExplainFacts(Request(tenant="nobody", spec=spec()))


@pytest.mark.covers("ReadExplainFacts", "FIELD_INVALID")
async def test_a_spec_that_breaks_a_rule_is_refused_by_its_path(yard: Yard) -> None:
    with pytest.raises(FieldInvalid) as refused:
        await yard.scheduler.leases.ReadExplainFacts(Request(tenant="default", spec=spec(slot="a/b")))
    assert [violation.field for violation in refused.value.violations] == ["spec.slot"]


@pytest.mark.covers("ReadExplainFacts", "TASK_TYPE_UNKNOWN")
async def test_spec_without_execution_needs_a_registered_type(yard: Yard) -> None:
    with pytest.raises(TaskTypeUnknown):
        await yard.scheduler.leases.ReadExplainFacts(
            Request(tenant="default", spec=task_pb2.TaskSpec(task_type="none"))
        )


async def test_a_queued_task_has_its_place_in_the_lane_and_its_class(yard: Yard) -> None:
    names = await yard.create(3)
    task_id = names[2].rsplit("/", 1)[-1]
    facts = await yard.scheduler.leases.ReadExplainFacts(Request(tenant="default", task_id=task_id))
    assert facts.task.queued and facts.task.lane_position == 2
    assert facts.task.pending_reason == task_pb2.PENDING_REASON_QUEUED
    assert facts.placement_class.class_id
    assert facts.tenant.share.tenant == "default"
    assert facts.tenant.share.claimable_count == -1
