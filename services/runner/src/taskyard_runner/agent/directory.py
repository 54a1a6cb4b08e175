"""A run's directory: its layout and its creation."""

from __future__ import annotations

import asyncio
import os
import secrets
from collections import deque
from functools import cached_property
from pathlib import Path

_PRIVATE = 0o700


class RunDirectory:
    """Paths of one run: private to the runner's user, fresh, removed when the run is over.

    private/    script, payload, configuration; read by the workload
    work/       its working directory, unless the task names another
    tmp/        its TMPDIR
    checkpoint/ its TASKYARD_CHECKPOINT_DIR
    uploads/    checkpoints that are not stored yet
    journal     what it wrote (warden)
    """

    def __init__(self, runs_directory: str, run: str) -> None:
        self.name = run
        self._made = False
        # The run's own user and group; None = the runner's.
        self.owner: tuple[int, int] | None = None
        self._root = f"{runs_directory}/{run}"

    # Paths are made when they are asked for: most runs of functions never need one.
    root = cached_property(lambda self: Path(self._root))
    private = cached_property(lambda self: self.root / "private")
    work = cached_property(lambda self: self.root / "work")
    tmp = cached_property(lambda self: self.root / "tmp")
    checkpoint = cached_property(lambda self: self.root / "checkpoint")
    restored = cached_property(lambda self: self.checkpoint / "restored")
    uploads = cached_property(lambda self: self.root / "uploads")
    journal = cached_property(lambda self: self.root / "journal")
    payload = cached_property(lambda self: self.private / "payload")
    config = cached_property(lambda self: self.private / "config")
    result = cached_property(lambda self: self.private / "result")
    error = cached_property(lambda self: self.private / "error")
    metrics = cached_property(lambda self: self.private / "metrics")

    def make(self) -> None:
        """Make it, once. Raises OSError if the disk has no room."""
        if self._made:
            return
        for path in (self.root, self.private, self.work, self.tmp, self.checkpoint):
            path.mkdir(_PRIVATE)
        self._made = True

    def make_part(self, part: Path) -> None:
        """Make one folder of it, and it itself; raises OSError."""
        self.root.mkdir(_PRIVATE, exist_ok=True)
        part.mkdir(_PRIVATE, exist_ok=True)

    def give(self, owner: tuple[int, int] | None) -> None:
        """Create it; the run's own user gets the parts that the workload writes. Raises OSError."""
        self.make()
        self.owner = owner
        if owner is None:
            return
        for path in (self.private, self.work, self.tmp, self.checkpoint):
            os.chown(path, *owner)
        # The workload may traverse it, but not change its other entries.
        os.chown(self.root, -1, owner[1])
        os.chmod(self.root, 0o710)

    def write(self, path: Path, content: bytes) -> None:
        """A private file; raises OSError."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
        fd = os.open(path, flags, 0o600)
        with open(fd, "wb") as file:
            file.write(content)
            if self.owner is not None:
                os.fchown(fd, *self.owner)


class DirectoryStock:
    """Directories made ahead: making one takes milliseconds, which no start should have to wait for."""

    SIZE = 8

    def __init__(self, runs_directory: str) -> None:
        self._runs_directory = runs_directory
        self._ready: deque[RunDirectory] = deque()
        self._refill: asyncio.Task[None] | None = None

    def take(self) -> RunDirectory:
        """A fresh directory, which is yet to be made if the stock is empty."""
        return self._ready.popleft() if self._ready else self._fresh()

    def refill(self) -> None:
        """Make more, behind whatever is going on."""
        if self._refill is None or self._refill.done():
            self._refill = asyncio.create_task(self._fill())

    async def _fill(self) -> None:
        while len(self._ready) < self.SIZE:
            made = self._fresh()
            try:
                await asyncio.to_thread(made.make)
            except OSError:
                # The run that needs it meets the same problem and reports it.
                return
            self._ready.append(made)

    def _fresh(self) -> RunDirectory:
        return RunDirectory(self._runs_directory, secrets.token_hex(8))
