"""Logs: every line in order, whatever a workload writes, within limits, each with a note in the log."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path

import pytest

from services.runner.tests.conftest import StartRunner
from services.runner.tests.runner_process import RunnerProcess, command, shell
from services.runner.tests.scheduler_peer import SchedulerPeer
from taskyard.v1.log_pb2 import (
    LOG_LEVEL_ERROR,
    LOG_LEVEL_INFO,
    LOG_LEVEL_WARNING,
    LOG_SOURCE_RUNNER,
    LOG_SOURCE_STDOUT,
    LOG_SOURCE_WORKLOAD,
    LogEntry,
)
from taskyard_runner.agent.log_lines import MAX_MESSAGE_BYTES, LineReader
from taskyard_runner.warden.journal import JournalReader, JournalWriter, Kind, Record

# `make flood` sends a gigabyte, which takes a while.
FLOOD_MB = int(os.environ.get("TASKYARD_TEST_FLOOD_MB", "200"))


def read(*records: tuple[Kind, bytes]) -> list[LogEntry]:
    reader = LineReader()
    entries = [entry for kind, data in records for entry in reader.read(Record(kind, 1.5, data))]
    return [*entries, *reader.finish()]


def messages(entries: Iterable[LogEntry]) -> list[str]:
    return [entry.message for entry in entries]


def test_lines_are_joined_over_records_and_numbered() -> None:
    entries = read((Kind.STDOUT, b"a\nb"), (Kind.STDERR, b"x\n"), (Kind.STDOUT, b"c\n\nd"))
    assert messages(entries) == ["a", "x", "bc", "", "d"]
    assert [entry.sequence for entry in entries] == [1, 2, 3, 4, 5]
    assert entries[0].time.ToNanoseconds() == 1_500_000_000


def test_invalid_utf8_is_replaced() -> None:
    (entry,) = read((Kind.STDOUT, b"caf\xe9\x00\x1b[1mx\r\n"))
    assert entry.message == "caf\ufffd\ufffd\x1b[1mx"


def test_long_line_is_cut_with_a_note() -> None:
    (entry,) = read(*[(Kind.STDOUT, b"x" * 60_000)] * 3, (Kind.STDOUT, b"\n"))
    assert len(entry.message.encode()) <= MAX_MESSAGE_BYTES
    assert entry.message.endswith("[114528 bytes of this line cut]")


def test_json_lines_carry_their_level_and_fields() -> None:
    line = {"level": "warning", "message": "slow", "step": 3, "action": "read", "disk": "sda", "ms": 12}
    (entry,) = read((Kind.STDOUT, json.dumps(line).encode() + b"\n"))
    assert (entry.level, entry.message, entry.step, entry.action) == (LOG_LEVEL_WARNING, "slow", 3, "read")
    assert dict(entry.details) == {"disk": "sda", "ms": 12}
    assert entry.source == LOG_SOURCE_STDOUT


@pytest.mark.parametrize("line", ['{"a": 1}', '{"level": 3, "message": "x"}', "{broken}", "{" * 5000 + "}"])
def test_other_json_stays_text(line: str) -> None:
    (entry,) = read((Kind.STDOUT, line.encode() + b"\n"))
    assert (entry.message, entry.level) == (line, LOG_LEVEL_INFO)


def test_messages_of_the_workload_keep_their_place() -> None:
    message = b'{"level": "error", "message": "bad", "details": {"x": 1}}'
    entries = read((Kind.STDOUT, b"a\n"), (Kind.MESSAGE, message), (Kind.STDOUT, b"b\n"))
    assert messages(entries) == ["a", "bad", "b"]
    assert (entries[1].level, entries[1].source) == (LOG_LEVEL_ERROR, LOG_SOURCE_WORKLOAD)


def test_a_journal_keeps_its_limit_and_counts_the_rest(tmp_path: Path) -> None:
    path = str(tmp_path / "journal")
    writer = JournalWriter(path, 100)
    for _ in range(10):
        writer.append(Kind.STDOUT, b"x" * 30)
    writer.close()
    records = list(JournalReader(path).read(10_000))
    assert [record.kind for record in records] == [Kind.STDOUT, Kind.STDOUT, Kind.DROPPED]
    assert int(records[-1].data) == 240


async def test_many_lines_arrive_in_order_and_once(peer: SchedulerPeer, runner: RunnerProcess) -> None:
    task = peer.assign(command("seq", "1", "20000"))
    await peer.outcome(task)
    entries = await peer.lines(task, 20000)
    assert messages(entries) == [str(number) for number in range(1, 20001)]
    assert [entry.sequence for entry in entries] == list(range(1, 20001))


def peak_memory(pid: int) -> int:
    """The most memory that a process has ever had, in bytes."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM"))


async def test_a_flood_without_a_newline_harms_nobody(peer: SchedulerPeer, start_runner: StartRunner) -> None:
    runner = await start_runner("--log-limit-mb", "1")
    before = [peak_memory(pid) for pid in (runner.pid, runner.agent_pid)]
    flood = peer.assign(shell(f"head -c {FLOOD_MB}000000 /dev/zero; echo; echo last"))
    neighbour = peer.assign(command("echo", "fine"))
    await peer.line(neighbour, "fine")
    assert (await peer.outcome(flood)).WhichOneof("report") == "succeeded"

    def marker() -> LogEntry | None:
        found = [entry for entry in peer.logs[flood.key].values() if entry.source == LOG_SOURCE_RUNNER]
        return found[0] if found else None

    assert "bytes after this were dropped" in (await peer.until(marker)).message
    after = [peak_memory(pid) for pid in (runner.pid, runner.agent_pid)]
    grown = [now - then for now, then in zip(after, before, strict=True)]
    assert max(grown) < 24 << 20, f"warden and agent have grown by {grown} bytes"


async def test_unacknowledged_logs_are_sent_again_after_a_reconnect(
    peer: SchedulerPeer, runner: RunnerProcess
) -> None:
    peer.ack_logs = False
    task = peer.assign(command("seq", "1", "100"))
    await peer.outcome(task)
    await peer.lines(task, 100)
    peer.logs.clear()
    peer.ack_logs = True
    peer.session.outbox.put_nowait(None)
    await peer.next_session(2)
    assert messages(await peer.lines(task, 100)) == [str(number) for number in range(1, 101)]
    await peer.until(lambda: not runner.kept_runs())
