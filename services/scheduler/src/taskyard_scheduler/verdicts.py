"""taskdb's verdicts on a runner's leases: which of them its agent must act on."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from taskyard.v1 import lease_pb2
from taskyard_scheduler import convert
from taskyard_scheduler.domain.capacity import RunKey


class Verdicts:
    """Sent with every heartbeat ack until taskdb withdraws them or the run has ended."""

    def __init__(self) -> None:
        # With the time at which each was received, or requested.
        self._verdicts: dict[RunKey, tuple[float, lease_pb2.LeaseVerdict]] = {}

    def add(self, verdicts: Iterable[lease_pb2.LeaseVerdict], now: float) -> None:
        """Adds verdicts that taskdb published."""
        for verdict in verdicts:
            self._verdicts[convert.run_key(verdict.lease)] = (now, verdict)

    def has(self, key: RunKey) -> bool:
        """Whether there is a verdict on this run."""
        return key in self._verdicts

    def forget(self, key: RunKey) -> None:
        """Removes the verdict of a run that has ended or that the agent has dropped."""
        self._verdicts.pop(key, None)

    def replace(
        self,
        stored: Iterable[lease_pb2.LeaseVerdict],
        request_time: float,
        has_run: Callable[[RunKey], bool],
    ) -> None:
        """Replaces older verdicts by those of a renewal; a lost lease stays lost while the run is held."""
        aborted = lease_pb2.LEASE_ACTION_ABORT
        self._verdicts = {
            key: (time, verdict)
            for key, (time, verdict) in self._verdicts.items()
            if time > request_time or (verdict.action == aborted and has_run(key))
        }
        for verdict in stored:
            self._verdicts.setdefault(convert.run_key(verdict.lease), (request_time, verdict))

    def all(self) -> list[lease_pb2.LeaseVerdict]:
        """The current verdicts."""
        return [verdict for _, verdict in self._verdicts.values()]

    def __bool__(self) -> bool:
        return bool(self._verdicts)
