"""The faults of the chaos suite, each with the proof that it fired.

A fault is named `kill taskdb0`, `stop runner1.agent`, `reset runner0-scheduler0`, `failpoint taskdb1
report.after_commit` or `disk runner0`.
"""

from __future__ import annotations

import asyncio
import errno
import random
import signal
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

import psutil

from tests.chaos.history import History, now
from tests.chaos.topology import Target, Topology
from tests.harness.tcp_proxy import TcpProxy

NETWORK = ("blackhole", "forth", "back", "reset", "throttle", "delay")
FAILPOINTS = (
    "create.before_commit",
    "create.after_commit",
    "claim.after_commit",
    "report.before_commit",
    "report.after_commit",
    "checkpoint.before_commit",
    "checkpoint.after_commit",
)
# How long a process that is just being started again is waited for.
VICTIM_SECONDS = 20.0
# How long a failpoint may take to be reached under the load, before callers are sent to its process again.
FAILPOINT_SECONDS = 5.0
FAILPOINT_ROUNDS = 12
# Longer than the term of a leader of housekeeping.
LEADER_SECONDS = 12.0
# What a fault may hurt besides its subject: these runners may lose leases while it lasts.
RUNNER_KINDS = ("warden", "agent", "runner", "host")


@dataclass
class Fault:
    """One fault of a run: when it was there and whether it did anything."""

    name: str
    begin: float = 0.0
    end: float = 0.0
    fired: bool = False
    created: float = 0.0
    canary: float = 0.0

    @property
    def verb(self) -> str:
        return self.name.split()[0]

    @property
    def subject(self) -> str:
        return self.name.split()[1]

    def kind(self, topology: Topology) -> str:
        """A name for tables: the verb and the kind of its subject."""
        target = topology.targets.get(self.subject)
        if target is not None and self.verb in ("kill", "stop"):
            return f"{self.verb} {target.kind}"
        if self.verb in NETWORK:
            return f"{self.verb} {_hop_kind(self.subject)}"
        return self.verb


def _hop_kind(hop: str) -> str:
    near, _, far = hop.partition("-")
    near = "runner" if near == "worker" else near
    return f"{near.rstrip('0123456789')}-{far.rstrip('0123456789')}"


class Injector:
    """Injects faults into a topology and heals them."""

    def __init__(self, topology: Topology, history: History) -> None:
        self._topology = topology
        self._history = history
        self.faults: list[Fault] = []

    async def run(self, name: str, hold: float) -> Fault:
        """Injects the fault, keeps it for `hold` seconds and heals it; returns once its process is back."""
        fault = Fault(name, begin=now())
        self.faults.append(fault)
        self._history.add("fault.begin", name=name)
        try:
            if fault.verb == "kill":
                await self._kill(fault, hold)
            elif fault.verb == "stop":
                await self._stop(fault, hold)
            elif fault.verb == "failpoint":
                await self._failpoint(fault)
            elif fault.verb == "disk":
                await self._fill_disk(fault, hold)
            else:
                await self._network(fault, hold)
        finally:
            fault.end = now()
            self._history.add("fault.end", name=name, fired=fault.fired)
        return fault

    async def _kill(self, fault: Fault, hold: float) -> None:
        target = self._topology.targets[fault.subject]
        victims = await _victims(target)
        fault.begin = now()
        for victim in victims:
            with suppress(psutil.NoSuchProcess):
                victim.kill()
        await asyncio.sleep(hold)
        fault.fired = bool(victims) and await _all_gone(victims, VICTIM_SECONDS)
        if target.restart is not None:
            await target.restart()

    async def _stop(self, fault: Fault, hold: float) -> None:
        target = self._topology.targets[fault.subject]
        victims = await _victims(target)
        for victim in victims:
            with suppress(psutil.NoSuchProcess):
                victim.suspend()
        try:
            await asyncio.sleep(hold)
            fault.fired = any(_is_stopped(victim) for victim in victims)
        finally:
            for victim in reversed(victims):
                with suppress(psutil.NoSuchProcess):
                    victim.resume()

    async def _failpoint(self, fault: Fault) -> None:
        """The process gets a failpoint that kills it, and starts again without one."""
        target = self._topology.targets[fault.subject]
        await self._topology.failpoints[fault.subject](f"{fault.name.split()[2]}=kill")
        victims = _processes(target)
        for _ in range(FAILPOINT_ROUNDS):
            # Whoever went to the other replica meanwhile comes back.
            for name, hop in self._topology.hops.items():
                if "-taskdb" in name and not name.endswith(fault.subject):
                    hop.reset()
            fault.fired = await _all_gone(victims, FAILPOINT_SECONDS)
            if fault.fired:
                break
        if not fault.fired:
            target.signal(signal.SIGKILL)
        assert target.restart is not None
        await target.restart()

    async def _fill_disk(self, fault: Fault, hold: float) -> None:
        filler = self._topology.disks[fault.subject] / "filler"
        try:
            fault.fired = await asyncio.to_thread(_fill, str(filler))
            await asyncio.sleep(hold)
        finally:
            filler.unlink(missing_ok=True)

    async def _hop(self, name: str) -> TcpProxy:
        """The hop once it is in use, or its twin to another replica if that is the one in use."""
        kin = name.rstrip("0123456789")
        twins = [hop for other, hop in self._topology.hops.items() if other.rstrip("0123456789") == kin]
        candidates = [self._topology.hops[name], *twins]
        deadline = now() + VICTIM_SECONDS
        while now() < deadline:
            for hop in candidates:
                if hop.open_connections:
                    return hop
            await asyncio.sleep(0.05)
        return candidates[0]

    async def _network(self, fault: Fault, hold: float) -> None:
        hop = await self._hop(fault.subject)
        fault.fired = hop.open_connections > 0
        fault.begin = now()
        if fault.verb == "reset":
            hop.reset()
        elif fault.verb == "throttle":
            hop.bytes_per_second = 4_000.0
        elif fault.verb == "delay":
            hop.delay_seconds = 0.4
        else:
            hop.blackhole(forth=fault.verb != "back", back=fault.verb != "forth")
        try:
            await asyncio.sleep(hold)
        finally:
            hop.heal()


