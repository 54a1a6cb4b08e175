"""Default limits of tasks that request none, so that no task can use the whole host."""

from __future__ import annotations

import os
from dataclasses import dataclass

from taskyard.v1.common_pb2 import Resources

_MIB = 1 << 20


@dataclass(frozen=True)
class DefaultLimits:
    """In MiB; 0 = none."""

    memory_mb: int = 0
    disk_mb: int = 0

    def fill(self, requested: Resources) -> Resources:
        """The task's resources, with defaults where it requests none."""
        return Resources(
            cpu_millis=requested.cpu_millis,
            memory_mb=requested.memory_mb or self.memory_mb,
            disk_mb=requested.disk_mb or self.disk_mb,
        )


def find_limits(memory_mb: int, disk_mb: int, runs_directory: str, *, groups: bool) -> DefaultLimits:
    """The limits in force; -1 means half of what the host has.

    Without control groups memory is limited by address space, of which many programs reserve far more than
    they use: a default would break them.
    """
    if memory_mb < 0:
        memory_mb = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // _MIB // 2
    if disk_mb < 0:
        found = os.statvfs(runs_directory)
        disk_mb = found.f_blocks * found.f_frsize // _MIB // 2
    return DefaultLimits(memory_mb if groups else 0, disk_mb)
