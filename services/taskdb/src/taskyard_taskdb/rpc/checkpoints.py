"""Checkpoints: written and read by holders through LeaseService, listed and read through TaskService."""

import functools
import hashlib
from collections.abc import AsyncIterator
from typing import Any

from taskyard.errors import DigestMismatch, FieldInvalid, LeaseNotHeld, NotFound, StaleGeneration, TooLarge
from taskyard.v1 import checkpoint_pb2, common_pb2, lease_service_pb2, task_service_pb2
from taskyard_kit.auth import require_tenant
from taskyard_taskdb import failpoints
from taskyard_taskdb.domain.names import checkpoint_name, parse_checkpoint_name, parse_task_name
from taskyard_taskdb.domain.page import decode_cursor, encode_cursor, page_size
from taskyard_taskdb.rpc.access import visible_task
from taskyard_taskdb.rpc.times import timestamp
from taskyard_taskdb.storage.pool import Pool, Tx
from taskyard_taskdb.storage.report import checkpoints, run_logs
from taskyard_taskdb.storage.report.checkpoints import NewCheckpoint, StoredCheckpoint
from taskyard_taskdb.storage.report.run_logs import LATEST, RunRef
from taskyard_taskdb.watch.hub import Hub


class LeasedCheckpointHandler:
    """LeaseService.WriteCheckpoint and ReadLeasedCheckpoint."""

    def __init__(self, pool: Pool, hub: Hub) -> None:
        self._pool = pool
        self._hub = hub

    async def WriteCheckpoint(
        self, requests: AsyncIterator[lease_service_pb2.WriteCheckpointRequest], context: Any
    ) -> lease_service_pb2.WriteCheckpointResponse:
        """Gather the pieces, check size and digest, and store the whole in one transaction."""
        runner_id, header, data = await _gather(requests)
        digest = hashlib.sha256(data)
        if len(data) != header.size_bytes or digest.digest() != header.sha256:
            name = f"{header.task}/checkpoints/{header.sequence}"
            raise DigestMismatch(name, header.sha256.hex(), digest.hexdigest())
        tenant_id, task_id = parse_task_name(header.task)
        new = NewCheckpoint(
            RunRef(tenant_id, task_id, header.generation, header.lease_id),
            runner_id,
            header.sequence,
            header.sha256,
            header.content_type,
            header.progress_percent,
            functools.partial(_progress, header),
            data,
        )

        async def write(tx: Tx) -> StoredCheckpoint:
            stored = await checkpoints.write(tx, new)
            await failpoints.CHECKPOINT_BEFORE_COMMIT.reach()
            return stored

        stored = await self._pool.run(write)
        await failpoints.CHECKPOINT_AFTER_COMMIT.reach()
        self._hub.wake()
        return lease_service_pb2.WriteCheckpointResponse(checkpoint=_message(tenant_id, task_id, stored))

    async def ReadLeasedCheckpoint(
        self, request: lease_service_pb2.ReadLeasedCheckpointRequest, context: Any
    ) -> AsyncIterator[lease_service_pb2.ReadLeasedCheckpointResponse]:
        """Stream the newest checkpoint of a task to the holder of its lease."""
        lease = request.lease
        tenant_id, task_id = parse_task_name(lease.task)
        async with self._pool.reading() as tx:
            run = RunRef(tenant_id, task_id, lease.generation, lease.lease_id)
            holder = await checkpoints.holder(tx, tenant_id, task_id)
            if holder is None or holder.runner_id != request.runner_id:
                raise LeaseNotHeld(lease.task, lease.generation)
            if (holder.generation, holder.lease_id) != (run.generation, run.lease_id):
                raise StaleGeneration(lease.task, lease.generation, holder.generation)
            found = await checkpoints.find(tx, tenant_id, task_id)
        if found is None:
            raise NotFound("checkpoint", f"{lease.task}/checkpoints/latest")
        described = _message(tenant_id, task_id, found)
        async for offset, data in _pieces(self._pool, tenant_id, task_id, found, 0):
            yield lease_service_pb2.ReadLeasedCheckpointResponse(
                checkpoint=described if offset == 0 else None, data=data
            )


