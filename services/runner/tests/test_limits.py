"""Limits: memory, processes, CPU and file size of one task, and only of that task."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from services.runner.tests.conftest import StartRunner
from services.runner.tests.runner_process import RunnerProcess, command, script, shell
from services.runner.tests.scheduler_peer import SchedulerPeer
from taskyard.v1.common_pb2 import ERROR_CLASS_TRANSIENT, Resources
from taskyard.v1.task_pb2 import INTERPRETER_PYTHON
from taskyard_runner.agent.default_limits import find_limits
from taskyard_runner.settings import RunnerSettings
from taskyard_runner.warden.cgroup import Limits, V2Group, V2Hierarchy, find_hierarchy

_hierarchy, _why = find_hierarchy(f"test-{os.getpid()}")
if _hierarchy is not None:
    _hierarchy.close()
# Allowed where the host delegates no control groups; listed in docs/howto/run-a-runner.md.
needs_cgroups = pytest.mark.skipif(_hierarchy is None, reason=f"no control groups: {_why}")


def _is_v2(path: str) -> bool:
    return os.path.exists(f"{path}/cgroup.controllers")


@needs_cgroups
async def test_a_memory_hog_is_out_of_memory_and_its_neighbour_is_not(
    peer: SchedulerPeer, runner: RunnerProcess
) -> None:
    hog = peer.assign(
        script("x = bytearray(400_000_000)", INTERPRETER_PYTHON, resources=Resources(memory_mb=64))
    )
    neighbour = peer.assign(shell("sleep 0.2; echo fine", resources=Resources(memory_mb=64)))
    failed = (await peer.outcome(hog)).failed
    assert (failed.error.code, failed.error.error_class) == ("OUT_OF_MEMORY", ERROR_CLASS_TRANSIENT)
    assert (await peer.outcome(neighbour)).WhichOneof("report") == "succeeded"


async def test_without_control_groups_the_memory_hog_fails_by_itself(
    peer: SchedulerPeer, start_runner: StartRunner
) -> None:
    runner = await start_runner("--no-cgroups")
    spec = script("x = bytearray(400_000_000)", INTERPRETER_PYTHON, resources=Resources(memory_mb=128))
    assert "MemoryError" in (await peer.outcome(peer.assign(spec))).failed.error.message
    assert "limits_are_weak" in runner.output()


@needs_cgroups
async def test_task_without_limits_gets_the_runners_defaults(
    peer: SchedulerPeer, start_runner: StartRunner
) -> None:
    await start_runner("--task-memory-mb", "64", "--task-disk-mb", "8")
    hog = peer.assign(script("x = bytearray(400_000_000)", INTERPRETER_PYTHON))
    assert (await peer.outcome(hog)).failed.error.code == "OUT_OF_MEMORY"
    many = "for n in 1 2 3 4; do head -c 4000000 /dev/zero > $n; done; exec sleep 600"
    assert (await peer.outcome(peer.assign(shell(many)))).failed.error.code == "DISK_LIMIT_REACHED"
    asked = script("x = bytearray(100_000_000)", INTERPRETER_PYTHON, resources=Resources(memory_mb=500))
    assert (await peer.outcome(peer.assign(asked))).WhichOneof("report") == "succeeded"


def test_without_a_setting_no_task_may_take_the_whole_host(tmp_path: Path) -> None:
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 20
    found = find_limits(-1, -1, str(tmp_path), groups=True).fill(Resources())
    assert 0 < found.memory_mb <= total // 2 and found.disk_mb > 0
    assert find_limits(-1, 0, str(tmp_path), groups=False).fill(Resources()) == Resources()
    settings = RunnerSettings()
    assert (settings.task_memory_mb, settings.task_disk_mb) == (-1, -1) and settings.pids_limit > 0


@needs_cgroups
async def test_a_fork_bomb_is_contained(peer: SchedulerPeer, start_runner: StartRunner) -> None:
    await start_runner("--pids-limit", "40")
    bomb = peer.assign(shell(":(){ :|:& };:; sleep 1; true"))
    neighbour = peer.assign(command("echo", "fine"))
    await peer.line(neighbour, "fine")
    await peer.outcome(bomb)
    after = peer.assign(command("true"))
    assert (await peer.outcome(after)).WhichOneof("report") == "succeeded"


@needs_cgroups
async def test_cpu_is_limited(peer: SchedulerPeer, runner: RunnerProcess) -> None:
    program = """
