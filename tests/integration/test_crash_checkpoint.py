"""taskdb killed around a checkpoint: what is stored is whole and no older than acknowledged."""

from __future__ import annotations

import hashlib
import os
from collections.abc import AsyncIterator
from typing import Any

import pytest

from services.taskdb.tests.yard import failed, started
from taskyard.errors import CheckpointSequenceConflict, Unavailable
from taskyard.v1 import checkpoint_pb2, common_pb2, lease_pb2, lease_service_pb2
from tests.harness.taskdb_process import CrashingTaskDb

PIECE = 256 * 1024
AT_ONCE = common_pb2.RetryPolicy(max_retries=3)
AT_ONCE.backoff.initial.nanos = 1_000_000
AT_ONCE.backoff.max.nanos = 1_000_000


async def write(taskdb: CrashingTaskDb, lease: lease_pb2.LeaseRef, sequence: int, data: bytes) -> Any:
    """Stores a checkpoint as its holder does, in several pieces."""
    header = checkpoint_pb2.CheckpointHeader(
        task=lease.task,
        generation=lease.generation,
        lease_id=lease.lease_id,
        sequence=sequence,
        size_bytes=len(data),
        sha256=hashlib.sha256(data).digest(),
        progress_percent=10 * sequence,
    )

    async def pieces() -> AsyncIterator[lease_service_pb2.WriteCheckpointRequest]:
        for offset in range(0, len(data), PIECE):
            piece = data[offset : offset + PIECE]
            chunk = checkpoint_pb2.CheckpointChunk(
                header=header if offset == 0 else None,
                offset=offset,
                data=piece,
                last=offset + PIECE >= len(data),
            )
            yield lease_service_pb2.WriteCheckpointRequest(runner_id="runner-1", chunk=chunk)

    return (await taskdb.leases.WriteCheckpoint(pieces())).checkpoint


async def read(taskdb: CrashingTaskDb, lease: lease_pb2.LeaseRef) -> tuple[int, bytes]:
    """The checkpoint from which the holder of this lease resumes."""
    request = lease_service_pb2.ReadLeasedCheckpointRequest(runner_id="runner-1", lease=lease)
    answers = [answer async for answer in taskdb.leases.ReadLeasedCheckpoint(request)]
    return answers[0].checkpoint.sequence, b"".join(answer.data for answer in answers)


@pytest.mark.parametrize(
    ("failpoint", "stored"), [("checkpoint.before_commit", 1), ("checkpoint.after_commit", 2)]
)
async def test_a_checkpoint_interrupted_by_a_crash_is_stored_completely_or_not_at_all(
    taskdb: CrashingTaskDb, failpoint: str, stored: int
) -> None:
    await taskdb.start(f"{failpoint}=kill@2")
    yard = taskdb.yard
    (name,) = await yard.create(retry=AT_ONCE)
    runner, _ = await yard.hello()
    (claimed,) = (await yard.claim(runner)).assignments
    await yard.report(runner, started(claimed))
    contents = {sequence: os.urandom(2 * PIECE + 1000) for sequence in (1, 2)}
    assert (await write(taskdb, claimed.lease, 1, contents[1])).sequence == 1
    with pytest.raises(Unavailable):
        await write(taskdb, claimed.lease, 2, contents[2])
    await taskdb.killed()
    await taskdb.start()
    assert await read(taskdb, claimed.lease) == (stored, contents[stored])
    assert (await yard.task(name)).status.progress.percent == 10 * stored

    for _ in range(2):
        assert (await write(taskdb, claimed.lease, 2, contents[2])).sequence == 2
    with pytest.raises(CheckpointSequenceConflict):
        await write(taskdb, claimed.lease, 2, contents[1])
    assert await read(taskdb, claimed.lease) == (2, contents[2])
    noted = "SELECT count(*) FROM changes WHERE event = 5"
    assert await taskdb.value(noted) == 2, "each is in the log once"


async def test_the_attempt_after_an_interrupted_checkpoint_starts_from_the_acknowledged_one(
    taskdb: CrashingTaskDb,
) -> None:
    await taskdb.start("checkpoint.before_commit=kill@2")
    yard = taskdb.yard
    await yard.create(retry=AT_ONCE)
    runner, _ = await yard.hello()
    (claimed,) = (await yard.claim(runner)).assignments
    await yard.report(runner, started(claimed))
    content = os.urandom(1000)
    await write(taskdb, claimed.lease, 1, content)
    with pytest.raises(Unavailable):
        await write(taskdb, claimed.lease, 2, os.urandom(1000))
    await taskdb.killed()
    await taskdb.expire_leadership()
    await taskdb.start()
    # The workload was killed too: no one repeats the checkpoint.
    await yard.report(runner, failed(claimed))
    await taskdb.until("SELECT count(*) = 1 FROM queue")
    (second,) = (await yard.claim(runner)).assignments
    assert (second.lease.generation, second.checkpoint.sequence) == (2, 1)
    assert second.checkpoint.sha256 == hashlib.sha256(content).digest()
    assert await read(taskdb, second.lease) == (1, content)
