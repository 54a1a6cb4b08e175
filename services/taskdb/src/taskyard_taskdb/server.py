"""The composition root of a taskdb process."""

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
from taskyard_taskdb.access_policy import POLICIES
from taskyard_taskdb.housekeeping import Housekeeping
from taskyard_taskdb.key_verifier import StoredKeyVerifier
from taskyard_taskdb.metrics import HousekeepingMetrics
from taskyard_taskdb.rpc.admin import AdminServicer
from taskyard_taskdb.rpc.api_keys import ApiKeyServicer
from taskyard_taskdb.rpc.callbacks import webhook_request
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
from taskyard_taskdb.storage.claim.bounds import Bounds
from taskyard_taskdb.storage.notify.bus import Bus, invalidation
from taskyard_taskdb.storage.notify.notice import CommitNotice
from taskyard_taskdb.storage.pool import Pool
from taskyard_taskdb.storage.tenant.tenants import TenantCache
from taskyard_taskdb.storage.tenant.usage import UsageLedger
from taskyard_taskdb.sweep.webhook_sender import WebhookRequest, WebhookSender
from taskyard_taskdb.watch.followers import LogFollowers
from taskyard_taskdb.watch.hub import Hub
from taskyard_taskdb.webhook_client import WebhookClient


class TaskDb:
    """One taskdb in the running event loop; `async with` starts and stops it."""

    def __init__(self, settings: ServerSettings) -> None:
        self._settings = settings
        self.pool = Pool(settings.database_url, settings.pool_options())
        self.bus = Bus()
        self.bounds = Bounds()
        self.usage = UsageLedger()
        self.tenants = TenantCache(self.pool)
        self.types = TypeCache(self.pool)
        self.hub = Hub(self.pool)
        self.followers = LogFollowers(self.pool, self.hub)
        self.metrics = HousekeepingMetrics()
        self._background: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> TaskDb:
        """Connect to the database and start the services; raises StartupError or StorageUnavailable."""
        try:
            await asyncio.to_thread(migrate.check, self._settings.database_url)
        except migrate.SchemaError as error:
            raise StartupError(str(error)) from None
        await self.pool.open()
        self.server = Server(self._settings, verifier=StoredKeyVerifier(self.pool), policies=POLICIES)
        self._background.append(asyncio.create_task(self.hub.run()))
        self.server.on_drain(self._end_streams)
        self.bus.on_commit(invalidation(self.tenants.forget, self.types.forget))
        self.bus.on_commit(lambda notice: self.usage.add(notice.used))
        self.bus.on_commit(lambda _: self.hub.wake())
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
        self._add_administration(self.server)
        self._add_internal(self.server)
        self.housekeeping.start()
        _add_unimplemented(self.server)
        return self

    async def __aexit__(self, *_: object) -> None:
        """Finish accepted work and disconnect; the server has already stopped."""
        await self.housekeeping.stop()
        await self._webhook_client.close()
        await self.tasks.close()
        await self.reports.close()
        await end_tasks(self._background)
        await self.pool.close()

    def _add_administration(self, server: Server) -> None:
        """Add the services of tenants, API keys and task types."""
        tenants = TenantServicer(self.pool, self.bus)
        server.add(tenant_service_pb2_grpc.add_TenantServiceServicer_to_server, tenants)
        api_keys = ApiKeyServicer(self.pool, server.authenticator.invalidate)
        server.add(api_key_service_pb2_grpc.add_ApiKeyServiceServicer_to_server, api_keys)
        types = TaskTypeServicer(self.pool, self.bus, self._settings.egress())
        server.add(task_type_service_pb2_grpc.add_TaskTypeServiceServicer_to_server, types)

    def _add_internal(self, server: Server) -> None:
        """Add the services of schedulers, runners and administrators, and make the housekeeping."""
        self.reports = ReportBatch(self.pool, self.bus, self.hub, self.types)
        leases = LeaseServicer(
            self.pool,
            self.bus,
            self.bounds,
            self.usage,
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
        sessions = SessionServicer(self.pool, self.bus, self.hub, self.reports)
        server.add(session_service_pb2_grpc.add_SessionServiceServicer_to_server, sessions)
        runners = RunnerServicer(self.pool, self.bus, self.hub)
        server.add(runner_service_pb2_grpc.add_RunnerServiceServicer_to_server, runners)
        self.housekeeping = Housekeeping(
            self._settings.database_url,
            self.pool,
            self.bus,
            self.bounds,
            self.usage,
            self._after_commit,
            self.tasks.apply_reports,
            self._webhook_sender(),
            self.metrics,
            grace=self._settings.reap_grace,
            options=self._settings.job_options(),
            leads=self._settings.housekeeping,
        )
        run_job = self.housekeeping.run_job
        admin = AdminServicer(self.pool, self._after_commit, self.metrics.check_ran, run_job)
        server.add(admin_service_pb2_grpc.add_AdminServiceServicer_to_server, admin)

    def _webhook_sender(self) -> WebhookSender:
        settings = self._settings
        self._webhook_client = WebhookClient(settings.egress(), settings.webhook_timeout.total_seconds())
        return WebhookSender(
            self.pool,
            lambda record: WebhookRequest(*webhook_request(record)),
            self._webhook_client,
            self.metrics.webhook_called,
            settings.webhook_give_up,
        )

    def _after_commit(self, notice: CommitNotice) -> None:
        """Publish what a transaction has written."""
        self.bus.publish(notice)

    async def _end_streams(self) -> None:
        """Let watches and tails send their last message."""
        self.hub.close()


async def serve(settings: ServerSettings) -> None:
    """Serve until SIGTERM; raises StartupError for a database that is unreachable or has another schema."""
    async with TaskDb(settings) as taskdb:
        await taskdb.server.serve()


def _add_unimplemented(server: Server) -> None:
    # RPCs that are not implemented yet answer UNIMPLEMENTED, under the same access policy.
    server.add(
        global_task_service_pb2_grpc.add_GlobalTaskServiceServicer_to_server,
        global_task_service_pb2_grpc.GlobalTaskServiceServicer(),
    )
