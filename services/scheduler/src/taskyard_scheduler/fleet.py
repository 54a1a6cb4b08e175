"""The claimants of work: the sessions of connected runners and the waiting claims of pull workers."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Protocol

from taskyard import errors
from taskyard.v1 import runner_pb2
from taskyard_scheduler.domain.matches import Matches
from taskyard_scheduler.domain.placement import PlacementClass, RunnerProfile
from taskyard_scheduler.domain.refusals import RefusalBook, RefusalKey
from taskyard_scheduler.domain.rooms import Offer
from taskyard_scheduler.pull_claims import PullClaim
from taskyard_scheduler.session import Session

_KIND_NAMES: dict[int, str] = {
    number: name.removeprefix("EXECUTION_KIND_").lower() for name, number in runner_pb2.ExecutionKind.items()
}


class Claimant(Protocol):
    """A runner session or a pull worker's claim that a plan can assign work to."""

    @property
    def profile(self) -> RunnerProfile: ...

    def offer(self, now: float) -> Offer | None: ...


class Fleet:
    """All claimants by key, and which placement classes they match."""

    def __init__(self) -> None:
        self.sessions: dict[str, Session] = {}
        self.matches = Matches()
        self._claimants: dict[str, Claimant] = {}
        self._refusals = RefusalBook()

    def add_session(self, session: Session, now: float) -> None:
        """Adds a session; of two sessions of a runner the one with the older epoch is superseded."""
        former = self.sessions.get(session.runner_id)
        if former is not None and former.epoch > session.epoch:
            session.finish(errors.SessionSuperseded(session.runner_id))
            return
        if former is not None:
            self._keep_refusals(former, now)
        session.refusals = self._refusals.recall(session.runner_id, session.instance_id, now)
        self.sessions[session.runner_id] = session
        self.add_claimant(session.runner_id, session)
        if former is not None:
            former.finish(errors.SessionSuperseded(former.runner_id))

    def remove_session(self, session: Session, now: float) -> None:
        """Removes a session after its stream ended; a newer session of the runner stays."""
        if self.sessions.get(session.runner_id) is session:
            del self.sessions[session.runner_id]
            self.remove_claimant(session.runner_id)
            self._keep_refusals(session, now)

    def _keep_refusals(self, session: Session, now: float) -> None:
        self._refusals.keep(session.runner_id, session.instance_id, session.refusals, now)

    def add_claimant(self, key: str, claimant: Claimant) -> None:
        self._claimants[key] = claimant
        self.matches.put(key, claimant.profile)

    def remove_claimant(self, key: str) -> None:
        self._claimants.pop(key, None)
        self.matches.remove(key)

    def claims(self) -> list[PullClaim]:
        """The waiting claims of pull workers."""
        return [claimant for claimant in self._claimants.values() if isinstance(claimant, PullClaim)]

    def claimant(self, key: str) -> Claimant | None:
        return self._claimants.get(key)

    def profile_changed(self, session: Session) -> None:
        """Matches this runner against the classes again, unless it has a newer session."""
        if self.sessions.get(session.runner_id) is session:
            self.matches.put(session.runner_id, session.profile)

    @property
    def capacity(self) -> int:
        """The total capacity of the runners connected here."""
        return sum(session.capacity.capacity for session in self.sessions.values())

    def offers(self, now: float, held_back: Collection[str] = ()) -> list[Offer]:
        """The free capacity of the claimants."""
        return list(self._offers(now, held_back))

    def _offers(self, now: float, held_back: Collection[str]) -> Iterator[Offer]:
        for key, claimant in self._claimants.items():
            if key not in held_back and (offer := claimant.offer(now)) is not None:
                yield offer

    def executing(self, key: str) -> Collection[str]:
        """The task types that a claimant executes."""
        claimant = self._claimants.get(key)
        return claimant.capacity.executing() if isinstance(claimant, Session) else ()

    def accepts_work(self, key: str, now: float) -> bool:
        """Whether a claimant accepts work; it may be full."""
        claimant = self._claimants.get(key)
        return claimant.accepts_work(now) if isinstance(claimant, Session) else claimant is not None

    def permits(self, key: str, tenant: str, wanted: PlacementClass, now: float) -> bool:
        """Whether a claimant serves the tenant and has not recently refused tasks of this class."""
        claimant = self._claimants.get(key)
        if claimant is None or not claimant.profile.serves(tenant):
            return False
        return not (isinstance(claimant, Session) and refusal_seconds(claimant, tenant, wanted, now) > 0)


def refusal_seconds(session: Session, tenant: str, wanted: PlacementClass, now: float) -> float:
    """How long the runner is not offered tasks of this class, because it refused one as unsupported."""
    key = RefusalKey(tenant, _KIND_NAMES.get(wanted.kind, ""), wanted.task_type, wanted.function)
    return session.refusals.seconds(key, now)
