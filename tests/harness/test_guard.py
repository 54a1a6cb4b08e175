"""The guard of test processes: the end of a controller, and of a process that grows."""

import os
import subprocess
import sys
from pathlib import Path

import psutil

from tests.harness.guard import TOO_LARGE

ROOT = Path(__file__).parents[2]
GROWING = """
def test_growing():
    kept = []
    while True:
        kept.append(bytes(1000))
"""
WAITING = """
import os, signal, time
def test_waiting():
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    with open(os.environ["OUTPUT"], "w") as file:
        file.write(str(os.getpid()))
    time.sleep(600)
"""


def start(folder: Path, body: str, *arguments: str, **environment: str) -> subprocess.Popen[str]:
    (folder / "test_it.py").write_text(body)
    return subprocess.Popen(
        [sys.executable, "-m", "pytest", "-p", "tests.harness.guard", "-c", "/dev/null", *arguments, folder],
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=folder,
    )


def test_a_process_that_grows_prints_its_traceback_and_ends(tmp_path: Path) -> None:
    process = start(tmp_path, GROWING, TASKYARD_TEST_MEMORY_MB="300")
    output, _ = process.communicate(timeout=60)
    assert process.returncode == TOO_LARGE, output
    assert "test_growing" in output and "Current thread" in output


def test_a_worker_ends_with_its_controller_whatever_it_does(tmp_path: Path) -> None:
    fifo = tmp_path / "output"
    os.mkfifo(fifo)
    controller = start(tmp_path, WAITING, "-n", "1", OUTPUT=str(fifo))
    worker = psutil.Process(int(fifo.read_text()))
    assert worker.pid != controller.pid
    controller.kill()
    controller.communicate(timeout=60)
    worker.wait(20)
