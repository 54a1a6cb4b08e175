"""Keeps a test process from harming the machine: it ends with its controller, and before it takes all memory.

One that grows without end says where each of its threads is, and ends.
"""

from __future__ import annotations

import faulthandler
import os
import threading
import time

import pytest

from tests.harness.leash import end_with_parent

LIMIT_MB = int(os.environ.get("TASKYARD_TEST_MEMORY_MB", "4000"))
LOOK_SECONDS = 1.0
TOO_LARGE = 97


def pytest_configure(config: pytest.Config) -> None:
    # A worker without a controller cannot report results.
    if hasattr(config, "workerinput"):
        end_with_parent()
    threading.Thread(target=_guard, args=(os.dup(2),), daemon=True).start()


def _guard(output: int) -> None:
    while True:
        time.sleep(LOOK_SECONDS)
        if (size := resident_mb()) > LIMIT_MB:
            where = os.environ.get("PYTEST_CURRENT_TEST", "no test")
            os.write(output, f"\nthis test process takes {size:.0f} MB, in {where}\n".encode())
            faulthandler.dump_traceback(output, all_threads=True)
            os._exit(TOO_LARGE)


def resident_mb() -> float:
    """What this process holds of the machine's memory."""
    with open("/proc/self/statm") as file:
        pages = int(file.read().split()[1])
    return pages * os.sysconf("SC_PAGESIZE") / 1e6
