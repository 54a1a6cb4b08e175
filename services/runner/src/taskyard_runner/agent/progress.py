"""The progress reported by workloads, within the bounds of the contract."""

from __future__ import annotations

import time
from typing import Any

from taskyard.v1.common_pb2 import Progress
from taskyard_runner.agent.log_lines import timestamp
from taskyard_runner.agent.outcome import cut
from taskyard_runner.warden.protocol import Message


def progress_of(message: Message, checkpoint_sequence: int) -> Progress:
    """Parse a workload's progress message."""
    return Progress(
        percent=min(100, max(0, _whole(message.get("percent")))),
        message=cut(str(message.get("message") or ""), 4096),
        step=max(0, _whole(message.get("step"))),
        checkpoint_sequence=checkpoint_sequence,
        observe_time=timestamp(time.time()),
    )


def _whole(value: Any) -> int:
    try:
        return min(int(value or 0), 2**31 - 1)
    except (TypeError, ValueError, OverflowError):
        return 0
