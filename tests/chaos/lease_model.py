"""The oracle of the hello fuzzer: which leases are in force, by what taskdb has acknowledged.

It judges what a promise decides, and nothing else: a lease in doubt, or nearer to its expiry than MARGIN,
may be kept or taken away.
"""

from __future__ import annotations

from dataclasses import dataclass, field

# Latency between an acknowledgement and the database's own clock.
MARGIN = 10.0
FIRST_LEASE = 100.0
SESSION_LEASE = 300.0


@dataclass
class Session:
    """The newest session of a runner."""

    epoch: int
    until: float
    closed: bool = False


@dataclass
class Claim:
    """One lease as taskdb has granted it."""

    task: str
    generation: int
    lease_id: int
    runner: str
    until: float
    epoch: int
    follows: bool = False
    started: bool = False
    # The kind of the accepted report that ended the run.
    outcome: str = ""
    # taskdb may have taken it away: not listed by its runner, expired at a sweep, or asked to be cancelled.
    doubtful: bool = False


@dataclass
class TaskModel:
    """A task: its leases by generation, and its end."""

    name: str
    forbid: bool
    slot: str
    claims: list[Claim] = field(default_factory=list)
    cancelled: bool = False
    phase: int = 0

    @property
    def newest(self) -> Claim | None:
        return self.claims[-1] if self.claims else None


