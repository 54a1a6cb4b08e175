"""A run's journal: everything it wrote, in order, in one bounded file that outlives the agent and the warden.

The warden appends, the agent reads. A record is a header (kind, wall-clock time, length) and its bytes. The
first record names the run, so that the output of an ended run is shipped even if no process lists it.
"""

from __future__ import annotations

import contextlib
import enum
import json
import os
import struct
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

_HEADER = struct.Struct("!BdI")


class Kind(enum.IntEnum):
    """The kind of a record."""

    STDOUT = 1
    STDERR = 2
    # A JSON object that the workload sent by TASKYARD_SOCKET.
    MESSAGE = 3
    # How many bytes of output did not fit, as decimal text.
    DROPPED = 4
    # The first record: a JSON object that names the run.
    RUN = 5
    # The warden was killed during the run; the record has no data.
    CUT = 6


@dataclass(frozen=True)
class Record:
    """One piece of output."""

    kind: Kind
    time: float
    data: bytes


class JournalWriter:
    """Appends records up to a limit, then counts the dropped bytes."""

    def __init__(self, path: str, limit: int, run: bytes = b"") -> None:
        self._path = path
        self._limit = limit
        self._run = run
        # Opened by the first record: many runs write nothing, and creating a file takes time.
        self._fd: int | None = None
        self.size = 0
        self.dropped = 0
        # The dropped bytes that the journal does not record, because the disk had no room for that either.
        self.unrecorded = 0

    def append(self, kind: Kind, data: bytes) -> None:
        """Keep the data, or count it as dropped if there is no room, in the journal or on the disk."""
        room = self._limit - self.size
        if self.dropped or room < len(data):
            self.dropped += len(data)
            return
        try:
            self._write(kind, data)
        except OSError:
            self.dropped += len(data)

    def close(self) -> None:
        """Record how much was dropped, and close the file."""
        if self.dropped:
            try:
                self._write(Kind.DROPPED, str(self.dropped).encode())
            except OSError:
                self.unrecorded = self.dropped
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def _write(self, kind: Kind, data: bytes) -> None:
        if self._fd is None:
            self._fd = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
            if self._run:
                self._write(Kind.RUN, self._run)
        record = _HEADER.pack(kind, time.time(), len(data)) + data
        written = os.write(self._fd, record)
        if written != len(record):
            # A torn record would hide every later one.
            os.ftruncate(self._fd, self.size)
            raise OSError("no room left for the record")
        self.size += written


class JournalReader:
    """Reads the records of a journal, from the beginning or on from where the last read stopped."""

    def __init__(self, path: str) -> None:
        self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self.offset = 0

    def read(self, limit: int) -> Iterator[Record]:
        """The next complete records, about `limit` bytes of them."""
        end = self.offset + limit
        while self.offset < end:
            header = os.pread(self._fd, _HEADER.size, self.offset)
            if len(header) < _HEADER.size:
                return
            kind, when, length = _HEADER.unpack(header)
            data = os.pread(self._fd, length, self.offset + _HEADER.size)
            if len(data) < length:
                return
            self.offset += _HEADER.size + length
            yield Record(Kind(kind), when, data)

    def close(self) -> None:
        os.close(self._fd)


def read_journal(path: str | os.PathLike[str]) -> Iterator[Record]:
    """All records of a complete journal; none if nothing was ever written."""
    try:
        reader = JournalReader(os.fspath(path))
    except FileNotFoundError:
        return
    try:
        yield from reader.read(sys.maxsize)
    finally:
        reader.close()


def read_run(path: str | os.PathLike[str]) -> dict[str, Any] | None:
    """The run that the first record names; None without such a record."""
    first = next(read_journal(path), None)
    if first is None or first.kind != Kind.RUN:
        return None
    try:
        found = json.loads(first.data)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def note_dropped(path: str, count: int) -> bool:
    """Records dropped bytes at the end of a complete journal; false if the disk still has no room."""
    record = _HEADER.pack(Kind.DROPPED, time.time(), len(str(count))) + str(count).encode()
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        fd = os.open(path, flags, 0o600)
    except OSError:
        return False
    try:
        size = os.fstat(fd).st_size
        if os.write(fd, record) == len(record):
            return True
        os.ftruncate(fd, size)
        return False
    except OSError:
        return False
    finally:
        os.close(fd)


def note_cut(path: str) -> None:
    """Records once that the warden of the run was killed; a torn last record is removed first."""
    end, last = 0, None
    for record in read_journal(path):
        end += _HEADER.size + len(record.data)
        last = record.kind
    if last == Kind.CUT:
        return
    with contextlib.suppress(OSError):
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            os.ftruncate(fd, end)
            os.pwrite(fd, _HEADER.pack(Kind.CUT, time.time(), 0), end)
        finally:
            os.close(fd)
