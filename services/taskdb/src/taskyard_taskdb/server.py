"""The composition root: what a taskdb process consists of."""

from __future__ import annotations

import asyncio

from taskyard.compat.v1 import global_task_service_pb2_grpc
from taskyard.v1 import (
    admin_service_pb2_grpc,
    api_key_service_pb2_grpc,
    lease_service_pb2_grpc,
    runner_service_pb2_grpc,
    session_service_pb2_grpc,
    task_service_pb2_grpc,
    task_type_service_pb2_grpc,
    tenant_service_pb2_grpc,
)
from taskyard_kit.serve import Server
from taskyard_kit.shutdown import end_tasks
from taskyard_kit.startup import StartupError
from taskyard_taskdb.housekeeping import Housekeeping
from taskyard_taskdb.measures import Measures
from taskyard_taskdb.policy import POLICIES
from taskyard_taskdb.rpc.admin import AdminServicer
from taskyard_taskdb.rpc.api_keys import ApiKeyServicer
from taskyard_taskdb.rpc.callbacks import letter
from taskyard_taskdb.rpc.external import read_report
from taskyard_taskdb.rpc.global_tasks import GlobalTaskServicer
from taskyard_taskdb.rpc.leases import LeaseServicer
from taskyard_taskdb.rpc.reports import ReportBatch
from taskyard_taskdb.rpc.runners import RunnerServicer
from taskyard_taskdb.rpc.sessions import SessionServicer
from taskyard_taskdb.rpc.task_types import TaskTypeServicer
from taskyard_taskdb.rpc.tasks import TaskServicer
from taskyard_taskdb.rpc.tenants import TenantServicer
from taskyard_taskdb.rpc.type_cache import TypeCache
from taskyard_taskdb.settings import ServerSettings
from taskyard_taskdb.storage import migrate
from taskyard_taskdb.storage.global_updates import UpdateWriter
from taskyard_taskdb.storage.lanes import Lanes
from taskyard_taskdb.storage.pool import Pool
from taskyard_taskdb.storage.tenants import TenantCache
from taskyard_taskdb.storage.transitions import Written
from taskyard_taskdb.sweep.webhooks import Letter, WebhookSender
from taskyard_taskdb.verifier import StoredKeyVerifier
from taskyard_taskdb.watch.followers import LogFollowers
from taskyard_taskdb.watch.hub import Hub
from taskyard_taskdb.webhook_client import WebhookClient


class TaskDb:
    """One taskdb in the running event loop; `async with` starts and stops it."""

    def __init__(self, settings: ServerSettings) -> None:
        self._settings = settings
        self.pool = Pool(settings.database_url, settings.pool_options())
        self.lanes = Lanes()
        self.tenants = TenantCache(self.pool)
        self.types = TypeCache(self.pool)
        self.hub = Hub(self.pool)
        self.followers = LogFollowers(self.pool, self.hub)
        self.measures = Measures()
        self._background: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> TaskDb:
        """Connects and puts the services together; raises StartupError or StorageUnavailable."""
        try:
            await asyncio.to_thread(migrate.check, self._settings.database_url)
        except migrate.SchemaError as error:
            raise StartupError(str(error)) from None
        await self.pool.open()
        self.server = Server(self._settings, verifier=StoredKeyVerifier(self.pool), policies=POLICIES)
        self._background.append(asyncio.create_task(self.hub.run()))
        self.server.on_drain(self._end_streams)
        # What is remembered of tenants that this or another replica has changed.
        self.lanes.on_settings(self.tenants.forget)
        self.lanes.on_settings(self.types.forget)
        self.tasks = TaskServicer(
            self.pool,
            self._after_commit,
            self.hub,
            self.followers,
            self.tenants,
            self.types,
            self._settings.egress(),
        )
        self.server.add(task_service_pb2_grpc.add_TaskServiceServicer_to_server, self.tasks)
        self._add_global_tasks(self.server)
        self._add_administration(self.server)
        self._add_internal(self.server)
        self.housekeeping.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        """Finishes what was accepted and disconnects; the server has stopped before."""
        await self.housekeeping.stop()
        await self._webhook_client.close()
        await self.updates.close()
        await self.tasks.close()
        await self.reports.close()
        await end_tasks(self._background)
        await self.pool.close()

    def _add_global_tasks(self, server: Server) -> None:
        """The flat form of external tasks, and the writer of their updates."""
        self.updates = UpdateWriter(self.pool, read_report, self._after_commit)
        self._background.append(asyncio.create_task(self.updates.run()))
        servicer = GlobalTaskServicer(self.pool, self.tasks, self.types, self.updates)
        server.add(global_task_service_pb2_grpc.add_GlobalTaskServiceServicer_to_server, servicer)

    def _add_administration(self, server: Server) -> None:
        """Tenants, keys and task types."""
        tenants = TenantServicer(self.pool, self.lanes)
        server.add(tenant_service_pb2_grpc.add_TenantServiceServicer_to_server, tenants)
        api_keys = ApiKeyServicer(self.pool, server.authenticator.forget)
        server.add(api_key_service_pb2_grpc.add_ApiKeyServiceServicer_to_server, api_keys)
        types = TaskTypeServicer(self.pool, self.lanes, self._settings.egress())
        server.add(task_type_service_pb2_grpc.add_TaskTypeServiceServicer_to_server, types)

    def _add_internal(self, server: Server) -> None:
        """What schedulers use."""
        self.reports = ReportBatch(self.pool, self.lanes, self.hub, self.types)
        leases = LeaseServicer(
            self.pool,
            self.lanes,
            self.hub,
            self.followers,
            self.reports,
            self.tasks,
            self.types,
            server.draining,
            self.tasks.specs,
        )
        server.add(lease_service_pb2_grpc.add_LeaseServiceServicer_to_server, leases)
        server.on_drain(leases.close_watches)
        sessions = SessionServicer(self.pool, self.lanes, self.hub, self.reports)
        server.add(session_service_pb2_grpc.add_SessionServiceServicer_to_server, sessions)
        runners = RunnerServicer(self.pool, self.lanes, self.hub)
        server.add(runner_service_pb2_grpc.add_RunnerServiceServicer_to_server, runners)
        self.lanes.on_news(self.hub.wake)
        self.housekeeping = Housekeeping(
            self._settings.database_url,
            self.pool,
            self.lanes,
            self._after_commit,
            self.updates.apply_all,
            self._webhook_sender(),
            self.measures,
            grace=self._settings.reap_grace,
            options=self._settings.job_options(),
            leads=self._settings.housekeeping,
        )
        run_job = self.housekeeping.run_job
        admin = AdminServicer(self.pool, self._after_commit, self.measures.examined, run_job)
        server.add(admin_service_pb2_grpc.add_AdminServiceServicer_to_server, admin)

    def _webhook_sender(self) -> WebhookSender:
        settings = self._settings
        self._webhook_client = WebhookClient(settings.egress(), settings.webhook_timeout.total_seconds())
        return WebhookSender(
            self.pool,
            lambda record: Letter(*letter(record)),
            self._webhook_client,
            self.measures.webhook_told,
            settings.webhook_give_up,
        )

    def _after_commit(self, written: Written) -> None:
        """Tells those who wait what has changed."""
        self.lanes.committed(written)
        self.hub.wake()

    async def _end_streams(self) -> None:
        """Lets watches and tails say that they are closing."""
        self.hub.close()


async def serve(settings: ServerSettings) -> None:
    """Serve until SIGTERM; raises StartupError for a database that is away or has another schema."""
    async with TaskDb(settings) as taskdb:
        await taskdb.server.serve()
