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
    """One ClaimTasks call. It takes part in plans like a runner, but is claimed for
    by itself: a repeat of the call, even at another scheduler, sends the same claim and gets the same leases.
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
        """The tasks it can take now; None while its claim is in flight."""
        return self.whole_offer() if self._settled.is_set() and not self.answer.done() else None

    def whole_offer(self) -> Offer:
        limited = bool(self.profile.tenants)
        return Offer(self.key, self.worker_id, self.max_tasks, 0, self.max_tasks, limited=limited)

    def claim_started(self) -> None:
        self._settled.clear()

    def resolve(self, assignments: Sequence[lease_pb2.Assignment]) -> None:
        """Applies taskdb's result; without assignments the call keeps waiting."""
        self._settled.set()
        if assignments and not self.answer.done():
            self.answer.set_result(assignments)

    def fail(self, error: errors.TaskyardError) -> None:
        """The claim failed, or the server is draining."""
        self._settled.set()
        if not self.answer.done():
            self.answer.set_exception(error)
            # The caller may be gone; mark the exception as retrieved.
            self.answer.exception()

    async def wait(self, seconds: float) -> None:
        """Waits for an answer, at most `seconds`, and for a claim in flight, which may return leases."""
        await asyncio.wait((self.answer,), timeout=seconds)
        await self._settled.wait()
