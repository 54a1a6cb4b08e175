"""The stored facts that explain why a task waits, read in one snapshot for ExplainTask."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from taskyard.errors import NotFound
from taskyard_taskdb.domain.dependency import Prerequisite
from taskyard_taskdb.domain.limit import LimitUse
from taskyard_taskdb.domain.spec_digest import spec_digest
from taskyard_taskdb.domain.words import PendingReason, Phase
from taskyard_taskdb.storage import arrays
from taskyard_taskdb.storage.claim import shares
from taskyard_taskdb.storage.claim.shares import Share
from taskyard_taskdb.storage.limit import state as limit_state
from taskyard_taskdb.storage.limit.state import LimitState
from taskyard_taskdb.storage.pool import Tx
from taskyard_taskdb.storage.read.tasks import TaskRecord
from taskyard_taskdb.storage.runner import runners
from taskyard_taskdb.storage.runner.runners import RunnerRecord
from taskyard_taskdb.storage.statements import statement
from taskyard_taskdb.storage.tenant import counters, usage
from taskyard_taskdb.storage.tenant.counters import Counts
from taskyard_taskdb.storage.tenant.usage import Use

# Open prerequisites of a task that are named.
MOST_DEPENDENCIES = 10


@dataclass(frozen=True, slots=True)
class Subject:
    """A task, or a spec as it would be stored."""

    tenant_id: str
    class_id: int
    definition: bytes
    priority: int
    pinned_runner: str
    task_type: str
    slot: str | None
    spec: bytes = b""
    # Types that its class asks runners to execute, or not to.
    company: frozenset[str] = frozenset()
    task: TaskRecord | None = None
    # Of a spec.
    after: tuple[Prerequisite, ...] = ()
    limits: tuple[LimitUse, ...] = ()


class SlotState(NamedTuple):
    """A slot: its head, when the head's lease ends, and how many wait before."""

    head_task_id: str | None
    lease_expire_time: datetime | None
    ahead: int


class DependencyState(NamedTuple):
    """A prerequisite, its phase if it exists, how it has to end, and whether it is a child of the task."""

    task_id: str
    phase: int | None
    condition: int
    child: bool = False


class TypeState(NamedTuple):
    """A registered type and where it is registered."""

    tenant_id: str
    disabled: bool
    queue_paused: bool


class QuarantineState(NamedTuple):
    """A spec that is held back; `held`: the task was paused for it."""

    digest: str
    create_time: datetime
    runner_loss_count: int
    held: bool


@dataclass(frozen=True, slots=True)
class Facts:
    """All of it, as of one moment or nearly so."""

    subject: Subject
    time: datetime
    share: Share
    use: Use
    suspended: bool
    queue_paused: bool
    counts: Counts | None
    task_type: TypeState | None
    slot: SlotState | None
    queued: bool
    lane_position: int
    runners: list[RunnerRecord]
    executing: Mapping[str, list[str]] = field(default_factory=dict)
    # Free resources of runners that account them, as the message of the contract.
    free: Mapping[str, bytes] = field(default_factory=dict)
    quarantine: QuarantineState | None = None
    dependencies: list[DependencyState] = field(default_factory=list)
    open_dependencies: int = 0
    limits: list[LimitState] = field(default_factory=list)


async def read_facts(tx: Tx, subject: Subject) -> Facts:
    """Everything about a task or spec; raises NotFound for a tenant that does not exist."""
    tenant_id = subject.tenant_id
    tenant = await tx.fetch_row(statement("explain_tenant"), {"tenant_id": tenant_id})
    if tenant is None:
        raise NotFound("tenant", f"tenants/{tenant_id}")
    (share,) = await shares.read_shares(tx, [tenant_id])
    queued, position = await _lane(tx, subject)
    serving = await _runners(tx, tenant_id)
    dependencies, open_dependencies = await _dependencies(tx, subject)
    return Facts(
        subject,
        time=tenant[2],
        share=share,
        use=await usage.read_use(tx, tenant_id),
        suspended=tenant[0],
        queue_paused=tenant[1],
        counts=(await counters.read(tx, [tenant_id])).get(tenant_id),
        task_type=await _type(tx, subject),
        slot=await _slot(tx, subject),
        queued=queued,
        lane_position=position,
        runners=serving,
        executing=await _executing(tx, subject.company),
        free=await _free(tx, serving),
        quarantine=await _quarantine(tx, subject),
        dependencies=dependencies,
        open_dependencies=open_dependencies,
        limits=await _limits(tx, subject),
    )


