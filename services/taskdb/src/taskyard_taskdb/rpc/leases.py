"""LeaseService.RenewLeases: the renewal of leases that belong to no session."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from taskyard.errors import FieldInvalid
from taskyard.v1 import lease_service_pb2
from taskyard_taskdb.rpc.claim import FIRST_LEASE
from taskyard_taskdb.rpc.convert import fill_verdict, read_leases
from taskyard_taskdb.rpc.times import to_timedelta
from taskyard_taskdb.storage.lease import renewals
from taskyard_taskdb.storage.lease.lease import Lease, LeaseVerdict
from taskyard_taskdb.storage.lease.renewals import Return
from taskyard_taskdb.storage.notify.bus import Bus
from taskyard_taskdb.storage.pool import Pool
from taskyard_taskdb.watch.hub import Hub

MAX_LEASES = 5000


class RenewHandler:
    """LeaseService.RenewLeases."""

    def __init__(self, pool: Pool, bus: Bus, hub: Hub) -> None:
        self._pool = pool
        self._bus = bus
        self._hub = hub

    async def RenewLeases(
        self, request: lease_service_pb2.RenewLeasesRequest, context: Any
    ) -> lease_service_pb2.RenewLeasesResponse:
        """Renew current leases in one statement; leases in doubt are examined one by one."""
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
