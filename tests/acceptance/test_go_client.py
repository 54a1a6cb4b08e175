"""The programs of the Go client's README work word for word, and its own tests and linters are green."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from taskyard import SyncClient, function
from taskyard.v1 import api_key_pb2
from tests.acceptance.suite import ROOT, Suite, client_environment

pytestmark = [
    pytest.mark.skipif(shutil.which("go") is None, reason="Go is not installed"),
    pytest.mark.timeout(900),
]
GO = ROOT / "clients/go"


def programs() -> list[str]:
    return re.findall(r"^```go\n(.*?)^```", (GO / "README.md").read_text(), re.MULTILINE | re.DOTALL)


def go_environment(**variables: str) -> dict[str, str]:
    """Go needs its caches; nothing else of the developer's reaches the program."""
    caches = {
        name: go("env", name).strip() for name in ("GOCACHE", "GOMODCACHE", "GOPATH", "GOPROXY", "GOFLAGS")
    }
    path = f"{Path(shutil.which('go') or '').parent}{os.pathsep}{os.defpath}"
    return {**client_environment(), **caches, "PATH": path, **variables}


def go(*arguments: str) -> str:
    ended = subprocess.run(["go", "-C", str(GO), *arguments], capture_output=True, text=True, timeout=900)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def test_the_first_program_of_the_readme_works(suite: Suite, tmp_path: Path) -> None:
    program = tmp_path / "hello.go"
    program.write_text(programs()[0])
    context = suite.context
    environment = go_environment(TASKYARD_ADDRESS=context["address"], TASKYARD_KEY=context["key"])
    ended = subprocess.run(
        ["go", "-C", str(GO), "run", str(program)],
        capture_output=True,
        text=True,
        env=environment,
        timeout=600,
    )
    assert (ended.returncode, ended.stdout) == (0, "SUCCEEDED\nhello\n"), ended.stderr + suite.logs()


@contextmanager
def running(command: list[str], environment: dict[str, str]) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def test_the_worker_of_the_readme_works(suite: Suite, tmp_path: Path) -> None:
    source, program = tmp_path / "worker.go", tmp_path / "worker"
    source.write_text(programs()[1])
    go("build", "-o", str(program), str(source))
    context = suite.context
    own = {"key": context["key"], "admin_key": context["admin_key"]}
    with SyncClient(context["address"], **own) as client:
        made = api_key_pb2.ApiKey(kind=api_key_pb2.PRINCIPAL_KIND_RUNNER)
        _, key = client.admin.create_key(made)
        environment = go_environment(
            TASKYARD_ADDRESS=context["address"], TASKYARD_SCHEDULER=context["scheduler"], TASKYARD_KEY=key
        )
        with running([str(program)], environment) as worker:
            task = client.create(function("double", 21))
            assert client.wait(task, timeout=60).output == 42
            worker.send_signal(signal.SIGTERM)
            assert worker.wait(30) == 0


@pytest.mark.parametrize("check", ["vet ./...", "test ./..."])
def test_the_client_passes_its_own_checks(check: str) -> None:
    go(*check.split())


def test_the_client_passes_staticcheck() -> None:
    program = shutil.which("staticcheck") or str(Path(go("env", "GOPATH").strip()) / "bin/staticcheck")
    if not Path(program).is_file():
        pytest.skip("staticcheck is not installed")
    ended = subprocess.run([program, "./..."], cwd=GO, capture_output=True, text=True, timeout=900)
    assert ended.returncode == 0, ended.stdout + ended.stderr
