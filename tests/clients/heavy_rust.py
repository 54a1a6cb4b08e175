"""The Rust client: its linter, its own tests against a real suite, and its README. Run by `make clients`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.acceptance.suite import ROOT, Suite
from tests.clients.example_worker import watch_example_work
from tests.clients.first_program import follow
from tests.clients.toolchain import require, succeed, tool_environment

PACKAGE = ROOT / "clients/rust"


@pytest.fixture(autouse=True)
def toolchain() -> None:
    require("cargo")


@pytest.mark.timeout(1800)
def test_clippy_and_rustfmt_have_no_findings() -> None:
    succeed("cargo", "clippy", "-q", "--locked", "--all-targets", "--", "-D", "warnings", cwd=PACKAGE)
    succeed("cargo", "fmt", "--check", cwd=PACKAGE)


@pytest.mark.timeout(1800)
def test_the_client_passes_its_own_tests(suite: Suite) -> None:
    context = suite.context
    environment = tool_environment(
        TASKYARD_ADDRESS=context["address"],
        TASKYARD_SCHEDULER=context["scheduler"],
        TASKYARD_KEY=context["key"],
    )
    succeed("cargo", "test", "-q", "--locked", cwd=PACKAGE, environment=environment)


@pytest.mark.timeout(1800)
def test_the_readme_works_word_for_word_from_a_fresh_clone(
    suite: Suite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The dependencies are compiled once; the client itself is that of the copy.
    monkeypatch.setenv("CARGO_TARGET_DIR", str(PACKAGE / "target"))
    follow("clients/rust/README.md", suite, tmp_path)


@pytest.mark.timeout(1800)
def test_the_example_of_a_worker_serves_tasks(suite: Suite, runner_key: str) -> None:
    succeed("cargo", "build", "-q", "--locked", "--example", "worker", cwd=PACKAGE)
    watch_example_work(["target/debug/examples/worker"], PACKAGE, suite, runner_key)


def test_the_lock_names_the_standard_index_only() -> None:
    lines = (PACKAGE / "Cargo.lock").read_text().splitlines()
    sources = {line for line in lines if line.startswith("source = ")}
    assert sources == {'source = "registry+https://github.com/rust-lang/crates.io-index"'}