async def _dependencies(tx: Tx, subject: Subject) -> tuple[list[DependencyState], int]:
    """What a task still waits for, or everything that a spec names."""
    if subject.task is None:
        if not subject.after:
            return [], 0
        keys = {
            "tenant_ids": arrays.texts([subject.tenant_id] * len(subject.after)),
            "task_ids": arrays.texts([one.task_id for one in subject.after]),
        }
        phases = {row[0]: row[1] for row in await tx.fetch(statement("explain_prerequisites"), keys)}
        found = [
            DependencyState(one.task_id, phases.get(one.task_id), one.condition) for one in subject.after
        ]
        return found, sum(state.phase is not None and state.phase < Phase.SUCCEEDED for state in found)
    params = {"tenant_id": subject.tenant_id, "task_id": subject.task.task_id, "limit": MOST_DEPENDENCIES}
    rows = await tx.fetch(statement("explain_dependencies"), params)
    return [DependencyState(*row[:4]) for row in rows], rows[0][4] if rows else 0


async def _limits(tx: Tx, subject: Subject) -> list[LimitState]:
    """What a task waits for, or everything that a spec names."""
    if subject.task is None:
        return await limit_state.of_uses(tx, subject.tenant_id, subject.limits)
    if subject.task.pending_reason != PendingReason.LIMITED:
        return []
    return await limit_state.of_task(tx, subject.tenant_id, subject.task.task_id)


async def _lane(tx: Tx, subject: Subject) -> tuple[bool, int]:
    task = subject.task
    if task is None or task.ready_time is None:
        return False, 0
    params = {
        "tenant_id": subject.tenant_id,
        "class_id": subject.class_id,
        "priority": subject.priority,
        "pinned_runner": subject.pinned_runner,
        "ready_time": task.ready_time,
        "task_id": task.task_id,
    }
    row = await tx.fetch_row(statement("explain_lane"), params)
    assert row is not None
    return row[0], row[1] if row[0] else 0


async def _slot(tx: Tx, subject: Subject) -> SlotState | None:
    if subject.slot is None:
        return None
    task = subject.task
    params = {
        "tenant_id": subject.tenant_id,
        "slot": subject.slot,
        "priority": subject.priority,
        "create_time": task.create_time if task is not None else None,
        "task_id": task.task_id if task is not None else "",
    }
    row = await tx.fetch_row(statement("explain_slot"), params)
    assert row is not None
    return SlotState(*row)


async def _type(tx: Tx, subject: Subject) -> TypeState | None:
    if not subject.task_type:
        return None
    params = {"tenant_id": subject.tenant_id, "task_type": subject.task_type}
    row = await tx.fetch_row(statement("explain_type"), params)
    return None if row is None else TypeState(*row)


async def _quarantine(tx: Tx, subject: Subject) -> QuarantineState | None:
    params = {
        "tenant_id": subject.tenant_id,
        "digest": spec_digest(subject.spec),
        "task_id": subject.task.task_id if subject.task is not None else "",
    }
    row = await tx.fetch_row(statement("explain_quarantine"), params)
    return None if row is None else QuarantineState(*row)


async def _runners(tx: Tx, tenant_id: str) -> list[RunnerRecord]:
    """Runners that may serve the tenant: others are none of its business.

    Pull workers take work only while they claim: schedulers add those that do.
    """
    found = [record for record in await runners.read(tx) if not record.pulls]
    return [record for record in found if not record.scope.tenants or tenant_id in record.scope.tenants]


async def _free(tx: Tx, serving: Iterable[RunnerRecord]) -> dict[str, bytes]:
    ids = arrays.texts([record.runner_id for record in serving])
    return {row[0]: row[1] for row in await tx.fetch(statement("explain_free"), {"runner_ids": ids})}


async def _executing(tx: Tx, company: Iterable[str]) -> dict[str, list[str]]:
    task_types = sorted(company)
    if not task_types:
        return {}
    rows = await tx.fetch(statement("explain_executing"), {"task_types": arrays.texts(task_types)})
    return {row[0]: row[1] for row in rows}
