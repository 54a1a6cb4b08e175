"""The console in Chromium, driven by Playwright; the tests themselves are in the files *.test.mjs."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.suite import BIN, Suite, running_suite
from tests.console.soak import database_of
from tests.harness import browser
from tests.harness.leash import tied

HERE = Path(__file__).parent
# About 60 s on a quiet machine; the pages' own waits decide, not this one.
SECONDS = 900


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
def test_every_page_in_a_browser(suite: Suite, tmp_path: Path) -> None:
    context = suite.context
    link = re.search(r"^Console: (\S+)", suite.output(), re.MULTILINE)
    assert link is not None, suite.output()
    environment = {
        **os.environ,
        "BASE": context["gateway"],
        "KEY": context["key"],
        "ADMIN_KEY": context["admin_key"],
        "TASKYARD": str(BIN / "taskyard"),
        "FOLDER": str(suite.folder),
        "LINK": link[1],
        "DATABASE": database_of(suite),
        "CHROMIUM": str(browser.PROGRAM),
        "TASKDB_PID": str(suite.pid_of("taskdb")),
        "GATEWAY_PID": str(suite.pid_of("gateway")),
    }
    report = tmp_path / "report"
    # Pictures (SHOTS=FOLDER) show the data of that test alone.
    files = sorted(
        file.name for file in HERE.glob("pages.test.mjs" if "SHOTS" in os.environ else "*.test.mjs")
    )
    command = tied("node", "--test", "--test-concurrency=1", "--test-reporter=spec", *files)
    with report.open("w") as output:
        process = subprocess.Popen(command, cwd=HERE, env=environment, stdout=output, stderr=output)
        try:
            code: int | None = process.wait(SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            code = None
    assert code == 0, report.read_text()[-14000:] + suite.logs()
