"""One chaos run: a topology under load, faults, healing, and the verdict of the checker."""

from __future__ import annotations

import asyncio
import math
import random
import shutil
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.chaos import faults
from tests.chaos.checker import TERMINAL, Recorded, Trouble, check
from tests.chaos.faults import Fault, Injector
from tests.chaos.final_state import FinalState, read_database, read_final_state
from tests.chaos.history import History, now
from tests.chaos.load import CANARY_SECONDS, Canary, Load
from tests.chaos.topology import FIRST_LEASE_SECONDS, LEASE_SECONDS, Topology
from tests.harness.processor import seconds_waited

# Everything ends within this time after healing; a busy machine needs more than an idle one.
HEAL_SECONDS = 120.0
# A lease may end this long after the fault that took its renewal away.
AFTER = 4 * LEASE_SECONDS + 10
# An event loop that was held up for this long had no processor, and so had the runners; nor have they when
# this process waits for one for more than half of the time. Leases and recovery are not judged then.
STARVED_SECONDS = 0.7
WAITED_SHARE = 0.5


@dataclass
class Outcome:
    """The verdict on a run, and its figures."""

    violations: list[str]
    faults: list[Fault]
    kinds: Counter[str]
    tasks: int = 0
    runs: int = 0
    lost_runs: int = 0
    rejected_reports: int = 0
    leader_writes: int = 0
    starved: float = 0.0
    recovery: dict[str, list[tuple[float, float]]] = field(default_factory=dict)


