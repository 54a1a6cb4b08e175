"""FORBID work inside function hosts: the host is killed when the lease of one of its guarded runs ends.

The agent gives hosts their runs itself, so the warden has of these runs only what it must enforce
while the agent is frozen or gone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from taskyard_runner.warden.linux import boottime
from taskyard_runner.warden.loop import Loop


@dataclass
class _Guard:
    host: str
    until: float


class Guards:
    """The guarded runs; `expired` is called with the host of one whose lease has ended."""

    def __init__(self, loop: Loop, expired: Callable[[str], None]) -> None:
        self._loop = loop
        self._expired = expired
        self._guards: dict[str, _Guard] = {}

    def add(self, host: str, runs: dict[str, float]) -> None:
        """Runs that the host is about to be given, with the ends of their leases."""
        for run, until in runs.items():
            self._guards[run] = _Guard(host, float(until))
            self._watch(run)

    def lease(self, run: str, until: float) -> None:
        """The lease lasts until then."""
        if (guard := self._guards.get(run)) is not None:
            guard.until = until

    def drop(self, runs: Iterable[str]) -> None:
        """The runs have ended."""
        for run in runs:
            self._guards.pop(run, None)

    def host_ended(self, host: str) -> None:
        """Nothing of this host is left."""
        self._guards = {run: guard for run, guard in self._guards.items() if guard.host != host}

    def _watch(self, run: str) -> None:
        self._loop.at(self._guards[run].until, lambda: self._check(run))

    def _check(self, run: str) -> None:
        guard = self._guards.get(run)
        if guard is None:
            return
        if guard.until > boottime():
            self._watch(run)
        else:
            del self._guards[run]
            self._expired(guard.host)
