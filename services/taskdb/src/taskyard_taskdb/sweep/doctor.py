"""The nightly doctor: looks, tells, and leaves repairs to people."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable

from taskyard_taskdb.domain.schedule import Schedule
from taskyard_taskdb.storage.doctor import checks as doctor_checks
from taskyard_taskdb.storage.pool import Pool
from taskyard_taskdb.sweep.jobs import Stand

logger = logging.getLogger(__name__)


class DoctorJob:
    """Runs every check of RunDoctor; `examined` hears what each found."""

    name = "doctor"
    about = "look for broken invariants; RunDoctor repairs them"

    def __init__(self, pool: Pool, examined: Callable[[str, int, int], None], schedule: Schedule) -> None:
        self._pool = pool
        self._examined = examined
        self.schedule = schedule

    async def pages(self, stand: Stand) -> AsyncIterator[int]:
        for check in doctor_checks.CHECKS:
            await self._pool.run(lambda tx: stand(tx))
            found = await doctor_checks.examine(self._pool, check)
            self._examined(check.name, found.left, found.repaired)
            if found.left:
                logger.error("doctor: %d %s, such as %s", found.left, check.about, found.examples[0])
            yield found.left
