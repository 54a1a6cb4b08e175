"""The console in Chromium, driven by Playwright; the tests themselves are in console.test.mjs."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.suite import BIN, Suite, running_suite
from tests.harness import browser
from tests.harness.leash import tied

HERE = Path(__file__).parent
SECONDS = 600


@pytest.fixture(scope="module")
def modules() -> None:
    """The packages of the lock file, from npm's cache or its registry."""
    if shutil.which("node") is None or shutil.which("npm") is None:
        pytest.skip("no Node.js is installed")
    if browser.PROGRAM is None:
        pytest.skip("no Chromium is installed")
    lock, done = HERE / "package-lock.json", HERE / "node_modules" / ".package-lock.json"
    if not done.exists() or done.stat().st_mtime < lock.stat().st_mtime:
        subprocess.run(["npm", "ci", "--no-audit", "--no-fund"], cwd=HERE, check=True, timeout=SECONDS)


@pytest.fixture
def suite(modules: None) -> Iterator[Suite]:
    with running_suite() as running:
        yield running


@pytest.mark.timeout(SECONDS)
def test_types_of_the_modules_are_consistent(modules: None) -> None:
    found = subprocess.run(
        [HERE / "node_modules" / ".bin" / "tsc", "--project", HERE / "tsconfig.json"],
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    assert found.returncode == 0, found.stdout


@pytest.mark.timeout(SECONDS + 60)
def test_every_page_in_a_browser(suite: Suite) -> None:
    context = suite.context
    environment = {
        **os.environ,
        "BASE": context["gateway"],
        "KEY": context["key"],
        "ADMIN_KEY": context["admin_key"],
        "TASKYARD": str(BIN / "taskyard"),
        "FOLDER": str(suite.folder),
        "CHROMIUM": str(browser.PROGRAM),
        "TASKDB_PID": str(suite.pid_of("taskdb")),
    }
    found = subprocess.run(
        tied("node", "--test", "--test-reporter=spec", "console.test.mjs"),
        cwd=HERE,
        env=environment,
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    assert found.returncode == 0, found.stdout[-12000:] + found.stderr[-2000:]
