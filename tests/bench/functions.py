"""No-op functions on one runner: alone with a scheduler that costs next to nothing, and end to end."""

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc.aio
import psutil
import psycopg
from google.protobuf.duration_pb2 import Duration

from services.runner.tests.runner_process import RunnerProcess
from taskyard.v1 import common_pb2, lease_pb2, task_pb2, task_service_pb2
from taskyard.v1 import runner_link_service_pb2 as link
from taskyard.v1.runner_link_service_pb2_grpc import (
    RunnerLinkServiceServicer,
    add_RunnerLinkServiceServicer_to_server,
)
from tests.bench.database import migrated
from tests.bench.measure import Figure, Report, median
from tests.harness.control_plane import ControlPlane, make_keys
from tests.harness.postgres import PostgresServer

CAPACITY = 200
GOAL = 6000
FLAGS = (
    "--app",
    "services.runner.tests.function_app:app",
    "--kind",
    "function",
    "--capacity",
    str(CAPACITY),
)
BATCH = 100


async def run(server: PostgresServer, directory: Path, report: Report, *, quick: bool) -> None:
    """The runner by itself for both kinds of function, then everything together."""
    runs, count = (1, 4000) if quick else (3, 40_000)
    for name, title in (("noop", "async"), ("noop-sync", "plain")):
        measured = [await _alone(directory / f"{name}-{n}", name, count) for n in range(runs)]
        _add(report, f"no-op {title} functions, runner alone", measured)
    measured = [await end_to_end(server, directory / f"whole-{n}", count) for n in range(runs)]
    _add(report, "no-op async functions, end to end", measured)


def _add(report: Report, name: str, measured: list[tuple[float, float, float]]) -> None:
    rates, agents, hosts = ([run[n] for run in measured] for n in range(3))
    rate = median(rates)
    report.add(Figure(name, rate, "tasks/s", tuple(rates), goal=f"{GOAL}", met=rate >= GOAL))
    report.add(Figure(f"{name}: agent", median(agents), "µs of CPU", tuple(agents)))
    report.add(Figure(f"{name}: hosts", median(hosts), "µs of CPU", tuple(hosts)))


class Usage:
    """CPU time of a runner's processes."""

    def __init__(self, runner: RunnerProcess) -> None:
        self._agent = [psutil.Process(runner.agent_pid)]
        self._runner = runner
        self._begin = self._spent()

    def _spent(self) -> tuple[float, float]:
        hosts = [psutil.Process(pid) for pid in self._runner.host_pids()]
        return _cpu(self._agent), _cpu(hosts)

    def per_task(self, count: int) -> tuple[float, float]:
        """Microseconds of the agent and of the hosts since the beginning."""
        agent, hosts = self._spent()
        return (agent - self._begin[0]) / count * 1e6, (hosts - self._begin[1]) / count * 1e6


def _cpu(processes: list[psutil.Process]) -> float:
    total = 0.0
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            times = process.cpu_times()
            total += times.user + times.system
    return total


# -- the runner alone


class LightScheduler(RunnerLinkServiceServicer):
    """Keeps a runner full of prepared assignments, and acknowledges its reports."""

    def __init__(self, function: str) -> None:
        self._function = function
        self._prepared: list[bytes] = []
        self._outbox: asyncio.Queue[Any] = asyncio.Queue()
        self._window = 0
        self._number = 0
        self.left = 0
        self.done = 0
        self.finished = asyncio.Event()
        self.welcomed = asyncio.Event()

    def prepare(self, count: int) -> None:
        """Make assignments; their leases are those of hello and last for the whole measurement."""
        spec = task_pb2.TaskSpec(
            execution=task_pb2.Execution(function=task_pb2.FunctionExecution(function=self._function)),
            overlap=task_pb2.OVERLAP_POLICY_ALLOW,
            stop_grace_period=Duration(seconds=30),
            orphan_timeout=Duration(seconds=3600),
        )
        for start in range(0, count, BATCH):
            message = link.ConnectResponse()
            for _ in range(min(BATCH, count - start)):
                self._number += 1
                lease = lease_pb2.LeaseRef(
                    task=f"tenants/default/tasks/0192f1c2-7b6e-7000-8000-{self._number:012x}",
                    generation=1,
                    lease_id=self._number,
                )
                message.assignments.assignments.add(
                    lease=lease, lease_ttl=Duration(seconds=600), attempt=1, spec=spec
                )
            self._prepared.append(message.SerializeToString())
        self._prepared.reverse()
        self.left, self.done = count, 0
        self.finished.clear()

    def begin(self) -> None:
        """Let it go."""
        self._send_more(self._window)

    def _send_more(self, room: int) -> None:
        while self._prepared and room >= BATCH:
            self._outbox.put_nowait(self._prepared.pop())
            room -= BATCH
        self._room = room

    async def Connect(  # type: ignore[override]
        self, requests: AsyncIterator[link.ConnectRequest], context: Any
    ) -> AsyncIterator[bytes]:
        registration = (await anext(requests)).hello.registration
        self._window = registration.capacity + registration.prefetch
        welcome = link.Welcome(
            protocol_version=1, heartbeat_interval=Duration(seconds=10), lease_duration=Duration(seconds=600)
        )
        self._outbox.put_nowait(link.ConnectResponse(welcome=welcome).SerializeToString())
        reader = asyncio.create_task(self._read(requests))
        self.welcomed.set()
        try:
            while True:
                yield await self._outbox.get()
        finally:
            reader.cancel()

    async def _read(self, requests: AsyncIterator[link.ConnectRequest]) -> None:
        async for request in requests:
            if request.HasField("reports"):
                self._reports(request.reports)
            elif request.HasField("heartbeat"):
                ack = link.HeartbeatAck(
                    heartbeat_id=request.heartbeat.heartbeat_id, lease_ttl=Duration(seconds=600)
                )
                self._outbox.put_nowait(link.ConnectResponse(heartbeat_ack=ack).SerializeToString())

    def _reports(self, batch: link.ReportBatch) -> None:
        ended = sum(report.HasField("succeeded") for report in batch.reports)
        self.done += ended
        ack = link.ReportAck(through_seq=batch.reports[-1].seq)
        self._outbox.put_nowait(link.ConnectResponse(report_ack=ack).SerializeToString())
        self._send_more(self._room + ended)
        if self.done >= self.left:
            self.finished.set()


