"""A claim and its result: plain values between the handler and the claimer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import NamedTuple

from taskyard.errors import TaskyardError
from taskyard_taskdb.storage.claim.lanes import LaneKey
from taskyard_taskdb.storage.tenant.api_keys import RunnerScope

# Specs in one answer, with a margin to the 4 MiB that a message may have; a single larger task goes alone.
# Each task counts ROW_BYTES more than its spec has.
MAX_BYTES = 3 * 1024 * 1024
ROW_BYTES = 512

# Amounts of resources by name: cpu_millis, memory_mb, disk_mb and the extended ones.
Amounts = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class LaneClaim:
    """A lane to claim from: its advantage over others, and the resources that one of its tasks costs."""

    lane: LaneKey
    offset: timedelta = timedelta(0)
    cost: Amounts | None = None


@dataclass(frozen=True, slots=True)
class TenantClaim:
    """How many tasks of one tenant a runner claims, and from which lanes."""

    tenant_id: str
    max_tasks: int
    lanes: tuple[LaneClaim, ...]


@dataclass(frozen=True, slots=True)
class RunnerClaim:
    """The claim of one runner; session_epoch 0 is a pull worker, budget None is not accounted."""

    runner_id: str
    session_epoch: int
    max_tasks: int
    lease_duration: timedelta
    tenants: tuple[TenantClaim, ...]
    budget: Amounts | None = None


class ClaimedTask(NamedTuple):
    """A claimed task with everything that its assignment carries, in the order of the columns of a claim."""

    tenant_id: str
    task_id: str
    lease_id: int
    generation: int
    # Attempts started so far.
    attempt: int
    spec: bytes
    labels: Mapping[str, str] | None
    total_left: timedelta | None
    traceparent: str | None
    checkpoint_sequence: int
    task_type_revision: int
    task_type: str
    task_type_tenant: str | None
    lease_ttl: timedelta


@dataclass(slots=True)
class ClaimResult:
    """What one runner got: grants in claim order, lanes that had nothing more, or why it got nothing."""

    tasks: list[ClaimedTask] = field(default_factory=list)
    drained: list[LaneKey] = field(default_factory=list)
    error: TaskyardError | None = None


def within(claim: RunnerClaim, scope: RunnerScope) -> RunnerClaim:
    """The claim without tenants that the runner's key does not cover."""
    if not scope.tenants:
        return claim
    return replace(claim, tenants=tuple(one for one in claim.tenants if one.tenant_id in scope.tenants))


def capped(claim: RunnerClaim, room: Mapping[str, int]) -> RunnerClaim:
    """The claim with at most `room` tasks of each tenant named there; -1 is no limit."""
    if not any(room.get(tenant.tenant_id, -1) >= 0 for tenant in claim.tenants):
        return claim
    tenants = []
    for tenant in claim.tenants:
        left = room.get(tenant.tenant_id, -1)
        if left < 0:
            tenants.append(tenant)
        elif left > 0:
            tenants.append(TenantClaim(tenant.tenant_id, min(tenant.max_tasks, left), tenant.lanes))
    return replace(claim, tenants=tuple(tenants))
