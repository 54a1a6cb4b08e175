"""Background work of a taskdb process: sweeps and jobs of the leader, and the tasks of every replica."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta

from taskyard_kit.logs import get_log
from taskyard_kit.shutdown import end_tasks
from taskyard_taskdb.domain.schedule import Nightly
from taskyard_taskdb.metrics import HousekeepingMetrics
from taskyard_taskdb.settings import JobOptions
from taskyard_taskdb.storage.claim.bounds import Bounds
from taskyard_taskdb.storage.housekeeping import loop_failures
from taskyard_taskdb.storage.housekeeping.leader_lock import TTL
from taskyard_taskdb.storage.notify.bus import Bus, CommitNotice
from taskyard_taskdb.storage.notify.replicas import Bridge
from taskyard_taskdb.storage.pool import Pool
from taskyard_taskdb.storage.tenant.usage import UsageLedger
from taskyard_taskdb.suite_metrics import SuiteMetrics
from taskyard_taskdb.sweep.apply_events import OnCommit
from taskyard_taskdb.sweep.dependencies import DependencySweep
from taskyard_taskdb.sweep.groups import GroupSweep
from taskyard_taskdb.sweep.jobs import Job, JobSweep, no_guard, run_job
from taskyard_taskdb.sweep.leader_election import Leadership
from taskyard_taskdb.sweep.lease_expiry import ExpirySweep, LeasePages
from taskyard_taskdb.sweep.limits import LimitSweep
from taskyard_taskdb.sweep.log_seals import SealSweep
from taskyard_taskdb.sweep.maintenance_jobs import (
    AuditJob,
    CheckpointJob,
    DoctorJob,
    PartitionJob,
    RequestJob,
    RunnerJob,
    VacuumJob,
)
from taskyard_taskdb.sweep.retention import RetentionJob
from taskyard_taskdb.sweep.schedules import ScheduleSweep
from taskyard_taskdb.sweep.small_sweeps import (
    DrainSweep,
    InboxSweep,
    QuarantineSweep,
    RevocationSweep,
    SlotSweep,
    StatsSweep,
    UsageSweep,
)
from taskyard_taskdb.sweep.sweeper import Sweeper, keep_running, repeat
from taskyard_taskdb.sweep.timers import TimerSweep
from taskyard_taskdb.sweep.webhook_sender import WebhookSender

log = get_log(__name__)

BOUNDS_SECONDS = 3.0
USAGE_SECONDS = 2.0
MEASURE_SECONDS = 15.0

OnCheckRan = Callable[[str, int, int], None]


def ignore(check: str, left: int, repaired: int) -> None:
    """No-op callback."""


def make_jobs(
    pool: Pool, on_commit: OnCommit, options: JobOptions, check_ran: OnCheckRan = ignore
) -> tuple[Job, ...]:
    """Return all maintenance jobs, for the leader and for the command `maintenance`."""
    nightly = Nightly(options.hour)
    return (
        PartitionJob(pool),
        RequestJob(pool),
        RunnerJob(pool, options.runner_age),
        RetentionJob(pool, on_commit, archive_untyped=options.archive_untyped, schedule=nightly),
        CheckpointJob(pool, nightly),
        AuditJob(pool, options.audit_age, nightly),
        VacuumJob(pool, nightly),
        DoctorJob(pool, check_ran, nightly),
    )


class Housekeeping:
    """Starts and stops with the process. With `leads` false the replica never becomes the leader."""

    def __init__(
        self,
        url: str,
        pool: Pool,
        bus: Bus,
        bounds: Bounds,
        usage: UsageLedger,
        on_commit: OnCommit,
        apply_reports: Callable[[], Awaitable[int]],
        webhooks: WebhookSender,
        metrics: HousekeepingMetrics,
        suite_metrics: SuiteMetrics,
        schedules: ScheduleSweep,
        *,
        grace: timedelta,
        ttl: timedelta = TTL,
        options: JobOptions,
        leads: bool = True,
    ) -> None:
        self._pool = pool
        self._bus = bus
        self._bounds = bounds
        self._usage = usage
        self._leads = leads
        self._bridge = Bridge(url, pool, bus)
        self._webhooks = webhooks
        self._metrics = metrics
        self._suite_metrics = suite_metrics
        self.leadership = Leadership(pool, grace, ttl=ttl)
        sweeps = (
            TimerSweep(pool, on_commit),
            ExpirySweep(pool, LeasePages(pool, on_commit)),
            SlotSweep(pool, on_commit),
            GroupSweep(pool, on_commit),
            DependencySweep(pool, on_commit),
            InboxSweep(apply_reports),
            RevocationSweep(pool),
            DrainSweep(pool),
            QuarantineSweep(pool, on_commit),
            SealSweep(pool),
            UsageSweep(pool),
            StatsSweep(pool, suite_metrics.folded),
        )
        self.sweeper = Sweeper(self.leadership, sweeps)
        self.jobs = make_jobs(pool, on_commit, options, metrics.check_ran)
        # Jobs run in a separate loop, so that a long job does not delay timers.
        self.job_sweeper = Sweeper(
            self.leadership, [JobSweep(pool, job, metrics.job_ran) for job in self.jobs]
        )
        # Instants of schedules wait for no other sweep.
        self.schedule_sweeper = Sweeper(self.leadership, [schedules])
        # Nor do limits that open by time.
        self.limit_sweeper = Sweeper(self.leadership, [LimitSweep(pool, on_commit)])
        self._tasks: list[asyncio.Task[None]] = []
        # A commit of this or another replica may make a sweep or a webhook due.
        bus.on_commit(lambda _: self.sweeper.notify_commit())
        bus.on_commit(lambda _: self.schedule_sweeper.notify_commit())
        bus.on_commit(lambda _: self.limit_sweeper.notify_commit())
        bus.on_commit(lambda _: webhooks.notify_commit())
        bus.on_commit(self._wake_dependencies)

    def _wake_dependencies(self, notice: CommitNotice) -> None:
        if notice.dependencies:
            self.sweeper.wake(DependencySweep.name)
        if notice.limits:
            self.limit_sweeper.wake(LimitSweep.name)

    def start(self) -> None:
        """Start the background tasks in the running event loop."""
        loops: dict[str, Callable[[], Awaitable[object]]] = {
            "send-notices": self._bridge.send,
            "receive-notices": self._bridge.receive,
            "bounds": lambda: repeat(self.repair_bounds, BOUNDS_SECONDS),
            "usage": lambda: repeat(self.write_usage, USAGE_SECONDS),
        }
        if self._leads:
            loops |= {
                "leadership": self.leadership.run,
                "sweeps": self.sweeper.run,
                "jobs": self.job_sweeper.run,
                "schedules": self.schedule_sweeper.run,
                "limits": self.limit_sweeper.run,
                "webhooks": lambda: self._webhooks.run(self.leadership),
                "measure": lambda: repeat(self.measure, MEASURE_SECONDS),
            }
        self._tasks = [
            asyncio.create_task(keep_running(name, loop, self._record_failure))
            for name, loop in loops.items()
        ]

    async def _record_failure(self, loop: str, error: str) -> None:
        await self._pool.run(lambda tx: loop_failures.record(tx, loop, error))

    async def stop(self) -> None:
        """Stop the background tasks and release the leadership."""
        await end_tasks(self._tasks)

    async def run_job(self, name: str) -> None:
        """Run a job now, on any replica; its outcome is recorded in job_runs."""
        for job in self.jobs:
            if job.name == name:
                try:
                    await run_job(self._pool, job, no_guard, self._metrics.job_ran)
                except Exception as error:
                    log.failure("requested_job_failed", error, job=name)

    async def repair_bounds(self) -> int:
        """Correct the lane bounds of this process that are above a queued task."""
        if not self._bounds.by_lane:
            return 0
        async with self._pool.reading() as tx:
            lowered = await self._bounds.repair(tx)
        self._bus.publish(CommitNotice(lanes=lowered))
        return len(lowered)

    async def write_usage(self) -> int:
        """Persist the tenant usage that this process has recorded."""
        return await self._usage.flush(self._pool)

    async def measure(self) -> None:
        """Refresh the gauges; only the leader reports them, since all replicas would report the same."""
        if not self.leadership.held:
            self._metrics.clear()
            self._suite_metrics.clear()
            return
        async with self._pool.reading(planned=True) as tx:
            await self._metrics.read(tx)
            await self._suite_metrics.read(tx)
