"""Checkpoints over a real socket: written under their lease, read back whole, kept to the newest ten."""

import hashlib
import os
from collections.abc import AsyncIterator
from typing import Any

import pytest

from services.taskdb.tests.conftest import RunningTaskDb
from services.taskdb.tests.yard import Runner, Yard, started, succeeded
from taskyard.errors import (
    CheckpointSequenceConflict,
    DigestMismatch,
    FieldInvalid,
    LeaseNotHeld,
    NotFound,
    StaleGeneration,
    StreamLimit,
    TaskTerminal,
    TooLarge,
)
from taskyard.status import translated
from taskyard.v1 import (
    checkpoint_pb2,
    common_pb2,
    lease_pb2,
    lease_service_pb2,
    task_pb2,
    task_service_pb2,
)
from taskyard_taskdb.domain.change import ChangeEvent
from taskyard_taskdb.domain.words import Phase
from taskyard_taskdb.watch import hub as hub_module

PIECE = 262_144


async def claimed(yard: Yard) -> tuple[Runner, lease_pb2.Assignment]:
    await yard.create()
    runner, _ = await yard.hello()
    return runner, (await yard.claim(runner)).assignments[0]


def pieces(
    runner_id: str, lease: lease_pb2.LeaseRef, sequence: int, data: bytes, **header: Any
) -> list[lease_service_pb2.WriteCheckpointRequest]:
    """The requests that write a checkpoint; `header` replaces fields of its header."""
    fields = {
        "task": lease.task,
        "generation": lease.generation,
        "lease_id": lease.lease_id,
        "sequence": sequence,
        "size_bytes": len(data),
        "sha256": hashlib.sha256(data).digest(),
        **header,
    }
    made = []
    for offset in range(0, len(data), PIECE):
        chunk = checkpoint_pb2.CheckpointChunk(offset=offset, data=data[offset : offset + PIECE])
        if offset == 0:
            chunk.header.CopyFrom(checkpoint_pb2.CheckpointHeader(**fields))
        made.append(lease_service_pb2.WriteCheckpointRequest(runner_id=runner_id, chunk=chunk))
    return made


async def write(yard: Yard, requests: list[lease_service_pb2.WriteCheckpointRequest]) -> Any:
    async def stream() -> AsyncIterator[lease_service_pb2.WriteCheckpointRequest]:
        for request in requests:
            yield request

    with translated():
        return (await yard.scheduler.leases.WriteCheckpoint(stream())).checkpoint


async def read_leased(yard: Yard, runner_id: str, lease: lease_pb2.LeaseRef) -> bytes:
    request = lease_service_pb2.ReadLeasedCheckpointRequest(runner_id=runner_id, lease=lease)
    data = b""
    with translated():
        async for response in yard.scheduler.leases.ReadLeasedCheckpoint(request):
            data += response.data
    return data


async def read(yard: Yard, name: str, offset: int = 0) -> bytes:
    request = task_service_pb2.ReadCheckpointRequest(name=name, offset=offset)
    with translated():
        return b"".join([part.data async for part in yard.tenant.tasks.ReadCheckpoint(request)])


async def test_a_large_checkpoint_comes_back_as_it_was_written(yard: Yard) -> None:
    runner, assignment = await claimed(yard)
    data = os.urandom(3 * PIECE + 17)
    stored = await write(yard, pieces(runner.id, assignment.lease, 1, data, progress_percent=40))
    assert stored.size_bytes == len(data)
    assert await read_leased(yard, runner.id, assignment.lease) == data
    name = f"{assignment.lease.task}/checkpoints/latest"
    assert await read(yard, name) == data
    assert await read(yard, name, offset=PIECE) == data[PIECE:]
    task = await yard.task(assignment.lease.task)
    assert task.status.checkpoint_sequence == 1
    assert task.status.progress.percent == 40
    assert task.metadata.resource_version == 4


