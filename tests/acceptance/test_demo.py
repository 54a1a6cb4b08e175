"""`make demo` does its tour unattended, within a minute."""

import subprocess
import time

import pytest

from tests.acceptance.suite import ROOT, client_environment


@pytest.mark.timeout(150)
def test_the_demo_ends_well_within_a_minute() -> None:
    began = time.monotonic()
    ended = subprocess.run(
        [ROOT / "tools/demo.sh"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=140,
        env=client_environment(),
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert time.monotonic() - began < 60
