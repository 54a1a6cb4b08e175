"""Shipping logs: journals are read within the flow window and sent until they are acknowledged."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable
from pathlib import Path

from taskyard.v1.lease_pb2 import LeaseRef, LogBatch
from taskyard.v1.log_pb2 import LogEntry
from taskyard_runner.agent.leases import RunKey, key_of
from taskyard_runner.agent.log_lines import LineReader
from taskyard_runner.warden.journal import JournalReader

_READ_BYTES = 128 * 1024
_BATCH_BYTES = 192 * 1024
_BATCH_ENTRIES = 1000
# Entries of one run that wait for an acknowledgement; its journal holds the rest.
_RUN_BYTES = 512 * 1024


class _Tail:
    """The journal of one run, from the last acknowledged entry to the last read one."""

    def __init__(self, lease: LeaseRef, path: Path, acked: int) -> None:
        self.lease = lease
        self.acked = acked
        self.ended = False
        self.path = path
        self._reader: JournalReader | None = None
        self._lines = LineReader()
        self._waiting: deque[LogEntry] = deque()
        self._sent: deque[LogEntry] = deque()
        self._exhausted = False
        self._complete = False
        self.waiting_bytes = 0
        self.sent_bytes = 0

    def grown(self) -> None:
        """There is more to read."""
        self._exhausted = False

    def end(self) -> None:
        """Nothing more will be written."""
        self.ended = True
        self._exhausted = False

    def take(self, size: int) -> LogBatch | None:
        """The next entries, about `size` bytes of them."""
        self._fill()
        entries: list[LogEntry] = []
        total = 0
        while self._waiting and len(entries) < _BATCH_ENTRIES and total < size:
            entry = self._waiting.popleft()
            total += entry.ByteSize()
            entries.append(entry)
        if not entries:
            return None
        self.waiting_bytes -= total
        self.sent_bytes += total
        self._sent.extend(entries)
        return LogBatch(lease=self.lease, entries=entries)

    def _fill(self) -> None:
        while not self._exhausted and self.waiting_bytes + self.sent_bytes < _RUN_BYTES:
            if not self._read_some():
                self._exhausted = True

    def _read_some(self) -> bool:
        """Whether anything was read."""
        if self._complete:
            return False
        if self._reader is None:
            try:
                self._reader = JournalReader(str(self.path))
            except OSError:
                # Nothing was written yet.
                self._complete = self.ended
                return False
        before = self._reader.offset
        for record in self._reader.read(_READ_BYTES):
            for entry in self._lines.read(record):
                self._keep(entry)
        if self._reader.offset > before:
            return True
        if self.ended:
            for entry in self._lines.finish():
                self._keep(entry)
            self._close()
            self._complete = True
        return False

    def _keep(self, entry: LogEntry) -> None:
        if entry.sequence > self.acked:
            self._waiting.append(entry)
            self.waiting_bytes += entry.ByteSize()

    def acknowledge(self, through: int) -> None:
        while self._sent and self._sent[0].sequence <= through:
            self.sent_bytes -= self._sent.popleft().ByteSize()
        self.acked = max(self.acked, through)

    def rewind(self) -> None:
        """Send the unacknowledged entries again."""
        self._waiting.extendleft(reversed(self._sent))
        self._sent.clear()
        self.waiting_bytes += self.sent_bytes
        self.sent_bytes = 0

    @property
    def done(self) -> bool:
        """All was read, sent and acknowledged."""
        return self.ended and self._exhausted and not self._waiting and not self._sent

    def close(self) -> None:
        self._close()
        self._waiting.clear()
        self._sent.clear()
        self.ended = self._exhausted = self._complete = True

    def _close(self) -> None:
        if self._reader is not None:
            with contextlib.suppress(OSError):
                self._reader.close()
            self._reader = None


class LogShipper:
    """The journals of all runs; each in turn gets a message."""

    def __init__(self, wake: Callable[[], None], finished: Callable[[RunKey], None]) -> None:
        self._tails: dict[RunKey, _Tail] = {}
        self._turn: deque[RunKey] = deque()
        self._wake = wake
        self._finished = finished

    def open(self, lease: LeaseRef, journal: Path, acked: int = 0) -> None:
        """Follow a run's journal, after the entries that are acknowledged."""
        self._tails[key_of(lease)] = _Tail(lease, journal, acked)
        self._queue(key_of(lease))

    def follows(self, key: RunKey) -> bool:
        """Whether the run's journal is being shipped."""
        return key in self._tails

    def grown(self, key: RunKey) -> None:
        """The journal has more."""
        if (tail := self._tails.get(key)) is not None:
            tail.grown()
            self._queue(key)

    def ended(self, key: RunKey) -> None:
        """The journal is complete. `finished` is called once all of it is acknowledged."""
        if (tail := self._tails.get(key)) is not None:
            tail.end()
            self._queue(key)

    def acked(self, key: RunKey) -> int:
        """The sequence up to which the run's entries are stored."""
        tail = self._tails.get(key)
        return tail.acked if tail else 0

    def take(self, size: int) -> LogBatch | None:
        """The next batch, if any run has unsent entries."""
        for _ in range(len(self._turn)):
            key = self._turn.popleft()
            tail = self._tails.get(key)
            if tail is None:
                continue
            batch = tail.take(min(size, _BATCH_BYTES))
            if batch is not None:
                self._turn.append(key)
                return batch
            self._finish_if_done(key, tail)
        return None

    def acknowledge(self, key: RunKey, through: int, *, refused: bool) -> None:
        """Entries are stored, or refused for good."""
        if (tail := self._tails.get(key)) is None:
            return
        if refused:
            tail.close()
        else:
            tail.acknowledge(through)
        self._queue(key)
        self._finish_if_done(key, tail)

    def rewind(self) -> None:
        """Start a new session: unacknowledged entries are sent again."""
        for key, tail in self._tails.items():
            tail.rewind()
            self._queue(key)

    @property
    def in_flight(self) -> int:
        """Bytes that are sent and not acknowledged."""
        return sum(tail.sent_bytes for tail in self._tails.values())

    @property
    def idle(self) -> bool:
        """No run has logs left to ship."""
        return not self._tails

    def _queue(self, key: RunKey) -> None:
        if key not in self._turn:
            self._turn.append(key)
        self._wake()

    def _finish_if_done(self, key: RunKey, tail: _Tail) -> None:
        if tail.done and self._tails.pop(key, None) is not None:
            tail.close()
            self._finished(key)
