"""Tasks that runners refused as unsupported, and how long they are not offered similar ones."""

from __future__ import annotations

from typing import NamedTuple

# How long a runner is not offered similar tasks after a refusal; the contract specifies this time.
REFUSAL_SECONDS = 600.0


class RefusalKey(NamedTuple):
    """The tasks that a refusal covers: those of one tenant, kind, type and function."""

    tenant: str
    kind: str
    task_type: str = ""
    function: str = ""


class Refusals:
    """The refusals of one agent process. `count` grows with each, so that a new one can be detected."""

    def __init__(self) -> None:
        self.count = 0
        # Until when; the oldest first.
        self._until: dict[RefusalKey, float] = {}

    def add(self, key: RefusalKey, now: float) -> None:
        """Records a refusal."""
        self.count += 1
        self._until.pop(key, None)
        self._until[key] = now + REFUSAL_SECONDS

    def seconds(self, key: RefusalKey, now: float) -> float:
        """How long the runner is still not offered such a task."""
        return max(0.0, self._until.get(key, 0.0) - now) if self._until else 0.0

    def prune(self, now: float) -> bool:
        """Drops expired refusals; returns whether any is left."""
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
    """Refusals of disconnected agents, kept until they reconnect.

    A new agent process of the runner starts without refusals: restarting the agent is how an operator
    declares that the missing support was added.
    """

    def __init__(self) -> None:
        # By runner, in the order in which they left.
        self._entries: dict[str, _Entry] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def keep(self, runner_id: str, instance_id: str, refusals: Refusals, now: float) -> None:
        """Keeps the refusals of an agent that disconnected."""
        self._expire(now)
        self._entries.pop(runner_id, None)
        if refusals.prune(now):
            self._entries[runner_id] = _Entry(instance_id, refusals, now + REFUSAL_SECONDS)

    def recall(self, runner_id: str, instance_id: str, now: float) -> Refusals:
        """The earlier refusals of the agent; none if it is another process."""
        self._expire(now)
        entry = self._entries.pop(runner_id, None)
        return entry.refusals if entry is not None and entry.instance_id == instance_id else Refusals()

    def _expire(self, now: float) -> None:
        """Drops agents whose refusals have all expired."""
        while self._entries:
            runner_id, entry = next(iter(self._entries.items()))
            if entry.until > now:
                return
            del self._entries[runner_id]
