"""A pull worker's claim while it waits for work."""

from __future__ import annotations

import asyncio
import hashlib
import uuid
from collections.abc import Sequence

from taskyard import errors
from taskyard.v1 import lease_pb2
from taskyard_scheduler.domain.placement import RunnerProfile
from taskyard_scheduler.domain.rooms import Offer


class PullClaim:
    """One ClaimTasks call. It takes part in plans like a runner, but has a pop of its own: a repeat of the
    call, even at another scheduler, makes the same pop and so gets the same leases.
    """

    def __init__(
        self, worker_id: str, request_id: str, profile: RunnerProfile, max_tasks: int, lease_duration: float
    ) -> None:
        self.worker_id = worker_id
        self.profile = profile
        self.lease_duration = lease_duration
        self.max_tasks = max_tasks
        self.claim_request_id = hashlib.sha256(f"{worker_id}/{request_id}".encode()).hexdigest()[:48]
        # Repeats of one call may wait side by side.
        self.key = f"claim:{uuid.uuid4().hex}"
        self._settled = asyncio.Event()
        self._settled.set()
        self.answer: asyncio.Future[Sequence[lease_pb2.Assignment]] = (
            asyncio.get_running_loop().create_future()
        )

    def offer(self, now: float) -> Offer | None:
        """What it could take now; None while a pop for it is under way."""
        return self.whole_offer() if self._settled.is_set() and not self.answer.done() else None

    def whole_offer(self) -> Offer:
        limited = bool(self.profile.tenants)
        return Offer(self.key, self.worker_id, self.max_tasks, 0, self.max_tasks, limited=limited)

    def claim_started(self) -> None:
        self._settled.clear()

    def resolve(self, assignments: Sequence[lease_pb2.Assignment]) -> None:
        """The pop's answer; without assignments the claim goes on waiting."""
        self._settled.set()
        if assignments and not self.answer.done():
            self.answer.set_result(assignments)

    def fail(self, error: errors.TaskyardError) -> None:
        """The pop failed, or the server is going."""
        self._settled.set()
        if not self.answer.done():
            self.answer.set_exception(error)
            # The caller may be gone, and nobody ask for it.
            self.answer.exception()

    async def wait(self, seconds: float) -> None:
        """Until an answer or the end of the time. A pop under way is waited for: it may grant leases."""
        await asyncio.wait((self.answer,), timeout=seconds)
        await self._settled.wait()
