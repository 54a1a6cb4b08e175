"""Reports for runs that have ended: which of them repeat one that was applied."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from services.taskdb.tests.lifecycle_sequences import lives
from taskyard_taskdb.domain import event as events
from taskyard_taskdb.domain.report import EndedRun, applied_before
from taskyard_taskdb.domain.task import RunError
from taskyard_taskdb.domain.transition import EndRun
from taskyard_taskdb.domain.words import ReleaseReason, RunState

HELD: dict[str, Any] = {"runner_id": "r1", "lease_id": 7, "generation": 2}
OUTCOMES = {
    RunState.SUCCEEDED: events.Succeeded(**HELD),
    RunState.FAILED: events.Failed(error=RunError("EXIT_NONZERO"), **HELD),
    RunState.TIMED_OUT: events.TimedOut(code="ATTEMPT_TIMEOUT", **HELD),
    RunState.CANCELLED: events.CancelledByHolder(**HELD),
    RunState.RELEASED: events.Released(reason=ReleaseReason.DRAINED, **HELD),
}
ENDS = (*OUTCOMES, RunState.LOST)
STARTED = events.Started(**HELD)
PROGRESS = events.ProgressReported(progress=b"10", **HELD)


def ended(state: RunState, *, started: bool = True) -> EndedRun:
    return EndedRun(7, "r1", state, started)


@pytest.mark.parametrize("state", OUTCOMES)
def test_a_started_run_recognises_its_own_outcome_only(state: RunState) -> None:
    repeated = {kind for kind, event in OUTCOMES.items() if applied_before(event, ended(state))}
    assert repeated == {state}


def test_every_report_that_ends_a_run_is_recognised_when_it_is_repeated() -> None:
    recognised = set()
    for life in lives(600):
        for step in life.steps:
            if step.transition is None or not isinstance(step.event, events.HolderEvent):
                continue
            for effect in (found for found in step.transition.effects if isinstance(found, EndRun)):
                lease = step.before.lease
                assert lease is not None
                started = step.transition.starts or lease.start_time is not None
                run = EndedRun(lease.lease_id, lease.runner_id, effect.state, started)
                assert applied_before(step.event, run), (step.event, run)
                recognised.add((type(step.event), effect.state))
    # A stop without a cancel, reported before the start, gives the task back.
    assert (events.CancelledByHolder, RunState.RELEASED) in recognised
    assert (events.Released, RunState.LOST) in recognised


def test_a_stop_does_not_repeat_the_release_of_a_started_run() -> None:
    stop = OUTCOMES[RunState.CANCELLED]
    assert applied_before(stop, ended(RunState.RELEASED, started=False))
    assert not applied_before(stop, ended(RunState.RELEASED))


def test_another_lease_or_runner_is_never_a_repeat() -> None:
    event = OUTCOMES[RunState.SUCCEEDED]
    assert not applied_before(event, EndedRun(8, "r1", RunState.SUCCEEDED, True))
    assert not applied_before(event, EndedRun(7, "r2", RunState.SUCCEEDED, True))


@pytest.mark.parametrize("state", ENDS)
def test_a_start_is_a_repeat_if_the_run_had_started_however_it_ended(state: RunState) -> None:
    assert applied_before(STARTED, ended(state))
    assert not applied_before(STARTED, ended(state, started=False))


@pytest.mark.parametrize("state", ENDS)
def test_progress_is_a_repeat_behind_an_outcome_and_fenced_behind_a_lost_or_released_lease(
    state: RunState,
) -> None:
    outcome = state not in (RunState.LOST, RunState.RELEASED)
    assert applied_before(PROGRESS, ended(state)) == outcome
    assert not applied_before(PROGRESS, ended(state, started=False))


def test_a_returning_holder_of_an_ended_run_never_repeats_anything() -> None:
    event = events.HolderReturned(session_epoch=1, expire_time=datetime(2030, 1, 1, tzinfo=UTC), **HELD)
    assert not applied_before(event, ended(RunState.SUCCEEDED))
