"""Random lives of tasks: what holds after every event, and that every row of the table is visited."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import fields
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.taskdb.tests.effect_model import EffectModel
from services.taskdb.tests.lifecycle_sequences import Life, Step, live, lives
from taskyard.errors import LeaseNotHeld
from taskyard_taskdb.domain import event as events
from taskyard_taskdb.domain import lifecycle
from taskyard_taskdb.domain.draft import Draft
from taskyard_taskdb.domain.lifecycle import TABLE, apply
from taskyard_taskdb.domain.row import Row
from taskyard_taskdb.domain.task import LeaseState, TaskState
from taskyard_taskdb.domain.transition import FreeSlot, Transition
from taskyard_taskdb.domain.words import Action, Phase, ReleaseReason, Restart

LIVES = 2500
ROWS = {row.name: row for row in TABLE}


@pytest.fixture(scope="module")
def all_lives() -> list[Life]:
    """The lives that the tests of this module look at."""
    return list(lives(LIVES))


def accepted(life: Life) -> list[tuple[Step, Transition]]:
    """The steps that were not refused."""
    return [(step, step.transition) for step in life.steps if step.transition is not None]


def test_every_row_is_applied_often(all_lives: list[Life]) -> None:
    taken = Counter(row for life in all_lives for _, made in accepted(life) for row in made.rows)
    taken.update(row for life in all_lives for row in life.created.rows)
    changes = sum(len(made.changes) for life in all_lives for _, made in accepted(life))
    assert changes >= 10_000
    assert {name: taken[name] for name in ROWS if taken[name] < 20} == {}


def test_every_row_is_applied_from_every_phase_it_names(all_lives: list[Life]) -> None:
    seen = {pair for life in all_lives for _, made in accepted(life) for pair in walked(made)}
    assert {(row.name, phase.name) for row in TABLE for phase in row.source} - seen == set()


def walked(made: Transition) -> Iterator[tuple[str, str]]:
    """The rows of a transition, each with the phase it was taken from."""
    phase, changes = made.before.phase, iter(made.changes)
    for name in made.rows:
        yield name, phase.name
        phase = next(changes).phase if ROWS[name].word is not None else phase


def test_refused_events_leave_nothing_to_write_and_name_a_documented_reason(all_lives: list[Life]) -> None:
    refused = [step.error for life in all_lives for step in life.steps if step.error is not None]
    documented = {
        "PHASE_CONFLICT", "TASK_TERMINAL", "LEASE_NOT_HELD", "STALE_GENERATION", "LEASE_EXPIRED",
        "CHECKPOINT_SEQUENCE_CONFLICT",
    }  # fmt: skip
    assert {error.reason for error in refused} == documented


def test_the_same_event_on_the_same_state_gives_the_same_transition(all_lives: list[Life]) -> None:
    for life in all_lives[:200]:
        for step, made in accepted(life):
            assert apply(step.before, step.event, step.now, Random(step.seed)) == made


def test_random_lifecycles_keep_every_invariant(all_lives: list[Life]) -> None:
    for life in all_lives:
        check_life(life)


@settings(max_examples=150, deadline=None)
@given(st.randoms(use_true_random=False))
def test_shrinkable_lifecycles_keep_every_invariant(rng: Random) -> None:
    check_life(live(rng, length=12))


def check_life(life: Life) -> None:
    """Checks every promise along a life."""
    model = EffectModel()
    model.write(life.created)
    model.check(life.created.task)
    for step, made in accepted(life):
        model.write(made)
        if model.deleted:
            return
        model.check(made.task)
        check_changes(made)
        check_rows(made)
        check_ending(step, made)
        check_budgets(made.before, made.task, step.event)
        check_charges(made)
        check_cancel(made.before, step)
        check_holder(step, made)
        check_exclusion(step, made)
        check_fields(made.task)


def check_changes(made: Transition) -> None:
    """One version per change, in order, the last one with the state."""
    first = made.before.version + 1
    assert [change.version for change in made.changes] == list(range(first, made.task.version + 1))
    phase = made.before.phase
    for change in made.changes:
        assert change.previous_phase == (None if change.phase is phase else phase)
        phase = change.phase
    if made.changes:
        last, task = made.changes[-1], made.task
        for name in ("phase", "pending_reason", "generation", "attempt", "retry_count", "runner_loss_count"):
            assert getattr(last, name) == getattr(task, name)
        assert last.time == task.update_time


def check_rows(made: Transition) -> None:
    """Each row leads from a phase of the table to its target."""
    phase = made.before.phase
    worded = iter(made.changes)
    for name in made.rows:
        row = ROWS[name]
        assert phase in row.source
        if row.word is not None:
            change = next(worded)
            assert change.event is row.word
            assert change.phase is (row.target or phase)
            phase = change.phase
        else:
            assert row.target is None
    assert phase is made.task.phase


def check_ending(step: Step, made: Transition) -> None:
    """A terminal phase is reached once and left by RetryTask only; a bad one has an error."""
    before, after = made.before, made.task
    if before.phase.terminal and after.phase is not before.phase:
        assert isinstance(step.event, events.RetryRequested)
        assert before.phase is not Phase.SUCCEEDED
    endings = [change for change in made.changes if change.phase.terminal and change.previous_phase]
    assert len(endings) <= 1
    assert (after.end_time is not None) == after.phase.terminal
    if after.phase in (Phase.FAILED, Phase.TIMED_OUT, Phase.EXHAUSTED):
        assert after.error is not None
    if after.phase.terminal:
        assert after.lease is None


def check_budgets(before: TaskState, after: TaskState, event: events.Event) -> None:
    """Attempts are charged as often as allowed, each by an outcome; generations grow by claims only."""
    # A policy may be edited before the first attempt only, so the maximum never falls below the count.
    assert 0 <= after.retry_count <= after.policy.max_retries
    assert 0 <= after.runner_loss_count <= after.policy.max_runner_losses + 1
    claimed = isinstance(event, events.Claimed)
    assert after.generation - before.generation == (1 if claimed else 0)
    waited = isinstance(event, events.Released) and event.reason is ReleaseReason.WAITING
    # A run that waits for children gives back the attempt that its start charged.
    assert after.attempt - before.attempt in ((-1, 0) if waited else (0, 1))
    if after.retry_count > before.retry_count:
        assert before.phase in (Phase.SCHEDULED, Phase.RUNNING, Phase.REDISTRIBUTING)
    if before.phase is Phase.SCHEDULED and after.phase is Phase.PENDING and after.attempt == before.attempt:
        assert after.retry_count == before.retry_count
        assert after.runner_loss_count == before.runner_loss_count


def check_charges(made: Transition) -> None:
    """Every charge has its cause: a failure uses up a retry, a lost runner a loss, and nothing both."""
    before, after, rows = made.before, made.task, set(made.rows)
    losses = after.runner_loss_count - before.runner_loss_count
    if rows & {"retry", "retry_paused"}:
        assert after.retry_count == min(before.retry_count + 1, before.policy.max_retries)
        assert losses <= 0
    elif rows & {"lose"}:
        assert (losses, after.retry_count) == (1, before.retry_count)
    elif rows & {"reset", "reset_late"}:
        assert (
            losses == ("start_implied" in rows or before.phase is Phase.RUNNING)
            and after.retry_count == before.retry_count
        )
    elif not rows & {"release", "run_end_paused"}:
        assert losses <= 0 and after.retry_count <= before.retry_count


def check_cancel(before: TaskState, step: Step) -> None:
    """After a cancel was acknowledged nothing is claimed; a success stays, all else ends as CANCELLED."""
    if before.requested is not Action.CANCEL:
        return
    after = step.after
    assert after.generation == before.generation
    assert not after.claimable
    if after.lease is None:
        succeeded = isinstance(step.event, events.Succeeded)
        assert after.phase is (Phase.SUCCEEDED if succeeded else Phase.CANCELLED)


def check_holder(step: Step, made: Transition) -> None:
    """Reports are accepted with the current generation, lease and runner only."""
    if isinstance(step.event, events.HolderEvent):
        event, lease = step.event, made.before.lease
        assert lease is not None
        assert event.generation == made.before.generation
        assert (event.lease_id, event.runner_id) == (lease.lease_id, lease.runner_id)


def check_exclusion(step: Step, made: Transition) -> None:
    """Neither the task nor its slot is free before the lease has expired or its holder has given it back."""
    lease = made.before.lease
    if lease is None or not made.before.exclusive or isinstance(step.event, events.HolderEvent):
        return
    slot_freed = any(isinstance(effect, FreeSlot) for effect in made.effects)
    if made.task.claimable or made.task.lease is None or slot_freed:
        assert lease.expire_time <= step.now


def check_fields(task: TaskState) -> None:
    """A row that misspells a field would add one."""
    assert vars(task).keys() == {f.name for f in fields(TaskState)}
    if task.lease is not None:
        assert vars(task.lease).keys() == {f.name for f in fields(LeaseState)}
        assert task.phase in (Phase.SCHEDULED, Phase.RUNNING, Phase.REDISTRIBUTING)
        assert (task.phase is Phase.SCHEDULED) == (task.lease.start_time is None)


def test_only_restart_always_survives_a_success(all_lives: list[Life]) -> None:
    survived = [
        made.before.policy.restart
        for life in all_lives
        for step, made in accepted(life)
        if isinstance(step.event, events.Succeeded) and made.changes and not made.task.phase.terminal
    ]
    assert set(survived) == {Restart.ALWAYS}


def without_generation(task: TaskState, event: events.HolderEvent) -> None:
    lease = task.lease
    if lease is None or (lease.lease_id, lease.runner_id) != (event.lease_id, event.runner_id):
        raise LeaseNotHeld(task.name, event.generation)


def without_lease_id(task: TaskState, event: events.HolderEvent) -> None:
    lease = task.lease
    if lease is None or (task.generation, lease.runner_id) != (event.generation, event.runner_id):
        raise LeaseNotHeld(task.name, event.generation)


def never(draft: Draft) -> bool:
    return False


@pytest.mark.parametrize(
    ("target", "mutant"),
    [
        ("taskyard_taskdb.domain.lifecycle._check_holder", without_generation),
        ("taskyard_taskdb.domain.lifecycle._check_holder", without_lease_id),
        ("taskyard_taskdb.domain.rules.request.held_back", never),
        ("taskyard_taskdb.domain.rules.outcome.held_back", never),
        ("taskyard_taskdb.domain.rules.reset.held_back", never),
        ("taskyard_taskdb.domain.rules.loss.count_loss", lambda draft: None),
        ("taskyard_taskdb.domain.lifecycle._slot", lambda before, after: ()),
    ],
)
def test_a_broken_rule_is_caught(target: str, mutant: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(target, mutant)
    assert_caught()


def test_a_missing_terminal_guard_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    rows: dict[tuple[type[events.Event], Phase], Sequence[Row]] = dict(lifecycle._ROWS)
    rows[events.CancelRequested, Phase.SUCCEEDED] = (ROWS["cancel"],)
    monkeypatch.setattr(lifecycle, "_ROWS", rows)
    assert_caught()


def assert_caught() -> None:
    """Some life breaks a promise."""
    with pytest.raises((AssertionError, KeyError)):
        for life in lives(LIVES):
            check_life(life)
