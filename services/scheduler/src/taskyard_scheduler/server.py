"""The composition root: settings in, a serving scheduler out."""

from __future__ import annotations

import asyncio

import grpc.aio

from taskyard.channel import client_channel_options, open_channel
from taskyard.v1.explain_service_pb2_grpc import add_ExplainServiceServicer_to_server
from taskyard.v1.runner_link_service_pb2_grpc import add_RunnerLinkServiceServicer_to_server
from taskyard.v1.work_service_pb2_grpc import add_WorkServiceServicer_to_server
from taskyard_kit.readiness import Readiness
from taskyard_kit.serve import Server
from taskyard_kit.startup import StartupError
from taskyard_scheduler.keys import TaskdbKeys
from taskyard_scheduler.rpc.explain import ExplainServicer
from taskyard_scheduler.rpc.link import RunnerLinkServicer
from taskyard_scheduler.rpc.policies import POLICIES
from taskyard_scheduler.rpc.work import WorkServicer
from taskyard_scheduler.scheduler import Scheduler
from taskyard_scheduler.settings import SchedulerSettings
from taskyard_scheduler.taskdb import MAX_RECEIVE_BYTES, Taskdb


def connect(settings: SchedulerSettings) -> grpc.aio.Channel:
    """The channel to taskdb; raises StartupError for plaintext to another machine."""
    try:
        return open_channel(
            settings.taskdb_target(),
            key=settings.key.reveal(),
            tls=settings.taskdb_tls,
            tls_ca=settings.taskdb_ca,
            allow_plaintext=settings.allow_plaintext,
            options=client_channel_options(MAX_RECEIVE_BYTES),
        )
    except (ValueError, OSError) as error:
        raise StartupError(f"taskdb: {error}") from None


def make_scheduler(settings: SchedulerSettings, taskdb: Taskdb) -> Scheduler:
    return Scheduler(
        taskdb,
        settings.link_config(),
        gather=settings.heartbeat_gather.total_seconds(),
        reconnect_spread=settings.reconnect_spread.total_seconds(),
        strict=settings.priority_order == "strict",
        reservation_delay=settings.reservation_delay.total_seconds(),
        eager=settings.eager_leases,
    )


def make_server(settings: SchedulerSettings, scheduler: Scheduler) -> Server:
    server = Server(settings, verifier=TaskdbKeys(scheduler.taskdb), policies=POLICIES)
    server.add(add_RunnerLinkServiceServicer_to_server, RunnerLinkServicer(scheduler))
    server.add(add_WorkServiceServicer_to_server, WorkServicer(scheduler))
    server.add(add_ExplainServiceServicer_to_server, ExplainServicer(scheduler))
    server.on_drain(scheduler.drain)
    return server


async def serve(settings: SchedulerSettings) -> None:
    """Serve until SIGTERM or SIGINT, then drain."""
    async with connect(settings) as channel:
        scheduler = make_scheduler(settings, Taskdb(channel))
        server = make_server(settings, scheduler)
        # It serves once it has reached taskdb.
        await server.set_health(serving=False)
        working = asyncio.create_task(scheduler.run())
        serving = asyncio.create_task(server.serve())
        checking = asyncio.create_task(_readiness(scheduler, server).run())
        try:
            await asyncio.wait((working, serving), return_when=asyncio.FIRST_COMPLETED)
            if not working.done():
                await scheduler.settle()
        finally:
            checking.cancel()
            working.cancel()
        if not serving.done():
            # A part of the scheduler failed: stop the whole process instead of serving without it.
            await server.stop_now()
            await _raise_first(working)
        await serving


def _readiness(scheduler: Scheduler, server: Server) -> Readiness:
    async def find_problem() -> str:
        if not await scheduler.taskdb.serves():
            return "taskdb does not serve; see its log, or check --taskdb"
        return (
            "" if scheduler.watching else "the queue of taskdb cannot be watched; see watch_lost in the log"
        )

    async def set_health(serving: bool) -> None:
        await server.set_health(serving=serving)

    return Readiness(find_problem, set_health)


async def _raise_first(working: asyncio.Task[None]) -> None:
    try:
        await working
    except BaseExceptionGroup as group:
        raise group.exceptions[0] from None
