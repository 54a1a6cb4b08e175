"""How the lane board applies updates of taskdb."""

from __future__ import annotations

from taskyard.v1 import lease_service_pb2 as leases
from taskyard_scheduler.lanes import UNCOUNTED_FACTOR, LaneBoard


def lane_step(backlog: int, *, more: bool = False) -> leases.WatchQueueResponse:
    step = leases.WatchQueueResponse()
    lane = step.lanes.add(tenant="t", key=leases.LaneKey(class_id=1), backlog=backlog, more=more)
    lane.head_ready_time.GetCurrentTime()
    return step


def backlog(board: LaneBoard) -> int:
    (lane,) = board.agenda.tenants["t"].lanes.values()
    return lane.backlog


def test_a_backlog_that_was_counted_is_taken_as_it_is() -> None:
    board = LaneBoard()
    for count in (900, 3, 40):
        board.apply(lane_step(count))
        assert backlog(board) == count


def test_a_lane_of_which_not_all_was_counted_is_taken_to_have_more() -> None:
    board = LaneBoard()
    board.apply(lane_step(40, more=True))
    assert backlog(board) == UNCOUNTED_FACTOR * 40


def test_partial_backlog_count_does_not_lower_a_larger_one() -> None:
    """Many lanes were read at once, each a little: the claims after that must not become small."""
    board = LaneBoard()
    board.apply(lane_step(1000))
    board.apply(lane_step(40, more=True))
    assert backlog(board) == 1000
    board.apply(lane_step(40))
    assert backlog(board) == 40
