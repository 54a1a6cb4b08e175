"""The pop: tasks claimed for many runners in one transaction.

Candidates are chosen unlocked from the heads of lanes, then only those are locked, skipping what another
transaction has, and taken off the queue: in one statement where counts decide (`take`), else as Python says
(`merge`). Leases and changes are written in a later statement, whose snapshot is younger than the locks;
nobody else writes a task whose queue row is ours.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import logging
import os
import struct
from collections.abc import Mapping, Sequence
from datetime import timedelta
from operator import itemgetter
from typing import Any

from taskyard.errors import SessionSuperseded, TaskyardError
from taskyard_taskdb.domain.change import ChangeEvent
from taskyard_taskdb.domain.words import ActorType, Phase, RunState
from taskyard_taskdb.storage import arrays
from taskyard_taskdb.storage.change_log.append import LOG_LOCK
from taskyard_taskdb.storage.claim.bundles import Bundle, take, waves
from taskyard_taskdb.storage.claim.claims import Grant, RunnerGrants, RunnerWant, capped, within
from taskyard_taskdb.storage.claim.lane import LaneKey
from taskyard_taskdb.storage.claim.lanes import lane_arrays
from taskyard_taskdb.storage.claim.merge import Candidate, Merge, Page
from taskyard_taskdb.storage.notify.bus import Bus
from taskyard_taskdb.storage.pool import Pool, Row, Tx
from taskyard_taskdb.storage.quarantine import holds as quarantine_holds
from taskyard_taskdb.storage.statements import statement
from taskyard_taskdb.storage.tenant import counters
from taskyard_taskdb.storage.tenant.api_keys import RunnerScope
from taskyard_taskdb.storage.transition.task_rows import Key

logger = logging.getLogger(__name__)

# How often a pop looks behind rows that others have locked.
_ROUNDS = 3
# Specs in one answer, with a margin to the 4 MiB that a message may have; a single larger task goes alone.
MAX_BYTES = 3 * 1024 * 1024


class Queue:
    """Claims of this process, one at a time: two at once would choose the same heads."""

    def __init__(self, pool: Pool, bus: Bus) -> None:
        self._pool = pool
        self._bus = bus
        self._turn = asyncio.Lock()

    async def pop(
        self, scheduler_id: str, request_id: str, wants: Sequence[RunnerWant]
    ) -> list[RunnerGrants]:
        """Claim tasks; one result per runner, in order.

        Repeating a call returns what still stands of the first.
        """
        async with self._turn:
            pop = _Pop(self._lanes, scheduler_id, request_id, wants)
            results = await self._pool.run(pop.run)
            pop.committed()
            for quarantine, keys in pop.held().items():
                await self._hold(*quarantine, keys)
        return results

    async def _hold(self, tenant_id: str, digest: str, keys: Sequence[Key]) -> None:
        """Hold back tasks of a quarantined spec that a pop has met, as the sweep would a little later."""
        try:
            held = await self._pool.run(lambda tx: quarantine_holds.hold(tx, tenant_id, digest, keys))
            self._bus.publish(held)
        except TaskyardError as error:
            logger.info("tasks of quarantine %s are left to the sweep: %s", digest, error)


class _Pop:
    """One request; `run` may be repeated as a whole, so it keeps nothing from a failed attempt."""

    def __init__(self, bus: Bus, scheduler_id: str, request_id: str, wants: Sequence[RunnerWant]) -> None:
        self._bus = bus
        self._scheduler_id = scheduler_id
        self._claim_id = claim_id(request_id)
        self._wants = wants
        self._taken: list[Candidate] = []
        self._skipped: list[Candidate] = []
        # Whether there are limits at all, and which tenants asked for have some.
        self._any_limits = True
        self._limited: set[str] = set()
        # Whether any spec is quarantined, and what was put back because its spec is, with the digest.
        self._any_quarantines = True
        self._held: dict[Key, str] = {}

    async def run(self, tx: Tx) -> list[RunnerGrants]:
        results = [RunnerGrants() for _ in self._wants]
        self._taken, self._skipped, self._limited, self._held = [], [], set(), {}
        wants = await self._admit(tx, results)
        bundled = waves(wants)
        taken = (
            await self._merge(tx, wants, results)
            if bundled is None
            else await self._take(tx, bundled, wants, results)
        )
        self._taken = list(taken)
        await self._grant(tx, taken, results)
        return results

    async def _take(
        self,
        tx: Tx,
        bundled: Sequence[Sequence[Bundle]],
        wants: Sequence[tuple[int, RunnerWant]],
        results: list[RunnerGrants],
    ) -> dict[Candidate, bool]:
        """Let SQL choose and lock in one."""
        taken = await take(tx, bundled, self._lanes.bounds)
        self._skipped += taken.skipped
        empty = taken.empty()
        for position, want in wants:
            lanes = (offer.lane for tenant in want.tenants for offer in tenant.lanes)
            results[position].drained = [lane for lane in lanes if lane in empty]
        return taken.rows

    async def _merge(
        self, tx: Tx, wants: Sequence[tuple[int, RunnerWant]], results: list[RunnerGrants]
    ) -> dict[Candidate, bool]:
        """Choose among the heads of lanes, then lock what was chosen."""
        merge = Merge(wants, self._lanes.bounds, lambda pages: _read_pages(tx, pages))
        taken: dict[Candidate, bool] = {}
        for _ in range(_ROUNDS):
            chosen = await merge.choose()
            if not chosen:
                break
            ours = await _take(tx, chosen)
            taken |= ours
            skipped = [candidate for candidate in chosen if candidate not in ours]
            self._skipped += skipped
            if not skipped:
                break
            merge.refuse(skipped)
        for position, want in wants:
            lanes = (offer.lane for tenant in want.tenants for offer in tenant.lanes)
            results[position].drained = merge.drained(lanes)
        return taken

    def committed(self) -> None:
        """Raise the bounds of the lanes to what was popped, and tell who watches them."""
        self._lanes.popped(
            ((candidate.lane, candidate.ready_time) for candidate in self._taken),
            ((candidate.lane, candidate.ready_time) for candidate in self._skipped),
        )
        self._lanes.touch_tenants(self._limited & {candidate.lane.tenant_id for candidate in self._taken})

    def held(self) -> dict[tuple[str, str], list[Key]]:
        """Tasks that were passed over because their spec is quarantined, by tenant and digest."""
        found: dict[tuple[str, str], list[Key]] = {}
        for key, digest in self._held.items():
            found.setdefault((key[0], digest), []).append(key)
        return found

    async def _admit(self, tx: Tx, results: list[RunnerGrants]) -> list[tuple[int, RunnerWant]]:
        """The wants of runners whose session stands and which do not repeat a call, within their scope."""
        scopes = await self._stand(tx)
        for row in await tx.fetch(statement("find_repeated_claims"), self._claim_params()):
            results[row[0] - 1].grants.append(_granted(row[1], row[2], row[3], row[4:-1], row[-1]))
        admitted: list[tuple[int, RunnerWant]] = []
        for position, want in enumerate(self._wants):
            if position not in scopes:
                results[position].error = SessionSuperseded(want.runner_id)
                results[position].grants.clear()
            elif not results[position].grants:
                admitted.append((position, within(want, scopes[position])))
        return await self._within_limits(tx, admitted)

    async def _within_limits(
        self, tx: Tx, wants: list[tuple[int, RunnerWant]]
    ) -> list[tuple[int, RunnerWant]]:
        """The wants without what limits of tenants forbid, as far as that is known before the locks."""
        if not self._any_limits:
            return wants
        tenants = {tenant.tenant_id for _, want in wants for tenant in want.tenants}
        counts = await counters.read(tx, tenants)
        self._limited = set(counts)
        room = {tenant_id: found.quota.claimable(found.leased) for tenant_id, found in counts.items()}
        return [(position, capped(want, room)) for position, want in wants]

    async def _over_limits(
        self, tx: Tx, chosen: Sequence[Candidate], taken: Mapping[Candidate, bool]
    ) -> list[Candidate]:
        """What the limits of tenants do not allow after all; a lease that is replaced takes no room."""
        if not self._limited:
            return []
        counts = await counters.lock(tx, self._limited & {c.lane.tenant_id for c in chosen})
        room = {tenant_id: found.quota.claimable(found.leased) for tenant_id, found in counts.items()}
        over: list[Candidate] = []
        for candidate in chosen:
            left = room.get(candidate.lane.tenant_id, -1)
            if left == 0 and not taken[candidate]:
                over.append(candidate)
            elif left > 0 and not taken[candidate]:
                room[candidate.lane.tenant_id] = left - 1
        return over

    async def _stand(self, tx: Tx) -> dict[int, RunnerScope]:
        params = self._claim_params() | {
            "epochs": arrays.bigints([want.session_epoch for want in self._wants])
        }
        rows = await tx.fetch(statement("lock_claiming_sessions"), params)
        self._any_limits, self._any_quarantines = rows[0][2:4] if rows else (True, True)
        standing = {row[0] - 1: RunnerScope.unpack(row[1]) for row in rows}
        pulling = [position for position, want in enumerate(self._wants) if want.session_epoch == 0]
        return standing | (await self._pull_scopes(tx, pulling) if pulling else {})

    async def _pull_scopes(self, tx: Tx, positions: list[int]) -> dict[int, RunnerScope]:
        """The scopes of pull workers, which have no session: whoever was not deleted may claim."""
        ids = [self._wants[position].runner_id for position in positions]
        rows = await tx.fetch(statement("runner_scopes"), {"runner_ids": arrays.texts(ids)})
        self._any_quarantines = rows[0][3] if rows else True
        known = {row[0]: (row[1], row[2]) for row in rows}
        return {
            position: RunnerScope.unpack(known.get(runner_id, (None, False))[0])
            for position, runner_id in zip(positions, ids, strict=True)
            if not known.get(runner_id, (None, False))[1]
        }

    def _claim_params(self) -> dict[str, object]:
        ids = arrays.texts([want.runner_id for want in self._wants])
        return {"runner_ids": ids, "request_id": self._claim_id}

    async def _grant(self, tx: Tx, taken: Mapping[Candidate, bool], results: list[RunnerGrants]) -> None:
        if not taken:
            return
        chosen = sorted(taken, key=lambda c: c.position) if len(self._wants) > 1 else list(taken)
        if self._any_quarantines:
            chosen = await self._pass_over(tx, chosen, taken, results)
            if not chosen:
                return
        old = await _retire(tx, [candidate for candidate in chosen if taken[candidate]])
        over = await self._over_limits(tx, chosen, taken)
        if over:
            await self._put_back(tx, over, taken, results)
            chosen = [candidate for candidate in chosen if candidate not in set(over)]
            if not chosen:
                return
        lease_ids = _draw_lease_ids(len(chosen))
        wants = [self._wants[candidate.position] for candidate in chosen]
        former = [old.get((c.lane.tenant_id, c.task_id), (None, None, None, None)) for c in chosen]
        params = {
            **_task_keys(chosen),
            "log_lock": LOG_LOCK,
            "runner_ids": arrays.texts([want.runner_id for want in wants]),
            "epochs": arrays.bigints([want.session_epoch for want in wants]),
            "lease_ids": arrays.bigints(lease_ids),
            "lease_durations": arrays.intervals([want.lease_duration for want in wants]),
            "old_versions": arrays.bigints([row[0] for row in former]),
            "old_generations": arrays.bigints([row[1] for row in former]),
            "old_attempts": arrays.integers([row[2] for row in former]),
            "old_phases": arrays.smallints([row[3] for row in former]),
            "scheduled": Phase.SCHEDULED.value,
            "event": ChangeEvent.TASK_SCHEDULED.value,
            "actor_type": ActorType.SCHEDULER.value,
            "actor_id": self._scheduler_id,
            "request_id": self._claim_id,
            "max_bytes": MAX_BYTES,
        }
        surplus = dict.fromkeys(chosen)
        # Claim order: a join need not keep it.
        for row in sorted(await tx.fetch(statement("insert_claimed_leases"), params), key=itemgetter(0)):
            index = row[0] - 1
            candidate = chosen[index]
            del surplus[candidate]
            ttl = wants[index].lease_duration
            results[candidate.position].grants.append(
                _granted(candidate.lane.tenant_id, candidate.task_id, lease_ids[index], row[1:], ttl)
            )
        if surplus:
            # What lay beside them is a run by now.
            await self._put_back(tx, list(surplus), dict.fromkeys(surplus, False), results)

    async def _pass_over(
        self,
        tx: Tx,
        chosen: list[Candidate],
        taken: Mapping[Candidate, bool],
        results: list[RunnerGrants],
    ) -> list[Candidate]:
        """What is chosen without tasks of quarantined specs: no claim that begins later gets one of those."""
        keys = {candidate: (candidate.lane.tenant_id, candidate.task_id) for candidate in chosen}
        self._held = await quarantine_holds.find_held(tx, list(keys.values()))
        if not self._held:
            return chosen
        await self._put_back(tx, [c for c in chosen if keys[c] in self._held], taken, results)
        return [candidate for candidate in chosen if keys[candidate] not in self._held]

    async def _put_back(
        self,
        tx: Tx,
        surplus: list[Candidate],
        taken: Mapping[Candidate, bool],
        results: list[RunnerGrants],
    ) -> None:
        """Return to the queue, as they were, what is not to be granted or would make the answer too large."""
        params = {
            **lane_arrays([candidate.lane for candidate in surplus]),
            "ready_times": arrays.timestamps([candidate.ready_time for candidate in surplus]),
            "task_ids": arrays.texts([candidate.task_id for candidate in surplus]),
            "has_leases": arrays.bools([taken[candidate] for candidate in surplus]),
        }
        await tx.execute(statement("insert_queue"), params)
        self._taken = [candidate for candidate in self._taken if candidate not in set(surplus)]
        self._skipped += surplus
        full = {candidate.lane for candidate in surplus}
        for result in results:
            result.drained = [lane for lane in result.drained if lane not in full]


async def _read_pages(tx: Tx, pages: Mapping[LaneKey, Page]) -> None:
    lanes, told = list(pages), list(pages.values())
    params = {
        **lane_arrays(lanes),
        "after_times": arrays.timestamps([page.after[0] for page in told]),
        "after_ids": arrays.texts([page.after[1] for page in told]),
        "limits": arrays.integers([page.size for page in told]),
    }
    for n, ready_time, task_id in await tx.fetch(statement("find_candidates"), params):
        told[n - 1].rows.append((ready_time, task_id))
    for page in told:
        page.exhausted = len(page.rows) < page.size
        if page.rows:
            page.after = page.rows[-1]


async def _take(tx: Tx, chosen: Sequence[Candidate]) -> dict[Candidate, bool]:
    """The candidates that are ours now, in their order, and whether an expired lease lies beside each."""
    params = {
        **lane_arrays([candidate.lane for candidate in chosen]),
        "ready_times": arrays.timestamps([candidate.ready_time for candidate in chosen]),
        "task_ids": arrays.texts([candidate.task_id for candidate in chosen]),
    }
    rows: dict[int, bool] = {row[0]: row[1] for row in await tx.fetch(statement("claim_queue_rows"), params)}
    return {candidate: rows[n] for n, candidate in enumerate(chosen, 1) if n in rows}


async def _retire(tx: Tx, chosen: Sequence[Candidate]) -> dict[tuple[str, str], tuple[int, int, int, int]]:
    """Version, generation, attempt and phase of the expired leases beside these, which are runs now."""
    if not chosen:
        return {}
    params = _task_keys(chosen)
    # A holder may be storing a checkpoint: waited for here, so that the next statement sees what it left.
    await tx.fetch(statement("lock_leases"), params)
    rows = await tx.fetch(statement("end_expired_leases"), {**params, "lost": RunState.LOST.value})
    keys = [(candidate.lane.tenant_id, candidate.task_id) for candidate in chosen]
    return {
        keys[n - 1]: (version, generation, attempt, phase) for n, version, generation, attempt, phase in rows
    }


def claim_id(request_id: str) -> str:
    """What a lease keeps of the request that claimed it: enough to recognise a repeat, and short."""
    return base64.b64encode(hashlib.blake2b(request_id.encode(), digest_size=9).digest()).decode()


def _draw_lease_ids(count: int) -> tuple[int, ...]:
    """Random, so that a number of before a failover that lost claims is not drawn again."""
    return struct.unpack(f"!{count}q", os.urandom(8 * count))


def _granted(tenant_id: str, task_id: str, lease_id: int, columns: Row, lease_ttl: timedelta) -> Grant:
    """A grant; the columns are those of insert_claimed_leases from generation on."""
    values: list[Any] = [tenant_id, task_id, lease_id, *columns, lease_ttl]
    return Grant(*values)


def _task_keys(chosen: Sequence[Candidate]) -> dict[str, object]:
    return {
        "tenant_ids": arrays.texts([candidate.lane.tenant_id for candidate in chosen]),
        "task_ids": arrays.texts([candidate.task_id for candidate in chosen]),
    }
