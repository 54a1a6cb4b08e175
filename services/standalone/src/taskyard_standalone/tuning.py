"""The PostgreSQL settings that a new cluster starts with, sized for the machine it is made on.

They are written to postgresql.conf once, where an operator may change them.
"""

import os
from pathlib import Path

_MIB = 1024 * 1024


def cluster_settings(memory: int) -> dict[str, str]:
    """postgresql.conf for one machine of `memory` bytes that runs Taskyard and its database."""
    buffers = min(max(memory // 16, 64 * _MIB), 512 * _MIB) // _MIB
    return {
        # Durability is the product: an acknowledged task survives a power failure.
        "fsync": "on",
        "synchronous_commit": "on",
        "full_page_writes": "on",
        "wal_level": "replica",
        # Bounds the log that a crash recovery has to read.
        "checkpoint_timeout": "5min",
        "max_wal_size": "2GB",
        "shared_buffers": f"{buffers}MB",
        "effective_cache_size": f"{max(memory // 2 // _MIB, 128)}MB",
        "max_connections": "200",
        # Short statements on few rows: compiling them or splitting them among workers only adds latency.
        "jit": "off",
        "max_parallel_workers_per_gather": "0",
        "random_page_cost": "1.1",
        # Queue tables turn over completely within minutes.
        "autovacuum_naptime": "10s",
        "timezone": "UTC",
        "log_timezone": "UTC",
        # The supervisor collects stderr in a file that it rotates.
        "logging_collector": "off",
        "log_destination": "stderr",
        "log_line_prefix": "%m [%p] ",
        "log_lock_waits": "on",
        "log_min_duration_statement": "1s",
        # A slow statement is logged by its text; parameters may hold payloads.
        "log_parameter_max_length": "0",
    }


def usable_memory() -> int:
    """The machine's memory in bytes, or the container's limit if that is less."""
    physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limits = [
        _limit(Path("/sys/fs/cgroup/memory.max")),
        _limit(Path("/sys/fs/cgroup/memory/memory.limit_in_bytes")),
    ]
    return min([physical, *(limit for limit in limits if limit)])


def _limit(path: Path) -> int | None:
    try:
        text = path.read_text().strip()
    except OSError:
        return None
    return int(text) if text.isdecimal() else None