class ChaosRun:
    """The load and the faults of one run on a topology, which may outlive it."""

    def __init__(self, topology: Topology, seed: int, prefix: str = "t") -> None:
        self._topology = topology
        self._rng = random.Random(seed)
        folder = topology.folder / f"run-{prefix}"
        folder.mkdir()
        folder.chmod(0o755)
        self.history = History(folder)
        self.injector = Injector(topology, self.history)
        self.load = Load(topology, self.history, self._rng, prefix)
        self._canary = Canary(topology)
        self._starved: list[tuple[float, float]] = []
        self._rejected = topology.logs().count("report_rejected")

    async def start(self, users: int) -> None:
        self._watchdog = asyncio.create_task(self._watch_starvation())
        await self.load.start(users)

    async def _watch_starvation(self) -> None:
        since, waited = now(), seconds_waited()
        while True:
            before = now()
            await asyncio.sleep(0.1)
            if now() - before > STARVED_SECONDS:
                self._note_starved(before)
            if now() - since > 1.0:
                if seconds_waited() - waited > WAITED_SHARE * (now() - since):
                    self._note_starved(since)
                since, waited = now(), seconds_waited()

    def _note_starved(self, since: float) -> None:
        """Adds an interval, or makes the last one longer."""
        if self._starved and since - self._starved[-1][1] < 1.0:
            self._starved[-1] = (self._starved[-1][0], now())
        else:
            self._starved.append((since, now()))

    def _was_starved(self, begin: float, end: float) -> bool:
        return any(since < end and until > begin for since, until in self._starved)

    async def inject(self, name: str, hold: float) -> Fault:
        """One fault; measures recovery from its begin."""
        begin = now()
        measured = asyncio.create_task(self._canary.measure(begin))
        fault = await self.injector.run(name, hold)
        fault.created, fault.canary = await measured
        if math.isinf(fault.canary):
            # Evidence: what the database holds about it now.
            stuck = await asyncio.to_thread(read_database, self._topology.url)
            for task, stored in stuck.tasks.items():
                if task.startswith("canary") and stored.phase < TERMINAL:
                    self.history.add("stalled", task=task, fault=name, stored=repr(stored))
        return fault

    async def inject_random(self, seconds: float) -> None:
        """Faults by the seed, two at a time at most, until the time is over."""
        deadline = now() + seconds
        running: set[asyncio.Task[Fault]] = set()
        while now() < deadline:
            name, hold = faults.draw(self._rng, self._topology)
            subjects = {task.get_name() for task in running}
            if self._conflicts(name, subjects):
                continue
            running.add(asyncio.create_task(self.inject(name, hold), name=name))
            await asyncio.sleep(self._rng.uniform(0.5, 4.0))
            if len(running) >= 2:
                done, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    task.result()
        await asyncio.gather(*running)

    def _conflicts(self, name: str, others: set[str]) -> bool:
        """Whether a fault concerns a process that another one is about to restart."""
        owner = name.split()[1].partition(".")[0]
        busy = {other.split()[1].partition(".")[0] for other in others}
        database = {"postmaster", "backend"}
        return owner in busy or (owner in database and bool(busy & database))

    async def finish(self) -> Outcome:
        """Lets everything end, reads the state, and checks it."""
        unended = await self.load.stop(HEAL_SECONDS)
        effects = self.history.effects()
        expected: dict[tuple[str, int], int] = defaultdict(int)
        for effect in effects:
            if effect.what == "step":
                key = (effect.task, effect.generation)
                expected[key] = max(expected[key], effect.n)
        names = self.load.plans.keys() | {entry.task for entry in self.history.of("watch")}
        final = await read_final_state(self._topology, names, expected)
        for name in unended:
            self.history.add("stalled", task=name, stored=repr(final.tasks.get(name)))
        await self.load.watched({name: task.version for name, task in final.tasks.items()}, 30.0)
        self._watchdog.cancel()
        await self.load.close()
        await self._canary.close()
        recorded = Recorded(
            self.load.plans,
            self.history.entries,
            effects,
            self._troubles(),
            unended,
            self.load.failures,
            [(fault.name, fault.fired) for fault in self.injector.faults],
            [
                fault.name
                for fault in self.injector.faults
                if math.isinf(fault.canary)
                and not self._was_starved(fault.begin, fault.begin + CANARY_SECONDS)
            ],
            [
                (f.begin, f.end)
                for f in self.injector.faults
                if f.verb == "stop" and f.subject.endswith(".all")
            ],
        )
        violations = check(recorded, final)
        for name in [name for name in final.tasks if any(name in violation for violation in violations)]:
            self.history.add("violated", task=name, stored=repr(final.tasks[name]))
        self.history.close()
        if violations:
            self._keep_evidence()
        return self._outcome(violations, final)

    def _keep_evidence(self) -> None:
        """Copies the history and the logs of a failed run to where they outlive its topology."""
        folder = self._topology.folder
        kept = Path(f"{folder}-kept")
        kept.mkdir()
        for path in (self.history.path, self.history.effects_path, *folder.glob("*.log")):
            shutil.copy(path, kept)
        print(f"history and logs are in {kept}", flush=True)

    def _troubles(self) -> list[Trouble]:
        """When which runner may lose a lease without a defect."""
        found = [Trouble("*", begin - 1, end + AFTER, "starved") for begin, end in self._starved]
        for fault in self.injector.faults:
            # The outage lasts until a canary task ends: processes take a while to start on a busy machine.
            outage = max(
                fault.end - fault.begin, fault.canary if math.isfinite(fault.canary) else HEAL_SECONDS
            )
            end = fault.begin + outage + AFTER
            target = self._topology.targets.get(fault.subject)
            kind = target.kind if target else ""
            if fault.verb in faults.NETWORK:
                owner = fault.subject.partition("-")[0]
                on_runner = any(key.startswith(f"{owner}.") for key in self._topology.targets)
                found.append(Trouble(owner if on_runner else "*", fault.begin, end, fault.name))
            elif kind in faults.RUNNER_KINDS or fault.verb == "disk":
                found.append(Trouble(fault.subject.partition(".")[0], fault.begin, end, fault.name))
            # The first lease of an assignment counts from a heartbeat, which may have been sent before.
            elif kind != "gateway" and outage > FIRST_LEASE_SECONDS / 2:
                found.append(Trouble("*", fault.begin, end, fault.name))
        return found

    def _outcome(self, violations: list[str], final: FinalState) -> Outcome:
        runs = [run for task in final.tasks.values() for run in task.runs.values()]
        made = self.injector.faults
        recovery: dict[str, list[tuple[float, float]]] = defaultdict(list)
        for fault in made:
            if 0 < fault.canary < math.inf:
                recovery[fault.kind(self._topology)].append((fault.created, fault.canary))
        return Outcome(
            violations,
            made,
            Counter(fault.kind(self._topology) for fault in made),
            tasks=len(final.tasks),
            runs=len(runs),
            lost_runs=sum(run.state == 7 for run in runs),
            rejected_reports=self._topology.logs().count("report_rejected") - self._rejected,
            leader_writes=len(final.leader_writes),
            starved=sum(end - begin for begin, end in self._starved),
            recovery=dict(recovery),
        )


def recovery_table(outcomes: Sequence[Outcome]) -> str:
    """Median and worst time to the first create and to the end of a canary task, by kind of fault."""
    merged: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for outcome in outcomes:
        for kind, measured in outcome.recovery.items():
            merged[kind] += measured
    rows = ["| fault | times | create answered, median / worst s | canary ended, median / worst s |"]
    rows.append("|---|---|---|---|")
    for kind, measured in sorted(merged.items()):
        cells = []
        for part in range(2):
            ordered = sorted(pair[part] for pair in measured)
            cells.append(f"{ordered[len(ordered) // 2]:.1f} / {ordered[-1]:.1f}")
        rows.append(f"| {kind} | {len(measured)} | {cells[0]} | {cells[1]} |")
    return "\n".join(rows)
