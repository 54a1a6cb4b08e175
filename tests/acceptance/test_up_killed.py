"""`taskyard up` with its real services comes back after kill -9 of supervisor, postmaster, everything."""

import contextlib
import os
import signal
from pathlib import Path

import psutil

from tests.acceptance.test_up import folder, taskyard

__all__ = ["folder"]
PORTS = ("--taskdb-port", "0", "--scheduler-port", "0", "--gateway-port", "0")


def up(folder: Path) -> psutil.Process:
    """Start it detached and return its supervisor."""
    started = taskyard(folder, "up", "--detach", "--data-dir", ".taskyard", *PORTS)
    assert started.code == 0, started.out + started.err
    (supervisor,) = (
        process
        for process in psutil.process_iter(["cmdline", "cwd"])
        if process.info["cwd"] == str(folder) and "up" in (process.info["cmdline"] or ())
    )
    return supervisor


def runs_a_task(folder: Path, task: str) -> bool:
    ended = taskyard(folder, "run", "--id", task, "--", "echo", task)
    return ended.out == f"{task}\n"


def test_up_comes_back_with_its_tasks_after_each_kill(folder: Path) -> None:
    supervisor = up(folder)
    assert runs_a_task(folder, "first")

    postmaster = int((folder / ".taskyard/postgres/postmaster.pid").read_text().split()[0])
    os.kill(postmaster, signal.SIGKILL)
    assert runs_a_task(folder, "after-the-postmaster")

    family = [supervisor, *supervisor.children(recursive=True)]
    supervisor.kill()
    psutil.wait_procs(family, timeout=30)
    supervisor = up(folder)
    assert runs_a_task(folder, "after-the-supervisor")

    family = [supervisor, *supervisor.children(recursive=True)]
    for process in family:
        # The others may be gone with the supervisor by then.
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(family, timeout=30)
    up(folder)
    assert runs_a_task(folder, "after-everything")
    kept = set(taskyard(folder, "list", "-o", "name").out.split())
    assert kept == {"first", "after-the-postmaster", "after-the-supervisor", "after-everything"}
    assert taskyard(folder, "down").code == 0
