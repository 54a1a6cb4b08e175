"""Turns plans into claims on taskdb, and applies the results of claims to the lanes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from taskyard.v1.lease_service_pb2 import LaneClaim, LaneKey, RunnerClaim, RunnerClaimResult, TenantClaim
from taskyard_scheduler import convert
from taskyard_scheduler.claimed import tasks_of
from taskyard_scheduler.domain.plan import ListedLane, RunnerPlan
from taskyard_scheduler.lanes import LaneBoard
from taskyard_scheduler.link_config import duration

MAX_TASKS = 10_000


def runner_claim(
    plan: RunnerPlan, session_epoch: int, lease_duration: float, heartbeat_id: int
) -> RunnerClaim:
    """What one runner asks taskdb for; costs matter only where it accounts resources."""
    accounted = plan.offer.budget is not None
    message = RunnerClaim(
        runner_id=plan.offer.runner_id,
        session_epoch=session_epoch,
        max_tasks=min(MAX_TASKS, plan.count),
        lease_duration=duration(lease_duration),
        heartbeat_id=heartbeat_id,
        tenants=[
            TenantClaim(
                tenant=tenant.tenant,
                max_tasks=tenant.count,
                lanes=[_lane_claim(listed, accounted) for listed in tenant.lanes],
            )
            for tenant in plan.tenants
        ],
    )
    if plan.offer.budget is not None:
        message.budget.CopyFrom(convert.resources_message(plan.offer.budget))
    return message


def _lane_claim(listed: ListedLane, accounted: bool) -> LaneClaim:
    lane = listed.lane
    return LaneClaim(
        lane=LaneKey(class_id=lane.class_id, priority=lane.priority, pinned_runner=lane.pinned),
        offset=duration(listed.offset),
        cost=convert.resources_message(listed.cost) if accounted and listed.cost else None,
    )


def note_result(board: LaneBoard, plan: RunnerPlan, result: RunnerClaimResult, sent_version: int) -> set[str]:
    """Applies the result of a claim to its lanes; returns the tenants of which more may be claimable.

    A lane that was found empty is removed, unless it was updated since the claim was sent.
    """
    if result.error.code:
        # The session has ended; the result contains nothing about the tenants.
        return {tenant.tenant for tenant in plan.tenants}
    counts = _count_by_tenant(plan, tasks_of(result))
    for tenant in plan.tenants:
        board.claimed(tenant.tenant, [listed.lane for listed in tenant.lanes], counts[tenant.tenant])
    changed = {tenant for tenant, count in counts.items() if count}
    # A key names a lane within its tenant. One that several tenants list counts once all of them report it.
    reported = Counter((key.class_id, key.priority, key.pinned_runner) for key in result.drained_lanes)
    listed_counts = Counter(listed.lane.id for tenant in plan.tenants for listed in tenant.lanes)
    for tenant in plan.tenants:
        ids = [listed.lane.id for listed in tenant.lanes]
        empty = [lane_id for lane_id in ids if listed_counts[lane_id] <= reported[lane_id]]
        if empty:
            board.drained(tenant.tenant, empty, sent_version)
            changed.add(tenant.tenant)
    return changed


def _count_by_tenant(plan: RunnerPlan, tasks: Sequence[str]) -> Counter[str]:
    if len(plan.tenants) == 1:
        return Counter({plan.tenants[0].tenant: len(tasks)})
    return Counter(convert.tenant_of(task) for task in tasks)
