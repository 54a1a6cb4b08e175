"""What runners gave back as unsupported, and how long they are not asked for the like of it again."""

from __future__ import annotations

from typing import NamedTuple

# How long a runner is not offered again what it gave back as unsupported; the contract names the time.
REFUSAL_SECONDS = 600.0


class RefusalKey(NamedTuple):
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
        self._until: dict[RefusalKey, float] = {}

    def add(self, key: RefusalKey, now: float) -> None:
        """The agent gave such a task back."""
        self.count += 1
        self._until.pop(key, None)
        self._until[key] = now + REFUSAL_SECONDS

    def seconds(self, key: RefusalKey, now: float) -> float:
        """How long the runner is still not asked for such a task."""
        return max(0.0, self._until.get(key, 0.0) - now) if self._until else 0.0

    def prune(self, now: float) -> bool:
        """Forget what has passed; whether something is left."""
        while self._until:
            key, until = next(iter(self._until.items()))
            if until > now:
                return True
            del self._until[key]
        return False


class _Entry(NamedTuple):
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
        self._entries: dict[str, _Entry] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def keep(self, runner_id: str, instance_id: str, refusals: Refusals, now: float) -> None:
        """An agent is gone, perhaps for a moment."""
        self._expire(now)
        self._entries.pop(runner_id, None)
        if refusals.prune(now):
            self._entries[runner_id] = _Entry(instance_id, refusals, now + REFUSAL_SECONDS)

    def recall(self, runner_id: str, instance_id: str, now: float) -> Refusals:
        """What the agent refused before; nothing if it is another process."""
        self._expire(now)
        entry = self._entries.pop(runner_id, None)
        return entry.refusals if entry is not None and entry.instance_id == instance_id else Refusals()

    def _expire(self, now: float) -> None:
        """Drop those who left so long ago that none of their refusals is in force."""
        while self._entries:
            runner_id, entry = next(iter(self._entries.items()))
            if entry.until > now:
                return
            del self._entries[runner_id]
