"""A runner whose disk is full: outcomes wait, and output that had no room is counted."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from services.runner.tests.runner_process import Gate, RunnerProcess, shell
from services.runner.tests.scheduler_peer import SchedulerPeer
from taskyard.v1.log_pb2 import LOG_SOURCE_RUNNER

SEQUENCE = "".join(f"{n}\n" for n in range(1, 100_001))


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own, with room for a runner and little else."""
    folder = tmp_path / "small"
    folder.mkdir()
    options = ["-t", "tmpfs", "-o", "size=8m,mode=755", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(["mount", *options], capture_output=True).returncode:
        pytest.skip("this environment does not let root mount")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


async def test_output_that_a_full_disk_had_no_room_for_is_counted_in_the_log(
    peer: SchedulerPeer, small_disk: Path, tmp_path: Path
) -> None:
    runner = RunnerProcess(small_disk / "data", peer.address)
    await runner.start()
    gate, filler = Gate(tmp_path), small_disk / "filler"
    try:
        await peer.next_session()
        task = peer.assign(shell(f"flock -s {gate} true; seq 100000"))
        await peer.report(task, "started")
        with contextlib.suppress(OSError), filler.open("wb", buffering=0) as file:
            while True:
                file.write(bytes(4096))
        gate.open()
        # The outcome waits for room for the count.
        await runner.printed(lambda log: "journal_write_failed" in log)
        filler.unlink()
        await peer.outcome(task)
        entries = peer.logs[task.key]
        notice = await peer.until(
            lambda: next((entry for entry in entries.values() if entry.source == LOG_SOURCE_RUNNER), None)
        )
        found = re.fullmatch(r"output limit reached: (\d+) bytes after this were dropped", notice.message)
        assert found is not None, notice.message
        # The acknowledged start leaves a little room in the spool, which the journal may get.
        kept = SEQUENCE[: len(SEQUENCE) - int(found[1])]
        assert len(kept) < len(SEQUENCE) / 2
        written = [entry.message for _, entry in sorted(entries.items()) if entry is not notice]
        assert written == kept.splitlines()
    finally:
        filler.unlink(missing_ok=True)
        await runner.kill()
        runner.clean()
        print(runner.output())
