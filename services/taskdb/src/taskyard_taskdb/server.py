"""The composition root of a taskdb process."""

from __future__ import annotations

import asyncio
import os
import uuid

from taskyard.compat.v1 import global_task_service_pb2_grpc
from taskyard.v1 import (
    admin_service_pb2_grpc,
    api_key_service_pb2_grpc,
    embedded_service_pb2_grpc,
    entity_service_pb2_grpc,
    group_service_pb2_grpc,
    lease_service_pb2_grpc,
    limit_service_pb2_grpc,
    runner_service_pb2_grpc,
    schedule_service_pb2_grpc,
    session_service_pb2_grpc,
    task_service_pb2_grpc,
    task_type_service_pb2_grpc,
    tenant_service_pb2_grpc,
)
from taskyard_kit.readiness import Readiness
from taskyard_kit.serve import Server
from taskyard_kit.shutdown import end_tasks
from taskyard_kit.startup import StartupError
from taskyard_taskdb.access_policy import POLICIES
from taskyard_taskdb.domain import token_seal
from taskyard_taskdb.domain.credit import CreditBook
from taskyard_taskdb.housekeeping import Housekeeping
from taskyard_taskdb.key_verifier import StoredKeyVerifier
from taskyard_taskdb.metrics import HousekeepingMetrics
from taskyard_taskdb.rpc.access import calling_tenant
from taskyard_taskdb.rpc.actions import ActionHandler
from taskyard_taskdb.rpc.admin import AdminHandler
from taskyard_taskdb.rpc.api_keys import ApiKeyHandler
from taskyard_taskdb.rpc.audit import AuditHandler
from taskyard_taskdb.rpc.checkpoints import CheckpointReadHandler, LeasedCheckpointHandler
from taskyard_taskdb.rpc.children import ChildHandler
from taskyard_taskdb.rpc.claim import ClaimHandler
from taskyard_taskdb.rpc.create import CreateHandler
from taskyard_taskdb.rpc.credit import CreditHandler
from taskyard_taskdb.rpc.embedded import EmbeddedHandler
from taskyard_taskdb.rpc.entities import EntityChecks, EntityHandler
from taskyard_taskdb.rpc.explain_facts import ExplainHandler
from taskyard_taskdb.rpc.global_tasks import GlobalTaskHandler
from taskyard_taskdb.rpc.groups import GroupHandler
from taskyard_taskdb.rpc.leases import RenewHandler
from taskyard_taskdb.rpc.limits import LimitHandler
from taskyard_taskdb.rpc.logs import LogAppendHandler, LogReadHandler
from taskyard_taskdb.rpc.queue_watch import QueueWatchHandler
from taskyard_taskdb.rpc.reads import ReadHandler
from taskyard_taskdb.rpc.reports import (
    ExternalReportHandler,
    ReportBatch,
    RunReportHandler,
    merge_details,
    read_external_report,
)
from taskyard_taskdb.rpc.result_schema import ResultChecks
from taskyard_taskdb.rpc.runners import RunnerHandler
from taskyard_taskdb.rpc.schedule_definitions import ScheduleDefinitions
from taskyard_taskdb.rpc.schedule_runs import ScheduleRunHandler
from taskyard_taskdb.rpc.schedules import ScheduleHandler
from taskyard_taskdb.rpc.schema_checks import SchemaChecks
from taskyard_taskdb.rpc.schema_processes import SchemaProcesses
from taskyard_taskdb.rpc.service import compose
from taskyard_taskdb.rpc.sessions import SessionHandler
from taskyard_taskdb.rpc.short_runs import ShortRunBatch, ShortRunHandler
from taskyard_taskdb.rpc.spec import SpecReader
from taskyard_taskdb.rpc.stats import StatsHandler
from taskyard_taskdb.rpc.system_status import SystemStatusHandler
from taskyard_taskdb.rpc.task_events import TaskEvents
from taskyard_taskdb.rpc.task_types import TaskTypeHandler
from taskyard_taskdb.rpc.tenants import TenantHandler
from taskyard_taskdb.rpc.type_cache import TypeCache
from taskyard_taskdb.rpc.update import UpdateHandler
from taskyard_taskdb.rpc.watch import WatchHandler
from taskyard_taskdb.rpc.webhooks import webhook_request
from taskyard_taskdb.settings import ServerSettings
from taskyard_taskdb.storage import migrate
from taskyard_taskdb.storage.action.actions import Actions
from taskyard_taskdb.storage.action.edit import Editor
from taskyard_taskdb.storage.claim.bounds import Bounds
from taskyard_taskdb.storage.claim.claimer import Claimer
from taskyard_taskdb.storage.create.creator import TaskCreator
from taskyard_taskdb.storage.create.eager import EagerCreates
from taskyard_taskdb.storage.create.placement_classes import ClassCache
from taskyard_taskdb.storage.create.queues import CreateQueues
from taskyard_taskdb.storage.housekeeping import token_key
from taskyard_taskdb.storage.notify.bus import Bus, CommitNotice, invalidation
from taskyard_taskdb.storage.pool import Pool
from taskyard_taskdb.storage.probe import Probe
from taskyard_taskdb.storage.report.external_inbox import ReportInbox
from taskyard_taskdb.storage.report.global_updates import UpdateWriter
from taskyard_taskdb.storage.report.reports import ReportWriter
from taskyard_taskdb.storage.report.short_runs import ShortRunWriter
from taskyard_taskdb.storage.tenant.stored_bytes import StoredBytes
from taskyard_taskdb.storage.tenant.tenants import TenantCache
from taskyard_taskdb.storage.tenant.usage import UsageLedger
from taskyard_taskdb.suite_metrics import SuiteMetrics
from taskyard_taskdb.sweep.schedules import ScheduleSweep
from taskyard_taskdb.sweep.webhook_sender import WebhookRequest, WebhookSender
from taskyard_taskdb.watch.followers import LogFollowers
from taskyard_taskdb.watch.hub import Hub
from taskyard_taskdb.webhook_client import WebhookClient


