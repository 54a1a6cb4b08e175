"""Limits of tenants as new and retried tasks meet them, decided under the lock of the tenant's counters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta

from taskyard.errors import QueueDepthExceeded, RateLimited, ResourceExhausted
from taskyard_taskdb.domain.names import tenant_name
from taskyard_taskdb.domain.quota import QuotaDecision
from taskyard_taskdb.storage.pool import Tx
from taskyard_taskdb.storage.tenant import counters
from taskyard_taskdb.storage.tenant.counters import Counts
from taskyard_taskdb.storage.transition.load import StateMoved

# How soon a full queue is worth another try.
_QUEUE_PAUSE = timedelta(seconds=1)


async def admit(tx: Tx, tenants: Mapping[int, str]) -> dict[int, Exception]:
    """The errors of new tasks that are beyond a limit, by their positions; the first of a tenant go first.

    The tokens of the others are taken unless somebody is refused: then the transaction is not to commit.
    """
    found = await counters.lock(tx, tenants.values())
    refused: dict[int, Exception] = {}
    left = []
    for tenant_id, counts in found.items():
        positions = sorted(position for position, of in tenants.items() if of == tenant_id)
        verdict = counts.quota.admit(counts.pending, counts.tokens, len(positions))
        for beyond, position in enumerate(positions[verdict.admitted :], 1):
            refused[position] = _error(counts, verdict, beyond)
        if counts.quota.rate_limit_per_sec:
            left.append((counts, counts.tokens - verdict.admitted))
    if left and not refused:
        await counters.take_tokens(tx, left)
    return refused


def _error(counts: Counts, verdict: QuotaDecision, beyond: int) -> ResourceExhausted:
    name, quota = tenant_name(counts.tenant_id), counts.quota
    if not verdict.by_rate:
        return _queue_full(counts)
    wait = quota.wait_for(counts.tokens, verdict.admitted + beyond)
    return RateLimited(name, str(quota.rate_limit_per_sec), retry_after=max(wait, timedelta(milliseconds=1)))


def _queue_full(counts: Counts) -> QueueDepthExceeded:
    limit = str(counts.quota.max_queue_depth)
    return QueueDepthExceeded(tenant_name(counts.tenant_id), limit, retry_after=_QUEUE_PAUSE)


async def room_for_retries(tx: Tx, tenant_ids: Iterable[str]) -> dict[str, tuple[int, QueueDepthExceeded]]:
    """By tenant with a limit: how many ended tasks may wait again, and the error for the next one.

    Read without a lock, because slots are locked before; `confirm` looks again behind all of them.
    """
    found = await counters.read(tx, tenant_ids)
    return {
        tenant_id: (room, _queue_full(counts))
        for tenant_id, counts in found.items()
        if (room := counts.quota.room(counts.pending)) >= 0
    }


async def confirm(tx: Tx, tenant_ids: Iterable[str]) -> None:
    """Raises StateMoved, and so starts over, if tasks that wait again went beyond a limit after all."""
    for counts in (await counters.read(tx, tenant_ids)).values():
        if counts.quota.max_queue_depth and counts.pending > counts.quota.max_queue_depth:
            raise StateMoved(f"the queue of tenant {counts.tenant_id} has filled up")
