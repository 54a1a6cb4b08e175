"""ExplainService: why a task is not running, from taskdb's facts and the runners connected here."""

from __future__ import annotations

from typing import Any

import grpc.aio

from taskyard.errors import FieldInvalid
from taskyard.v1 import explain_service_pb2 as explaining
from taskyard.v1 import task_pb2
from taskyard.v1.explain_service_pb2_grpc import ExplainServiceServicer
from taskyard.v1.lease_service_pb2 import ReadExplainFactsRequest, ReadExplainFactsResponse
from taskyard_kit.auth import require_tenant
from taskyard_scheduler.domain.explain import Explanation, GateVerdict, explain
from taskyard_scheduler.domain.explain_runners import RunnerVerdict
from taskyard_scheduler.explain_facts import candidates, read_facts
from taskyard_scheduler.scheduler import Scheduler

Context = grpc.aio.ServicerContext[Any, Any]
MAX_RUNNERS = 200


class ExplainServicer(ExplainServiceServicer):
    """Serves users."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler

    async def ExplainTask(
        self, request: explaining.ExplainTaskRequest, context: Context
    ) -> explaining.ExplainTaskResponse:
        """Explains a task of the caller's tenant, or a spec; raises NotFound if it is not visible."""
        facts = await self._scheduler.taskdb.read_explain_facts(_facts_request(request))
        found = explain(read_facts(facts, request.spec), candidates(facts, self._scheduler))
        return _response(found, facts)


def _facts_request(request: explaining.ExplainTaskRequest) -> ReadExplainFactsRequest:
    tenant = request.parent.removeprefix("tenants/")
    if request.WhichOneof("subject") == "spec":
        require_tenant(tenant, "tenant", request.parent)
        return ReadExplainFactsRequest(tenant=tenant, spec=request.spec)
    _, owner, _, task_id = request.name.split("/")
    # Visibility depends on the task's own tenant, not on parent.
    require_tenant(owner, "task", request.name)
    if tenant not in (owner, "-"):
        raise FieldInvalid.of("name", f"must be a task of {request.parent}, not {request.name!r}")
    return ReadExplainFactsRequest(tenant=owner, task_id=task_id)


def _response(found: Explanation, facts: ReadExplainFactsResponse) -> explaining.ExplainTaskResponse:
    response = explaining.ExplainTaskResponse(
        runnable=found.runnable,
        summary=found.summary,
        lane_position=facts.task.lane_position,
        effective_priority=found.effective_priority,
        phase=facts.task.phase if facts.HasField("task") else task_pb2.TASK_PHASE_UNSPECIFIED,
        omitted_runner_count=max(0, len(found.runners) - MAX_RUNNERS),
    )
    if found.earliest_time is not None:
        response.earliest_time.FromDatetime(found.earliest_time)
    for gate in found.gates:
        _fill_gate(response.gates.add(), gate)
    for runner in found.runners[:MAX_RUNNERS]:
        _fill_runner(response.runners.add(), runner)
    return response


def _fill_gate(verdict: explaining.GateVerdict, found: GateVerdict) -> None:
    verdict.gate = explaining.Gate.ValueType(found.gate)
    verdict.passed = found.passed
    verdict.message = found.message
    verdict.remedy = found.remedy
    verdict.blocker = found.blocker
    if found.open_time is not None:
        verdict.open_time.FromDatetime(found.open_time)


def _fill_runner(verdict: explaining.RunnerVerdict, found: RunnerVerdict) -> None:
    verdict.runner = f"runners/{found.runner_id}"
    if found.obstacle is not None:
        verdict.obstacle = explaining.RunnerObstacle.Value(f"RUNNER_OBSTACLE_{found.obstacle.name}")
    verdict.message = found.message
    verdict.remedy = found.remedy
    verdict.score = found.score
