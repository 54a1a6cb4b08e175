"""Writes to streams in flight: one timer detects all peers that do not read.

A timer per write would cost as much CPU time as the write itself.
"""

from __future__ import annotations

import asyncio
from typing import Any

import grpc.aio

from taskyard.errors import ConsumerStalled

# gRPC buffers some megabytes for a peer that does not read; a write that blocks longer ends the stream.
STALL_SECONDS = 60.0


class Writes:
    """The writes of one server, checked four times per STALL_SECONDS while there are any."""

    def __init__(self) -> None:
        self._began: dict[asyncio.Task[Any], float] = {}
        self._stalled: set[asyncio.Task[Any]] = set()
        self._timer: asyncio.TimerHandle | None = None

    async def write(self, response: Any, context: Any) -> None:
        """Send one message of a stream.

        Raises ConsumerStalled if the peer does not read for too long, CancelledError if it has left.
        """
        task = asyncio.current_task()
        assert task is not None, "a handler runs in a task"
        loop = asyncio.get_running_loop()
        self._began[task] = loop.time()
        if self._timer is None:
            self._timer = loop.call_later(STALL_SECONDS / 4, self._cancel_stalled, loop)
        try:
            await context.write(response)
        except asyncio.CancelledError:
            if task not in self._stalled:
                raise
            task.uncancel()
            raise ConsumerStalled("the reader of this stream", f"{STALL_SECONDS:g} s") from None
        except grpc.aio.BaseError as error:
            # The call has ended before its cancellation arrived here: nobody is left to send to.
            raise asyncio.CancelledError from error
        finally:
            del self._began[task]
            self._stalled.discard(task)

    def _cancel_stalled(self, loop: asyncio.AbstractEventLoop) -> None:
        late = loop.time() - STALL_SECONDS
        for task, began in self._began.items():
            if began <= late and task not in self._stalled:
                # The task waits in `write`, which handles the cancellation.
                self._stalled.add(task)
                task.cancel()
        self._timer = loop.call_later(STALL_SECONDS / 4, self._cancel_stalled, loop) if self._began else None
