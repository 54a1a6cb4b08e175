"""GetSystemStatus of AdminService: whether work can proceed, and what keeps it from that."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from importlib.metadata import version
from typing import Any

from taskyard.v1 import admin_service_pb2 as admin
from taskyard.v1 import runner_pb2
from taskyard_taskdb.domain.names import runner_name
from taskyard_taskdb.domain.words import RunnerState
from taskyard_taskdb.rpc.times import set_duration
from taskyard_taskdb.storage.pool import Pool
from taskyard_taskdb.storage.probe import DatabaseState, Probe
from taskyard_taskdb.storage.read import system_status
from taskyard_taskdb.storage.read.system_status import SystemStatus
from taskyard_taskdb.storage.runner import runners
from taskyard_taskdb.storage.runner.runners import RunnerRecord
from taskyard_taskdb.storage.transition.load import database_time

# A leader that crashed is replaced within 10 s.
VACANT_SECONDS = 30.0
MAX_EXAMPLES = 10


class SystemStatusHandler:
    """GetSystemStatus. `leads` returns the holder of the leadership as this replica sees itself."""

    def __init__(self, pool: Pool, probe: Probe, leads: Callable[[], bool]) -> None:
        self._pool = pool
        self._probe = probe
        self._leads = leads

    async def GetSystemStatus(
        self, request: admin.GetSystemStatusRequest, context: Any
    ) -> admin.GetSystemStatusResponse:
        async with self._pool.reading(planned=True) as tx:
            found = await system_status.read(tx, await database_time(tx))
            known = await runners.read(tx)
        response = admin.GetSystemStatusResponse(taskdb_version=version("taskyard-taskdb"))
        _fill_database(response.database, found, self._probe.state)
        response.database.used_connection_count, response.database.max_connection_count = self._pool.usage()
        response.leader.held, response.leader.term = found.leader.held, found.leader.term
        response.leader.local = found.leader.held and self._leads()
        for standby in found.standbys:
            message = response.standbys.add(
                name=standby.name,
                state=standby.state,
                synchronous=standby.synchronous,
                lag_bytes=standby.lag_bytes,
            )
            set_duration(message.lag, timedelta(seconds=standby.lag_seconds))
        _fill_runners(response.runners, found, known)
        response.queue.waiting_count = found.waiting.count
        set_duration(response.queue.oldest_wait, found.waiting.oldest_wait)
        if found.waiting.oldest_tenant:
            response.queue.oldest_tenant = f"tenants/{found.waiting.oldest_tenant}"
        response.problems.extend(problems(found, self._probe.state))
        response.operational = not response.problems
        return response


def problems(found: SystemStatus, state: DatabaseState) -> Iterator[str]:
    """What keeps work from proceeding, with the remedy."""
    if state.problem:
        yield state.problem
    if not found.leader.held and found.leader.vacant_seconds > VACANT_SECONDS:
        yield (
            f"no taskdb has led the housekeeping for {found.leader.vacant_seconds:.0f} s, so that timers and"
            " retries do not fire; start one without --no-housekeeping"
        )
    counts = found.runners
    dead = counts[RunnerState.DEAD]
    if not counts[RunnerState.HEALTHY] and (dead or found.waiting.count):
        reason = f"{dead} dead" if dead else "none is connected"
        yield (
            f"no runner is healthy ({reason}), so that no task starts; start taskyard-runner, or see its log"
        )


def _fill_database(message: admin.DatabaseStatus, found: SystemStatus, state: DatabaseState) -> None:
    message.state = admin.DatabaseState.ValueType(state)
    message.version = found.version
    message.size_bytes = found.size_bytes
    if found.disk_free_bytes is not None:
        message.disk_free_bytes = found.disk_free_bytes


def _fill_runners(message: admin.RunnerSummary, found: SystemStatus, known: list[RunnerRecord]) -> None:
    counts = found.runners
    message.healthy_count = counts[RunnerState.HEALTHY]
    message.draining_count = counts[RunnerState.DRAINING]
    message.dead_count = counts[RunnerState.DEAD]
    message.stopped_count = counts[RunnerState.STOPPED]
    message.running_count = found.leased_count
    for record in known:
        if record.alive and not record.draining and record.drain is None:
            message.capacity += runner_pb2.RunnerRegistration.FromString(record.registration).capacity
        elif not record.alive and not record.stopped and len(message.dead_examples) < MAX_EXAMPLES:
            message.dead_examples.append(runner_name(record.runner_id))
