"""Random hellos, heartbeats, claims and reports against a real taskdb, each answer judged by the lease model.

Time passes by changing stored times, in steps that keep a distance from every expiry.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta

from services.taskdb.tests.conftest import RunningTaskDb, make_yard
from services.taskdb.tests.yard import Runner, Yard, duration
from taskyard.errors import TaskyardError
from taskyard.v1 import common_pb2, lease_pb2, session_service_pb2, task_pb2, task_service_pb2
from taskyard_taskdb.storage.tenant import api_keys
from taskyard_taskdb.sweep.leader_election import Leadership
from taskyard_taskdb.sweep.lease_expiry import ExpirySweep, LeasePages
from taskyard_taskdb.sweep.timers import TimerSweep
from tests.chaos.lease_model import FIRST_LEASE, SESSION_LEASE, Claim, LeaseModel

# No sum of these comes nearer than 20 s to a lease of 100 s or 300 s.
STEP_SECONDS = (40, 40, 80, 120, 320)
AGE = """
UPDATE leases SET expire_time = expire_time - %(by)s;
UPDATE sessions SET expire_time = expire_time - %(by)s;
UPDATE timers SET due_time = due_time - %(by)s;
UPDATE tasks SET next_attempt_time = next_attempt_time - %(by)s WHERE next_attempt_time IS NOT NULL
"""
KINDS = ("started", "started", "succeeded", "failed", "released", "cancelled", "timed_out")


@dataclass
class SpooledReport:
    """A report that a runner could send, now or again."""

    claim: Claim
    kind: str
    forged: bool = False

    def message(self) -> lease_pb2.RunReport:
        message = lease_pb2.RunReport(lease=lease_ref(self.claim))
        if self.forged:
            message.lease.lease_id += 1
        getattr(message, self.kind).SetInParent()
        if self.kind == "failed":
            message.failed.error.code = "EXIT_NONZERO"
            message.failed.error.error_class = common_pb2.ERROR_CLASS_TRANSIENT
        elif self.kind == "timed_out":
            message.timed_out.code = "ATTEMPT_TIMEOUT"
        elif self.kind == "released":
            message.released.reason = lease_pb2.RELEASE_REASON_NO_CAPACITY
        return message


def lease_ref(claim: Claim) -> lease_pb2.LeaseRef:
    return lease_pb2.LeaseRef(task=claim.task, generation=claim.generation, lease_id=claim.lease_id)


class HelloFuzzer:
    """One seeded sequence. `violations` and `steps` say what broke, and after what."""

    def __init__(self, taskdb: RunningTaskDb, seed: int) -> None:
        self._taskdb = taskdb
        self._rng = random.Random(seed)
        self._shift = 0.0
        self._started = time.monotonic()
        self._leadership = Leadership(taskdb.pool, timedelta(0))
        self._expiry = ExpirySweep(taskdb.pool, LeasePages(taskdb.pool, taskdb.taskdb._after_commit))
        self._timers = TimerSweep(taskdb.pool, taskdb.taskdb._after_commit)
        self._runners: dict[str, Runner] = {}
        self._spool: list[SpooledReport] = []
        self.model = LeaseModel()
        self.steps: list[str] = []
        self.counts: Counter[str] = Counter()
        self.violations: list[str] = []

    async def run(self, steps: int) -> None:
        """Stops at the first violation."""
        self._yard: Yard = await make_yard(
            self._taskdb, await self._taskdb.caller(api_keys.SCHEDULER), await self._taskdb.caller()
        )
        assert await self._leadership.acquire()
        for name in ("r1", "r2", "r3"):
            await self._hello(name)
        actions: list[tuple[int, Callable[[], Awaitable[None]]]] = [
            (3, self._create),
            (8, self._claim),
            (9, self._hello),
            (6, self._renew),
            (10, self._report),
            (1, self._close),
            (1, self._cancel),
            (2, self._pass_time),
            (3, self._sweep),
            (2, self._reconnect_around_a_start),
        ]
        weights = [weight for weight, _ in actions]
        for _ in range(steps):
            ((_, act),) = self._rng.choices(actions, weights)
            self.model.now = self._shift + time.monotonic() - self._started
            await act()
            if self.violations:
                return
        await self._compare()

    def _note(self, step: str, violations: list[str] | None = None) -> None:
        self.steps.append(step)
        self.counts[step.split()[0]] += 1
        self.violations += violations or []

    def _claims(self) -> list[Claim]:
        return [claim for task in self.model.tasks.values() for claim in task.claims]

    async def _create(self) -> None:
        live = [task for task in self.model.tasks.values() if not task.phase]
        if len(live) >= 8:
            return
        slot = self._rng.choice(["", "", "", "press"])
        forbid = self._rng.random() < 0.6
        overlap = task_pb2.OVERLAP_POLICY_FORBID if forbid else task_pb2.OVERLAP_POLICY_ALLOW
        admission = task_pb2.ADMISSION_POLICY_QUEUE if slot else task_pb2.ADMISSION_POLICY_UNSPECIFIED
        retry = common_pb2.RetryPolicy(max_retries=4, max_runner_losses=20)
        retry.backoff.initial.CopyFrom(duration(1))
        (name,) = await self._yard.create(overlap=overlap, slot=slot, admission=admission, retry=retry)
        self.model.create(name, forbid=forbid, slot=slot)
        self._note(f"create {name} {'FORBID' if forbid else 'ALLOW'} {slot}")

    async def _reconnect_around_a_start(self) -> None:
        """The order of a runner whose link breaks before and after it reports a start."""
        name = self._rng.choice(list(self._runners))
        await self._claim(name)
        await self._hello(name)
        own = [claim for claim in self._claims() if claim.runner == name and self.model.current(claim)]
        if own and self._rng.random() < 0.3:
            await self._cancel(self._rng.choice(own).task)
        if own:
            await self._send(name, [SpooledReport(claim, "started") for claim in own])
            await self._hello(name)
            await self._sweep()
            await self._claim()

    async def _claim(self, name: str = "") -> None:
        runner = self._runners[name or self._rng.choice(list(self._runners))]
        limit = self._rng.choice([1, 1, 2, 5])
        result = await self._yard.claim(runner, limit, lease_seconds=FIRST_LEASE)
        session = self.model.sessions[runner.id]
        if result.assignments and session.closed:
            self._note(f"claim by {runner.id}", [f"I4 {runner.id} got work without a session"])
        for assignment in result.assignments:
            lease = assignment.lease
            found = self.model.claimed(runner.id, lease.task, lease.generation, lease.lease_id)
            self._note(f"claim {runner.id} {lease.task} {lease.generation}", found)

    def _listing(self, runner: str) -> list[Claim]:
        """What an agent may list: what it holds, what it ever held, in any order, repeated or foreign."""
        own = [claim for claim in self._claims() if claim.runner == runner]
        current = [claim for claim in own if self.model.current(claim)]
        how = self._rng.random()
        if how < 0.25:
            listed = current
        elif how < 0.4:
            listed = []
        elif how < 0.65:
            listed = [claim for claim in own if claim.task in {other.task for other in current}]
        elif how < 0.85:
            listed = self._rng.sample(own, self._rng.randint(0, len(own)))
        else:
            listed = self._rng.sample(self._claims(), min(4, len(self._claims())))
        self._rng.shuffle(listed)
        return listed + listed[: self._rng.choice([0, 0, 1])]

    async def _hello(self, name: str = "") -> None:
        runner = name or self._rng.choice(list(self._runners))
        listed = self._listing(runner)
        known = self._runners.get(runner, runner)
        if isinstance(known, Runner) and self._rng.random() < 0.3:
            known = Runner(runner, known.key_id)
        took, opened = await self._yard.hello(
            known,
            held=[lease_ref(claim) for claim in listed],
            takeover=True,
            lease_seconds=SESSION_LEASE,
        )
        self._runners[runner] = took
        found = self.model.hello(runner, opened.session_epoch, _distinct(listed), _aborted(opened.verdicts))
        shown = [(claim.task[-4:], claim.generation) for claim in listed]
        self._note(f"hello {runner} {opened.session_epoch} lists {shown}", found)

    async def _renew(self) -> None:
        runner = self._runners[self._rng.choice(list(self._runners))]
        listed = self._listing(runner.id)
        old = Runner(runner.id, runner.key_id, runner.epoch - (self._rng.random() < 0.15))
        if old.epoch < 1:
            return
        result = await self._yard.renew(
            old, listed=[lease_ref(claim) for claim in listed], lease_seconds=SESSION_LEASE
        )
        aborted = _aborted(result.verdicts)
        found = self.model.renewed(runner.id, old.epoch, _distinct(listed), aborted, lost=result.lost)
        shown = [(claim.task[-4:], claim.generation) for claim in listed]
        self._note(f"renew {runner.id} {old.epoch} lists {shown} lost={result.lost}", found)

    async def _report(self) -> None:
        """Some new reports and some old ones again, of one runner, in any order."""
        known = self._claims()
        if not known:
            return
        fresh = [claim for claim in known if self.model.current(claim)] or known
        reports = [
            SpooledReport(self._rng.choice(fresh), self._rng.choice(KINDS), self._rng.random() < 0.08)
            for _ in range(self._rng.randint(1, 3))
        ]
        self._spool += reports
        reports += self._rng.sample(self._spool, min(len(self._spool), self._rng.randint(0, 2)))
        self._rng.shuffle(reports)
        await self._send(self._rng.choice([reports[0].claim.runner] * 9 + ["r1"]), reports)

    async def _send(self, runner: str, reports: list[SpooledReport]) -> None:
        results = await self._yard.report(runner, *(report.message() for report in reports))
        for report, result in zip(reports, results, strict=True):
            accepted = not result.HasField("error")
            repeat = accepted and result.duplicate
            if report.kind == "started" and report.claim.started and accepted:
                # A start of a run that goes on is acknowledged with or without the mark of a repeat.
                repeat = True
            found = self.model.reported(
                runner,
                report.claim,
                report.kind,
                forged=report.forged,
                accepted=accepted and not repeat,
                duplicate=repeat,
                phase=result.phase,
            )
            answer = "duplicate" if repeat else "accepted" if accepted else result.error.message[:60]
            shown = f"{report.claim.task[-4:]} {report.claim.generation} {report.kind}"
            self._note(f"report {runner} {shown}: {answer}", found)
            self.counts[answer if accepted else "rejected"] += 1

    async def _close(self) -> None:
        name = self._rng.choice(list(self._runners))
        runner, release = self._runners[name], self._rng.random() < 0.5
        await self._yard.scheduler.sessions.CloseSession(
            session_service_pb2.CloseSessionRequest(
                runner_id=name, session_epoch=runner.epoch, release=release
            )
        )
        if not self.model.sessions[name].closed:
            self.model.closed(name, release=release)
        self._note(f"close {name} release={release}")

    async def _cancel(self, name: str = "") -> None:
        name = name or self._rng.choice(list(self.model.tasks) or [""])
        if not name:
            return
        try:
            response = await self._yard.tenant.tasks.CancelTask(task_service_pb2.CancelTaskRequest(name=name))
        except TaskyardError as error:
            ended = self.model.tasks[name].phase
            self._note(f"cancel {name}: {error.reason}", [] if ended else [f"I9 {name}: {error}"])
            return
        self._note(f"cancel {name}", self.model.cancel(name, response.task.status.phase))

    async def _pass_time(self) -> None:
        seconds = self._rng.choice(STEP_SECONDS)
        for statement in AGE.strip().split(";"):
            async with self._taskdb.pool.transaction() as tx:
                await tx.execute(statement, {"by": timedelta(seconds=seconds)}, prepare=False)
        self._shift += seconds
        self._note(f"pass {seconds} s")

    async def _sweep(self) -> None:
        await self._leadership.acquire()
        await self._expiry.run(self._leadership)
        await self._timers.run(self._leadership)
        leased = await self._taskdb.rows("SELECT task_id, generation FROM leases")
        self._note("sweep", self.model.swept({(name, generation) for name, generation in leased}))

    async def _compare(self) -> None:
        """What ended stays as it ended."""
        for name, task in self.model.tasks.items():
            phase = (await self._yard.task(name)).status.phase
            if task.phase and phase != task.phase:
                self.violations.append(f"I3 {name} ended as {task.phase} and is {phase}")


def _distinct(listed: list[Claim]) -> list[Claim]:
    return list({id(claim): claim for claim in listed}.values())


def _aborted(verdicts: object) -> set[tuple[str, int]]:
    return {
        (verdict.lease.task, verdict.lease.generation)
        for verdict in verdicts  # type: ignore[attr-defined]
        if verdict.action == lease_pb2.LEASE_ACTION_ABORT
    }
