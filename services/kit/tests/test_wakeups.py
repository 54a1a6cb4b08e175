"""Events of gRPC reach a busy event loop together, however many are waiting."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

# More than the socket between gRPC and the loop holds unread.
STREAMS = 400
SCRIPT = Path(__file__).parent / "busy_loop.py"


@pytest.mark.timeout(120)
def test_a_call_does_not_wait_for_a_pass_of_the_loop_per_event_before_it() -> None:
    # Before the first use of grpc.aio in a process; this one has used it.
    ran = subprocess.run(
        [sys.executable, str(SCRIPT), str(STREAMS)], capture_output=True, text=True, timeout=100
    )
    assert ran.returncode == 0, ran.stderr
    assert int(ran.stdout) < STREAMS // 4, f"{ran.stdout.strip()} passes of the loop"
