"""Scratch disk: measures each run's directory periodically and stops a run above its limit."""

from __future__ import annotations

import asyncio
import os
import time

from taskyard_kit.logs import get_log
from taskyard_runner.agent.run import AgentRun
from taskyard_runner.agent.runs import Runs
from taskyard_runner.warden.deadline import StopReason

_INTERVAL = 1.0
# Measuring takes at most this part of the time, however many files there are.
_SHARE = 0.1
_MIB = 1 << 20
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC

log = get_log(__name__)


class DiskWatch:
    """Measures runs that have a limit; costs nothing while there are none."""

    def __init__(self, runs: Runs, default_mb: int) -> None:
        self._runs = runs
        self._default_mb = default_mb

    async def run(self, changed: asyncio.Event) -> None:
        """Watch until cancelled; `changed` signals that there may be a new run."""
        while True:
            limited = [run for run in self._runs.table.live() if run.started and self._limit_mb(run)]
            if not limited:
                changed.clear()
                await changed.wait()
                # Something changes all the time on a busy runner; looking at every run costs as much then.
                await asyncio.sleep(_INTERVAL)
                continue
            began = time.monotonic()
            for run in limited:
                await self._measure(run)
            await asyncio.sleep(max(_INTERVAL, (time.monotonic() - began) / _SHARE))

    def _limit_mb(self, run: AgentRun) -> int:
        # Functions are the operator's own code, and have no directory before they ask for one.
        return run.resources.disk_mb or (self._default_mb if run.executor is None else 0)

    async def _measure(self, run: AgentRun) -> None:
        used = await asyncio.to_thread(disk_usage, str(run.directory.root))
        if used > self._limit_mb(run) * _MIB and not run.ended:
            log.warning("disk_limit_reached", task=run.lease.task, used_bytes=used)
            self._runs.stop(run, StopReason.DISK_FULL, 0.0)


def disk_usage(folder: str) -> int:
    """Bytes that a folder takes up on disk; what vanishes meanwhile does not count.

    It holds one directory open at a time and resolves one name at a time: a workload may nest them to any
    depth, and may put a link in the place of one.
    """
    try:
        fd = os.open(folder, _DIRECTORY)
    except OSError:
        return 0
    above: list[tuple[tuple[int, int], list[str]]] = []
    total, names = _files(fd)
    while names or above:
        down = bool(names)
        child = _step(fd, names.pop() if down else "..")
        if child is None and down:
            continue
        if down:
            above.append((_identity(fd), names))
        os.close(fd)
        if child is None:
            return total
        fd = child
        if down:
            size, names = _files(fd)
            total += size
            continue
        expected, names = above.pop()
        if _identity(fd) != expected:
            # Moved meanwhile; the next turn measures it.
            break
    os.close(fd)
    return total


def _step(fd: int, name: str) -> int | None:
    try:
        return os.open(name, _DIRECTORY, dir_fd=fd)
    except OSError:
        return None


def _identity(fd: int) -> tuple[int, int]:
    found = os.fstat(fd)
    return found.st_dev, found.st_ino


def _files(fd: int) -> tuple[int, list[str]]:
    """The size of the files of a directory, and the names of its directories."""
    total, names = 0, []
    with os.scandir(fd) as entries:
        for entry in entries:
            try:
                if entry.is_dir(follow_symlinks=False):
                    names.append(entry.name)
                total += entry.stat(follow_symlinks=False).st_blocks * 512
            except OSError:
                continue
    return total, names
