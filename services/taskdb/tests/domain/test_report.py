"""Reports for runs that have ended."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from taskyard.errors import LeaseNotHeld, StaleGeneration, TaskTerminal
from taskyard_taskdb.domain import event as events
from taskyard_taskdb.domain.report import EndedRun, judge
from taskyard_taskdb.domain.task import RunError, TaskState
from taskyard_taskdb.domain.words import Phase, ReleaseReason, RunState

TASK = TaskState("acme", "t1", datetime(2030, 1, 1, tzinfo=UTC), phase=Phase.SUCCEEDED, generation=3)
HELD: dict[str, Any] = {"runner_id": "r1", "lease_id": 7}
REPORTS = {
    RunState.SUCCEEDED: events.Succeeded(generation=2, **HELD),
    RunState.FAILED: events.Failed(generation=2, error=RunError("EXIT_NONZERO"), **HELD),
    RunState.TIMED_OUT: events.TimedOut(generation=2, code="ATTEMPT_TIMEOUT", **HELD),
    RunState.CANCELLED: events.CancelledByHolder(generation=2, **HELD),
    RunState.RELEASED: events.Released(generation=2, reason=ReleaseReason.DRAINED, **HELD),
}


@pytest.mark.parametrize("state", REPORTS)
def test_a_repeated_outcome_is_a_duplicate_and_another_outcome_is_stale(state: RunState) -> None:
    for told, event in REPORTS.items():
        answer = judge(TASK, event, EndedRun(7, "r1", state, started=True))
        if told is state:
            assert answer is None
        elif (told, state) != (RunState.CANCELLED, RunState.RELEASED):
            assert isinstance(answer, StaleGeneration)


def test_another_lease_or_runner_is_never_a_duplicate() -> None:
    event = REPORTS[RunState.SUCCEEDED]
    assert isinstance(judge(TASK, event, EndedRun(8, "r1", RunState.SUCCEEDED, True)), StaleGeneration)
    assert isinstance(judge(TASK, event, EndedRun(7, "r2", RunState.SUCCEEDED, True)), StaleGeneration)
    assert isinstance(judge(TASK, event, None), StaleGeneration)


def test_a_late_start_of_a_finished_run_is_a_duplicate_and_of_a_lost_one_is_not() -> None:
    event = events.Started(generation=3, **HELD)
    assert judge(TASK, event, EndedRun(7, "r1", RunState.SUCCEEDED, started=True)) is None
    assert isinstance(judge(TASK, event, EndedRun(7, "r1", RunState.LOST, started=True)), TaskTerminal)


def test_a_generation_that_never_was_is_not_held() -> None:
    assert isinstance(judge(TASK, events.Succeeded(generation=9, **HELD), None), LeaseNotHeld)


def test_a_returning_holder_of_an_ended_run_is_always_told_so() -> None:
    event = events.HolderReturned(generation=2, session_epoch=1, expire_time=TASK.create_time, **HELD)
    assert isinstance(judge(TASK, event, EndedRun(7, "r1", RunState.SUCCEEDED, True)), StaleGeneration)
