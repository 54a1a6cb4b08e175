"""The TypeScript client: its linters, its own tests against a real suite, and its README."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.acceptance.suite import ROOT, Suite
from tests.clients.first_program import follow
from tests.clients.toolchain import require, run, succeed, tool_environment

PACKAGE = ROOT / "clients/typescript"


@pytest.fixture(scope="module", autouse=True)
def package() -> Path:
    """The package with its locked dependencies, built."""
    require("npm")
    installed = PACKAGE / "node_modules/.package-lock.json"
    lock = PACKAGE / "package-lock.json"
    if not installed.exists() or installed.stat().st_mtime < lock.stat().st_mtime:
        ended = run("npm", "ci", "--no-audit", "--no-fund", "--prefer-offline", cwd=PACKAGE)
        if ended.returncode != 0 and not installed.exists():
            pytest.skip(f"npm cannot fetch packages here: {ended.stdout.strip().splitlines()[-1]}")
    succeed("npm", "run", "--silent", "build", cwd=PACKAGE)
    return PACKAGE


@pytest.mark.timeout(900)
def test_the_linter_has_no_findings(package: Path) -> None:
    succeed("npm", "run", "--silent", "lint", cwd=package)


@pytest.mark.timeout(900)
def test_client_and_worker_pass_their_own_tests(package: Path, suite: Suite, runner_key: str) -> None:
    context = suite.context
    environment = tool_environment(
        TASKYARD_ADDRESS=context["address"],
        TASKYARD_SCHEDULER=context["scheduler"],
        TASKYARD_KEY=context["key"],
        TEST_RUNNER_KEY=runner_key,
    )
    succeed("npm", "run", "--silent", "test", cwd=package, environment=environment)


@pytest.mark.timeout(900)
def test_the_readme_works_word_for_word_from_a_fresh_clone(suite: Suite, tmp_path: Path) -> None:
    follow("clients/typescript/README.md", suite, tmp_path)


def test_the_lock_has_hashes_and_no_hosts() -> None:
    lock = (PACKAGE / "package-lock.json").read_text()
    assert '"resolved"' not in lock
    assert lock.count('"integrity": "sha512-') == lock.count('"node_modules/')
