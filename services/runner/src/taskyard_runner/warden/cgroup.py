"""Control groups, v1 or v2: one per run, to limit it and to find every process of it."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

from taskyard_runner.warden.process import signal_process

_PERIOD_US = 100_000
_CONTROLLERS = ("memory", "pids", "cpu")


@dataclass(frozen=True)
class Limits:
    """The limits of a run; 0 = no limit."""

    memory_bytes: int = 0
    cpu_millis: int = 0
    pids: int = 0
    file_bytes: int = 0


class Group(Protocol):
    """The control group of one run."""

    def joins(self) -> list[str]:
        """Files into which a process writes "0" to belong to the group."""
        ...

    def limit(self, limits: Limits) -> list[str]:
        """Set its limits; the files to join besides, for them to hold. Raises OSError if the host refuses."""
        ...

    def pids(self) -> list[int]:
        """Every live process of the group."""
        ...

    def kill(self) -> int:
        """Kill every process of the group; how many are still to be seen."""
        ...

    def out_of_memory(self) -> bool:
        """Whether the kernel killed a process of the group for its memory limit."""
        ...

    def out_of_processes(self) -> bool:
        """Whether the kernel refused the group a process for its limit of them."""
        ...

    def remove(self) -> bool:
        """Remove the group; False while it still has processes."""
        ...


class Hierarchy(Protocol):
    """A place under which groups can be made."""

    version: str

    def make(self, name: str) -> Group:
        """A new group without limits; raises OSError if the host refuses."""
        ...

    def leftovers(self) -> Iterator[Group]:
        """Groups that an earlier warden left behind."""
        ...

    def close(self) -> None:
        """Remove the place, if nothing is left in it."""
        ...


def find_hierarchy(owner: str) -> tuple[Hierarchy | None, str]:
    """A hierarchy in which limits are proved to work, or None and why there is none."""
    problems = []
    for kind in (V2Hierarchy, _V1):
        try:
            hierarchy: Hierarchy = kind.of_this_process(owner)
            probe = hierarchy.make(f"probe-{os.getpid()}")
            try:
                probe.limit(Limits(memory_bytes=64 << 20, cpu_millis=1000, pids=64))
            finally:
                probe.remove()
            return hierarchy, ""
        except OSError as error:
            where = f" {error.filename}" if error.filename else ""
            problems.append(f"{kind.version}: {error.strerror or error}{where}")
    return None, "; ".join(problems)


class V2Hierarchy:
    version = "cgroup v2"

    @classmethod
    def of_this_process(cls, owner: str) -> V2Hierarchy:
        """Below or beside the group of this process. Raises OSError."""
        mount, _ = _mounts().get("", ("", ""))
        if not mount:
            raise OSError("not mounted")
        return cls(owner, mount, _memberships().get("", "/"))

    def __init__(self, owner: str, mount: str, group: str) -> None:
        home = os.path.normpath(f"{mount}/{group}")
        # Below the own group if it was delegated to this process alone, else at the top, as root may.
        alone = home != mount and _read(f"{home}/cgroup.procs").split() == [str(os.getpid())]
        home = home if alone else mount
        if "memory" not in _read(f"{home}/cgroup.controllers").split():
            raise OSError("the memory controller is not delegated")
        if alone:
            # Only a group without processes of its own may hand controllers down.
            os.makedirs(f"{home}/warden", exist_ok=True)
            _write(f"{home}/warden/cgroup.procs", str(os.getpid()))
        self._base = f"{home}/taskyard-{owner}"
        controllers = " ".join(f"+{name}" for name in _CONTROLLERS)
        _write(f"{home}/cgroup.subtree_control", controllers)
        os.makedirs(self._base, exist_ok=True)
        _write(f"{self._base}/cgroup.subtree_control", controllers)

    def make(self, name: str) -> Group:
        path = f"{self._base}/{name}"
        os.mkdir(path)
        return V2Group(path)

    def leftovers(self) -> Iterator[Group]:
        yield from (V2Group(path) for path in _children(self._base))

    def close(self) -> None:
        _remove(self._base)


class V2Group:
    def __init__(self, path: str) -> None:
        self._path = path

    def joins(self) -> list[str]:
        return [f"{self._path}/cgroup.procs"]

    def limit(self, limits: Limits) -> list[str]:
        if limits.memory_bytes:
            _write(f"{self._path}/memory.max", str(limits.memory_bytes))
            with contextlib.suppress(OSError):
                _write(f"{self._path}/memory.swap.max", "0")
        if limits.pids:
            _write(f"{self._path}/pids.max", str(limits.pids))
        if limits.cpu_millis:
            _write(f"{self._path}/cpu.max", f"{limits.cpu_millis * _PERIOD_US // 1000} {_PERIOD_US}")
        return []

    def pids(self) -> list[int]:
        return _pids(self._path)

    def kill(self) -> int:
        if not self.pids():
            return 0
        try:
            _write(f"{self._path}/cgroup.kill", "1")
        except OSError:
            # Kernels before 5.14 have no such file.
            return _kill_all(self)
        return len(self.pids())

    def out_of_memory(self) -> bool:
        return _counter(f"{self._path}/memory.events", "oom_kill") > 0

    def out_of_processes(self) -> bool:
        return _counter(f"{self._path}/pids.events", "max") > 0

    def remove(self) -> bool:
        return _remove(self._path)


class _V1:
    version = "cgroup v1"

    @classmethod
    def of_this_process(cls, owner: str) -> _V1:
        """Below the groups of this process. Raises OSError."""
        return cls(owner)

    def __init__(self, owner: str) -> None:
        mounts, memberships = _mounts(), _memberships()
        self._bases: dict[str, str] = {}
        for controller in _CONTROLLERS:
            if controller not in mounts:
                raise OSError(f"the {controller} controller is not mounted")
            mount, root = mounts[controller]
            own = os.path.relpath(memberships.get(controller, "/"), root)
            base = os.path.normpath(f"{mount}/{own}/taskyard-{owner}")
            os.makedirs(base, exist_ok=True)
            self._bases[controller] = base

    def make(self, name: str) -> Group:
        paths = {controller: f"{base}/{name}" for controller, base in self._bases.items()}
        # A service manager may have removed the empty parent groups.
        os.makedirs(paths["pids"])
        return _V1Group(paths)

    def leftovers(self) -> Iterator[Group]:
        names = {os.path.basename(path) for base in self._bases.values() for path in _children(base)}
        for name in names:
            yield _V1Group({controller: f"{base}/{name}" for controller, base in self._bases.items()})

    def close(self) -> None:
        for base in self._bases.values():
            _remove(base)


class _V1Group:
    """Found by the pids controller; the others are joined for a limit only, because each costs time."""

    def __init__(self, paths: Mapping[str, str]) -> None:
        self._paths = paths

    def joins(self) -> list[str]:
        return [f"{self._paths['pids']}/cgroup.procs"]

    def limit(self, limits: Limits) -> list[str]:
        joins = []
        if limits.pids:
            _write(f"{self._paths['pids']}/pids.max", str(limits.pids))
        if limits.memory_bytes:
            memory = self._paths["memory"]
            os.makedirs(memory)
            _write(f"{memory}/memory.limit_in_bytes", str(limits.memory_bytes))
            with contextlib.suppress(OSError):
                _write(f"{memory}/memory.memsw.limit_in_bytes", str(limits.memory_bytes))
            joins.append(f"{memory}/cgroup.procs")
        if limits.cpu_millis:
            cpu = self._paths["cpu"]
            os.makedirs(cpu)
            _write(f"{cpu}/cpu.cfs_period_us", str(_PERIOD_US))
            _write(f"{cpu}/cpu.cfs_quota_us", str(limits.cpu_millis * _PERIOD_US // 1000))
            joins.append(f"{cpu}/cgroup.procs")
        return joins

    def pids(self) -> list[int]:
        return _pids(self._paths["pids"])

    def kill(self) -> int:
        return _kill_all(self)

    def out_of_memory(self) -> bool:
        return _counter(f"{self._paths['memory']}/memory.oom_control", "oom_kill") > 0

    def out_of_processes(self) -> bool:
        return _counter(f"{self._paths['pids']}/pids.events", "max") > 0

    def remove(self) -> bool:
        removed = [_remove(path) for path in self._paths.values()]
        return all(removed)


def _kill_all(group: Group) -> int:
    # A process that forks while the list is read leaves a child that the next round finds; the limit on
    # processes bounds the rounds.
    pids: list[int] = []
    for _ in range(100):
        pids = group.pids()
        if not pids:
            return 0
        for pid in pids:
            signal_process(pid, signal.SIGKILL)
    return len(pids)


def _mounts() -> dict[str, tuple[str, str]]:
    """Controller to (mount point, root of the mount); "" is the v2 hierarchy."""
    found: dict[str, tuple[str, str]] = {}
    for line in _read("/proc/self/mountinfo").splitlines():
        before, _, after = line.partition(" - ")
        root, point = before.split()[3:5]
        kind, _, options = after.split()[:3]
        if kind == "cgroup2":
            found[""] = (point, root)
        elif kind == "cgroup":
            for controller in options.split(","):
                found.setdefault(controller, (point, root))
    return found


def _memberships() -> dict[str, str]:
    """Controller to the path of this process's group; "" is the v2 hierarchy."""
    found: dict[str, str] = {}
    for line in _read("/proc/self/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        found.update(dict.fromkeys(controllers.split(","), path))
    return found


def _children(path: str) -> list[str]:
    try:
        return [entry.path for entry in os.scandir(path) if entry.is_dir()]
    except OSError:
        return []


def _pids(path: str) -> list[int]:
    try:
        return [int(pid) for pid in _read(f"{path}/cgroup.procs").split()]
    except OSError:
        return []


def _counter(path: str, name: str) -> int:
    try:
        rows = dict(line.split() for line in _read(path).splitlines())
    except OSError:
        return 0
    return int(rows.get(name, 0))


def _remove(path: str) -> bool:
    try:
        os.rmdir(path)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def _read(path: str) -> str:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return b"".join(iter(lambda: os.read(fd, 65536), b"")).decode()
    finally:
        os.close(fd)


def _write(path: str, text: str) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)
