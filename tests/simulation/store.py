"""A small taskdb in memory for simulations: tables are dictionaries, all decisions taskdb's own lifecycle.

It is compared with the SQL by test_store_equivalence.py.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from taskyard.errors import NotFound, RunnerIdInUse, SessionSuperseded, TaskyardError
from taskyard.status import to_status
from taskyard.v1 import lease_pb2, runner_pb2, task_pb2
from taskyard.v1 import lease_service_pb2 as leases
from taskyard.v1 import session_service_pb2 as sessions
from taskyard_taskdb.domain import lifecycle
from taskyard_taskdb.domain.credit import CreditBook, Wanted
from taskyard_taskdb.domain.event import (
    Claimed,
    Created,
    Event,
    HolderEvent,
    HolderReturned,
    LeaseExpired,
    LossCause,
    ProgressReported,
    Released,
    RunnerLost,
    Started,
    Succeeded,
    runner,
)
from taskyard_taskdb.domain.names import parse_task_name
from taskyard_taskdb.domain.policy import TaskPolicy
from taskyard_taskdb.domain.report import EndedRun, applied_before
from taskyard_taskdb.domain.task import TaskState, evolve
from taskyard_taskdb.domain.transition import EndRun, Transition
from taskyard_taskdb.domain.words import Overlap, Phase, ReleaseReason

Key = tuple[str, str]
CLASS_ID = 1
LONG_AGO = datetime.min.replace(tzinfo=UTC)


@dataclass
class SessionRow:
    epoch: int
    instance_id: str
    expire_time: datetime
    closed: bool = False

    def is_current(self, now: datetime) -> bool:
        return not self.closed and self.expire_time > now


class Store:
    """The state and every call on it, each as one transaction at the time of `clock`."""

    # The first lease ends by itself; a mutation lets it follow the session from the claim on.
    short_first_lease = True

    def __init__(self, clock: Callable[[], float], rng: random.Random) -> None:
        self._clock = clock
        self._rng = rng
        self.credit = CreditBook("store", clock)
        # Tasks that were leased when they were created.
        self.eager: set[Key] = set()
        self._waiting = 0
        self.tasks: dict[Key, TaskState] = {}
        self.specs: dict[Key, task_pb2.TaskSpec] = {}
        self.sessions: dict[str, SessionRow] = {}
        self.runs: dict[tuple[Key, int], EndedRun] = {}
        # Terminal transitions by task: more than one is a double outcome.
        self.ends: dict[Key, list[Phase]] = {}
        self.watchers: list[Callable[[leases.WatchQueueResponse], None]] = []

    @property
    def now(self) -> datetime:
        return datetime.fromtimestamp(self._clock(), UTC)

    # ---- tasks

    def create(self, task_id: str, *, overlap: Overlap = Overlap.ALLOW, args: Sequence[str] = ()) -> str:
        key = ("default", task_id)
        policy = TaskPolicy(overlap=overlap, max_runner_losses=1000)
        blank = TaskState(*key, create_time=self.now, class_id=CLASS_ID, policy=policy)
        self.tasks[key] = lifecycle.create(blank, Created(), self.now).task
        spec = task_pb2.TaskSpec(priority=10, overlap=overlap.value)  # type: ignore[arg-type]
        spec.execution.command.program = "true"
        spec.execution.command.args.extend(args)
        self.specs[key] = spec
        self._lease_on_credit(key)
        self._notify()
        return self.tasks[key].name

    def _lease_on_credit(self, key: Key) -> None:
        """Lease a new task to a runner with credit, if its session is current and nothing else waits."""
        (grant,) = self.credit.take([Wanted(key[0], CLASS_ID, 10)])
        if grant is None:
            return
        terms, session = grant.terms, self.sessions.get(grant.terms.runner_id)
        current = session and session.epoch == terms.session_epoch and session.is_current(self.now)
        if not current or any(task.claimable for other, task in self.tasks.items() if other != key):
            grant.line.decide(grant, None)
            return
        claim = leases.RunnerClaim(runner_id=terms.runner_id, session_epoch=terms.session_epoch)
        self._claim(key, claim, "", terms.lease_duration)
        self.eager.add(key)
        grant.line.decide(grant, self._assignment(key))

    def load(self, key: Key) -> TaskState:
        """The task with the expiry in force, which may be that of its session."""
        task = self.tasks[key]
        lease = task.lease
        if lease is None or not lease.session_epoch:
            return task
        session = self.sessions[lease.runner_id]
        in_session = session.epoch == lease.session_epoch
        expire_time = lease.expire_time
        if lease.follows_session:
            # A lease whose session is superseded has expired.
            expire_time = session.expire_time if in_session else LONG_AGO
        return evolve(task, {"lease": evolve(lease, {"expire_time": expire_time, "in_session": in_session})})

    def _apply(self, key: Key, event: Event) -> Transition:
        before = self.load(key)
        step = lifecycle.apply(before, event, self.now, self._rng)
        for effect in step.effects:
            if isinstance(effect, EndRun):
                assert before.lease is not None
                started = before.lease.start_time is not None or step.task.attempt > before.attempt
                ended = EndedRun(effect.lease_id, before.lease.runner_id, effect.state, started)
                self.runs[(key, effect.generation)] = ended
        if step.task.phase.terminal and not before.phase.terminal:
            self.ends.setdefault(key, []).append(step.task.phase)
        self.tasks[key] = step.task
        return step

    # ---- LeaseService

    def lane(self) -> leases.Lane:
        waiting = sorted(t.ready_time for t in self.tasks.values() if t.claimable and t.ready_time)
        message = leases.Lane(tenant="default", backlog=len(waiting))
        message.key.class_id = CLASS_ID
        message.key.priority = 10
        if waiting:
            message.head_ready_time.FromDatetime(waiting[0])
        return message

    def snapshot(self) -> leases.WatchQueueResponse:
        wanted = leases.PlacementClass(
            tenant="default", class_id=CLASS_ID, kind=runner_pb2.EXECUTION_KIND_COMMAND
        )
        share = leases.TenantShare(tenant="default", weight=1, claimable_count=-1)
        return leases.WatchQueueResponse(
            full=True, lanes=[self.lane()], classes=[wanted], tenants=[share], position=self._position()
        )

    def _position(self) -> leases.QueuePosition:
        return leases.QueuePosition(replica_id=self.credit.replica_id, number=self.credit.position)

    def _notify(self) -> None:
        lane = self.lane()
        if lane.backlog > self._waiting:
            self.credit.work_waits()
        self._waiting = lane.backlog
        for watcher in self.watchers:
            watcher(leases.WatchQueueResponse(lanes=[lane], position=self._position()))

    def claim_for_runners(self, request: leases.ClaimForRunnersRequest) -> leases.ClaimForRunnersResponse:
        results = [self._claim_for_runner(claim, request.request_id) for claim in request.runners]
        self._notify()
        return leases.ClaimForRunnersResponse(results=results)

    def _claim_for_runner(self, claim: leases.RunnerClaim, request_id: str) -> leases.RunnerClaimResult:
        session = self.sessions.get(claim.runner_id)
        if claim.session_epoch and not (
            session and session.epoch == claim.session_epoch and session.is_current(self.now)
        ):
            return leases.RunnerClaimResult(error=to_status(SessionSuperseded(claim.runner_id)))
        repeated = [
            key
            for key, task in self.tasks.items()
            if task.lease
            and (task.lease.runner_id, task.lease.claim_request_id) == (claim.runner_id, request_id)
        ]
        if repeated:
            return leases.RunnerClaimResult(assignments=[self._assignment(key) for key in repeated])
        claimable = sorted(
            (key for key in self.tasks if self.load(key).claimable),
            key=lambda key: (self.tasks[key].ready_time, key),
        )
        duration = claim.lease_duration.ToTimedelta()
        taken: list[Key] = []
        for key in claimable if claim.tenants else ():
            if len(taken) < claim.max_tasks:
                self._claim(key, claim, request_id, duration)
                taken.append(key)
        drained = [self.lane().key] if len(taken) == len(claimable) else []
        return leases.RunnerClaimResult(
            assignments=[self._assignment(key) for key in taken], drained_lanes=drained
        )

    def _claim(self, key: Key, claim: leases.RunnerClaim, request_id: str, duration: timedelta) -> None:
        event = Claimed(
            runner_id=claim.runner_id,
            lease_id=self._rng.getrandbits(62),
            session_epoch=claim.session_epoch,
            expire_time=self.now + duration,
            claim_request_id=request_id,
        )
        task = self._apply(key, event).task
        if not self.short_first_lease and claim.session_epoch:
            assert task.lease is not None
            self.tasks[key] = evolve(task, {"lease": evolve(task.lease, {"follows_session": True})})

    def _assignment(self, key: Key) -> lease_pb2.Assignment:
        task = self.load(key)
        assert task.lease is not None
        message = lease_pb2.Assignment(spec=self.specs[key], attempt=task.attempt + 1)
        message.lease.task = task.name
        message.lease.generation = task.generation
        message.lease.lease_id = task.lease.lease_id
        message.lease_ttl.FromTimedelta(max(timedelta(0), task.lease.expire_time - self.now))
        return message

    def report_runs(self, request: leases.ReportRunsRequest) -> leases.ReportRunsResponse:
        results = [self._report(item.runner_id, item.report) for item in request.reports]
        self._notify()
        return leases.ReportRunsResponse(results=results)

    def _report(self, runner_id: str, report: lease_pb2.RunReport) -> lease_pb2.ReportResult:
        key = parse_task_name(report.lease.task, "task")
        event = read_event(runner_id, report)
        try:
            if key not in self.tasks:
                raise NotFound("task", report.lease.task)
            step = self._apply(key, event)
        except TaskyardError as error:
            ended = self.runs.get((key, report.lease.generation))
            if ended is None or not applied_before(event, ended):
                return lease_pb2.ReportResult(error=to_status(error))
            return lease_pb2.ReportResult(phase=self.tasks[key].phase.value, duplicate=True)  # type: ignore[arg-type]
        return lease_pb2.ReportResult(phase=step.task.phase.value, duplicate=step.duplicate)  # type: ignore[arg-type]

    # ---- SessionService

    def open_session(self, request: sessions.OpenSessionRequest) -> sessions.OpenSessionResponse:
        former = self.sessions.get(request.runner_id)
        other = former and former.is_current(self.now) and former.instance_id != request.instance_id
        if other and not request.takeover:
            raise RunnerIdInUse.named(request.runner_id)
        epoch = former.epoch + 1 if former else 1
        expire_time = self.now + request.lease_duration.ToTimedelta()
        before = {key: self.load(key) for key in self.tasks}
        verdicts: list[lease_pb2.LeaseVerdict] = []
        # Each listed lease gets its own verdict: an agent may list several generations of one task.
        for ref in request.held:
            event = _returned(request.runner_id, ref, epoch, expire_time)
            if verdict := self._return(parse_task_name(ref.task, "task"), ref, event):
                verdicts.append(verdict)
        listed = {(ref.task, ref.generation, ref.lease_id) for ref in request.held}
        for key, task in before.items():
            lease = task.lease
            if lease is None or lease.runner_id != request.runner_id:
                continue
            if (task.name, task.generation, lease.lease_id) not in listed:
                self._apply(key, RunnerLost(generation=task.generation, cause=LossCause.NOT_LISTED))
        self.sessions[request.runner_id] = SessionRow(epoch, request.instance_id, expire_time)
        self._notify()
        return sessions.OpenSessionResponse(
            session_id=f"{request.runner_id}/{epoch}",
            session_epoch=epoch,
            runner=runner_pb2.Runner(name=f"runners/{request.runner_id}"),
            verdicts=verdicts,
        )

    def _return(
        self, key: Key, ref: lease_pb2.LeaseRef, event: HolderReturned
    ) -> lease_pb2.LeaseVerdict | None:
        try:
            if key not in self.tasks:
                raise NotFound("task", ref.task)
            self._apply(key, event)
        except TaskyardError as error:
            action = lease_pb2.LEASE_ACTION_ABORT
            return lease_pb2.LeaseVerdict(lease=ref, action=action, reason=error.reason)
        return None

    def renew_sessions(self, request: sessions.RenewSessionsRequest) -> sessions.RenewSessionsResponse:
        return sessions.RenewSessionsResponse(results=[self._renew(item) for item in request.sessions])

    def _renew(self, renewal: sessions.SessionRenewal) -> sessions.SessionRenewalResult:
        session = self.sessions.get(renewal.runner_id)
        if session is None or session.epoch != renewal.session_epoch or not session.is_current(self.now):
            return sessions.SessionRenewalResult(lost=True)
        expire_time = self.now + renewal.lease_duration.ToTimedelta()
        self.sessions[renewal.runner_id] = replace(session, expire_time=expire_time)
        verdicts = []
        for ref in renewal.listed:
            event = _returned(renewal.runner_id, ref, renewal.session_epoch, expire_time)
            if verdict := self._return(parse_task_name(ref.task, "task"), ref, event):
                verdicts.append(verdict)
        return sessions.SessionRenewalResult(verdicts=verdicts)

    def close_session(self, request: sessions.CloseSessionRequest) -> sessions.CloseSessionResponse:
        session = self.sessions.get(request.runner_id)
        if session is None or session.epoch != request.session_epoch:
            raise SessionSuperseded(request.runner_id)
        if not request.disconnected:
            self.sessions[request.runner_id] = replace(session, closed=True)
        return sessions.CloseSessionResponse()

    # ---- sweep

    def sweep(self) -> None:
        """Expire what is overdue."""
        now = self.now
        for key in list(self.tasks):
            task = self.load(key)
            if task.lease is not None and task.lease.expire_time <= now and task.phase in LEASED:
                self._apply(key, LeaseExpired(generation=task.generation))
        self._notify()


LEASED = (Phase.SCHEDULED, Phase.RUNNING)


def read_event(runner_id: str, report: lease_pb2.RunReport) -> HolderEvent:
    """The reports that simulations make, as the lifecycle understands them."""
    common = {
        "actor": runner(runner_id),
        "runner_id": runner_id,
        "generation": report.lease.generation,
        "lease_id": report.lease.lease_id,
    }
    kind = report.WhichOneof("report")
    if kind == "started":
        return Started(**common)  # type: ignore[arg-type]
    if kind == "succeeded":
        return Succeeded(**common)  # type: ignore[arg-type]
    if kind == "released":
        return Released(reason=ReleaseReason(report.released.reason), **common)  # type: ignore[arg-type]
    return ProgressReported(progress=b"", **common)  # type: ignore[arg-type]


def _returned(runner_id: str, ref: lease_pb2.LeaseRef, epoch: int, expire_time: datetime) -> HolderReturned:
    return HolderReturned(
        actor=runner(runner_id),
        runner_id=runner_id,
        generation=ref.generation,
        lease_id=ref.lease_id,
        session_epoch=epoch,
        expire_time=expire_time,
    )
