"""The name of a lane, which creates, pops, watches and sweeps share."""

from typing import NamedTuple


class LaneKey(NamedTuple):
    """A lane: FIFO by ready_time within tenant, placement class, priority and pinned runner ("" for none)."""

    tenant_id: str
    class_id: int
    priority: int
    pinned_runner: str