@pytest.mark.covers("ReadCheckpoint", "STREAM_LIMIT")
async def test_reading_a_checkpoint_counts_as_a_stream(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    runner, assignment = await claimed(yard)
    await write(yard, pieces(runner.id, assignment.lease, 1, b"data"))
    name = f"{assignment.lease.task}/checkpoints/latest"
    monkeypatch.setattr(hub_module, "STREAMS_PER_TENANT", 1)
    for _ in range(2):
        assert await read(yard, name) == b"data"
    monkeypatch.setattr(hub_module, "STREAMS_PER_TENANT", 0)
    with pytest.raises(StreamLimit):
        await read(yard, name)


async def test_checkpoint_keeps_the_progress_message_of_the_workload(yard: Yard) -> None:
    runner, assignment = await claimed(yard)
    progress = common_pb2.Progress(percent=30, message="frames 300/1000", step=3)
    await yard.report(
        runner, started(assignment), lease_pb2.RunReport(lease=assignment.lease, progress=progress)
    )
    await write(yard, pieces(runner.id, assignment.lease, 1, b"state", progress_percent=40))
    progress = (await yard.task(assignment.lease.task)).status.progress
    assert (progress.percent, progress.message, progress.step) == (40, "frames 300/1000", 3)
    await write(yard, pieces(runner.id, assignment.lease, 2, b"more"))
    assert (await yard.task(assignment.lease.task)).status.progress.percent == 40


async def test_a_checkpoint_does_not_lower_a_newer_progress(yard: Yard) -> None:
    runner, assignment = await claimed(yard)
    progress = common_pb2.Progress(percent=100, message="done")
    await yard.report(
        runner, started(assignment), lease_pb2.RunReport(lease=assignment.lease, progress=progress)
    )
    await write(yard, pieces(runner.id, assignment.lease, 1, b"state", progress_percent=50))
    progress = (await yard.task(assignment.lease.task)).status.progress
    assert (progress.percent, progress.message) == (100, "done")


async def test_a_checkpoint_does_not_replace_progress_that_was_observed_behind_it(yard: Yard) -> None:
    runner, assignment = await claimed(yard)
    # The workload kept checkpoint 1 at 80 %, then began its next step; the upload arrives last.
    progress = common_pb2.Progress(percent=10, message="second step", checkpoint_sequence=1)
    await yard.report(
        runner, started(assignment), lease_pb2.RunReport(lease=assignment.lease, progress=progress)
    )
    await write(yard, pieces(runner.id, assignment.lease, 1, b"state", progress_percent=80))
    assert (await yard.task(assignment.lease.task)).status.progress.percent == 10


async def test_a_checkpoint_before_the_start_was_reported_starts_the_run(
    yard: Yard, taskdb: RunningTaskDb
) -> None:
    runner, assignment = await claimed(yard)
    await write(yard, pieces(runner.id, assignment.lease, 1, b"state", progress_percent=40))
    task = await yard.task(assignment.lease.task)
    assert (task.status.phase, task.status.attempt) == (task_pb2.TASK_PHASE_RUNNING, 1)
    assert (task.status.checkpoint_sequence, task.status.progress.percent) == (1, 40)
    rows = await taskdb.rows("SELECT event, phase, version FROM change_log ORDER BY id DESC LIMIT 2")
    words = [(ChangeEvent(event), Phase(phase), version) for event, phase, version in reversed(rows)]
    assert words == [
        (ChangeEvent.TASK_STARTED, Phase.RUNNING, 3),
        (ChangeEvent.TASK_CHECKPOINT_CREATED, Phase.RUNNING, 4),
    ]
    start, end = await yard.report(runner, started(assignment), succeeded(assignment))
    assert start.duplicate and end.phase == task_pb2.TASK_PHASE_SUCCEEDED


@pytest.mark.seed("S2.146")
async def test_checkpoint_progress_and_audit_are_written_in_one_transaction(
    yard: Yard, taskdb: RunningTaskDb
) -> None:
    runner, assignment = await claimed(yard)
    await write(yard, pieces(runner.id, assignment.lease, 1, b"state", progress_percent=40))
    rows = await taskdb.rows(
        "SELECT c.xmin::text, l.xmin::text, t.xmin::text, g.xmin::text FROM checkpoints c "
        "JOIN leases l USING (tenant_id, task_id) JOIN tasks t USING (tenant_id, task_id) "
        "JOIN changes g ON g.resource_id = c.task_id AND g.event = 5"
    )
    assert len(rows) == 1 and len(set(rows[0])) == 1


@pytest.mark.covers("WriteCheckpoint", "CHECKPOINT_SEQUENCE_CONFLICT")
async def test_a_repeat_is_the_same_checkpoint_and_another_content_a_conflict(yard: Yard) -> None:
    runner, assignment = await claimed(yard)
    await write(yard, pieces(runner.id, assignment.lease, 2, b"one"))
    await write(yard, pieces(runner.id, assignment.lease, 3, b"three"))
    older = await write(yard, pieces(runner.id, assignment.lease, 2, b"one"))
    assert (older.sequence, older.size_bytes) == (2, 3)
    with pytest.raises(CheckpointSequenceConflict):
        await write(yard, pieces(runner.id, assignment.lease, 2, b"two"))
    with pytest.raises(CheckpointSequenceConflict):
        await write(yard, pieces(runner.id, assignment.lease, 1, b"two"))
    assert (await yard.task(assignment.lease.task)).metadata.resource_version == 5


@pytest.mark.seed("S2.139")
async def test_the_newest_ten_are_kept(yard: Yard) -> None:
    runner, assignment = await claimed(yard)
    for sequence in range(1, 14):
        await write(yard, pieces(runner.id, assignment.lease, sequence, b"%d" % sequence))
    request = task_service_pb2.ListCheckpointsRequest(parent=assignment.lease.task, page_size=6)
    page = await yard.tenant.tasks.ListCheckpoints(request)
    request.page_token = page.next_page_token
    rest = await yard.tenant.tasks.ListCheckpoints(request)
    assert [c.sequence for c in (*page.checkpoints, *rest.checkpoints)] == list(range(13, 3, -1))
    assert rest.next_page_token == ""


@pytest.mark.covers("ReadLeasedCheckpoint", "STALE_GENERATION")
@pytest.mark.covers("WriteCheckpoint", "STALE_GENERATION")
async def test_the_next_holder_reads_what_the_last_one_wrote(yard: Yard) -> None:
    runner, assignment = await claimed(yard)
    await write(yard, pieces(runner.id, assignment.lease, 1, b"state"))
    release = lease_pb2.RunReport(lease=assignment.lease)
    release.released.reason = lease_pb2.RELEASE_REASON_NO_CAPACITY
    await yard.report(runner, release)
    again = (await yard.claim(runner)).assignments[0]
    assert again.checkpoint.sequence == 1
    assert await read_leased(yard, runner.id, again.lease) == b"state"
    with pytest.raises(StaleGeneration):
        await read_leased(yard, runner.id, assignment.lease)
    with pytest.raises(StaleGeneration):
        await write(yard, pieces(runner.id, assignment.lease, 2, b"late"))


@pytest.mark.covers("WriteCheckpoint", "LEASE_NOT_HELD")
@pytest.mark.covers("WriteCheckpoint", "TASK_TERMINAL")
@pytest.mark.covers("ReadLeasedCheckpoint", "LEASE_NOT_HELD")
@pytest.mark.covers("ReadLeasedCheckpoint", "NOT_FOUND")
async def test_checkpoint_calls_without_the_lease_are_rejected(yard: Yard) -> None:
    runner, assignment = await claimed(yard)
    with pytest.raises(LeaseNotHeld):
        await write(yard, pieces("somebody-else", assignment.lease, 1, b"x"))
    with pytest.raises(LeaseNotHeld):
        await read_leased(yard, "somebody-else", assignment.lease)
    with pytest.raises(NotFound):
        await read_leased(yard, runner.id, assignment.lease)
    await yard.report(runner, succeeded(assignment))
    with pytest.raises(TaskTerminal):
        await write(yard, pieces(runner.id, assignment.lease, 1, b"x"))


@pytest.mark.covers("ListCheckpoints", "NOT_FOUND")
@pytest.mark.covers("ReadCheckpoint", "NOT_FOUND")
async def test_missing_checkpoint_is_not_found(yard: Yard) -> None:
    (name,) = await yard.create()
    with pytest.raises(NotFound):
        await yard.tenant.tasks.ListCheckpoints(task_service_pb2.ListCheckpointsRequest(parent=f"{name}0"))
    with pytest.raises(NotFound):
        await read(yard, f"{name}/checkpoints/latest")


@pytest.mark.covers("ReadCheckpoint", "DIGEST_MISMATCH")
@pytest.mark.covers("ReadLeasedCheckpoint", "DIGEST_MISMATCH")
async def test_a_checkpoint_that_was_damaged_in_storage_is_not_taken_for_whole(
    yard: Yard, taskdb: RunningTaskDb
) -> None:
    runner, assignment = await claimed(yard)
    await write(yard, pieces(runner.id, assignment.lease, 1, b"state"))
    async with taskdb.pool.transaction() as tx:
        await tx.execute("UPDATE checkpoints SET data = 'stale'::bytea")
    with pytest.raises(DigestMismatch):
        await read(yard, f"{assignment.lease.task}/checkpoints/1")
    with pytest.raises(DigestMismatch):
        await read_leased(yard, runner.id, assignment.lease)


@pytest.mark.covers("WriteCheckpoint", "DIGEST_MISMATCH")
@pytest.mark.covers("WriteCheckpoint", "TOO_LARGE")
async def test_damaged_and_malformed_uploads_store_nothing(yard: Yard) -> None:
    runner, assignment = await claimed(yard)
    lease = assignment.lease
    with pytest.raises(DigestMismatch):
        await write(yard, pieces(runner.id, lease, 1, b"abc", sha256=hashlib.sha256(b"abd").digest()))
    with pytest.raises(DigestMismatch):
        await write(yard, pieces(runner.id, lease, 1, b"abc", size_bytes=4))
    with pytest.raises(TooLarge):
        await write(yard, pieces(runner.id, lease, 1, b"abc", size_bytes=2))
    with pytest.raises(FieldInvalid):
        await write(yard, pieces(runner.id, lease, 1, b"abc", size_bytes=10_485_761))
    with pytest.raises(FieldInvalid):
        await write(yard, list(reversed(pieces(runner.id, lease, 1, os.urandom(PIECE + 1)))))
    with pytest.raises(FieldInvalid):
        await write(yard, [])
    request = task_service_pb2.ListCheckpointsRequest(parent=lease.task)
    assert not (await yard.tenant.tasks.ListCheckpoints(request)).checkpoints
