"""The Java client: its linter, its own tests against a real suite, and its README. Run by `make clients`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.acceptance.suite import ROOT, Suite
from tests.clients.example_worker import watch_example_work
from tests.clients.first_program import follow
from tests.clients.toolchain import require, succeed, tool_environment

PACKAGE = ROOT / "clients/java"


@pytest.fixture(autouse=True)
def toolchain() -> None:
    require("mvn")


@pytest.mark.timeout(900)
def test_javac_has_no_warnings() -> None:
    succeed("make", "-s", "lint", cwd=PACKAGE)


@pytest.mark.timeout(900)
def test_the_client_passes_its_own_tests(suite: Suite) -> None:
    context = suite.context
    environment = tool_environment(
        TASKYARD_ADDRESS=context["address"],
        TASKYARD_SCHEDULER=context["scheduler"],
        TASKYARD_KEY=context["key"],
    )
    succeed("make", "-s", "test", cwd=PACKAGE, environment=environment)


@pytest.mark.timeout(900)
def test_the_readme_works_word_for_word_from_a_fresh_clone(suite: Suite, tmp_path: Path) -> None:
    follow("clients/java/README.md", suite, tmp_path)


@pytest.mark.timeout(900)
def test_the_example_of_a_worker_serves_tasks(suite: Suite, runner_key: str) -> None:
    succeed("make", "-s", "build", cwd=PACKAGE)
    classes = f"target/classes:{(PACKAGE / 'target/classpath').read_text().strip()}"
    watch_example_work(["java", "-cp", classes, "examples/Worker.java"], PACKAGE, suite, runner_key)
