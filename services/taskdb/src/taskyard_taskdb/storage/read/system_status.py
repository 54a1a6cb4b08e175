"""What work depends on, read from the database: its size, its leader, its standbys, runners and the queue."""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import datetime, timedelta

from taskyard_taskdb.domain.words import RunnerState
from taskyard_taskdb.storage.claim import lanes
from taskyard_taskdb.storage.pool import Tx
from taskyard_taskdb.storage.statements import statement


@dataclass(frozen=True, slots=True)
class Leader:
    """Who leads the housekeeping; `vacant_seconds` counts since the last term expired."""

    holder: str
    term: int
    held: bool
    vacant_seconds: float


@dataclass(frozen=True, slots=True)
class Standby:
    """A row of pg_stat_replication."""

    name: str
    state: str
    synchronous: bool
    lag_bytes: int
    lag_seconds: float


@dataclass(frozen=True, slots=True)
class Waiting:
    """Tasks that are ready to be claimed; each lane is counted up to lanes.COUNT_LIMIT."""

    count: int
    oldest_wait: timedelta
    oldest_tenant: str


@dataclass(frozen=True, slots=True)
class SystemStatus:
    """The state that all replicas share."""

    version: str
    size_bytes: int
    disk_free_bytes: int | None
    leader: Leader
    standbys: tuple[Standby, ...]
    runners: dict[RunnerState, int]
    leased_count: int
    waiting: Waiting


async def read(tx: Tx, now: datetime) -> SystemStatus:
    """Read all of it; `now` is the time of the database."""
    version, size, directory = await database(tx)
    return SystemStatus(
        version=version,
        size_bytes=size,
        disk_free_bytes=free_bytes(directory),
        leader=Leader(*(await tx.fetch(statement("system_leader")))[0]),
        standbys=await standbys(tx),
        runners=await runner_states(tx),
        leased_count=(await tx.fetch(statement("system_leases")))[0][0],
        waiting=waiting(await lanes.read_all(tx), now),
    )


async def database(tx: Tx) -> tuple[str, int, str | None]:
    """Version, size, and the directory if the server runs on this machine and this role may see it."""
    version, size, directory = (await tx.fetch(statement("system_database")))[0]
    # The embedded server names its directory relative to itself (/proc/self/cwd), and has its socket there.
    if directory is not None and directory.startswith("/proc/"):
        socket = tx.connection.info.host
        directory = socket if os.path.exists(os.path.join(socket, "PG_VERSION")) else None
    return version, size, directory


async def standbys(tx: Tx) -> tuple[Standby, ...]:
    """The standbys that are connected."""
    return tuple(Standby(*row) for row in await tx.fetch(statement("system_standbys")))


async def runner_states(tx: Tx) -> dict[RunnerState, int]:
    """How many runners are in each state; those that were deleted do not count."""
    found = {RunnerState(state): count for state, count in await tx.fetch(statement("system_runners"))}
    return {state: found.get(state, 0) for state in RunnerState}


def waiting(heads: list[lanes.LaneHead], now: datetime) -> Waiting:
    """Add the lanes up."""
    oldest: lanes.LaneHead | None = None
    oldest_time = now
    for head in heads:
        if head.ready_time is not None and head.ready_time < oldest_time:
            oldest, oldest_time = head, head.ready_time
    tenant = oldest.lane.tenant_id if oldest else ""
    return Waiting(sum(head.backlog for head in heads), now - oldest_time, tenant)


def free_bytes(directory: str | None) -> int | None:
    """The free space of a directory on this machine; None if there is none to be seen."""
    if not directory:
        return None
    try:
        found = os.statvfs(directory)
    except OSError:
        return None
    return found.f_bavail * found.f_frsize
