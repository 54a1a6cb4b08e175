"""The warden by itself: light, without gRPC, and strict about time."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from unittest.mock import Mock

import psutil
import pytest

from services.runner.tests.runner_process import RunnerProcess
from taskyard_runner.warden import linux
from taskyard_runner.warden.cgroup import Limits
from taskyard_runner.warden.deadline import Deadlines, StopReason
from taskyard_runner.warden.loop import Loop
from taskyard_runner.warden.naming import digest
from taskyard_runner.warden.order import Order
from taskyard_runner.warden.process import Launch
from taskyard_runner.warden.protocol import Decoder, encode
from taskyard_runner.warden.run import Listener, Run
from taskyard_runner.warden.spare import Spare, SpareStock

MIB = 1 << 20


def order(**fields: object) -> Order:
    values: dict[str, object] = {
        "run": "r",
        "argv": ["true"],
        "env": {},
        "cwd": "/",
        "token": "t",
        "user": None,
        "shielded": False,
        "limits": Limits(),
        "lease_until": 100.0,
        "forbid_overlap": False,
        "orphan_seconds": 50.0,
        "attempt_seconds": None,
        "total_until": None,
        "silence_seconds": None,
        "grace_seconds": 5.0,
        "cleanup": (),
        "meta": {},
    }
    return Order(**{**values, **fields})  # type: ignore[arg-type]


def due(chosen: Order, started: float | None = None, sign: float = 0.0) -> tuple[float, StopReason]:
    deadlines = Deadlines(chosen, chosen.lease_until)
    if started is not None:
        deadlines.begin(started)
        deadlines.last_activity = max(started, sign)
    return deadlines.next_due()


def test_a_run_is_on_record_before_its_process_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A warden that is killed in between leaves output that the next one has to account for.
    recorded: list[object] = []
    launch = Spare.launch

    def observed(spare: Spare, order: Launch) -> None:
        recorded.append(json.loads((tmp_path / "run.json").read_text())["session"])
        launch(spare, order)

    monkeypatch.setattr(Spare, "launch", observed)
    loop = Loop(lambda error: pytest.fail(repr(error)))
    stock = SpareStock(loop, None)
    run = Run(order(), str(tmp_path), loop, Mock(spec=Listener), MIB)
    run.start(stock, 1024)
    assert recorded == [run.pid]
    os.waitpid(run.pid, 0)
    stock.clear()


def test_the_earliest_deadline_counts() -> None:
    assert due(order()) == (150.0, StopReason.LEASE_EXPIRED)
    assert due(order(forbid_overlap=True)) == (100.0, StopReason.LEASE_EXPIRED)
    assert due(order(attempt_seconds=20.0)) == (150.0, StopReason.LEASE_EXPIRED)
    assert due(order(attempt_seconds=20.0), started=10.0) == (30.0, StopReason.ATTEMPT_TIMEOUT)
    assert due(order(silence_seconds=5.0), started=10.0, sign=60.0) == (65.0, StopReason.SILENCE_TIMEOUT)
    assert due(order(total_until=40.0), started=10.0) == (40.0, StopReason.TOTAL_TIMEOUT)


def test_forbid_work_gets_no_grace_beyond_its_lease() -> None:
    assert Deadlines(order(forbid_overlap=True), 1.0).grace(StopReason.LEASE_EXPIRED) == 0.0
    assert Deadlines(order(), 1.0).grace(StopReason.LEASE_EXPIRED) == 5.0
    assert Deadlines(order(forbid_overlap=True), 1.0).grace(StopReason.ATTEMPT_TIMEOUT) == 5.0


def test_timers_fire_in_order_and_cancelled_ones_do_not() -> None:
    loop, fired = Loop(_raise), list[str]()
    now = linux.boottime()
    loop.at(now + 0.03, loop.stop)
    loop.at(now + 0.02, lambda: fired.append("b"))
    loop.at(now + 0.01, lambda: fired.append("a"))
    loop.at(now + 0.015, lambda: fired.append("never")).cancel()
    loop.run()
    assert fired == ["a", "b"]


def _raise(error: Exception) -> None:
    raise error


def test_a_failing_call_does_not_end_the_loop() -> None:
    failures: list[Exception] = []
    loop = Loop(failures.append)
    loop.after(0, lambda: _raise(ValueError("of one run")))
    loop.after(0.01, loop.stop)
    loop.run()
    assert [str(error) for error in failures] == ["of one run"]


def test_decoder_splits_a_stream_into_messages() -> None:
    decoder = Decoder(100)
    data = encode({"a": "é\ud800"}) + encode({"b": 2})
    assert decoder.feed(data[:5]) == []
    assert decoder.feed(data[5:]) == [{"a": "é\ud800"}, {"b": 2}]
    with pytest.raises(ValueError, match="more than 100 bytes"):
        decoder.feed(b"x" * 101)


def test_the_main_process_never_imports_grpc() -> None:
    program = (
        "import sys, taskyard_runner.__main__; print([m for m in sys.modules if m.split('.')[0] in sys.argv])"
    )
    banned = ["grpc", "google", "taskyard", "asyncio", "opentelemetry"]
    imported = subprocess.run(
        [sys.executable, "-c", program, *banned], capture_output=True, text=True, check=True
    )
    assert imported.stdout.strip() == "[]"


async def test_the_running_warden_has_no_grpc_and_one_thread(runner: RunnerProcess) -> None:
    maps = Path(f"/proc/{runner.pid}/maps").read_text()
    assert "grpc" not in maps
    assert psutil.Process(runner.pid).num_threads() == 1


async def test_idle_runner_uses_little_memory(runner: RunnerProcess) -> None:
    processes = [psutil.Process(pid) for pid in (runner.pid, runner.agent_pid)]
    assert sum(process.memory_info().rss for process in processes) < 70 * MIB


async def test_the_warden_leaves_nothing_in_the_control_groups(runner: RunnerProcess) -> None:
    owner = digest(str(runner.data_dir))
    runner.send(signal.SIGTERM)
    await runner.wait()
    assert [path for path, _, _ in os.walk("/sys/fs/cgroup") if path.endswith(owner)] == []
