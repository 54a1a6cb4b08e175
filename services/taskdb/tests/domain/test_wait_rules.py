"""A run that ends to wait for children of its task."""

from __future__ import annotations

import pytest

from services.taskdb.tests.domain.test_lifecycle import USER, World
from taskyard.errors import PhaseConflict
from taskyard_taskdb.domain import event as events
from taskyard_taskdb.domain import transition
from taskyard_taskdb.domain.words import PendingReason, Phase, ReleaseReason, RunState

NAMED = ("tenants/acme/tasks/c1", "tenants/acme/tasks/c2")


def wait(world: World, *live: str, cycle: str = "") -> World:
    return world.report(events.Released, reason=ReleaseReason.WAITING, wait_for=NAMED, live=live, cycle=cycle)


def test_a_wait_charges_nothing_and_gives_the_slot_back() -> None:
    world = wait(World(slot="lane", max_retries=0, max_runner_losses=0).running(), "c1", "c2")
    task = world.task
    assert (task.phase, task.pending_reason, world.words) == (
        Phase.PENDING, PendingReason.BLOCKED, ["task.waiting"],
    )  # fmt: skip
    assert (task.attempt, task.retry_count, task.runner_loss_count, task.lease) == (0, 0, 0, None)
    assert world.effects(transition.FreeSlot)
    assert world.effects(transition.EndRun)[0].state is RunState.RELEASED
    world.on(events.Unblocked())
    assert (world.task.pending_reason, world.task.blocked) == (PendingReason.SLOT_BUSY, False)


def test_the_run_after_a_wait_continues_the_attempt() -> None:
    world = wait(World().running(), "c1").on(events.Unblocked())
    assert world.task.claimable
    world.claim(lease_id=2).report(events.Started)
    assert (world.task.attempt, world.task.generation) == (1, 2)


def test_a_late_wait_of_an_old_holder_refunds_the_loss() -> None:
    world = wait(World().running().lose(), "c1")
    assert (world.phase, world.task.pending_reason) == (Phase.PENDING, PendingReason.BLOCKED)
    assert world.task.runner_loss_count == 0


def test_a_wait_after_a_cancel_cancels_and_after_a_pause_pauses() -> None:
    cancel = events.CancelRequested(actor=USER)
    assert wait(World().running().on(cancel), "c1").phase is Phase.CANCELLED
    world = wait(World().running().on(events.PauseRequested(actor=USER)), "c1")
    assert (world.phase, world.task.blocked, world.task.attempt) == (Phase.PAUSED, True, 0)
    world.on(events.ResumeRequested(actor=USER))
    assert world.task.pending_reason is PendingReason.BLOCKED
    world.on(events.Unblocked())
    assert world.task.claimable


def test_a_wait_without_live_children_is_queued_at_once() -> None:
    assert wait(World().running()).task.claimable


def test_a_wait_in_a_circle_fails() -> None:
    world = wait(World(max_retries=5).running(), "c1", cycle="c3")
    assert world.phase is Phase.FAILED
    assert world.task.error is not None and world.task.error.code == "WAIT_CYCLE"
    assert "tenants/acme/tasks/c3" in world.task.error.message


def test_a_task_that_has_waited_is_not_edited_as_if_it_had_never_started() -> None:
    world = wait(World().running(), "c1")
    with pytest.raises(PhaseConflict):
        world.on(events.Edited(actor=USER, spec=True, class_id=2))