async def _alone(directory: Path, function: str, count: int) -> tuple[float, float, float]:
    """Tasks per second, and the CPU of agent and hosts per task."""
    directory.mkdir()
    scheduler = LightScheduler(function)
    server = grpc.aio.server()
    add_RunnerLinkServiceServicer_to_server(scheduler, _Raw(server))  # type: ignore[arg-type]
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    runner = RunnerProcess(directory / "data", f"127.0.0.1:{port}")
    try:
        await runner.start(*FLAGS)
        await asyncio.wait_for(scheduler.welcomed.wait(), 60)
        await _drain(scheduler, count // 10)
        scheduler.prepare(count)
        usage, start = Usage(runner), time.perf_counter()
        scheduler.begin()
        await asyncio.wait_for(scheduler.finished.wait(), 600)
        rate = count / (time.perf_counter() - start)
        return rate, *usage.per_task(count)
    finally:
        await runner.kill()
        runner.clean()
        await server.stop(None)


async def _drain(scheduler: LightScheduler, count: int) -> None:
    scheduler.prepare(count)
    scheduler.begin()
    await asyncio.wait_for(scheduler.finished.wait(), 120)


class _Raw:
    """A server whose streams answer with bytes, so that serialising is no part of the measurement."""

    def __init__(self, server: grpc.aio.Server) -> None:
        self._server = server

    def add_generic_rpc_handlers(self, handlers: Any) -> None:
        """Not used by servers that support registered methods."""

    def add_registered_method_handlers(self, service: str, handlers: Any) -> None:
        raw = {name: found._replace(response_serializer=None) for name, found in handlers.items()}
        self._server.add_registered_method_handlers(service, raw)


# -- end to end


async def end_to_end(server: PostgresServer, directory: Path, count: int) -> tuple[float, float, float]:
    """The drain of a backlog by a real taskdb, scheduler and runner."""
    directory.mkdir()
    with migrated(server) as url:
        plane = ControlPlane(url, directory)
        plane.keys = make_keys(url)
        runner = RunnerProcess(directory / "data", "", id="bench", key=plane.keys["runner"])
        try:
            plane.add_taskdb()
            plane.add_scheduler()
            await _create(plane, count)
            runner.address = plane.schedulers[0].address
            await runner.start(*FLAGS)
            await runner.connected()
            usage, start = Usage(runner), time.perf_counter()
            await until_empty(url)
            rate = count / (time.perf_counter() - start)
            return rate, *usage.per_task(count)
        finally:
            await runner.kill()
            runner.clean()
            plane.stop()


async def _create(plane: ControlPlane, count: int) -> None:
    execution = task_pb2.Execution(function=task_pb2.FunctionExecution(function="noop"))
    task = task_pb2.Task(spec=task_pb2.TaskSpec(execution=execution))
    task.spec.payload.raw = json.dumps({}).encode()
    items = [task_service_pb2.CreateTaskRequest(task=task)] * 1000
    request = task_service_pb2.BatchCreateTasksRequest(
        parent="tenants/default", requests=items, mode=common_pb2.BATCH_MODE_PER_ITEM
    )
    options = [("grpc.max_send_message_length", 64 << 20), ("grpc.max_receive_message_length", 64 << 20)]
    metadata = (("authorization", f"Bearer {plane.keys['tenant']}"),)
    async with grpc.aio.insecure_channel(plane.taskdbs[0].address, options) as channel:
        call: Any = channel.unary_unary(
            "/taskyard.v1.TaskService/BatchCreateTasks",
            request_serializer=task_service_pb2.BatchCreateTasksRequest.SerializeToString,
        )
        for _ in range(count // 1000):
            await call(request, metadata=metadata)


async def until_empty(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        while True:
            row = connection.execute(
                "SELECT EXISTS (SELECT FROM queue) OR EXISTS (SELECT FROM leases)"
            ).fetchone()
            if row is not None and not row[0]:
                return
            await asyncio.sleep(0.05)
