"""A worker of the kit that takes a task over from the worker under test."""

from __future__ import annotations

import asyncio
import json
import uuid
from typing import Any

from taskyard.channel import open_channel
from taskyard.convert import to_duration
from taskyard.v1 import common_pb2, lease_pb2, runner_pb2, task_pb2
from taskyard.v1 import work_service_pb2 as pb
from taskyard.v1.work_service_pb2_grpc import WorkServiceStub

FUNCTIONS = ("conf.block",)


async def finish_claimed(
    scheduler: str, key: str, worker_id: str, task: str, output: str, seconds: float
) -> None:
    """Claim until this task is claimed, then report that it succeeded with an output."""
    async with open_channel(scheduler, key=key) as channel, asyncio.timeout(seconds):
        stub: Any = WorkServiceStub(channel)
        while True:
            request = pb.ClaimTasksRequest(
                worker_id=worker_id,
                request_id=uuid.uuid4().hex,
                registration=runner_pb2.RunnerRegistration(
                    task_types=["*"],
                    execution_kinds=[runner_pb2.EXECUTION_KIND_FUNCTION],
                    functions=FUNCTIONS,
                    capacity=1,
                ),
                wait=to_duration(5),
            )
            for assignment in (await stub.ClaimTasks(request)).assignments:
                if assignment.lease.task == task:
                    await _succeed(stub, worker_id, assignment.lease, output)
                    return


async def _succeed(stub: Any, worker_id: str, lease: lease_pb2.LeaseRef, output: str) -> None:
    result = task_pb2.TaskResult(output=common_pb2.Payload(raw=json.dumps(output).encode()))
    reports = [
        lease_pb2.RunReport(lease=lease, started=lease_pb2.RunStarted()),
        lease_pb2.RunReport(lease=lease, succeeded=lease_pb2.RunSucceeded(result=result)),
    ]
    response = await stub.ReportWork(pb.ReportWorkRequest(worker_id=worker_id, reports=reports))
    assert not any(found.error.code for found in response.results), response