class CheckpointReadHandler:
    """TaskService.ListCheckpoints and ReadCheckpoint."""

    def __init__(self, pool: Pool, hub: Hub) -> None:
        self._pool = pool
        self._hub = hub

    async def ListCheckpoints(
        self, request: task_service_pb2.ListCheckpointsRequest, context: Any
    ) -> task_service_pb2.ListCheckpointsResponse:
        """Return one page of the checkpoints of a task, newest first."""
        tenant_id, task_id = visible_task(request.parent, "parent")
        size = page_size(request.page_size)
        before = decode_cursor(request.page_token, request.parent)[0] if request.page_token else LATEST
        async with self._pool.reading() as tx:
            if await run_logs.state(tx, tenant_id, task_id) is None:
                raise NotFound("task", request.parent)
            page = await checkpoints.list_page(tx, tenant_id, task_id, before, size + 1)
        token = encode_cursor((page[size - 1].sequence, 0), request.parent) if len(page) > size else ""
        found = [_message(tenant_id, task_id, stored) for stored in page[:size]]
        return task_service_pb2.ListCheckpointsResponse(checkpoints=found, next_page_token=token)

    async def ReadCheckpoint(
        self, request: task_service_pb2.ReadCheckpointRequest, context: Any
    ) -> AsyncIterator[task_service_pb2.ReadCheckpointResponse]:
        """Stream the content of a checkpoint from an offset."""
        tenant_id, task_id, sequence = parse_checkpoint_name(request.name)
        require_tenant(tenant_id, "checkpoint", request.name)
        async with self._pool.reading() as tx:
            found = await checkpoints.find(tx, tenant_id, task_id, sequence)
        if found is None:
            raise NotFound("checkpoint", request.name)
        described: checkpoint_pb2.Checkpoint | None = _message(tenant_id, task_id, found)
        with self._hub.counted(tenant_id):
            async for offset, data in _pieces(self._pool, tenant_id, task_id, found, request.offset):
                yield task_service_pb2.ReadCheckpointResponse(checkpoint=described, offset=offset, data=data)
                described = None


def _progress(header: checkpoint_pb2.CheckpointHeader, before: bytes | None) -> bytes | None:
    """The progress with the percentage of the checkpoint; the message of the workload stays.

    Uploads and reports travel apart. Progress that names this checkpoint, or a later one, was observed behind
    it; and what was reported as done before is not less because of an upload that took longer.
    """
    progress = common_pb2.Progress.FromString(before or b"")
    if not header.progress_percent or progress.checkpoint_sequence >= header.sequence:
        return None
    progress.percent = max(progress.percent, header.progress_percent)
    progress.checkpoint_sequence = header.sequence
    return progress.SerializeToString()


async def _gather(
    requests: AsyncIterator[lease_service_pb2.WriteCheckpointRequest],
) -> tuple[str, checkpoint_pb2.CheckpointHeader, bytes]:
    runner_id, header, data = "", None, bytearray()
    async for request in requests:
        chunk = request.chunk
        if header is None:
            runner_id, header = request.runner_id, chunk.header
        if chunk.offset != len(data) or not header.task:
            problem = f"is {chunk.offset}, not {len(data)}; send chunks in order, the first one with a header"
            raise FieldInvalid.of("chunk.offset", problem)
        data += chunk.data
        if len(data) > header.size_bytes:
            raise TooLarge.sized("chunk.data", len(data), header.size_bytes)
    if header is None:
        raise FieldInvalid.of("chunk", "no chunk was sent; send at least one")
    return runner_id, header, bytes(data)


async def _pieces(
    pool: Pool, tenant_id: str, task_id: str, found: StoredCheckpoint, offset: int
) -> AsyncIterator[tuple[int, bytes]]:
    """Yield (offset, piece) to the end. Raises NotFound if the checkpoint is removed meanwhile.

    Content that is read from its beginning is compared with the stored digest. Raises DigestMismatch.
    """
    name = checkpoint_name(tenant_id, task_id, found.sequence)
    digest = hashlib.sha256() if offset == 0 else None
    while offset < found.size_bytes:
        async with pool.reading() as tx:
            data = await checkpoints.read_piece(tx, tenant_id, task_id, found.sequence, offset)
        if not data:
            raise NotFound("checkpoint", name)
        if digest is not None:
            digest.update(data)
        yield offset, data
        offset += len(data)
    if digest is not None and digest.digest() != found.sha256:
        raise DigestMismatch(name, found.sha256.hex(), digest.hexdigest())


def _message(tenant_id: str, task_id: str, stored: StoredCheckpoint) -> checkpoint_pb2.Checkpoint:
    return checkpoint_pb2.Checkpoint(
        name=checkpoint_name(tenant_id, task_id, stored.sequence),
        sequence=stored.sequence,
        generation=stored.generation,
        size_bytes=stored.size_bytes,
        sha256=stored.sha256,
        content_type=stored.content_type,
        progress_percent=stored.progress_percent,
        create_time=timestamp(stored.create_time),
    )
