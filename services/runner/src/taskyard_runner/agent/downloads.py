"""Fetching the checkpoint that a run starts from."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator
from typing import Any

import grpc
import grpc.aio

from taskyard.status import from_rpc_error
from taskyard.v1.lease_pb2 import Assignment
from taskyard.v1.runner_link_service_pb2 import DownloadCheckpointRequest, DownloadCheckpointResponse
from taskyard.v1.runner_link_service_pb2_grpc import RunnerLinkServiceStub
from taskyard_runner.agent.directory import RunDirectory
from taskyard_runner.agent.preparation import CheckpointUnavailable

_ATTEMPTS = 4
_TIMEOUT = 60.0
_BACKOFF = 0.5


class Downloads:
    """Reads checkpoints of leased tasks from the scheduler."""

    def __init__(self, channel: grpc.aio.Channel, runner_id: str) -> None:
        self._stub: Any = RunnerLinkServiceStub(channel)
        self._runner_id = runner_id

    async def fetch(self, assignment: Assignment, directory: RunDirectory) -> None:
        """Write the newest checkpoint to TASKYARD_CHECKPOINT_FILE. Raises CheckpointUnavailable."""
        problem = ""
        for attempt in range(_ATTEMPTS):
            try:
                content = await self._read(assignment)
                directory.write(directory.restored, content)
                return
            except grpc.RpcError as error:
                problem = str(from_rpc_error(error))
            except ValueError as error:
                problem = str(error)
            await asyncio.sleep(_BACKOFF * 2**attempt)
        sequence = assignment.checkpoint.sequence
        raise CheckpointUnavailable(f"checkpoint {sequence} cannot be read: {problem}")

    async def _read(self, assignment: Assignment) -> bytes:
        request = DownloadCheckpointRequest(runner_id=self._runner_id, lease=assignment.lease)
        stream: AsyncIterator[DownloadCheckpointResponse] = self._stub.DownloadCheckpoint(
            request, timeout=_TIMEOUT
        )
        checkpoint = assignment.checkpoint
        content = bytearray()
        async for response in stream:
            if response.HasField("checkpoint"):
                checkpoint = response.checkpoint
            content += response.data
        if len(content) != checkpoint.size_bytes or hashlib.sha256(content).digest() != checkpoint.sha256:
            raise ValueError(f"{len(content)} bytes arrived, which are not those of the digest")
        return bytes(content)