class LeaseModel:
    """What is promised to runners and users, by acknowledged calls. Methods return violations."""

    def __init__(self) -> None:
        self.now = 0.0
        self.sessions: dict[str, Session] = {}
        self.tasks: dict[str, TaskModel] = {}

    def create(self, name: str, *, forbid: bool, slot: str) -> None:
        self.tasks[name] = TaskModel(name, forbid, slot)

    def expiry(self, claim: Claim) -> float:
        """Until when the lease is in force."""
        return self.sessions[claim.runner].until if claim.follows else claim.until

    def current(self, claim: Claim) -> bool:
        """Whether no later claim and no outcome has replaced it."""
        task = self.tasks[claim.task]
        return task.newest is claim and not claim.outcome and not task.phase

    def held(self, claim: Claim) -> bool:
        """Whether its runner holds it without doubt."""
        return self.current(claim) and not claim.doubtful and self.expiry(claim) > self.now + MARGIN

    def may_run(self, claim: Claim) -> bool:
        """Whether a run of it may be alive without its runner being at fault."""
        return self.current(claim) and self.expiry(claim) > self.now + MARGIN

    def claimed(self, runner: str, name: str, generation: int, lease_id: int) -> list[str]:
        """A lease was granted."""
        task, session = self.tasks[name], self.sessions[runner]
        found = []
        former = task.newest
        if generation != (former.generation if former else 0) + 1:
            found.append(f"I4 {name}: generation {generation} after {former and former.generation}")
        if task.phase:
            found.append(f"I3 {name} was claimed after its end")
        if task.cancelled:
            found.append(f"I9 {name} was claimed after its cancel was acknowledged")
        if former is not None and self.held(former):
            found.append(f"I13 {name}: generation {former.generation} was held by {former.runner}")
        if former is not None and task.forbid and self.may_run(former):
            found.append(f"I6 {name}: generation {former.generation} is in force, {generation} was claimed")
        for other in self.tasks.values():
            shared = other is not task and task.slot and other.slot == task.slot
            if shared and other.newest is not None and self.held(other.newest):
                found.append(f"I6 slot {task.slot}: {name} was claimed while {other.name} holds it")
        until = self.now + FIRST_LEASE
        task.claims.append(Claim(name, generation, lease_id, runner, until, session.epoch))
        return found

    def hello(self, runner: str, epoch: int, listed: list[Claim], aborted: set[tuple[str, int]]) -> list[str]:
        """A session was opened; `aborted` names the listed leases that got a verdict to stop."""
        former = self.sessions.get(runner)
        found = []
        if former is not None and epoch != former.epoch + 1:
            found.append(f"I4 {runner}: session {epoch} after {former.epoch}")
        for task in self.tasks.values():
            claim = task.newest
            if claim is None or claim.runner != runner or claim in listed:
                continue
            if claim.follows and former is not None:
                claim.until, claim.follows = former.until, False
            # Work that may overlap is given to another runner at once.
            claim.doubtful |= not task.forbid and not task.slot
        self.sessions[runner] = Session(epoch, self.now + SESSION_LEASE)
        return found + self._listed(runner, listed, aborted, former)

    def renewed(
        self, runner: str, epoch: int, listed: list[Claim], aborted: set[tuple[str, int]], *, lost: bool
    ) -> list[str]:
        """A heartbeat was answered."""
        session = self.sessions[runner]
        alive = session.epoch == epoch and not session.closed
        if lost:
            valid = alive and session.until > self.now + MARGIN
            return [f"I13 {runner}: session {epoch} counts as lost"] if valid else []
        if not alive or session.until < self.now - MARGIN:
            return [f"I4 {runner}: session {epoch} was renewed after its end"]
        former = Session(epoch, session.until)
        session.until = self.now + SESSION_LEASE
        return self._listed(runner, listed, aborted, former)

    def _listed(
        self, runner: str, listed: list[Claim], aborted: set[tuple[str, int]], former: Session | None
    ) -> list[str]:
        """Judges the verdicts; the expiry of a lease that followed its session is the former one's."""
        found = []
        session = self.sessions[runner]
        for claim in listed:
            before = former.until if claim.follows and former is not None else claim.until
            stop = (claim.task, claim.generation) in aborted
            mine = self.current(claim) and claim.runner == runner
            if stop and mine:
                if not claim.doubtful and before > self.now + MARGIN:
                    found.append(f"I13 {claim.task}: generation {claim.generation} in force was aborted")
                claim.until, claim.follows, claim.doubtful = before, False, True
            elif stop:
                continue
            elif not mine or (self.tasks[claim.task].forbid and before < self.now - MARGIN):
                found.append(f"I4 {claim.task}: generation {claim.generation} is over and was not aborted")
            else:
                claim.follows, claim.epoch = True, session.epoch
                claim.doubtful = self.tasks[claim.task].cancelled
        return found

    def reported(
        self,
        runner: str,
        claim: Claim,
        kind: str,
        *,
        forged: bool,
        accepted: bool,
        duplicate: bool,
        phase: int,
    ) -> list[str]:
        """A report was answered; a duplicate was applied before."""
        label = f"{claim.task}: {kind} of generation {claim.generation} by {runner}"
        current = self.current(claim) and claim.runner == runner and not forged
        if duplicate:
            return [] if _repeats(claim, kind) and not forged else [f"I3 {label} counts as a repeat"]
        if not accepted:
            return [f"I13 {label} was rejected"] if current and self.held(claim) else []
        found = [] if current else [f"I4 {label} was accepted"]
        self._apply(claim, kind, phase)
        return found

    def _apply(self, claim: Claim, kind: str, phase: int) -> None:
        session = self.sessions[claim.runner]
        if not claim.started and kind not in ("released", "cancelled"):
            claim.started = True
            claim.follows = claim.follows or (claim.epoch == session.epoch)
        if kind != "started":
            claim.outcome = kind
        if phase >= 10 and not self.tasks[claim.task].phase:
            self.tasks[claim.task].phase = phase

    def closed(self, runner: str, *, release: bool) -> None:
        """The session was closed; with `release` its leases are given back."""
        self.sessions[runner].closed = True
        for task in self.tasks.values():
            claim = task.newest
            if claim is not None and claim.runner == runner and release and self.current(claim):
                claim.outcome = "released"

    def swept(self, leased: set[tuple[str, int]]) -> list[str]:
        """Expired leases may be gone; those of runs that nobody has started or listed must be."""
        found = []
        for task in self.tasks.values():
            claim = task.newest
            if claim is None or self.expiry(claim) >= self.now + MARGIN:
                continue
            idle = not claim.started and not claim.follows and claim.until < self.now - MARGIN
            if idle and not task.cancelled and (task.name.rpartition("/")[2], claim.generation) in leased:
                found.append(f"I5 {task.name}: generation {claim.generation} was never started and is held")
            claim.doubtful = True
        return found

    def cancel(self, name: str, phase: int) -> list[str]:
        """A cancel was acknowledged."""
        task = self.tasks[name]
        found = [f"I3 {name} has ended as {task.phase}, now {phase}"] if task.phase not in (0, phase) else []
        task.cancelled = True
        if task.newest is not None:
            task.newest.doubtful = True
        if phase >= 10:
            task.phase = phase
        return found


def _repeats(claim: Claim, kind: str) -> bool:
    """Whether such a report was applied before, or says no more than what taskdb has decided since."""
    if kind == "started":
        return claim.started
    if claim.outcome in ("released", "cancelled") and not claim.started:
        return kind in ("released", "cancelled")
    # Giving up a lease that was lost anyway changes nothing.
    return kind == claim.outcome or (kind == "released" and not claim.outcome)
