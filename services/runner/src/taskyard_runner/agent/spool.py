"""The spool: reports on disk from before they are sent until the scheduler has acknowledged them.

Segments of checksummed records, named by their first sequence number. Reports that arrive while a sync is
under way form the next batch, so a thousand outcomes cost a few syncs.
"""

from __future__ import annotations

import asyncio
import os
import struct
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from taskyard.v1.lease_pb2 import RunReport
from taskyard_kit.logs import get_log

_RECORD = struct.Struct("!QII")
_SEGMENT_BYTES = 4 << 20
_RETRY_SECONDS = 1.0
# Reports kept in memory from writing to sending, so that a link that keeps up reads none back.
_KEPT_REPORTS = 8192

log = get_log(__name__)


class _Place(NamedTuple):
    """The position of a report on disk."""

    segment: Path
    offset: int
    length: int


class Spool:
    """Reports in the order of their sequence numbers, which only increase."""

    def __init__(self, directory: Path, limit_bytes: int) -> None:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._directory = directory
        self._limit = limit_bytes
        self._places: dict[int, _Place] = {}
        self._kept: dict[int, RunReport] = {}
        # Reports below this one have been removed.
        self._first_seq = 1
        self._readers: dict[Path, int] = {}
        self._segments: set[Path] = set()
        self._size = 0
        self._next_seq = 1
        self._sent_seq = 0
        self._sent_count = 0
        self._sent_bytes = 0
        self._writing = False
        self._waiting: list[tuple[Sequence[RunReport], Callable[[int], None]]] = []
        self._waiting_count = 0
        self._arrived = asyncio.Event()
        self._failing = False
        self._loaded = list(self._load())
        self._first_seq = min(self._places, default=self._next_seq)
        self._segment = self._open_segment()
        self.on_durable: Callable[[], None] = lambda: None

    # -- recovery

    def recovered(self) -> list[RunReport]:
        """The reports that were on disk when the spool was opened."""
        return self._loaded

    def _load(self) -> Iterator[RunReport]:
        for path in sorted(self._directory.glob("*.spool"), key=lambda found: int(found.stem)):
            data = path.read_bytes()
            # The file name is the next sequence number at its creation, even if the segment is empty.
            self._next_seq = max(self._next_seq, int(path.stem))
            offset = 0
            while (record := _parse(data, offset)) is not None:
                seq, report = record
                body = offset + _RECORD.size
                length = len(report)
                self._places[seq] = _Place(path, body, length)
                self._size += length
                self._next_seq = max(self._next_seq, seq + 1)
                offset = body + length
                yield RunReport.FromString(report)
            if offset < len(data):
                # A record that was never synced, so its durability was never confirmed.
                log.warning("spool_tail_dropped", segment=path.name, bytes=len(data) - offset)
            if offset:
                self._segments.add(path)
            else:
                path.unlink()

    def _open_segment(self) -> Path:
        path = self._directory / f"{self._next_seq}.spool"
        # Overwrites a first record that an earlier agent wrote only in part.
        self._writer = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        self._good_size = 0
        self._segments.add(path)
        _sync_directory(self._directory)
        return path

    # -- writing

    @property
    def full(self) -> bool:
        """Whether to reject new work, because its outcome might not fit."""
        return self._failing or self._size >= self._limit

    @property
    def depth(self) -> int:
        """The number of unacknowledged reports."""
        return len(self._places) + self._waiting_count

    def append(self, report: RunReport) -> asyncio.Future[int]:
        """Keep a report; the future has its seq once it is on disk. A full disk delays it, never loses it."""
        future: asyncio.Future[int] = asyncio.get_running_loop().create_future()

        def saved(seq: int) -> None:
            if not future.done():
                future.set_result(seq)

        self.append_all([report], saved)
        return future

    def append_all(self, reports: Sequence[RunReport], saved: Callable[[int], None]) -> None:
        """Keep reports; `saved` is called with the seq of the first once all are on disk, in one row."""
        self._waiting.append((reports, saved))
        self._waiting_count += len(reports)
        self._arrived.set()

    async def run(self) -> None:
        """Write batches until cancelled."""
        while True:
            await self._arrived.wait()
            self._arrived.clear()
            while self._waiting:
                await self._flush()

    async def _flush(self) -> None:
        batch, self._waiting = self._waiting, []
        first = self._next_seq
        reports = [report for group, _ in batch for report in group]
        self._waiting_count -= len(reports)
        bodies = []
        for seq, report in enumerate(reports, first):
            report.seq = seq
            bodies.append(report.SerializeToString())
        data = b"".join([_pack(seq, body) for seq, body in enumerate(bodies, first)])
        try:
            self._writing = True
            await asyncio.to_thread(self._write, data)
        except OSError as error:
            if not self._failing:
                log.error("spool_write_failed", directory=str(self._directory), error=str(error))
            self._failing = True
            self._waiting = batch + self._waiting
            self._waiting_count += len(reports)
            self._writing = False
            await asyncio.sleep(_RETRY_SECONDS)
            return
        self._writing = False
        self._failing = False
        self._account(first, bodies, reports)
        seq = first
        for group, saved in batch:
            saved(seq)
            seq += len(group)
        self.on_durable()
        if self._good_size >= _SEGMENT_BYTES:
            self._roll()

    def _write(self, data: bytes) -> None:
        written = 0
        try:
            while written < len(data):
                written += os.pwrite(self._writer, data[written:], self._good_size + written)
            os.fdatasync(self._writer)
        except OSError:
            os.ftruncate(self._writer, self._good_size)
            raise

    def _account(self, first: int, bodies: list[bytes], reports: list[RunReport]) -> None:
        if len(self._kept) + len(reports) <= _KEPT_REPORTS:
            self._kept.update(enumerate(reports, first))
        for seq, body in enumerate(bodies, first):
            self._places[seq] = _Place(self._segment, self._good_size + _RECORD.size, len(body))
            self._good_size += _RECORD.size + len(body)
            self._size += len(body)
        self._next_seq = first + len(bodies)

    def _roll(self) -> None:
        os.close(self._writer)
        self._segment = self._open_segment()

    # -- sending

    def take(
        self, count: int, size: int, kind: Callable[[RunReport], object] = lambda report: None
    ) -> list[RunReport]:
        """The next reports of one kind that were not sent in this session, numbered one by one.

        At least one if any fits `count`.
        """
        taken: list[RunReport] = []
        total = 0
        for seq, place in self._unsent():
            total += place.length
            if len(taken) >= count or (taken and (total > size or seq != self._sent_seq + 1)):
                break
            report = self._kept.get(seq) or RunReport.FromString(self._read(place))
            if not taken:
                wanted = kind(report)
            elif kind(report) != wanted:
                self._kept[seq] = report
                break
            self._kept.pop(seq, None)
            taken.append(report)
            self._sent_seq = seq
            self._sent_count += 1
            self._sent_bytes += place.length
        return taken

    def _unsent(self) -> Iterator[tuple[int, _Place]]:
        # Sequence numbers have gaps only at the front, so unsent reports are found by counting.
        seq = max(self._sent_seq + 1, self._first_seq)
        while seq < self._next_seq:
            if (place := self._places.get(seq)) is not None:
                yield seq, place
            seq += 1

    def in_flight(self) -> tuple[int, int]:
        """Count and bytes of the reports sent and not acknowledged."""
        return self._sent_count, self._sent_bytes

    def rewind(self) -> None:
        """Start a new session: unacknowledged reports are sent again."""
        self._sent_seq = self._sent_count = self._sent_bytes = 0

    def acknowledge(self, through_seq: int) -> None:
        """Remove reports up to this one."""
        last = min(through_seq, self._next_seq - 1)
        for seq in range(self._first_seq, last + 1):
            self._kept.pop(seq, None)
            if (place := self._places.pop(seq, None)) is None:
                continue
            self._size -= place.length
            if seq <= self._sent_seq:
                self._sent_count -= 1
                self._sent_bytes -= place.length
        self._first_seq = max(self._first_seq, last + 1)
        self._delete_segments()

    def _delete_segments(self) -> None:
        if not self._places and not self._writing:
            os.ftruncate(self._writer, 0)
            self._good_size = 0
        if len(self._segments) == 1:
            return
        # Segments are in sequence, so those before the oldest report's segment can be deleted.
        oldest = self._places.get(self._first_seq)
        bound = int((oldest.segment if oldest is not None else self._segment).stem)
        done = {path for path in self._segments if int(path.stem) < bound}
        for path in done:
            if (fd := self._readers.pop(path, None)) is not None:
                os.close(fd)
            path.unlink(missing_ok=True)
        self._segments -= done

    def _read(self, place: _Place) -> bytes:
        fd = self._readers.get(place.segment)
        if fd is None:
            fd = self._readers[place.segment] = os.open(place.segment, os.O_RDONLY | os.O_CLOEXEC)
        return os.pread(fd, place.length, place.offset)

    def close(self) -> None:
        os.close(self._writer)
        for fd in self._readers.values():
            os.close(fd)


def _pack(seq: int, body: bytes) -> bytes:
    return _RECORD.pack(seq, len(body), zlib.crc32(body)) + body


def _parse(data: bytes, offset: int) -> tuple[int, bytes] | None:
    if offset + _RECORD.size > len(data):
        return None
    seq, length, checksum = _RECORD.unpack_from(data, offset)
    body = data[offset + _RECORD.size : offset + _RECORD.size + length]
    if len(body) < length or zlib.crc32(body) != checksum:
        return None
    return seq, body


def _sync_directory(directory: Path) -> None:
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
