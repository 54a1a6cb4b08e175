"""What runners gave back as unsupported, and how long they are not asked for the like of it again."""

from __future__ import annotations

from typing import NamedTuple

# How long a runner is not offered again what it gave back as unsupported; the contract names the time.
REFUSAL_SECONDS = 600.0


class Alike(NamedTuple):
    """What a refusal holds for: tasks of one tenant, kind, type and function."""

    tenant: str
    kind: str
    task_type: str = ""
    function: str = ""


class Refusals:
    """The refusals of one agent process. `count` grows with each, so that one under way can be noticed."""

    def __init__(self) -> None:
        self.count = 0
        # Until when; the oldest first.
        self._until: dict[Alike, float] = {}

    def add(self, alike: Alike, now: float) -> None:
        """The agent gave such a task back."""
        self.count += 1
        self._until.pop(alike, None)
        self._until[alike] = now + REFUSAL_SECONDS

    def seconds(self, alike: Alike, now: float) -> float:
        """How long the runner is still not asked for such a task."""
        return max(0.0, self._until.get(alike, 0.0) - now) if self._until else 0.0

    def prune(self, now: float) -> bool:
        """Forget what has passed; whether something is left."""
        while self._until:
            alike, until = next(iter(self._until.items()))
            if until > now:
                return True
            del self._until[alike]
        return False


class _Kept(NamedTuple):
    instance_id: str
    refusals: Refusals
    until: float


class RefusalBook:
    """Refusals of agents that are not connected, for when they come back.

    Another agent process of the runner starts without any: what was lacking may have been put right, and to
    restart the agent is how one says so.
    """

    def __init__(self) -> None:
        # By runner, in the order in which they left.
        self._kept: dict[str, _Kept] = {}

    def __len__(self) -> int:
        return len(self._kept)

    def keep(self, runner_id: str, instance_id: str, refusals: Refusals, now: float) -> None:
        """An agent is gone, perhaps for a moment."""
        self._forget(now)
        self._kept.pop(runner_id, None)
        if refusals.prune(now):
            self._kept[runner_id] = _Kept(instance_id, refusals, now + REFUSAL_SECONDS)

    def recall(self, runner_id: str, instance_id: str, now: float) -> Refusals:
        """What the agent refused before; nothing if it is another process."""
        self._forget(now)
        kept = self._kept.pop(runner_id, None)
        return kept.refusals if kept is not None and kept.instance_id == instance_id else Refusals()

    def _forget(self, now: float) -> None:
        """Drop those who left so long ago that none of their refusals is in force."""
        while self._kept:
            runner_id, kept = next(iter(self._kept.items()))
            if kept.until > now:
                return
            del self._kept[runner_id]
