"""CPU time of processes, which measures the cost of a task even on a shared machine."""

import os
from pathlib import Path

import psycopg

_TICKS = os.sysconf("SC_CLK_TCK")


def of_process(pid: int) -> float:
    """Seconds that a process has used, in all its threads."""
    fields = _stat(pid)
    return (int(fields[11]) + int(fields[12])) / _TICKS


def of_server(connection: psycopg.Connection) -> float:
    """Seconds that a PostgreSQL server on this host has used, with its children and those that ended."""
    row = connection.execute("SELECT pg_backend_pid()").fetchone()
    assert row is not None
    postmaster = int(_stat(row[0])[1])
    fields = _stat(postmaster)
    ended = (int(fields[13]) + int(fields[14])) / _TICKS
    return of_process(postmaster) + ended + sum(_of_children(postmaster))


def resident_bytes(pid: int) -> int:
    """The memory of a process that is in use now."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def _of_children(parent: int) -> list[float]:
    """The seconds that each child of a process has used; one that ends meanwhile is left out."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            pid = int(folder.name)
            try:
                if int(_stat(pid)[1]) == parent:
                    found.append(of_process(pid))
            except (FileNotFoundError, ProcessLookupError):
                continue
    return found


def _stat(pid: int) -> list[str]:
    """The fields of /proc/<pid>/stat behind the name, which may hold anything."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
