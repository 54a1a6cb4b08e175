"""Exclusive work that is taken from its holder: by a reset, and by its total_timeout."""

from __future__ import annotations

from datetime import timedelta

from services.taskdb.tests.domain.test_lifecycle import PERMANENT, T0, USER, World
from taskyard_taskdb.domain import event as events
from taskyard_taskdb.domain import transition
from taskyard_taskdb.domain.task import LeaseState, RunError
from taskyard_taskdb.domain.words import ErrorClass, Overlap, Phase, RunState

RESET = events.ResetRequested(actor=USER, reason="it hangs")


def lease(world: World) -> LeaseState:
    assert world.task.lease is not None
    return world.task.lease


def test_exclusive_work_is_reset_when_its_holder_has_stopped_it() -> None:
    world = World(overlap=Overlap.FORBID, max_retries=0).running().on(RESET)
    assert (world.phase, world.words) == (Phase.RUNNING, ["task.reset_requested"])
    assert world.on(RESET).last.duplicate
    world.report(events.CancelledByHolder)
    assert (world.phase, world.words, world.task.runner_loss_count) == (Phase.PENDING, ["task.reset"], 1)
    assert world.task.claimable and world.task.error == RunError("RESET", ErrorClass.TRANSIENT, "it hangs")


def test_a_run_that_fails_while_it_is_stopped_for_a_reset_uses_up_no_retry() -> None:
    world = World(slot="lane", max_retries=0).running().on(RESET).fail(PERMANENT)
    assert (world.phase, world.task.retry_count, world.task.runner_loss_count) == (Phase.PENDING, 0, 1)


def test_a_holder_that_does_not_stop_for_a_reset_keeps_its_lease_until_it_expires() -> None:
    world = World(overlap=Overlap.FORBID, stop_grace_period=timedelta(0)).running().on(RESET)
    world.after(14)
    world.report(events.HolderReturned, session_epoch=1, expire_time=T0 + timedelta(seconds=40))
    world.after(1).on(events.ActionDeadlinePassed())
    world.report(events.HolderReturned, session_epoch=1, expire_time=T0 + timedelta(seconds=45))
    assert (world.phase, lease(world).expire_time) == (Phase.RUNNING, T0 + timedelta(seconds=40))
    world.after(24).on(events.LeaseExpired(generation=1)).on(events.ActionDeadlinePassed())
    assert world.phase is Phase.RUNNING
    assert world.after(1).on(events.LeaseExpired(generation=1)).phase is Phase.PENDING
    assert world.effects(transition.EndRun)[0].state is RunState.LOST


def test_a_cancel_takes_the_place_of_a_reset_and_a_success_stays() -> None:
    cancel = events.CancelRequested(actor=USER, grace=timedelta(hours=1))
    world = World(slot="lane").running().on(RESET).on(cancel)
    assert world.report(events.CancelledByHolder).phase is Phase.CANCELLED
    world = World(slot="lane").running().on(RESET).report(events.Succeeded)
    assert (world.phase, world.task.error) == (Phase.SUCCEEDED, None)


def test_total_timeout_of_exclusive_work_ends_the_renewal_of_its_lease() -> None:
    world = World(
        overlap=Overlap.FORBID, total_timeout=timedelta(seconds=100), stop_grace_period=timedelta(0)
    )
    world.running().after(10)
    world.report(events.HolderReturned, session_epoch=1, expire_time=T0 + timedelta(seconds=120))
    world.after(105).on(events.TotalTimeoutPassed())
    world.report(events.HolderReturned, session_epoch=1, expire_time=T0 + timedelta(seconds=145))
    assert (world.phase, lease(world).expire_time) == (Phase.RUNNING, T0 + timedelta(seconds=120))
    assert not lease(world).follows_session
    assert world.after(5).on(events.TotalTimeoutPassed()).phase is Phase.TIMED_OUT
