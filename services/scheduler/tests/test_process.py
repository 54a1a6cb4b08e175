"""The scheduler as a process: output and exit codes for valid and invalid input."""

from __future__ import annotations

import asyncio
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from services.scheduler.tests.fake_taskdb import FakeTaskdb
from taskyard.errors import Unauthenticated
from tests.harness.processes import Service, free_port

KEY = "ty_test_" + "x" * 32


@pytest.fixture
async def taskdb() -> AsyncIterator[FakeTaskdb]:
    fake = FakeTaskdb()
    await fake.start()
    yield fake
    await fake.stop()


def run(*flags: str, key: str = KEY) -> subprocess.CompletedProcess[str]:
    environment = {"TASKYARD_KEY": key} if key else {}
    return subprocess.run(
        [sys.executable, "-m", "taskyard_scheduler", "serve", *flags],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
    )


@pytest.mark.parametrize(
    ("flags", "key", "message"),
    [
        ((), "", "TASKYARD_KEY"),
        (("--lisen=127.0.0.1:0",), KEY, "--listen"),
        (("--listen", "0.0.0.0:0"), KEY, "allow_plaintext"),
        (("--lease-duration", "10s"), KEY, "lease_duration"),
        (("--first-lease", "5s"), KEY, "first_lease"),
        (("--heartbeat-interval", "soon"), KEY, "duration"),
        (("--max-unacked-bytes", "1000"), KEY, "max_unacked_bytes"),
        (("--id", "no spaces"), KEY, "id"),
        (("--priority-order", "random"), KEY, "aged, strict"),
    ],
)
def test_a_bad_setting_is_one_line_that_names_it(flags: tuple[str, ...], key: str, message: str) -> None:
    ended = run(*flags, key=key)
    assert ended.returncode == 2
    assert message in ended.stderr
    assert ended.stderr.count("\n") == 1, ended.stderr


def test_a_port_in_use_is_one_line() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        ended = run("--listen", f"127.0.0.1:{port}", "--log-level", "error")
    assert ended.returncode == 1
    assert str(port) in ended.stderr and "Traceback" not in ended.stderr


def test_plaintext_to_another_machine_is_refused() -> None:
    ended = run("--listen", "127.0.0.1:0", "--taskdb", "192.0.2.1:7420", "--log-level", "error")
    assert ended.returncode == 1
    assert "192.0.2.1" in ended.stderr and "Traceback" not in ended.stderr


def test_print_config_hides_the_key() -> None:
    ended = run("--print-config")
    assert ended.returncode == 0
    assert KEY not in ended.stdout and "heartbeat_interval = 10s" in ended.stdout


def scheduler_at(taskdb: str, folder: Path) -> Service:
    port = free_port()
    flags = ("serve", "--listen", f"127.0.0.1:{port}", "--taskdb", taskdb, "--log-format", "json")
    return Service("taskyard_scheduler", flags, port, folder / "scheduler.log", {"TASKYARD_KEY": KEY})


async def test_a_key_that_taskdb_refuses_ends_it_with_one_line(taskdb: FakeTaskdb, tmp_path: Path) -> None:
    taskdb.failures["WatchQueue"] = [Unauthenticated("the key is unknown")]
    service = scheduler_at(taskdb.address, tmp_path).start(wait=False)
    assert service.process is not None
    await taskdb.called("WatchQueue", timeout=30)
    assert service.process.wait(20) == 1
    last = service.log.read_text().splitlines()[-1]
    assert "TASKYARD_KEY" in last and "Traceback" not in service.log.read_text()


async def test_it_lives_before_taskdb_is_there_and_drains_on_sigterm(tmp_path: Path) -> None:
    service = scheduler_at(f"127.0.0.1:{free_port()}", tmp_path).start(wait=False)
    try:
        service.wait_live()
        began = time.monotonic()
        assert service.terminate() == 0
        assert time.monotonic() - began < 10
    finally:
        service.stop()


async def test_a_second_signal_ends_it_at_once(taskdb: FakeTaskdb, tmp_path: Path) -> None:
    service = scheduler_at(taskdb.address, tmp_path).start(wait=False)
    await asyncio.to_thread(service.wait_live)
    assert service.process is not None
    service.process.send_signal(signal.SIGINT)
    service.process.send_signal(signal.SIGINT)
    assert service.process.wait(20) in (0, -signal.SIGINT)
