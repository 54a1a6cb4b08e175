"""How long this process had to wait for a processor: what a test may allow for on a busy machine."""

from __future__ import annotations

from pathlib import Path


def seconds_waited() -> float:
    """Seconds in which this process was ready to run and had none. Load averages count idle work as well."""
    return int(Path("/proc/self/schedstat").read_text().split()[1]) / 1e9
