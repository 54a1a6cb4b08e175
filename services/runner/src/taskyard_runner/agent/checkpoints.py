"""Checkpoint uploads: a copy is kept until the scheduler has stored it; one upload at a time."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from taskyard.v1.checkpoint_pb2 import CheckpointChunk, CheckpointHeader
from taskyard.v1.lease_pb2 import LeaseRef
from taskyard_kit.logs import get_log
from taskyard_runner.agent.files import read_regular
from taskyard_runner.agent.leases import RunKey, key_of

MAX_BYTES = 10 << 20
_CHUNK_BYTES = 256 * 1024
_MAX_CONTENT_TYPE = 127
_FIRST_DELAY = 0.5
_MAX_DELAY = 10.0
# An outcome does not wait for a checkpoint that storage answered with this many internal errors.
_MAX_FAILURES = 3

log = get_log(__name__)


class CheckpointRefused(Exception):
    """Why a file cannot be a checkpoint; for the workload that offered it."""


@dataclass(frozen=True)
class _Kept:
    """A copy that waits for its upload."""

    sequence: int
    size: int
    sha256: str
    content_type: str
    progress_percent: int


class _Upload:
    """The checkpoints of one run: at most one under way, and the newest that follows it."""

    def __init__(self, lease: LeaseRef, directory: Path) -> None:
        self.lease = lease
        self.directory = directory
        self.current: _Kept | None = None
        self.following: _Kept | None = None
        self.offset = 0
        self.whole = False
        self.waiters: dict[int, list[asyncio.Future[str]]] = {}
        # Failed uploads of the current checkpoint: all, and those with an internal error of storage.
        self.tries = 0
        self.failures = 0
        self.postponed = False
        self.flushed: list[asyncio.Future[None]] = []

    def offer(self, kept: _Kept) -> None:
        if self.current is None:
            self.current = kept
        else:
            # The next run needs only the newest.
            if self.following is not None:
                self._forget(self.following, "superseded by a newer checkpoint")
            self.following = kept

    def chunk(self) -> CheckpointChunk | None:
        """The next piece; None if there is nothing to send."""
        if self.current is None or self.whole or self.postponed:
            return None
        with (self.directory / str(self.current.sequence)).open("rb") as file:
            file.seek(self.offset)
            data = file.read(_CHUNK_BYTES)
        chunk = CheckpointChunk(offset=self.offset, data=data)
        if self.offset == 0:
            chunk.header.CopyFrom(self._header(self.current))
        self.offset += len(data)
        self.whole = chunk.last = self.offset >= self.current.size
        return chunk

    def _header(self, kept: _Kept) -> CheckpointHeader:
        return CheckpointHeader(
            task=self.lease.task,
            generation=self.lease.generation,
            lease_id=self.lease.lease_id,
            sequence=kept.sequence,
            size_bytes=kept.size,
            sha256=bytes.fromhex(kept.sha256),
            content_type=kept.content_type,
            progress_percent=kept.progress_percent,
        )

    def decided(self, error: str) -> None:
        """The one under way is stored, or refused."""
        if self.current is not None:
            self._forget(self.current, error)
        self.current, self.following = self.following, None
        self.tries = self.failures = 0
        self.postponed = False
        self.rewind()
        self._notify_flushed()

    def retry(self, *, unavailable: bool) -> float:
        """Postpones the current checkpoint, which was not stored; returns the delay of the next upload."""
        delay = min(_MAX_DELAY, _FIRST_DELAY * (1 << self.tries))
        self.tries = min(self.tries + 1, 10)
        self.failures += not unavailable
        self.postponed = True
        self.rewind()
        self._notify_flushed()
        return delay

    @property
    def delays_outcome(self) -> bool:
        """Whether the outcome must wait: a checkpoint that follows it is rejected."""
        return self.current is not None and self.failures < _MAX_FAILURES

    def _notify_flushed(self) -> None:
        if not self.delays_outcome:
            for waiter in self.flushed:
                if not waiter.done():
                    waiter.set_result(None)
            self.flushed.clear()

    def rewind(self) -> None:
        self.offset = 0
        self.whole = False

    def _forget(self, kept: _Kept, error: str) -> None:
        for name in (str(kept.sequence), f"{kept.sequence}.json"):
            (self.directory / name).unlink(missing_ok=True)
        for waiter in self.waiters.pop(kept.sequence, []):
            if not waiter.done():
                waiter.set_result(error)

    def give_up(self, error: str) -> None:
        """Fail the current and the following checkpoint."""
        while self.current is not None:
            self.decided(error)


class Uploads:
    """The uploads of all runs."""

    def __init__(self, wake: Callable[[], None]) -> None:
        self._uploads: dict[RunKey, _Upload] = {}
        self._sequences: dict[RunKey, int] = {}
        self._active: RunKey | None = None
        self._wake = wake

    def open(self, lease: LeaseRef, directory: Path, last_sequence: int) -> None:
        """Register a run; copies that an earlier agent kept are uploaded."""
        key = key_of(lease)
        upload = self._uploads[key] = _Upload(lease, directory)
        self._sequences[key] = last_sequence
        for path in sorted(directory.glob("*.json"), key=lambda found: int(found.stem)):
            kept = _Kept(**json.loads(path.read_text()))
            self._sequences[key] = max(self._sequences[key], kept.sequence)
            upload.offer(kept)
        self._wake()

    def ensure(self, lease: LeaseRef, directory: Path, last_sequence: int) -> None:
        """Register the run unless it is registered."""
        if key_of(lease) not in self._uploads:
            self.open(lease, directory, last_sequence)

    def keep(
        self, key: RunKey, source: Path, content_type: str, percent: int, owner: int | None = None
    ) -> int:
        """Copy a file and queue it; its sequence. Raises CheckpointRefused."""
        upload = self._uploads.get(key)
        if upload is None:
            raise CheckpointRefused("the run has ended")
        content = _read(source, owner)
        sequence = self._sequences[key] + 1
        kept = _Kept(
            sequence=sequence,
            size=len(content),
            sha256=hashlib.sha256(content).hexdigest(),
            content_type=content_type[:_MAX_CONTENT_TYPE],
            progress_percent=min(100, max(0, percent)),
        )
        try:
            upload.directory.mkdir(0o700, exist_ok=True)
            (upload.directory / str(sequence)).write_bytes(content)
            # The description is written last: a copy without one is incomplete.
            part = upload.directory / f"{sequence}.part"
            part.write_text(json.dumps(asdict(kept)))
            os.rename(part, upload.directory / f"{sequence}.json")
        except OSError as error:
            raise CheckpointRefused(f"the runner cannot keep it: {error.strerror}") from None
        self._sequences[key] = sequence
        upload.offer(kept)
        self._wake()
        return sequence

    def last_sequence(self, key: RunKey) -> int:
        """The newest checkpoint of the run; 0 = none."""
        return self._sequences.get(key, 0)

    def stored(self, key: RunKey, sequence: int) -> asyncio.Future[str]:
        """A future with "" once it is stored, or with the reason of its rejection."""
        future: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        upload = self._uploads.get(key)
        waiting = [kept.sequence for kept in (upload.current, upload.following) if kept] if upload else []
        if upload is None or sequence not in waiting:
            future.set_result("" if upload is None or sequence <= self.last_sequence(key) else "unknown")
        else:
            upload.waiters.setdefault(sequence, []).append(future)
        return future

    def take(self) -> CheckpointChunk | None:
        """The next piece; uploads do not interleave, so that the oldest completes first."""
        for key in [self._active] if self._active is not None else list(self._uploads):
            upload = self._uploads.get(key) if key is not None else None
            try:
                chunk = upload.chunk() if upload is not None else None
            except OSError as error:
                log.error("checkpoint_unreadable", task=key and key[0], error=str(error))
                if upload is not None:
                    upload.decided(f"the copy cannot be read: {error.strerror}")
                continue
            if chunk is not None:
                self._active = None if chunk.last else key
                return chunk
        self._active = None
        return None

    def decide(self, key: RunKey, sequence: int, error: str) -> None:
        """The scheduler stored or refused a checkpoint."""
        upload = self._uploads.get(key)
        if upload is not None and upload.current is not None and upload.current.sequence == sequence:
            if error:
                log.warning("checkpoint_refused", task=key[0], generation=key[1], error=error)
            upload.decided(error)
            self._wake()

    def retry(self, key: RunKey, sequence: int, *, unavailable: bool) -> None:
        """Uploads a checkpoint that was not stored again after a delay."""
        upload = self._uploads.get(key)
        if (
            upload is None
            or upload.current is None
            or upload.current.sequence != sequence
            or upload.postponed
        ):
            return
        if self._active == key:
            self._active = None
        delay = upload.retry(unavailable=unavailable)
        log.warning("checkpoint_delayed", task=key[0], generation=key[1], retry_after=delay)
        asyncio.get_running_loop().call_later(delay, self._resume, upload, upload.current)

    def _resume(self, upload: _Upload, kept: _Kept) -> None:
        if upload.current is kept:
            upload.postponed = False
            self._wake()

    def delays_outcome(self, key: RunKey) -> bool:
        """Whether the run has a checkpoint that must be stored before its outcome."""
        upload = self._uploads.get(key)
        return upload is not None and upload.delays_outcome

    async def flush(self, key: RunKey) -> None:
        """Returns once no checkpoint delays the outcome of the run."""
        upload = self._uploads.get(key)
        if upload is not None and upload.delays_outcome:
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            upload.flushed.append(future)
            await future

    def rewind(self) -> None:
        """Start a new session: unacknowledged chunks are sent again."""
        self._active = None
        for upload in self._uploads.values():
            upload.rewind()
            upload.postponed = False

    def drop(self, key: RunKey) -> None:
        """Drop the uploads of an ended run."""
        if (upload := self._uploads.pop(key, None)) is not None:
            upload.give_up("the run has ended")
        self._sequences.pop(key, None)
        if self._active == key:
            self._active = None


def _read(source: Path, owner: int | None) -> bytes:
    try:
        content = read_regular(source, MAX_BYTES + 1, owner)
    except OSError as error:
        raise CheckpointRefused(f"{source} cannot be read: {error.strerror}") from None
    if content is None:
        raise CheckpointRefused(f"{source} is no file")
    if not content:
        raise CheckpointRefused(f"{source} is empty; a checkpoint has at least one byte")
    if len(content) > MAX_BYTES:
        raise CheckpointRefused(f"{source} is larger than {MAX_BYTES} bytes")
    return content
