"""Forwards checkpoints that a runner uploads over its link to taskdb, piece by piece (rule 10)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Protocol

from taskyard import errors
from taskyard.status import to_status
from taskyard.v1 import lease_pb2
from taskyard.v1.checkpoint_pb2 import CheckpointChunk, CheckpointHeader
from taskyard.v1.lease_service_pb2 import WriteCheckpointRequest, WriteCheckpointResponse
from taskyard.v1.runner_link_service_pb2 import CheckpointAck, CheckpointRetry
from taskyard_kit.logs import get_log
from taskyard_scheduler.final import is_final
from taskyard_scheduler.session import Session

log = get_log(__name__)


class CheckpointClient(Protocol):
    """taskdb, as far as uploads need it; raises taskyard.errors."""

    async def write_checkpoint(
        self, requests: AsyncIterator[WriteCheckpointRequest]
    ) -> WriteCheckpointResponse: ...


class _Upload:
    """One checkpoint upload in progress."""

    def __init__(self, header: CheckpointHeader) -> None:
        self.header = header
        self.chunks: asyncio.Queue[CheckpointChunk] = asyncio.Queue()
        self.task: asyncio.Task[None] | None = None
        # taskdb has responded; the remaining pieces are dropped.
        self.done = False


class Uploads:
    """The uploads of one session: one per task, pieces of different tasks may interleave.

    A piece belongs to the task of its header; one without a header to the upload that was last continued.
    """

    def __init__(self, session: Session, taskdb: CheckpointClient) -> None:
        self._session = session
        self._taskdb = taskdb
        self._uploads: dict[str, _Upload] = {}
        self._current: _Upload | None = None

    def receive(self, chunk: CheckpointChunk) -> None:
        """Forwards a piece; the upload is acknowledged once it is stored or finally rejected."""
        upload = self._find(chunk)
        self._current = None if chunk.last else upload
        if chunk.last:
            self._forget(upload)
        if not upload.done:
            self._session.take_bulk(len(chunk.data))
            upload.chunks.put_nowait(chunk)

    def close(self) -> None:
        """Cancels incomplete uploads when the stream ends."""
        for upload in self._uploads.values():
            if upload.task is not None:
                upload.task.cancel()

    def _find(self, chunk: CheckpointChunk) -> _Upload:
        if not chunk.HasField("header"):
            if self._current is None:
                raise self._session.violation(
                    "a checkpoint piece came without a header or an upload before it"
                )
            return self._current
        header = chunk.header
        upload = self._uploads.get(header.task)
        if upload is not None and upload.header.sequence == header.sequence and chunk.offset > 0:
            return upload
        if upload is not None:
            raise self._session.violation(f"two uploads at a time for {header.task}; finish the first")
        if chunk.offset != 0:
            raise self._session.violation(
                f"the upload for {header.task} begins at offset {chunk.offset}, not 0"
            )
        upload = self._uploads[header.task] = _Upload(header)
        upload.task = asyncio.create_task(self._store(upload))
        return upload

    def _forget(self, upload: _Upload) -> None:
        """Removes the upload, so that the next one of the task can begin."""
        if self._uploads.get(upload.header.task) is upload:
            del self._uploads[upload.header.task]

    async def _store(self, upload: _Upload) -> None:
        failure: errors.TaskyardError | None = None
        try:
            await self._taskdb.write_checkpoint(self._requests(upload))
        except errors.TaskyardError as error:
            failure = error
        upload.done = True
        self._forget(upload)
        while not upload.chunks.empty():
            self._session.bulk_stored(len(upload.chunks.get_nowait().data))
        self._respond(upload.header, failure)

    def _respond(self, header: CheckpointHeader, failure: errors.TaskyardError | None) -> None:
        """Acknowledges a checkpoint that is stored or finally rejected, and requests a retry of any other."""
        lease = lease_pb2.LeaseRef(task=header.task, generation=header.generation, lease_id=header.lease_id)
        if failure is None or is_final(failure):
            status = to_status(failure) if failure is not None else None
            ack = CheckpointAck(lease=lease, sequence=header.sequence, status=status)
            self._session.outbox.acknowledge_checkpoint(ack)
            return
        runner = self._session.runner_id
        log.warning("checkpoint_delayed", runner=runner, task=header.task, error=str(failure))
        retry = CheckpointRetry(lease=lease, sequence=header.sequence, status=to_status(failure))
        self._session.outbox.retry_checkpoint(retry)

    async def _requests(self, upload: _Upload) -> AsyncIterator[WriteCheckpointRequest]:
        runner_id = self._session.runner_id
        while True:
            chunk = await upload.chunks.get()
            # Counted before the yield: a failed call does not resume this generator.
            self._session.bulk_stored(len(chunk.data))
            yield WriteCheckpointRequest(runner_id=runner_id, chunk=chunk)
            if chunk.last:
                return
            runner_id = ""
