"""Who can take work now: the sessions of connected runners and the waiting claims of pull workers."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Protocol

from taskyard import errors
from taskyard.v1 import runner_pb2
from taskyard_scheduler.domain.matches import Matches
from taskyard_scheduler.domain.placement import PlacementClass, RunnerProfile
from taskyard_scheduler.domain.refusals import Alike, RefusalBook
from taskyard_scheduler.domain.rooms import Offer
from taskyard_scheduler.pull_claims import PullClaim
from taskyard_scheduler.session import Session

_KIND_NAMES: dict[int, str] = {
    number: name.removeprefix("EXECUTION_KIND_").lower() for name, number in runner_pb2.ExecutionKind.items()
}


class Taker(Protocol):
    """Someone a plan can give work to."""

    @property
    def profile(self) -> RunnerProfile: ...

    def offer(self, now: float) -> Offer | None: ...


class Fleet:
    """All takers by key, and what each class makes of each of them."""

    def __init__(self) -> None:
        self.sessions: dict[str, Session] = {}
        self.matches = Matches()
        self._takers: dict[str, Taker] = {}
        self._refusals = RefusalBook()

    def add_session(self, session: Session, now: float) -> None:
        """A runner said hello; of two sessions here the one with the older epoch is superseded."""
        former = self.sessions.get(session.runner_id)
        if former is not None and former.epoch > session.epoch:
            session.finish(errors.SessionSuperseded(session.runner_id))
            return
        if former is not None:
            self._keep_refusals(former, now)
        session.refusals = self._refusals.recall(session.runner_id, session.instance_id, now)
        self.sessions[session.runner_id] = session
        self.add_taker(session.runner_id, session)
        if former is not None:
            former.finish(errors.SessionSuperseded(former.runner_id))

    def remove_session(self, session: Session, now: float) -> None:
        """Its stream is over; a newer session of the runner stays."""
        if self.sessions.get(session.runner_id) is session:
            del self.sessions[session.runner_id]
            self.remove_taker(session.runner_id)
            self._keep_refusals(session, now)

    def _keep_refusals(self, session: Session, now: float) -> None:
        self._refusals.keep(session.runner_id, session.instance_id, session.refusals, now)

    def add_taker(self, key: str, taker: Taker) -> None:
        self._takers[key] = taker
        self.matches.put(key, taker.profile)

    def remove_taker(self, key: str) -> None:
        self._takers.pop(key, None)
        self.matches.remove(key)

    def claims(self) -> list[PullClaim]:
        """The waiting claims of pull workers."""
        return [taker for taker in self._takers.values() if isinstance(taker, PullClaim)]

    def taker(self, key: str) -> Taker | None:
        return self._takers.get(key)

    def profile_changed(self, session: Session) -> None:
        """Ask the classes again about this runner, unless a newer session speaks for it."""
        if self.sessions.get(session.runner_id) is session:
            self.matches.put(session.runner_id, session.profile)

    @property
    def capacity(self) -> int:
        """Places on all runners connected here."""
        return sum(session.capacity.capacity for session in self.sessions.values())

    def offers(self, now: float, held_back: Collection[str] = ()) -> list[Offer]:
        """What the takers could take now."""
        return list(self._offers(now, held_back))

    def _offers(self, now: float, held_back: Collection[str]) -> Iterator[Offer]:
        for key, taker in self._takers.items():
            if key not in held_back and (offer := taker.offer(now)) is not None:
                yield offer

    def executing(self, key: str) -> Collection[str]:
        """The task types that a taker executes."""
        taker = self._takers.get(key)
        return taker.capacity.executing() if isinstance(taker, Session) else ()

    def working(self, key: str, now: float) -> bool:
        """Whether a taker takes work at all, though it may be full."""
        taker = self._takers.get(key)
        return taker.works(now) if isinstance(taker, Session) else taker is not None

    def permits(self, key: str, tenant: str, wanted: PlacementClass, now: float) -> bool:
        """Whether a taker serves the tenant and has not refused the like of this a while ago."""
        taker = self._takers.get(key)
        if taker is None or not taker.profile.serves(tenant):
            return False
        return not (isinstance(taker, Session) and refusal_seconds(taker, tenant, wanted, now) > 0)


def refusal_seconds(session: Session, tenant: str, wanted: PlacementClass, now: float) -> float:
    """How long the runner is not asked for the like of it, which it gave back as unsupported."""
    alike = Alike(tenant, _KIND_NAMES.get(wanted.kind, ""), wanted.task_type, wanted.function)
    return session.refusals.seconds(alike, now)
