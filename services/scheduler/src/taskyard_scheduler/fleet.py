"""Who can take work now: the sessions of connected runners and the waiting claims of pull workers."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Protocol

from taskyard import errors
from taskyard.v1 import runner_pb2
from taskyard_scheduler.claims import Claim
from taskyard_scheduler.domain.placement import PlacementClass, RunnerProfile, judge
from taskyard_scheduler.domain.plan import ClassKey, Offer
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
    """All takers by key, and what each class makes of each of them, asked once."""

    def __init__(self) -> None:
        self.sessions: dict[str, Session] = {}
        self._takers: dict[str, Taker] = {}
        self._scores: dict[str, dict[ClassKey, int | None]] = {}

    def add_session(self, session: Session) -> None:
        """A runner said hello; of two sessions here the one with the older epoch is superseded."""
        former = self.sessions.get(session.runner_id)
        if former is not None and former.epoch > session.epoch:
            session.finish(errors.SessionSuperseded(session.runner_id))
            return
        self.sessions[session.runner_id] = session
        self._takers[session.runner_id] = session
        self._scores.pop(session.runner_id, None)
        if former is not None:
            former.finish(errors.SessionSuperseded(former.runner_id))

    def remove_session(self, session: Session) -> None:
        """Its stream is over; a newer session of the runner stays."""
        if self.sessions.get(session.runner_id) is session:
            del self.sessions[session.runner_id]
            self.remove_taker(session.runner_id)

    def add_taker(self, key: str, taker: Taker) -> None:
        self._takers[key] = taker

    def remove_taker(self, key: str) -> None:
        self._takers.pop(key, None)
        self._scores.pop(key, None)

    def claims(self) -> list[Claim]:
        """The waiting claims of pull workers."""
        return [taker for taker in self._takers.values() if isinstance(taker, Claim)]

    def taker(self, key: str) -> Taker | None:
        return self._takers.get(key)

    def profile_changed(self, key: str) -> None:
        """Ask the classes again about this taker."""
        self._scores.pop(key, None)

    def offers(self, now: float, held_back: Collection[str] = ()) -> list[Offer]:
        """What the takers could take now."""
        return list(self._offers(now, held_back))

    def _offers(self, now: float, held_back: Collection[str]) -> Iterator[Offer]:
        for key, taker in self._takers.items():
            if key not in held_back and (offer := taker.offer(now)) is not None:
                yield offer

    def score(self, key: str, wanted: PlacementClass, now: float) -> int | None:
        """How much a taker is preferred for a class; None if it may not take it."""
        taker = self._takers.get(key)
        if taker is None:
            return None
        if wanted.moody:
            executing = taker.capacity.executing() if isinstance(taker, Session) else ()
            verdict = judge(taker.profile, wanted, executing)
            return verdict.score if verdict.eligible and not _refused(taker, wanted, now) else None
        scores = self._scores.setdefault(key, {})
        class_key = (wanted.tenant, wanted.class_id)
        if class_key not in scores:
            verdict = judge(taker.profile, wanted)
            scores[class_key] = verdict.score if verdict.eligible else None
        found = scores[class_key]
        return None if found is None or _refused(taker, wanted, now) else found


def _refused(taker: Taker, wanted: PlacementClass, now: float) -> bool:
    """Whether the runner gave the like of it back as unsupported a while ago."""
    if not isinstance(taker, Session) or not taker.refused:
        return False
    alike = (wanted.tenant, _KIND_NAMES.get(wanted.kind, ""), wanted.task_type, wanted.function)
    return taker.refused.get(alike, 0.0) > now
