"""Heartbeats: renews many sessions in one statement, with their listed leases, and returns verdicts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from random import Random

from taskyard.errors import NotFound, TaskyardError
from taskyard_taskdb.domain import lifecycle
from taskyard_taskdb.domain.event import HolderReturned
from taskyard_taskdb.domain.task import Actor
from taskyard_taskdb.domain.transition import Transition
from taskyard_taskdb.domain.words import Action, ActorType
from taskyard_taskdb.storage import arrays
from taskyard_taskdb.storage.lease.lease import Lease, LeaseVerdict
from taskyard_taskdb.storage.notify.bus import CommitNotice
from taskyard_taskdb.storage.pool import Row, Tx
from taskyard_taskdb.storage.statements import statement
from taskyard_taskdb.storage.transition.load import load_for_update
from taskyard_taskdb.storage.transition.write import write

# In place of a requested action: the lease was revoked.
ABORT = 0


@dataclass(frozen=True, slots=True)
class SessionHeartbeat:
    """The heartbeat of one runner.

    `listed` are leases that follow the session from now on, `dropped` those that follow it no longer.
    """

    runner_id: str
    epoch: int
    lease_duration: timedelta
    listed: tuple[Lease, ...] = ()
    dropped: tuple[Lease, ...] = ()
    used_capacity: int = 0
    free_resources: bytes | None = None
    draining: bool = False


@dataclass(slots=True)
class Renewed:
    """What became of one renewal. A lost session was superseded, closed or has expired."""

    lost: bool = True
    verdicts: list[LeaseVerdict] = field(default_factory=list)
    # Listed leases that do not simply follow: for `return_leases` to decide.
    doubtful: list[Lease] = field(default_factory=list)


async def renew_sessions(tx: Tx, renewals: Sequence[SessionHeartbeat]) -> list[Renewed]:
    """Renew the sessions that are valid and let their listed leases follow; one result each, in order.

    Without listed or dropped leases its statements need not share a transaction.
    """
    results = [Renewed() for _ in renewals]
    renewed = await tx.fetch(statement("renew_sessions"), _renewal_params(renewals))
    renewed_positions = sorted(row[0] - 1 for row in renewed)
    for n in renewed_positions:
        results[n].lost = False
    if not renewed_positions:
        return results
    await _follow(tx, renewals, renewed_positions, results)
    await _expire_dropped(tx, renewals, renewed_positions)
    by_runner = {renewals[n].runner_id: results[n] for n in renewed_positions}
    for runner_id, verdict in await read_verdicts(tx, list(by_runner)):
        by_runner[runner_id].verdicts.append(verdict)
    return results


async def _follow(
    tx: Tx, renewals: Sequence[SessionHeartbeat], renewed_positions: list[int], results: list[Renewed]
) -> None:
    listed = sorted((lease, n) for n in renewed_positions for lease in renewals[n].listed)
    if not listed:
        return
    params = _lease_arrays([lease for lease, _ in listed]) | _holder_arrays([renewals[n] for _, n in listed])
    followed = {row[0] for row in await tx.fetch(statement("follow_sessions"), params)}
    for position, (lease, n) in enumerate(listed, 1):
        if position not in followed:
            results[n].doubtful.append(lease)


async def _expire_dropped(tx: Tx, renewals: Sequence[SessionHeartbeat], renewed_positions: list[int]) -> None:
    dropped = sorted((lease, n) for n in renewed_positions for lease in renewals[n].dropped)
    if dropped:
        holders = [renewals[n] for _, n in dropped]
        durations = {"lease_durations": arrays.intervals([holder.lease_duration for holder in holders])}
        params = _lease_arrays([lease for lease, _ in dropped]) | _holder_arrays(holders) | durations
        await tx.execute(statement("expire_dropped"), params)


async def read_verdicts(tx: Tx, runner_ids: Sequence[str]) -> list[tuple[str, LeaseVerdict]]:
    """Verdicts for these runners: leases with a requested action, and revoked ones."""
    if not runner_ids:
        return []
    rows = await tx.fetch(statement("runner_news"), {"runner_ids": arrays.texts(runner_ids)})
    return [(row[0], verdict_of(row)) for row in rows]


def verdict_of(row: Row) -> LeaseVerdict:
    """A row of runner_news."""
    _, tenant_id, task_id, generation, lease_id, action, reason, grace = row
    lease = Lease(tenant_id, task_id, generation, lease_id)
    return LeaseVerdict(lease, None if action == ABORT else Action(action), reason, grace)


@dataclass(frozen=True, slots=True)
class Return:
    """A lease that its holder lists, for the session (0: a pull worker, with an expiry of its own)."""

    lease: Lease
    runner_id: str
    epoch: int
    lease_duration: timedelta


async def renew_leases(
    tx: Tx, runner_id: str, leases: Iterable[Lease], lease_duration: timedelta
) -> list[Lease]:
    """Renew leases of a pull worker; returns those that are for `return_leases` to decide."""
    wanted = sorted(set(leases))
    params = _lease_arrays(wanted) | {"runner_id": runner_id, "lease_duration": lease_duration}
    renewed = {row[0] for row in await tx.fetch(statement("renew_leases"), params)}
    return [lease for n, lease in enumerate(wanted, 1) if n not in renewed]


async def return_leases(tx: Tx, returns: Sequence[Return]) -> tuple[dict[Lease, LeaseVerdict], CommitNotice]:
    """Decide one by one about listed leases: valid ones are renewed, the others get a verdict."""
    loaded = await load_for_update(tx, [item.lease.key for item in returns])
    verdicts: dict[Lease, LeaseVerdict] = {}
    transitions: list[Transition] = []
    tasks = dict(loaded.tasks)
    rng = Random()
    for item in returns:
        task = tasks.get(item.lease.key)
        try:
            if task is None:
                raise NotFound("task", item.lease.name)
            step = lifecycle.apply(task, _returned(item, loaded.now), loaded.now, rng)
        except TaskyardError as error:
            verdicts[item.lease] = LeaseVerdict.abort(item.lease, error.reason)
            continue
        tasks[item.lease.key] = step.task
        transitions.append(step)
        requested = step.task.lease.action if step.task.lease else None
        if requested is not None:
            grace = max(requested.deadline - loaded.now, timedelta(0))
            verdicts[item.lease] = LeaseVerdict(item.lease, requested.action, requested.reason, grace)
    return verdicts, await write(tx, transitions)


def _returned(item: Return, now: datetime) -> HolderReturned:
    return HolderReturned(
        actor=Actor(ActorType.RUNNER, item.runner_id),
        runner_id=item.runner_id,
        generation=item.lease.generation,
        lease_id=item.lease.lease_id,
        session_epoch=item.epoch,
        expire_time=now + item.lease_duration,
    )


def _renewal_params(renewals: Sequence[SessionHeartbeat]) -> dict[str, object]:
    return {
        "runner_ids": arrays.texts([renewal.runner_id for renewal in renewals]),
        "epochs": arrays.bigints([renewal.epoch for renewal in renewals]),
        "lease_durations": arrays.intervals([renewal.lease_duration for renewal in renewals]),
        "used_capacities": arrays.integers([renewal.used_capacity for renewal in renewals]),
        "free_resources": arrays.byteas([renewal.free_resources for renewal in renewals]),
        "draining": arrays.bools([renewal.draining for renewal in renewals]),
    }


def _holder_arrays(holders: Sequence[SessionHeartbeat]) -> dict[str, object]:
    return {
        "runner_ids": arrays.texts([holder.runner_id for holder in holders]),
        "epochs": arrays.bigints([holder.epoch for holder in holders]),
    }


def _lease_arrays(leases: Sequence[Lease]) -> dict[str, object]:
    return {
        "tenant_ids": arrays.texts([lease.tenant_id for lease in leases]),
        "task_ids": arrays.texts([lease.task_id for lease in leases]),
        "generations": arrays.bigints([lease.generation for lease in leases]),
        "lease_ids": arrays.bigints([lease.lease_id for lease in leases]),
    }