import time
end = time.monotonic() + 1
while time.monotonic() < end: pass
print(time.process_time())
"""
    task = peer.assign(script(program, INTERPRETER_PYTHON, resources=Resources(cpu_millis=200)))
    await peer.outcome(task)
    (line,) = await peer.lines(task, 1)
    assert float(line.message) < 0.6


async def test_a_file_that_grows_too_large_ends_the_task_with_the_reason(
    peer: SchedulerPeer, runner: RunnerProcess
) -> None:
    spec = command("dd", "if=/dev/zero", "of=big", "bs=1M", "count=20", resources=Resources(disk_mb=5))
    failed = (await peer.outcome(peer.assign(spec))).failed
    assert failed.error.code in ("KILLED_BY_SIGNAL", "EXIT_NONZERO")
    assert "file" in failed.error.message.lower()


async def test_a_task_that_fills_the_disk_with_many_files_is_stopped(
    peer: SchedulerPeer, runner: RunnerProcess
) -> None:
    body = "for i in $(seq 100); do head -c 1000000 /dev/zero > f$i; done; echo full; exec sleep 600"
    failed = (await peer.outcome(peer.assign(shell(body, resources=Resources(disk_mb=20))))).failed
    assert failed.error.code == "DISK_LIMIT_REACHED"


async def test_a_task_has_no_open_descriptors_of_the_runner_and_no_new_privileges(
    peer: SchedulerPeer, runner: RunnerProcess
) -> None:
    body = "ls /proc/self/fd | tr '\\n' ' '; grep NoNewPrivs /proc/self/status; ulimit -c"
    task = peer.assign(command("bash", "-c", body))
    await peer.outcome(task)
    lines = [entry.message for entry in await peer.lines(task, 2)]
    assert lines == ["0 1 2 3 NoNewPrivs:\t1", "0"]


UNIFIED = next((path for path in ("/sys/fs/cgroup/unified", "/sys/fs/cgroup") if _is_v2(path)), "")


@pytest.mark.skipif(not os.access(UNIFIED or "/nowhere", os.W_OK), reason="no cgroup v2 that can be written")
def test_a_v2_group_is_killed_whole_and_removed() -> None:
    path = f"{UNIFIED}/taskyard-test-{os.getpid()}"
    os.mkdir(path)
    group = V2Group(path)
    try:
        (join,) = group.joins()
        body = f"echo 0 > {join}; setsid sleep 600 & sleep 600"
        with subprocess.Popen(["bash", "-c", body], stdout=subprocess.PIPE) as started:
            while len(group.pids()) < 3:
                assert started.poll() is None
            group.kill()
            assert started.wait(10) == -signal.SIGKILL
    finally:
        while not group.remove():
            group.kill()
    assert not os.path.exists(path)


def test_v2_limits_are_written_in_the_kernels_format(tmp_path: Path) -> None:
    for name in ("memory.max", "memory.swap.max", "pids.max", "cpu.max"):
        (tmp_path / name).touch()
    V2Group(str(tmp_path)).limit(Limits(memory_bytes=64 << 20, cpu_millis=500, pids=10))
    written = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert written == {
        "memory.max": "67108864",
        "memory.swap.max": "0",
        "pids.max": "10",
        "cpu.max": "50000 100000",
    }


def _group_tree(folder: Path, *, members: str, controllers: str = "cpu memory pids") -> Path:
    """A delegated v2 group as systemd makes one, in ordinary files."""
    own = folder / "system.slice" / "runner.service"
    own.mkdir(parents=True)
    for home in (folder, own):
        (home / "cgroup.controllers").write_text(controllers)
        (home / "cgroup.subtree_control").touch()
    (own / "cgroup.procs").write_text(members)
    for name in ("warden", "taskyard-x"):
        (own / name).mkdir()
        (own / name / "cgroup.procs").touch()
        (own / name / "cgroup.subtree_control").touch()
    return own


def test_v2_a_delegated_group_hands_its_controllers_down_and_is_left_by_the_warden(tmp_path: Path) -> None:
    own = _group_tree(tmp_path, members=f"{os.getpid()}\n")
    hierarchy = V2Hierarchy("x", str(tmp_path), "/system.slice/runner.service")
    assert (own / "warden" / "cgroup.procs").read_text() == str(os.getpid())
    for handed in (own / "cgroup.subtree_control", own / "taskyard-x" / "cgroup.subtree_control"):
        assert handed.read_text() == "+memory +pids +cpu"
    group = hierarchy.make("run-1")
    assert group.joins() == [str(own / "taskyard-x" / "run-1" / "cgroup.procs")]


def test_v2_a_group_with_others_in_it_is_not_taken_over(tmp_path: Path) -> None:
    own = _group_tree(tmp_path, members=f"{os.getpid()}\n1\n")
    (tmp_path / "taskyard-x").mkdir()
    (tmp_path / "taskyard-x" / "cgroup.subtree_control").touch()
    hierarchy = V2Hierarchy("x", str(tmp_path), "/system.slice/runner.service")
    assert (own / "warden" / "cgroup.procs").read_text() == ""
    assert hierarchy.make("run-1").joins() == [str(tmp_path / "taskyard-x" / "run-1" / "cgroup.procs")]


def test_v2_without_the_memory_controller_is_refused(tmp_path: Path) -> None:
    _group_tree(tmp_path, members=f"{os.getpid()}\n", controllers="pids")
    with pytest.raises(OSError, match="memory controller is not delegated"):
        V2Hierarchy("x", str(tmp_path), "/system.slice/runner.service")


def test_v2_an_out_of_memory_kill_is_read_from_the_groups_events(tmp_path: Path) -> None:
    group = V2Group(str(tmp_path))
    assert not group.out_of_memory()
    (tmp_path / "memory.events").write_text("low 0\nhigh 0\nmax 9\noom 1\noom_kill 1\n")
    assert group.out_of_memory()
