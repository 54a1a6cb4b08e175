"""Claims tasks for many runners in one transaction.

Candidates are chosen unlocked from the heads of lanes, then only those are locked, skipping rows that another
transaction has, and deleted from the queue: in one statement where counts decide (`bundles`), else as Python
chooses (`merge`). Leases and changes are written in a later statement, whose snapshot is younger than the
locks; no other transaction writes a task whose queue row this one has deleted.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import os
import struct
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from operator import itemgetter
from typing import Any

from taskyard.errors import SessionSuperseded, TaskyardError
from taskyard_kit.logs import get_log
from taskyard_taskdb.domain.change import ChangeEvent
from taskyard_taskdb.domain.words import ActorType, Phase, RunState
from taskyard_taskdb.storage import arrays
from taskyard_taskdb.storage.change_log.append import LOG_LOCK
from taskyard_taskdb.storage.claim.bounds import Bounds
from taskyard_taskdb.storage.claim.bundles import Bundle, claim_bundles, waves
from taskyard_taskdb.storage.claim.claims import (
    MAX_BYTES,
    ROW_BYTES,
    ClaimedTask,
    ClaimResult,
    RunnerClaim,
    capped,
    within,
)
from taskyard_taskdb.storage.claim.lanes import LaneKey, lane_arrays
from taskyard_taskdb.storage.claim.merge import Candidate, Merge, Page
from taskyard_taskdb.storage.claim.one_call import OneCalls
from taskyard_taskdb.storage.notify.bus import Bus, CommitNotice
from taskyard_taskdb.storage.pool import Pool, Row, Tx
from taskyard_taskdb.storage.quarantine import holds as quarantine_holds
from taskyard_taskdb.storage.statements import statement
from taskyard_taskdb.storage.tenant import counters
from taskyard_taskdb.storage.tenant.api_keys import RunnerScope
from taskyard_taskdb.storage.transition.task_rows import Key

log = get_log(__name__)

# How often a claim looks behind rows that others have locked.
_ROUNDS = 3


class Claimer:
    """Claims of this process, one at a time: two at once would choose the same heads."""

    def __init__(self, pool: Pool, bus: Bus, bounds: Bounds) -> None:
        self._pool = pool
        self._bus = bus
        self._bounds = bounds
        self._turn = asyncio.Lock()
        self._one_calls = OneCalls(pool, bus, bounds)

    async def claim(
        self, scheduler_id: str, request_id: str, claims: Sequence[RunnerClaim]
    ) -> list[ClaimResult]:
        """Claim tasks; one result per runner, in order.

        Repeating a call returns the leases of the first that are still held.
        """
        async with self._turn:
            done = await self._one_calls.claim(scheduler_id, claim_id(request_id), claims)
            if done is not None:
                return done
            claim = _ClaimTransaction(self._bounds.by_lane, scheduler_id, request_id, claims)
            results = await self._pool.run(claim.run)
            self._bus.publish(claim.after_commit(self._bounds))
            for quarantine, keys in claim.held().items():
                await self._hold(*quarantine, keys)
        return results

    async def _hold(self, tenant_id: str, digest: str, keys: Sequence[Key]) -> None:
        """Hold back tasks of a quarantined spec that a claim has met; otherwise the sweep does so later."""
        try:
            held = await self._pool.run(lambda tx: quarantine_holds.hold(tx, tenant_id, digest, keys))
            self._bus.publish(held)
        except TaskyardError as error:
            log.info("quarantine_left_to_sweep", digest=digest, error=str(error))


class _ClaimTransaction:
    """One request; `run` may be repeated as a whole, so it keeps nothing from a failed attempt."""

    def __init__(
        self,
        bounds: Mapping[LaneKey, datetime],
        scheduler_id: str,
        request_id: str,
        claims: Sequence[RunnerClaim],
    ) -> None:
        self._bounds = bounds
        self._scheduler_id = scheduler_id
        self._claim_id = claim_id(request_id)
        self._claims = claims
        self._claimed: list[Candidate] = []
        self._skipped: list[Candidate] = []
        # Of the specs that repeats return.
        self._repeated_bytes = 0
        # Whether any tenant has limits, and which of the requested tenants do.
        self._any_limits = True
        self._limited: set[str] = set()
        # Whether any spec is quarantined, and the tasks requeued because theirs is, with its digest.
        self._any_quarantines = True
        self._held: dict[Key, str] = {}

    async def run(self, tx: Tx) -> list[ClaimResult]:
        results = [ClaimResult() for _ in self._claims]
        self._claimed, self._skipped, self._limited, self._held = [], [], set(), {}
        claims = await self._admit(tx, results)
        bundled = waves(claims)
        claimed = (
            await self._merge(tx, claims, results)
            if bundled is None
            else await self._claim_rows(tx, bundled, claims, results)
        )
        self._claimed = list(claimed)
        await self._insert_leases(tx, claimed, results)
        return results

    async def _claim_rows(
        self,
        tx: Tx,
        bundled: Sequence[Sequence[Bundle]],
        claims: Sequence[tuple[int, RunnerClaim]],
        results: list[ClaimResult],
    ) -> dict[Candidate, bool]:
        """Let one statement choose and lock."""
        claimed = await claim_bundles(tx, bundled, self._bounds)
        self._skipped += claimed.skipped
        empty = claimed.empty()
        for position, claim in claims:
            lanes = (lane_claim.lane for tenant in claim.tenants for lane_claim in tenant.lanes)
            results[position].drained = [lane for lane in lanes if lane in empty]
        return claimed.rows

    async def _merge(
        self, tx: Tx, claims: Sequence[tuple[int, RunnerClaim]], results: list[ClaimResult]
    ) -> dict[Candidate, bool]:
        """Choose among the heads of lanes, then lock what was chosen."""
        merge = Merge(claims, self._bounds, lambda pages: _read_pages(tx, pages))
        claimed: dict[Candidate, bool] = {}
        for _ in range(_ROUNDS):
            chosen = await merge.choose()
            if not chosen:
                break
            ours = await _claim_rows(tx, chosen)
            claimed |= ours
            skipped = [candidate for candidate in chosen if candidate not in ours]
            self._skipped += skipped
            if not skipped:
                break
            merge.refuse(skipped)
        for position, claim in claims:
            lanes = (lane_claim.lane for tenant in claim.tenants for lane_claim in tenant.lanes)
            results[position].drained = merge.drained(lanes)
        return claimed

    def after_commit(self, bounds: Bounds) -> CommitNotice:
        """Raise the bounds of the lanes to what was claimed; the notice for those who watch the lanes."""
        shrunk = bounds.advance(
            ((candidate.lane, candidate.ready_time) for candidate in self._claimed),
            ((candidate.lane, candidate.ready_time) for candidate in self._skipped),
        )
        limited = self._limited & {candidate.lane.tenant_id for candidate in self._claimed}
        return CommitNotice(shrunk=shrunk, tenants=limited)

    def held(self) -> dict[tuple[str, str], list[Key]]:
        """Tasks that were passed over because their spec is quarantined, by tenant and digest."""
        found: dict[tuple[str, str], list[Key]] = {}
        for key, digest in self._held.items():
            found.setdefault((key[0], digest), []).append(key)
        return found

    async def _admit(self, tx: Tx, results: list[ClaimResult]) -> list[tuple[int, RunnerClaim]]:
        """The claims of runners with a valid session that do not repeat a call, within their scope."""
        scopes = await self._lock_sessions(tx)
        for row in await tx.fetch(statement("find_repeated_claims"), self._claim_params()):
            results[row[0] - 1].tasks.append(_claimed_task(row[1], row[2], row[3], row[4:-1], row[-1]))
        self._repeated_bytes = sum(ROW_BYTES + len(task.spec) for result in results for task in result.tasks)
        admitted: list[tuple[int, RunnerClaim]] = []
        for position, claim in enumerate(self._claims):
            if position not in scopes:
                results[position].error = SessionSuperseded(claim.runner_id)
                results[position].tasks.clear()
            elif not results[position].tasks:
                admitted.append((position, within(claim, scopes[position])))
        return await self._within_limits(tx, admitted)

    async def _within_limits(
        self, tx: Tx, claims: list[tuple[int, RunnerClaim]]
    ) -> list[tuple[int, RunnerClaim]]:
        """The claims within the limits of tenants, as read before the locks."""
        if not self._any_limits:
            return claims
        tenants = {tenant.tenant_id for _, claim in claims for tenant in claim.tenants}
        counts = await counters.read(tx, tenants)
        self._limited = set(counts)
        room = {tenant_id: found.quota.claimable(found.leased) for tenant_id, found in counts.items()}
        return [(position, capped(claim, room)) for position, claim in claims]

    async def _over_limits(
        self, tx: Tx, chosen: Sequence[Candidate], claimed: Mapping[Candidate, bool]
    ) -> list[Candidate]:
        """Candidates beyond the limits as read under the locks; a lease that is replaced takes no room."""
        if not self._limited:
            return []
        counts = await counters.lock(tx, self._limited & {c.lane.tenant_id for c in chosen})
        room = {tenant_id: found.quota.claimable(found.leased) for tenant_id, found in counts.items()}
        over: list[Candidate] = []
        for candidate in chosen:
            left = room.get(candidate.lane.tenant_id, -1)
            if left == 0 and not claimed[candidate]:
                over.append(candidate)
            elif left > 0 and not claimed[candidate]:
                room[candidate.lane.tenant_id] = left - 1
        return over

    async def _lock_sessions(self, tx: Tx) -> dict[int, RunnerScope]:
        params = self._claim_params() | {
            "epochs": arrays.bigints([claim.session_epoch for claim in self._claims])
        }
        rows = await tx.fetch(statement("lock_claiming_sessions"), params)
        self._any_limits, self._any_quarantines = rows[0][2:4] if rows else (True, True)
        locked = {row[0] - 1: RunnerScope.unpack(row[1]) for row in rows}
        pulling = [position for position, claim in enumerate(self._claims) if claim.session_epoch == 0]
        return locked | (await self._pull_scopes(tx, pulling) if pulling else {})

    async def _pull_scopes(self, tx: Tx, positions: list[int]) -> dict[int, RunnerScope]:
        """The scopes of pull workers, which have no session: every runner that was not deleted may claim."""
        ids = [self._claims[position].runner_id for position in positions]
        rows = await tx.fetch(statement("runner_scopes"), {"runner_ids": arrays.texts(ids)})
        self._any_quarantines = rows[0][3] if rows else True
        scopes = {row[0]: (row[1], row[2]) for row in rows}
        return {
            position: RunnerScope.unpack(scopes.get(runner_id, (None, False))[0])
            for position, runner_id in zip(positions, ids, strict=True)
            if not scopes.get(runner_id, (None, False))[1]
        }

    def _claim_params(self) -> dict[str, object]:
        ids = arrays.texts([claim.runner_id for claim in self._claims])
        return {"runner_ids": ids, "request_id": self._claim_id}

    async def _insert_leases(
        self, tx: Tx, claimed: Mapping[Candidate, bool], results: list[ClaimResult]
    ) -> None:
        if not claimed:
            return
        chosen = sorted(claimed, key=lambda c: c.position) if len(self._claims) > 1 else list(claimed)
        if self._any_quarantines:
            chosen = await self._skip_quarantined(tx, chosen, claimed, results)
            if not chosen:
                return
        old = await _end_expired(tx, [candidate for candidate in chosen if claimed[candidate]])
        over = await self._over_limits(tx, chosen, claimed)
        if over:
            # Their expired leases have already been moved to runs.
            await self._requeue(tx, over, dict.fromkeys(over, False), results)
            chosen = [candidate for candidate in chosen if candidate not in set(over)]
            if not chosen:
                return
        lease_ids = draw_lease_ids(len(chosen))
        claims = [self._claims[candidate.position] for candidate in chosen]
        former = [old.get((c.lane.tenant_id, c.task_id), (None, None, None, None)) for c in chosen]
        params = {
            **_task_keys(chosen),
            "log_lock": LOG_LOCK,
            "runner_ids": arrays.texts([claim.runner_id for claim in claims]),
            "epochs": arrays.bigints([claim.session_epoch for claim in claims]),
            "lease_ids": arrays.bigints(lease_ids),
            "lease_durations": arrays.intervals([claim.lease_duration for claim in claims]),
            "old_versions": arrays.bigints([row[0] for row in former]),
            "old_generations": arrays.bigints([row[1] for row in former]),
            "old_attempts": arrays.integers([row[2] for row in former]),
            "old_phases": arrays.smallints([row[3] for row in former]),
            "scheduled": Phase.SCHEDULED.value,
            "event": ChangeEvent.TASK_SCHEDULED.value,
            "actor_type": ActorType.SCHEDULER.value,
            "actor_id": self._scheduler_id,
            "request_id": self._claim_id,
            "max_bytes": MAX_BYTES - self._repeated_bytes,
            "alone": not self._repeated_bytes,
        }
        surplus = dict.fromkeys(chosen)
        # Claim order: a join need not keep it.
        for row in sorted(await tx.fetch(statement("insert_claimed_leases"), params), key=itemgetter(0)):
            index = row[0] - 1
            candidate = chosen[index]
            del surplus[candidate]
            ttl = claims[index].lease_duration
            results[candidate.position].tasks.append(
                _claimed_task(candidate.lane.tenant_id, candidate.task_id, lease_ids[index], row[1:], ttl)
            )
        if surplus:
            # Their expired leases have already been moved to runs.
            await self._requeue(tx, list(surplus), dict.fromkeys(surplus, False), results)

    async def _skip_quarantined(
        self,
        tx: Tx,
        chosen: list[Candidate],
        claimed: Mapping[Candidate, bool],
        results: list[ClaimResult],
    ) -> list[Candidate]:
        """The candidates without tasks of quarantined specs: no claim that begins later gets one of those."""
        keys = {candidate: (candidate.lane.tenant_id, candidate.task_id) for candidate in chosen}
        self._held = await quarantine_holds.find_held(tx, list(keys.values()))
        if not self._held:
            return chosen
        await self._requeue(tx, [c for c in chosen if keys[c] in self._held], claimed, results)
        return [candidate for candidate in chosen if keys[candidate] not in self._held]

    async def _requeue(
        self,
        tx: Tx,
        surplus: list[Candidate],
        claimed: Mapping[Candidate, bool],
        results: list[ClaimResult],
    ) -> None:
        """Insert queue rows again, unchanged, that must not be leased or would make the answer too large."""
        params = {
            **lane_arrays([candidate.lane for candidate in surplus]),
            "ready_times": arrays.timestamps([candidate.ready_time for candidate in surplus]),
            "task_ids": arrays.texts([candidate.task_id for candidate in surplus]),
            "has_leases": arrays.bools([claimed[candidate] for candidate in surplus]),
        }
        await tx.execute(statement("insert_queue"), params)
        self._claimed = [candidate for candidate in self._claimed if candidate not in set(surplus)]
        self._skipped += surplus
        full = {candidate.lane for candidate in surplus}
        for result in results:
            result.drained = [lane for lane in result.drained if lane not in full]


async def _read_pages(tx: Tx, pages: Mapping[LaneKey, Page]) -> None:
    lanes, listed = list(pages), list(pages.values())
    params = {
        **lane_arrays(lanes),
        "after_times": arrays.timestamps([page.after[0] for page in listed]),
        "after_ids": arrays.texts([page.after[1] for page in listed]),
        "limits": arrays.integers([page.size for page in listed]),
    }
    for n, ready_time, task_id in await tx.fetch(statement("find_candidates"), params):
        listed[n - 1].rows.append((ready_time, task_id))
    for page in listed:
        page.exhausted = len(page.rows) < page.size
        if page.rows:
            page.after = page.rows[-1]


async def _claim_rows(tx: Tx, chosen: Sequence[Candidate]) -> dict[Candidate, bool]:
    """The candidates whose queue rows were deleted, in order, and whether each has an expired lease."""
    params = {
        **lane_arrays([candidate.lane for candidate in chosen]),
        "ready_times": arrays.timestamps([candidate.ready_time for candidate in chosen]),
        "task_ids": arrays.texts([candidate.task_id for candidate in chosen]),
    }
    rows: dict[int, bool] = {row[0]: row[1] for row in await tx.fetch(statement("claim_queue_rows"), params)}
    return {candidate: rows[n] for n, candidate in enumerate(chosen, 1) if n in rows}


async def _end_expired(
    tx: Tx, chosen: Sequence[Candidate]
) -> dict[tuple[str, str], tuple[int, int, int, int]]:
    """Move the expired leases of these tasks to runs; their version, generation, attempt and phase."""
    if not chosen:
        return {}
    params = _task_keys(chosen)
    # Waits for a holder that is storing a checkpoint, so that the next statement sees it.
    await tx.fetch(statement("lock_leases"), params)
    rows = await tx.fetch(statement("end_expired_leases"), {**params, "lost": RunState.LOST.value})
    keys = [(candidate.lane.tenant_id, candidate.task_id) for candidate in chosen]
    return {
        keys[n - 1]: (version, generation, attempt, phase) for n, version, generation, attempt, phase in rows
    }


def claim_id(request_id: str) -> str:
    """The digest of the request id that a lease stores: short, and enough to recognise a repeat."""
    return base64.b64encode(hashlib.blake2b(request_id.encode(), digest_size=9).digest()).decode()


def draw_lease_ids(count: int) -> tuple[int, ...]:
    """Random, so that an id is never drawn twice, even after a failover that lost claims.

    53 bits: clients whose language has only doubles read the id exactly.
    """
    return tuple(drawn >> 11 for drawn in struct.unpack(f"!{count}Q", os.urandom(8 * count)))


def _claimed_task(
    tenant_id: str, task_id: str, lease_id: int, columns: Row, lease_ttl: timedelta
) -> ClaimedTask:
    """A claimed task; the columns are those of insert_claimed_leases from generation on."""
    values: list[Any] = [tenant_id, task_id, lease_id, *columns, lease_ttl]
    return ClaimedTask(*values)


def _task_keys(chosen: Sequence[Candidate]) -> dict[str, object]:
    return {
        "tenant_ids": arrays.texts([candidate.lane.tenant_id for candidate in chosen]),
        "task_ids": arrays.texts([candidate.task_id for candidate in chosen]),
    }
