"""A failpoint that pauses a process until the test resumes it: `pause:FIFO` of taskyard_kit.failpoint."""

from __future__ import annotations

import asyncio
import errno
import os
import select
import time
from pathlib import Path

PATIENCE = 30.0


class Pause:
    """One FIFO. `setting` goes into TASKYARD_FAILPOINTS; nothing here blocks for longer than PATIENCE."""

    def __init__(self, path: Path, failpoint: str) -> None:
        self._path = path
        self.setting = f"{failpoint}=pause:{path}"
        os.mkfifo(path)

    async def reached(self) -> str:
        """Waits until the process is there; returns the name of the failpoint."""
        return await asyncio.to_thread(self._read)

    async def release(self) -> None:
        """Resumes the process."""
        await asyncio.to_thread(self._write)

    def _read(self) -> str:
        reader = os.open(self._path, os.O_RDONLY | os.O_NONBLOCK)
        try:
            ready, _, _ = select.select([reader], [], [], PATIENCE)
            assert ready, f"no process reached {self.setting}"
            return os.read(reader, 200).decode()
        finally:
            os.close(reader)

    def _write(self) -> None:
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                writer = os.open(self._path, os.O_WRONLY | os.O_NONBLOCK)
                break
            except OSError as error:
                # The process has not opened its end yet.
                waits = error.errno == errno.ENXIO and time.monotonic() < deadline
                assert waits, f"no process is at {self.setting}"
                time.sleep(0.01)
        os.write(writer, b"go on")
        os.close(writer)
