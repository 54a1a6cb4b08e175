"""taskdb as its callers see it: batch and single creates, claims and reports over real sockets."""

import asyncio
import time
import uuid
from typing import Any

import grpc.aio
from google.protobuf.duration_pb2 import Duration
from grpc_health.v1 import health_pb2, health_pb2_grpc

from taskyard.v1 import (
    common_pb2,
    lease_service_pb2,
    lease_service_pb2_grpc,
    runner_pb2,
    session_service_pb2,
    session_service_pb2_grpc,
    task_pb2,
    task_service_pb2,
    task_service_pb2_grpc,
)
from tests.bench.fast_runner import short_run
from tests.harness.keys import make_key

PARENT = "tenants/default"
RUNNER = "bench"
BATCH = 1000
CREATE = "/taskyard.v1.TaskService/BatchCreateTasks"


def task(**fields: Any) -> task_pb2.Task:
    """A no-op command."""
    command = task_pb2.CommandExecution(program="true")
    return task_pb2.Task(spec=task_pb2.TaskSpec(execution=task_pb2.Execution(command=command), **fields))


class Load:
    """A caller with every key that the benchmarks need."""

    def __init__(self, address: str, url: str, *, unmatched: int | None = None) -> None:
        # A class that no runner matches.
        self._unmatched = unmatched
        options = [("grpc.max_receive_message_length", 64 << 20), ("grpc.max_send_message_length", 64 << 20)]
        self.channel = grpc.aio.insecure_channel(address, options)
        self._tenant = (("authorization", f"Bearer {make_key(url, 'tenant', 'default')}"),)
        self._scheduler = (("authorization", f"Bearer {make_key(url, 'scheduler')}"),)
        self.tasks = task_service_pb2_grpc.TaskServiceStub(self.channel)
        self.leases = lease_service_pb2_grpc.LeaseServiceStub(self.channel)
        self.sessions = session_service_pb2_grpc.SessionServiceStub(self.channel)
        self.health: Any = health_pb2_grpc.HealthStub(self.channel)

    async def batch_creates(self, count: int, in_flight: int = 2) -> float:
        """Tasks created per second by batches of 1000, each request serialised once beforehand."""
        items = [task_service_pb2.CreateTaskRequest(task=task()) for _ in range(BATCH)]
        request = task_service_pb2.BatchCreateTasksRequest(
            parent=PARENT, requests=items, mode=common_pb2.BATCH_MODE_PER_ITEM
        )
        data = request.SerializeToString()
        call: Any = self.channel.unary_unary(CREATE)
        left = count // BATCH

        async def send() -> None:
            nonlocal left
            while left > 0:
                left -= 1
                await call(data, metadata=self._tenant)

        start = time.perf_counter()
        await asyncio.gather(*(send() for _ in range(in_flight)))
        return count / (time.perf_counter() - start)

    async def create(self, request: task_service_pb2.CreateTaskRequest) -> None:
        """One call."""
        await self.tasks.CreateTask(request, metadata=self._tenant)

    async def single_creates(self, count: int, callers: int = 50) -> float:
        """Tasks created per second by callers that each wait for their answer."""
        request = task_service_pb2.CreateTaskRequest(
            parent=PARENT, task=task(), view=task_service_pb2.TASK_VIEW_NAME
        )
        return await self._unary(
            lambda: self.tasks.CreateTask(request, metadata=self._tenant), count, callers
        )

    async def empty_calls(self, count: int, callers: int = 50) -> float:
        """Health checks per second: what an empty unary call costs on this server."""
        request = health_pb2.HealthCheckRequest()
        return await self._unary(lambda: self.health.Check(request), count, callers)

    async def _unary(self, call: Any, count: int, callers: int) -> float:
        left = count

        async def send() -> None:
            nonlocal left
            while left > 0:
                left -= 1
                await call()

        start = time.perf_counter()
        await asyncio.gather(*(send() for _ in range(callers)))
        return count / (time.perf_counter() - start)

    async def open_session(self, key_id: str) -> int:
        """A session for the one runner of these benchmarks; returns its epoch."""
        registration = runner_pb2.RunnerRegistration(
            task_types=["*"], execution_kinds=[runner_pb2.EXECUTION_KIND_COMMAND], capacity=10000
        )
        opened = await self.sessions.OpenSession(
            session_service_pb2.OpenSessionRequest(
                scheduler_id="bench",
                runner_id=RUNNER,
                key_id=key_id,
                instance_id=str(uuid.uuid4()),
                takeover=True,
                registration=registration,
                lease_duration=Duration(seconds=600),
            ),
            metadata=self._scheduler,
        )
        return int(opened.session_epoch)

    async def lanes(self) -> list[lease_service_pb2.Lane]:
        """The lanes that have work now."""
        call = self.leases.WatchQueue(
            lease_service_pb2.WatchQueueRequest(scheduler_id="bench"), metadata=self._scheduler
        )
        async for response in call:
            call.cancel()
            return list(response.lanes)
        return []

    async def lane_claims(self) -> list[lease_service_pb2.LaneClaim]:
        """The lanes whose work the runner of these benchmarks can take."""
        return [
            lease_service_pb2.LaneClaim(lane=lane.key)
            for lane in await self.lanes()
            if lane.tenant == "default" and lane.key.class_id != self._unmatched
        ]

    async def drain(
        self,
        epoch: int,
        limit: int,
        in_flight: int = 2,
        batch: int = BATCH // 2,
        lanes: list[lease_service_pb2.LaneClaim] | None = None,
    ) -> tuple[int, float, list[float]]:
        """Claim and complete tasks up to `limit` or to the last: how many, per second, claim latencies."""
        lanes = await self.lane_claims() if lanes is None else lanes
        tenants = [lease_service_pb2.TenantClaim(tenant="default", max_tasks=batch, lanes=lanes)]
        done, latencies = 0, []

        async def work() -> None:
            nonlocal done
            while done < limit:
                request = lease_service_pb2.ClaimForRunnersRequest(
                    scheduler_id="bench",
                    request_id=str(uuid.uuid4()),
                    runners=[
                        lease_service_pb2.RunnerClaim(
                            runner_id=RUNNER, session_epoch=epoch, max_tasks=batch, tenants=tenants
                        )
                    ],
                )
                before = time.perf_counter()
                response = await self.leases.ClaimForRunners(request, metadata=self._scheduler)
                latencies.append(time.perf_counter() - before)
                claimed = response.results[0].assignments
                if not claimed:
                    return
                await self.leases.ReportRuns(_outcomes(claimed), metadata=self._scheduler)
                done += len(claimed)

        start = time.perf_counter()
        await asyncio.gather(*(work() for _ in range(in_flight)))
        return done, done / (time.perf_counter() - start), latencies


def _outcomes(claimed: Any) -> lease_service_pb2.ReportRunsRequest:
    request = lease_service_pb2.ReportRunsRequest()
    for assignment in claimed:
        request.reports.add(runner_id=RUNNER, report=short_run(assignment.lease))
    return request
