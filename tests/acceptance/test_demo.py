"""`make demo` does its tour unattended, within a minute."""

import os
import subprocess
import time

import pytest

from tests.acceptance.suite import ROOT, client_environment
from tests.harness.leash import leashed


@pytest.mark.timeout(260)
def test_the_demo_ends_well_within_a_minute() -> None:
    began = time.monotonic()
    ended = subprocess.run(
        leashed(ROOT / "tools/demo.sh"),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=250,
        env=client_environment(),
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    took = time.monotonic() - began
    # A minute on a machine that has nothing else to do; where others use it up, only the end counts.
    busy = os.getloadavg()[0] > 2 * (os.cpu_count() or 1)
    assert took < 60 or busy, f"the demo took {took:.0f} s\n{ended.stdout}"