def _heavy_reads(connections: int) -> int:
    """How many queries of one tenant run at a time: half of the connections, and of the cores that they use.

    On a small host PostgreSQL shares the cores with this process.
    """
    return max(1, min(connections, len(os.sched_getaffinity(0))) // 2)


class TaskDb:
    """One taskdb in the running event loop; `async with` starts and stops it."""

    def __init__(self, settings: ServerSettings) -> None:
        self._settings = settings
        self.pool = Pool(settings.database_url, settings.pool_options(), calling_tenant)
        self.probe = Probe(settings.database_url, settings.pool_options())
        self.bus = Bus()
        self.bounds = Bounds()
        self.credit = CreditBook(uuid.uuid4().hex)
        self.usage = UsageLedger()
        self.tenants = TenantCache(self.pool)
        self.types = TypeCache(self.pool)
        self.hub = Hub(self.pool)
        self.followers = LogFollowers(self.pool, self.hub)
        self.metrics = HousekeepingMetrics()
        self.suite_metrics = SuiteMetrics(self.pool, self.probe)
        self.inbox = ReportInbox(self.pool, read_external_report, self._after_commit)
        self._specs = SpecReader(settings.egress())
        self._classes = ClassCache(self.pool)
        self.schema_processes = SchemaProcesses()
        self._schemas = SchemaChecks(self.schema_processes)
        self._result_checks = ResultChecks(self.pool, self.types, self._schemas)
        self._background: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> TaskDb:
        """Connect, compose the services and start the background work.

        Raises StartupError or StorageUnavailable.
        """
        try:
            await asyncio.to_thread(migrate.check, self._settings.direct_url)
        except migrate.SchemaError as error:
            raise StartupError(str(error)) from None
        await self.pool.open()
        token_seal.use_key(await self.pool.run(token_key.read))
        self.server = Server(
            self._settings,
            verifier=StoredKeyVerifier(self.pool),
            policies=POLICIES,
            heavy_calls=_heavy_reads(self._settings.pool_queries),
        )
        self._background.append(asyncio.create_task(self.hub.run()))
        self.server.on_drain(self._close_streams)
        self.bus.on_commit(invalidation(self.tenants.forget, self.types.forget))
        self.bus.on_commit(lambda notice: self.usage.add(notice.used))
        self.bus.on_commit(self._close_credit)
        self.bus.on_commit(lambda _: self.hub.wake())
        self.bus.on_logs(self.followers.stored)
        self._make_shared_parts()
        self._add_task_service(self.server)
        self._add_lease_service(self.server)
        self._add_runner_services(self.server)
        self._add_administration(self.server)
        self._add_global_tasks(self.server)
        self._add_schedules(self.server)
        self._add_groups(self.server)
        self.housekeeping.start()
        readiness = Readiness(self._find_problem, self._set_health)
        self._background.append(asyncio.create_task(readiness.run()))
        return self

    async def __aexit__(self, *_: object) -> None:
        """Finish the accepted work and disconnect; the server has stopped before."""
        await self.housekeeping.stop()
        await self._webhook_client.close()
        await self.updates.close()
        await self.create.close()
        await self.short_runs.close()
        await self.reports.close()
        await self._result_checks.close()
        await self.schema_processes.close()
        await end_tasks(self._background)
        await self.probe.close()
        await self.pool.close()

    async def _find_problem(self) -> str:
        """What keeps this replica from serving: its database, tried by a write."""
        problem = (await self.probe.check()).problem
        if problem:
            self.pool.availability.lost(self.probe, problem)
        else:
            self.pool.availability.restored(self.probe)
        return problem

    async def _set_health(self, serving: bool) -> None:
        await self.server.set_health(serving=serving)

    def _make_shared_parts(self) -> None:
        """The parts that more than one service uses, or that are closed at the end."""
        self._creator = creator = TaskCreator(
            self.pool, self._classes, self._after_commit, EagerCreates(self.credit, self.bounds)
        )
        stored = StoredBytes(self.pool)
        self._schedules = ScheduleDefinitions(self.tenants, self.types, self._specs, self._schemas, stored)
        self.create = CreateHandler(
            self.pool,
            self.tenants,
            self.types,
            self._specs,
            self._schemas,
            stored,
            EntityChecks(self.pool),
            creator,
            CreateQueues(creator, self._classes),
            self.server.rest,
        )
        self.actions = ActionHandler(
            self.pool, self.tenants, self.types, Actions(self.pool, self._after_commit)
        )
        self.updates = UpdateWriter(self.pool, read_external_report, self._after_commit)
        self._background.append(asyncio.create_task(self.updates.run()))
        reports = ReportWriter(self.pool, self.bus, merge_details)
        self.reports = ReportBatch(reports, self._result_checks, self.hub)
        self.short_runs = ShortRunBatch(ShortRunWriter(self.pool, self.bus), self.reports)
        self.housekeeping = Housekeeping(
            self._settings.direct_url,
            self.pool,
            self.bus,
            self.bounds,
            self.usage,
            self._after_commit,
            self.updates.apply_all,
            self._webhook_sender(),
            self.metrics,
            self.suite_metrics,
            ScheduleSweep(self.pool, creator, self._schedules, self._after_commit),
            grace=self._settings.reap_grace,
            ttl=self._settings.leader_ttl,
            options=self._settings.job_options(),
            leads=self._settings.housekeeping,
        )

    def _add_task_service(self, server: Server) -> None:
        """TaskService, for users."""
        events = TaskEvents(self.pool)
        self.hub.before_waking(events.prepare)
        editor = Editor(self.pool, self._classes, self._after_commit)
        servicer = compose(
            task_service_pb2_grpc.TaskServiceServicer,
            self.create,
            ReadHandler(self.pool, self.hub),
            self.actions,
            UpdateHandler(self.pool, self._specs, self._schemas, editor, self.types),
            ExternalReportHandler(self.pool, self.inbox, self._result_checks),
            WatchHandler(self.pool, self.hub, events, server.rest),
            LogReadHandler(self.pool, self.hub, self.followers),
            CheckpointReadHandler(self.pool, self.hub),
            AuditHandler(self.pool),
            StatsHandler(self.pool, self.suite_metrics.folded),
        )
        server.add(task_service_pb2_grpc.add_TaskServiceServicer_to_server, servicer)

    def _add_global_tasks(self, server: Server) -> None:
        """GlobalTaskService, the flat form of external tasks."""
        servicer = compose(
            global_task_service_pb2_grpc.GlobalTaskServiceServicer,
            GlobalTaskHandler(self.pool, self.create, self.actions, self.types, self.updates),
        )
        server.add(global_task_service_pb2_grpc.add_GlobalTaskServiceServicer_to_server, servicer)

    def _add_schedules(self, server: Server) -> None:
        """ScheduleService, for users."""
        servicer = compose(
            schedule_service_pb2_grpc.ScheduleServiceServicer,
            ScheduleHandler(self.pool, self.bus, self._schedules),
            ScheduleRunHandler(self.pool, self.tenants, self._creator, self._schedules, self._after_commit),
        )
        server.add(schedule_service_pb2_grpc.add_ScheduleServiceServicer_to_server, servicer)

    def _add_groups(self, server: Server) -> None:
        """GroupService, for users."""
        servicer = compose(
            group_service_pb2_grpc.GroupServiceServicer,
            GroupHandler(self.pool, self.bus, self.hub, self.tenants, self._specs),
        )
        server.add(group_service_pb2_grpc.add_GroupServiceServicer_to_server, servicer)

    def _add_lease_service(self, server: Server) -> None:
        """LeaseService, for schedulers, and EmbeddedService, whose holders lease tasks in the same way."""
        queue_watch = QueueWatchHandler(
            self.pool, self.bus, self.bounds, self.usage, self.credit, server.draining
        )
        server.on_drain(queue_watch.close)
        claims = ClaimHandler(
            self.pool, Claimer(self.pool, self.bus, self.bounds), self.types, self.hub, self.reports
        )
        reports = RunReportHandler(self.reports)
        renewals = RenewHandler(self.pool, self.bus, self.hub)
        logs = LogAppendHandler(self.pool, self.bus)
        embedded = compose(
            embedded_service_pb2_grpc.EmbeddedServiceServicer,
            EmbeddedHandler(self.pool, self.create, claims, renewals, reports, logs),
        )
        server.add(embedded_service_pb2_grpc.add_EmbeddedServiceServicer_to_server, embedded)
        servicer = compose(
            lease_service_pb2_grpc.LeaseServiceServicer,
            claims,
            reports,
            ShortRunHandler(self.short_runs),
            renewals,
            queue_watch,
            CreditHandler(self.credit, claims, self.reports, server.draining),
            logs,
            LeasedCheckpointHandler(self.pool, self.hub),
            ChildHandler(self.pool, self.create),
            ExplainHandler(self.pool, self._specs, self._schemas, self.types),
        )
        server.add(lease_service_pb2_grpc.add_LeaseServiceServicer_to_server, servicer)

    def _add_runner_services(self, server: Server) -> None:
        """SessionService for schedulers, RunnerService for administrators."""
        sessions = compose(
            session_service_pb2_grpc.SessionServiceServicer,
            SessionHandler(self.pool, self.bus, self.hub, self.reports),
        )
        server.add(session_service_pb2_grpc.add_SessionServiceServicer_to_server, sessions)
        runners = compose(
            runner_service_pb2_grpc.RunnerServiceServicer, RunnerHandler(self.pool, self.bus, self.hub)
        )
        server.add(runner_service_pb2_grpc.add_RunnerServiceServicer_to_server, runners)

    def _add_administration(self, server: Server) -> None:
        """Tenants, keys, task types and AdminService."""
        tenants = compose(tenant_service_pb2_grpc.TenantServiceServicer, TenantHandler(self.pool, self.bus))
        server.add(tenant_service_pb2_grpc.add_TenantServiceServicer_to_server, tenants)
        api_keys = compose(
            api_key_service_pb2_grpc.ApiKeyServiceServicer,
            ApiKeyHandler(self.pool, server.authenticator.invalidate),
        )
        server.add(api_key_service_pb2_grpc.add_ApiKeyServiceServicer_to_server, api_keys)
        types = compose(
            task_type_service_pb2_grpc.TaskTypeServiceServicer,
            TaskTypeHandler(self.pool, self.bus, self._settings.egress(), self._schemas),
        )
        server.add(task_type_service_pb2_grpc.add_TaskTypeServiceServicer_to_server, types)
        entities = compose(entity_service_pb2_grpc.EntityServiceServicer, EntityHandler(self.pool))
        server.add(entity_service_pb2_grpc.add_EntityServiceServicer_to_server, entities)
        limits = compose(
            limit_service_pb2_grpc.LimitServiceServicer, LimitHandler(self.pool, self.bus, self.tenants)
        )
        server.add(limit_service_pb2_grpc.add_LimitServiceServicer_to_server, limits)
        admin = compose(
            admin_service_pb2_grpc.AdminServiceServicer,
            AdminHandler(self.pool, self._after_commit, self.metrics.check_ran, self.housekeeping.run_job),
            SystemStatusHandler(self.pool, self.probe, lambda: self.housekeeping.leadership.held),
        )
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

    def _close_credit(self, notice: CommitNotice) -> None:
        """No credit is used before schedulers have considered work that began to wait."""
        if notice.everything or notice.lanes or notice.appended:
            self.credit.work_waits()

    async def _close_streams(self) -> None:
        """Let watches and tails of logs send that they are closing."""
        self.hub.close()


async def serve(settings: ServerSettings) -> None:
    """Serve until SIGTERM; raises StartupError for a database that is unreachable or has another schema."""
    async with TaskDb(settings) as taskdb:
        await taskdb.server.serve()
