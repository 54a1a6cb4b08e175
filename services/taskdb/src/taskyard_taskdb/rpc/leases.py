"""LeaseService, put together from its parts, and the renewal of leases that follow no session."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

from taskyard.errors import FieldInvalid
from taskyard.v1 import lease_service_pb2, lease_service_pb2_grpc
from taskyard_taskdb.rpc.checkpoints import CheckpointHolding
from taskyard_taskdb.rpc.children import ChildCreation
from taskyard_taskdb.rpc.create import CreateMethods
from taskyard_taskdb.rpc.durations import to_timedelta
from taskyard_taskdb.rpc.explain_facts import ExplainMethods
from taskyard_taskdb.rpc.lease_messages import fill_verdict, read_leases
from taskyard_taskdb.rpc.logs import LogAppending
from taskyard_taskdb.rpc.pop import FIRST_LEASE, PopMethods
from taskyard_taskdb.rpc.queue_watch import QueueWatchMethods
from taskyard_taskdb.rpc.reports import ReportBatch, ReportMethods
from taskyard_taskdb.rpc.spec import SpecReader
from taskyard_taskdb.rpc.type_cache import TypeCache
from taskyard_taskdb.storage.claim.claimer import Queue
from taskyard_taskdb.storage.lease import renewals
from taskyard_taskdb.storage.lease.lease import Lease, LeaseVerdict
from taskyard_taskdb.storage.lease.renewals import Return
from taskyard_taskdb.storage.notify.bus import Bus
from taskyard_taskdb.storage.pool import Pool
from taskyard_taskdb.watch.followers import LogFollowers
from taskyard_taskdb.watch.hub import Hub

MAX_LEASES = 5000


class RenewMethods:
    """LeaseService.RenewLeases."""

    _pool: Pool
    _bus: Bus
    _hub: Hub

    async def RenewLeases(
        self, request: lease_service_pb2.RenewLeasesRequest, context: Any
    ) -> lease_service_pb2.RenewLeasesResponse:
        """Renew what stands in one statement; only leases in doubt are looked at one by one."""
        if not request.runner_id:
            raise FieldInvalid.of("runner_id", "must not be empty")
        if len(request.leases) > MAX_LEASES:
            raise FieldInvalid.of(
                "leases", f"must have at most {MAX_LEASES} items, not {len(request.leases)}"
            )
        leases = read_leases(request.leases, "leases")
        duration = to_timedelta(request.lease_duration) if request.HasField("lease_duration") else FIRST_LEASE
        if not timedelta(seconds=1) <= duration <= timedelta(hours=1):
            raise FieldInvalid.of("lease_duration", f"must be 1 s to 1 h, not {duration}")
        verdicts = await self._renew(request.runner_id, leases, duration) if leases else {}
        response = lease_service_pb2.RenewLeasesResponse()
        for verdict in verdicts.values():
            fill_verdict(response.verdicts.add(), verdict)
        return response

    async def _renew(
        self, runner_id: str, leases: tuple[Lease, ...], duration: timedelta
    ) -> dict[Lease, LeaseVerdict]:
        doubtful = await self._pool.run(
            lambda tx: renewals.renew_leases(tx, runner_id, leases, duration), reserve=True
        )
        if not doubtful:
            return {}
        returns = [Return(lease, runner_id, 0, duration) for lease in doubtful]
        verdicts, notice = await self._pool.run(lambda tx: renewals.return_leases(tx, returns), reserve=True)
        self._bus.publish(notice)
        self._hub.wake()
        return verdicts


class LeaseServicer(
    PopMethods,
    ReportMethods,
    RenewMethods,
    QueueWatchMethods,
    LogAppending,
    CheckpointHolding,
    ChildCreation,
    ExplainMethods,
    lease_service_pb2_grpc.LeaseServiceServicer,
):
    """LeaseService. `draining` is set when the server wants streams to end."""

    def __init__(
        self,
        pool: Pool,
        bus: Bus,
        hub: Hub,
        followers: LogFollowers,
        reports: ReportBatch,
        tasks: CreateMethods,
        types: TypeCache,
        draining: asyncio.Event,
        specs: SpecReader,
    ) -> None:
        self._pool = pool
        self._bus = bus
        self._hub = hub
        self._followers = followers
        self._batch = reports
        self._tasks = tasks
        self._types = types
        self._draining = draining
        self._specs = specs
        self._watches = set()
        self._queue = Queue(pool, lanes)
