"""What taskdb has said about a runner's leases: which of them its agent must act on."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from taskyard.v1 import lease_pb2
from taskyard_scheduler import convert
from taskyard_scheduler.domain.capacity import RunKey


class Verdicts:
    """Told with every acknowledgement of a heartbeat, until taskdb says otherwise or the run is gone."""

    def __init__(self) -> None:
        # With the time at which each was said, or asked for.
        self._said: dict[RunKey, tuple[float, lease_pb2.LeaseVerdict]] = {}

    def add(self, verdicts: Iterable[lease_pb2.LeaseVerdict], now: float) -> None:
        """taskdb says so now."""
        for verdict in verdicts:
            self._said[convert.run_key(verdict.lease)] = (now, verdict)

    def has(self, key: RunKey) -> bool:
        """Whether the holder of this run must act."""
        return key in self._said

    def forget(self, key: RunKey) -> None:
        """The run is over, or the agent has dropped it."""
        self._said.pop(key, None)

    def replace(
        self,
        stored: Iterable[lease_pb2.LeaseVerdict],
        asked_time: float,
        has_run: Callable[[RunKey], bool],
    ) -> None:
        """What taskdb said when it was asked; a lost lease stays lost while the agent has the run."""
        aborted = lease_pb2.LEASE_ACTION_ABORT
        self._said = {
            key: (time, verdict)
            for key, (time, verdict) in self._said.items()
            if time > asked_time or (verdict.action == aborted and has_run(key))
        }
        for verdict in stored:
            self._said.setdefault(convert.run_key(verdict.lease), (asked_time, verdict))

    def all(self) -> list[lease_pb2.LeaseVerdict]:
        """What is in force."""
        return [verdict for _, verdict in self._said.values()]

    def __bool__(self) -> bool:
        return bool(self._said)
