"""What RunDoctor does about webhooks that are late: the sender of the leader tries them at once."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from taskyard_taskdb.storage import arrays
from taskyard_taskdb.storage.doctor.repairs import Hands, NotNow, params
from taskyard_taskdb.storage.housekeeping import leader
from taskyard_taskdb.storage.notify.notice import CommitNotice
from taskyard_taskdb.storage.pool import Tx
from taskyard_taskdb.storage.statements import statement
from taskyard_taskdb.storage.transition.task_rows import Key

# The answers of receivers are waited for half a minute: the turn that each gets.
LOOKS = 300
LOOK_SECONDS = 0.1

Tries = list[tuple[int, int]]
"""Webhooks and how often each was tried."""


async def deliver(hands: Hands, keys: Sequence[Key]) -> None:
    """Have webhooks tried at once and wait until each was; what fails is found again. Raises NotNow."""
    tries = await hands.pool.run(lambda tx: _hurry(tx, keys))
    if not tries:
        return
    # Wakes the sender, also that of another replica.
    hands.told(CommitNotice(changed=True))
    async with hands.pool.reading() as tx:
        if await leader.reaps_in(tx) is None:
            raise NotNow("no replica leads housekeeping, so that nobody sends them")
    for _ in range(LOOKS):
        if not await _untried(hands, tries):
            return
        await asyncio.sleep(LOOK_SECONDS)


async def _hurry(tx: Tx, keys: Sequence[Key]) -> Tries:
    locked = await tx.fetch(statement("doctor_lock_webhooks"), params(keys))
    tries = [(row[0], row[1]) for row in locked]
    await tx.execute(statement("doctor_hurry_webhooks"), {"ids": arrays.bigints([id for id, _ in tries])})
    return tries


async def _untried(hands: Hands, tries: Tries) -> bool:
    params = {
        "ids": arrays.bigints([id for id, _ in tries]),
        "attempts": arrays.integers([attempt for _, attempt in tries]),
    }
    async with hands.pool.reading() as tx:
        return bool(await tx.fetch(statement("doctor_untried_webhooks"), params))