async def _all_gone(victims: list[psutil.Process], seconds: float) -> bool:
    """Whether they end within this time."""
    deadline = now() + seconds
    while any(_alive(victim) for victim in victims):
        if now() > deadline:
            return False
        await asyncio.sleep(0.02)
    return True


async def _victims(target: Target) -> list[psutil.Process]:
    """The processes, once there are any: another fault may have ended them just before."""
    deadline = now() + VICTIM_SECONDS
    while True:
        found = await asyncio.to_thread(_processes, target)
        if any(_alive(process) for process in found) or now() > deadline:
            return found
        await asyncio.sleep(0.1)


def _processes(target: Target) -> list[psutil.Process]:
    found = []
    for pid in target.pids():
        with suppress(psutil.NoSuchProcess):
            found.append(psutil.Process(pid))
    return found


def _alive(process: psutil.Process) -> bool:
    with suppress(psutil.NoSuchProcess):
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False


def _is_stopped(process: psutil.Process) -> bool:
    with suppress(psutil.NoSuchProcess):
        return process.status() == psutil.STATUS_STOPPED
    return False


def _fill(path: str) -> bool:
    """Whether the file system is full now."""
    with open(path, "wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(1 << 16))
        except OSError as error:
            return error.errno == errno.ENOSPC


def all_faults(topology: Topology) -> list[str]:
    """Every fault that the topology can have."""
    return list(_all(topology))


def _all(topology: Topology) -> Iterator[str]:
    for name, target in topology.targets.items():
        if target.kind != "runner":
            yield f"kill {name}"
        if target.kind != "backend":
            yield f"stop {name}"
    for hop in topology.hops:
        for mode in NETWORK:
            yield f"{mode} {hop}"
    for name in topology.failpoints:
        for point in FAILPOINTS:
            yield f"failpoint {name} {point}"
    for name in topology.disks:
        yield f"disk {name}"


def draw(rng: random.Random, topology: Topology) -> tuple[str, float]:
    """A fault by kind first, so that many hops do not crowd out the processes; and how long it lasts."""
    by_verb: dict[str, list[str]] = {}
    for name in all_faults(topology):
        verb = name.split()[0]
        by_verb.setdefault("net" if verb in NETWORK else verb, []).append(name)
    weights = {"kill": 8, "stop": 5, "net": 6, "failpoint": 2, "disk": 1}
    verbs = sorted(by_verb)
    verb = rng.choices(verbs, [weights[verb] for verb in verbs])[0]
    hold = rng.choice([0.0, 0.2, 1.0, 2.0] if verb == "kill" else [1.0, 2.0, 4.0, 9.0])
    name = rng.choice(by_verb[verb])
    return name, LEADER_SECONDS if hold == 9.0 and name.startswith("stop taskdb") else hold
