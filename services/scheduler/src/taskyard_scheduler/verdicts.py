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
        self._verdicts: dict[RunKey, tuple[float, lease_pb2.LeaseVerdict]] = {}

    def add(self, verdicts: Iterable[lease_pb2.LeaseVerdict], now: float) -> None:
        """taskdb says so now."""
        for verdict in verdicts:
            self._verdicts[convert.run_key(verdict.lease)] = (now, verdict)

    def forget(self, key: RunKey) -> None:
        """The run is over, or the agent has dropped it."""
        self._verdicts.pop(key, None)

    def replace(
        self,
        stored: Iterable[lease_pb2.LeaseVerdict],
        request_time: float,
        has_run: Callable[[RunKey], bool],
    ) -> None:
        """What taskdb said when it was asked; a lost lease stays lost while the agent has the run."""
        aborted = lease_pb2.LEASE_ACTION_ABORT
        self._verdicts = {
            key: (time, verdict)
            for key, (time, verdict) in self._verdicts.items()
            if time > request_time or (verdict.action == aborted and has_run(key))
        }
        for verdict in stored:
            self._verdicts.setdefault(convert.run_key(verdict.lease), (request_time, verdict))

    def all(self) -> list[lease_pb2.LeaseVerdict]:
        """What is in force."""
        return [verdict for _, verdict in self._verdicts.values()]

    def __bool__(self) -> bool:
        return bool(self._verdicts)
