"""The rules of the lifecycle one by one, each as a user, a holder or a sweep would meet it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import pytest

from taskyard.errors import (
    CheckpointSequenceConflict,
    LeaseExpired,
    LeaseNotHeld,
    PhaseConflict,
    StaleGeneration,
    TaskTerminal,
)
from taskyard_taskdb.domain import event as events
from taskyard_taskdb.domain import transition
from taskyard_taskdb.domain.change import ChangeEvent
from taskyard_taskdb.domain.event import Event
from taskyard_taskdb.domain.lifecycle import apply, apply_all, create
from taskyard_taskdb.domain.policy import TaskPolicy
from taskyard_taskdb.domain.task import Actor, RunError, TaskState
from taskyard_taskdb.domain.transition import Transition
from taskyard_taskdb.domain.words import (
    ActorType,
    ErrorClass,
    Jitter,
    Kind,
    Overlap,
    PendingReason,
    Phase,
    ReleaseReason,
    Restart,
    RunnerLostPolicy,
    RunState,
    TimerKind,
)

T0 = datetime(2030, 1, 1, tzinfo=UTC)
USER = Actor(ActorType.USER, "alice")
TRANSIENT = RunError("EXIT_NONZERO", ErrorClass.TRANSIENT, "exit code 1")
PERMANENT = RunError("BAD_INPUT", ErrorClass.PERMANENT, "no such file")


class World:
    """One task and a clock: each call applies an event and remembers the transition."""

    def __init__(self, *, slot: str | None = None, kind: Kind = Kind.COMMAND, **policy: Any) -> None:
        policy = {"jitter": Jitter.NONE, **policy}
        new = TaskState("acme", "t1", T0, kind=kind, slot=slot, policy=TaskPolicy(**policy))
        self.now = T0
        self.last: Transition = create(new, events.Created(actor=USER), T0, slot_free=True)
        self.task = self.last.task

    def after(self, seconds: float) -> World:
        self.now += timedelta(seconds=seconds)
        return self

    def on(self, event: Event) -> World:
        self.last = apply(self.task, event, self.now, Random(7))
        self.task = self.last.task
        return self

    def claim(self, lease_id: int = 1, epoch: int = 1, runner_id: str = "r1") -> World:
        expiry = self.now + timedelta(seconds=15)
        return self.on(
            events.Claimed(runner_id=runner_id, lease_id=lease_id, session_epoch=epoch, expire_time=expiry)
        )

    def report(self, kind: type[events.HolderEvent], **fields: Any) -> World:
        return self.on(self.event(kind, **fields))

    def event(self, kind: type[events.HolderEvent], **fields: Any) -> events.HolderEvent:
        lease = self.task.lease
        held = {
            "runner_id": "r1",
            "generation": self.task.generation,
            "lease_id": lease.lease_id if lease else 1,
        }
        return kind(**{**held, **fields})

    def running(self) -> World:
        return self.claim(self.task.generation + 1).report(events.Started)

    def lose(self) -> World:
        return self.after(60).on(events.LeaseExpired(generation=self.task.generation))

    def fail(self, error: RunError = TRANSIENT, **fields: Any) -> World:
        return self.report(events.Failed, error=error, exit_code=1, **fields)

    @property
    def phase(self) -> Phase:
        return self.task.phase

    @property
    def words(self) -> list[str]:
        return [change.event.word for change in self.last.changes]

    def effects(self, kind: type[Any]) -> list[Any]:
        return [effect for effect in self.last.effects if isinstance(effect, kind)]


# --- creation


def test_a_new_task_is_queued_with_version_1() -> None:
    world = World()
    assert (world.phase, world.task.pending_reason, world.task.version) == (
        Phase.PENDING,
        PendingReason.QUEUED,
        1,
    )
    assert world.words == ["task.created"]
    assert [effect.key for effect in world.effects(transition.Enqueue)] == [world.task.queue_key]


def test_a_new_task_waits_for_not_before_then_becomes_claimable() -> None:
    world = World(not_before=T0 + timedelta(seconds=60))
    assert world.task.pending_reason is PendingReason.DELAYED
    assert world.effects(transition.SetTimer) == [
        transition.SetTimer(TimerKind.DUE, T0 + timedelta(seconds=60))
    ]
    with pytest.raises(PhaseConflict):
        world.claim()
    world.after(60).on(events.Due())
    assert world.task.queue_key is not None
    assert world.task.ready_time == T0 + timedelta(seconds=60)


def test_a_new_task_behind_a_taken_slot_waits_and_is_queued_when_promoted() -> None:
    new = TaskState("acme", "t1", T0, slot="lane")
    made = create(new, events.Created(), T0, slot_free=False)
    assert made.task.pending_reason is PendingReason.SLOT_BUSY
    assert made.effects == (transition.WaitForSlot("lane"),)
    promoted = apply(made.task, events.Promoted(), T0, Random(0))
    assert promoted.task.claimable
    assert transition.TakeSlot("lane") in promoted.effects


# --- claim, start, success


def test_start_and_outcome_together_are_two_changes_and_one_ended_run() -> None:
    world = World().claim()
    both = [world.event(events.Started), world.event(events.Succeeded, result=b"42", exit_code=0)]
    made = apply_all(world.task, both, world.now, Random(0))
    assert [change.event.word for change in made.changes] == ["task.started", "task.succeeded"]
    assert made.task.version == world.task.version + 2
    ended = transition.EndRun(1, 1, RunState.SUCCEEDED, world.now, 0)
    assert [effect for effect in made.effects if isinstance(effect, transition.EndRun)] == [ended]


def test_an_outcome_without_a_start_implies_it() -> None:
    world = World().claim().report(events.Succeeded)
    assert world.words == ["task.started", "task.succeeded"]
    assert (world.task.attempt, world.task.start_time) == (1, T0)


def test_success_clears_the_error_of_an_earlier_attempt() -> None:
    world = World().running().fail()
    assert world.task.error == TRANSIENT
    world.after(1).on(events.Due()).running().report(events.Succeeded)
    assert world.phase is Phase.SUCCEEDED
    assert not world.task.error


def test_a_lease_follows_its_session_once_started_and_a_pull_workers_never_does() -> None:
    linked, pulled = World().claim(epoch=3), World().claim(epoch=0)
    assert linked.task.lease is not None and not linked.task.lease.follows_session
    linked.report(events.Started)
    pulled.report(events.Started)
    assert linked.task.lease is not None and linked.task.lease.follows_session
    assert pulled.task.lease is not None and not pulled.task.lease.follows_session


def test_times_reported_by_the_holder_are_clamped_into_the_run() -> None:
    early = World().claim().after(5).report(events.Started, time=T0 - timedelta(hours=1))
    late = World().claim().after(5).report(events.Started, time=T0 + timedelta(hours=1))
    assert early.task.start_time == T0
    assert late.task.start_time == T0 + timedelta(seconds=5)


def test_older_progress_does_not_overwrite_newer() -> None:
    world = World().running().after(10)
    world.report(events.ProgressReported, progress=b"new", time=world.now)
    world.report(events.ProgressReported, progress=b"old", time=world.now - timedelta(seconds=5))
    assert world.task.progress == b"new"
    assert world.last.duplicate


# --- fencing


def test_stale_generation_cannot_complete() -> None:
    world = World().running().lose()
    world.claim(lease_id=2, runner_id="r2")
    with pytest.raises(StaleGeneration):
        world.report(events.Succeeded, generation=1, lease_id=1)


def test_the_right_generation_with_another_lease_id_cannot_complete() -> None:
    world = World().running()
    with pytest.raises(LeaseNotHeld):
        world.report(events.Succeeded, lease_id=99)


def test_another_runner_cannot_complete() -> None:
    world = World().running()
    with pytest.raises(LeaseNotHeld):
        world.report(events.Succeeded, runner_id="r2")


def test_a_report_on_an_ended_task_is_final() -> None:
    world = World().running().report(events.Succeeded)
    with pytest.raises(TaskTerminal):
        world.report(events.Succeeded)


def test_a_repeated_start_is_a_duplicate() -> None:
    world = World().running()
    before = world.task
    assert world.report(events.Started).last.duplicate
    assert world.task == before


# --- retries


def test_transient_failure_waits_for_its_backoff_and_uses_up_one_retry() -> None:
    world = World(max_retries=2).running().fail()
    assert (world.phase, world.task.pending_reason) == (Phase.PENDING, PendingReason.BACKOFF)
    assert (world.task.retry_count, world.task.next_attempt_time) == (1, T0 + timedelta(seconds=1))
    assert world.words == ["task.retry_scheduled"]
    assert world.last.changes[0].error_code == "EXIT_NONZERO"


@pytest.mark.seed("S1.49", "S1.52")
def test_a_failure_after_the_last_retry_ends_as_exhausted() -> None:
    world = World(max_retries=1).running().fail().after(1).on(events.Due()).running().fail()
    assert (world.phase, world.task.retry_count, world.task.attempt) == (Phase.EXHAUSTED, 1, 2)


@pytest.mark.parametrize("policy", [{"max_retries": 0}, {"restart": Restart.NEVER}])
def test_a_failure_without_retries_ends_as_failed(policy: dict[str, Any]) -> None:
    assert World(**policy).running().fail().phase is Phase.FAILED


def test_permanent_failure_is_never_retried() -> None:
    assert World(max_retries=3).running().fail(PERMANENT).phase is Phase.FAILED


def test_retry_after_delays_beyond_the_backoff_but_never_shortens_it() -> None:
    later = World().running().fail(retry_after=timedelta(seconds=40))
    sooner = World().running().fail(retry_after=timedelta(milliseconds=1))
    assert later.task.next_attempt_time == T0 + timedelta(seconds=40)
    assert sooner.task.next_attempt_time == T0 + timedelta(seconds=1)


@pytest.mark.seed("S4.35")
def test_restart_always_runs_again_after_success_and_forgets_failures() -> None:
    world = (
        World(restart=Restart.ALWAYS, max_retries=1, backoff_initial=timedelta(seconds=3)).running().fail()
    )
    world.after(3).on(events.Due()).running().report(events.Succeeded, result=b"42")
    assert (world.phase, world.task.retry_count, world.task.result) == (Phase.PENDING, 0, b"42")
    assert world.task.next_attempt_time == world.now + timedelta(seconds=3)


def test_restart_always_outlives_its_retries_but_no_permanent_failure() -> None:
    world = World(restart=Restart.ALWAYS, max_retries=0)
    for _ in range(5):
        world.running().fail().after(1).on(events.Due())
        assert world.phase is Phase.PENDING
    assert world.running().fail(PERMANENT).phase is Phase.FAILED


def test_retry_task_resets_budgets_error_and_total_timeout() -> None:
    world = World(max_retries=1, total_timeout=timedelta(hours=1)).running().fail()
    world.after(1).on(events.Due()).running().fail().after(9)
    world.on(events.RetryRequested(actor=USER, discard_checkpoints=True))
    assert (world.phase, world.task.retry_count, world.task.error) == (Phase.PENDING, 0, None)
    assert world.task.total_deadline == world.now + timedelta(hours=1)
    assert world.effects(transition.DiscardCheckpoints)
    assert (world.task.attempt, world.task.generation) == (2, 2)


@pytest.mark.parametrize("end", [events.Succeeded, None])
def test_retry_task_is_refused_on_succeeded_and_on_live_tasks(end: type[events.HolderEvent] | None) -> None:
    world = World().running()
    if end is not None:
        world.report(end)
    with pytest.raises(PhaseConflict):
        world.on(events.RetryRequested(actor=USER))


# --- timeouts


def test_a_timeout_is_final_unless_retry_on_timeout() -> None:
    final = World(attempt_timeout=timedelta(seconds=5)).running()
    assert final.report(events.TimedOut, code="ATTEMPT_TIMEOUT").phase is Phase.TIMED_OUT
    retried = World(retry_on_timeout=True).running()
    assert retried.report(events.TimedOut, code="ATTEMPT_TIMEOUT").phase is Phase.PENDING
    assert retried.task.retry_count == 1


def test_total_timeout_is_final_even_with_retry_on_timeout() -> None:
    world = World(retry_on_timeout=True).running().report(events.TimedOut, code="TOTAL_TIMEOUT")
    assert (world.phase, world.task.error and world.task.error.code) == (Phase.TIMED_OUT, "TOTAL_TIMEOUT")


def test_taskdb_ends_an_overdue_attempt_only_after_its_holders_grace() -> None:
    world = World(attempt_timeout=timedelta(seconds=60), stop_grace_period=timedelta(seconds=10)).running()
    assert world.task.lease is not None
    assert world.task.lease.deadline_time == T0 + timedelta(seconds=60 + 10 + 15)
    assert world.after(80).on(events.DeadlinePassed()).phase is Phase.RUNNING
    assert world.after(5).on(events.DeadlinePassed()).phase is Phase.TIMED_OUT
    assert world.effects(transition.EndRun)[0].state is RunState.TIMED_OUT


def test_taskdb_enforces_the_silence_timeout_for_pull_workers_only() -> None:
    pulled = World(silence_timeout=timedelta(seconds=5)).claim(epoch=0).report(events.Started)
    linked = World(silence_timeout=timedelta(seconds=5)).claim(epoch=1).report(events.Started)
    assert pulled.task.lease is not None and pulled.task.lease.deadline_code == "SILENCE_TIMEOUT"
    assert linked.task.lease is not None and linked.task.lease.deadline_time is None


def test_a_heartbeat_of_the_workload_moves_the_silence_deadline() -> None:
    world = World(silence_timeout=timedelta(seconds=5)).claim(epoch=0).report(events.Started)
    world.after(40).report(events.ProgressReported, progress=b"x")
    world.after(20).on(events.DeadlinePassed())
    assert world.phase is Phase.RUNNING
    assert world.task.lease is not None
    assert world.task.lease.deadline_time == T0 + timedelta(seconds=40 + 5 + 30 + 15)


def test_queue_timeout_counts_from_ready_time_and_spares_what_is_leased() -> None:
    world = World(queue_timeout=timedelta(seconds=30))
    assert world.effects(transition.SetTimer) == [
        transition.SetTimer(TimerKind.QUEUE_TIMEOUT, T0 + timedelta(seconds=30))
    ]
    leased = World(queue_timeout=timedelta(seconds=30)).running().after(60).on(events.QueueTimeoutPassed())
    assert (leased.phase, leased.last.effects) == (
        Phase.RUNNING,
        (transition.ClearTimer(TimerKind.QUEUE_TIMEOUT),),
    )
    assert world.after(30).on(events.QueueTimeoutPassed()).phase is Phase.TIMED_OUT
    assert world.task.error is not None and world.task.error.code == "QUEUE_TIMEOUT"


def test_total_timeout_ends_what_waits_at_once_and_what_runs_after_the_grace() -> None:
    policy: dict[str, Any] = {
        "total_timeout": timedelta(seconds=100),
        "stop_grace_period": timedelta(seconds=10),
    }
    assert World(**policy).after(100).on(events.TotalTimeoutPassed()).phase is Phase.TIMED_OUT
    world = World(**policy).running().after(100).on(events.TotalTimeoutPassed())
    assert world.phase is Phase.RUNNING
    assert world.effects(transition.SetTimer) == [
        transition.SetTimer(TimerKind.TOTAL_TIMEOUT, T0 + timedelta(seconds=125))
    ]
    assert world.after(25).on(events.TotalTimeoutPassed()).phase is Phase.TIMED_OUT


# --- cancel


def test_cancel_of_a_waiting_task_is_immediate_and_repeating_it_is_a_duplicate() -> None:
    world = World().on(events.CancelRequested(actor=USER))
    assert (world.phase, world.words) == (Phase.CANCELLED, ["task.cancelled"])
    assert world.effects(transition.Dequeue)
    assert world.on(events.CancelRequested(actor=USER)).last.duplicate


def test_cancel_of_a_leased_task_is_requested_from_its_holder_and_an_earlier_success_stays() -> None:
    world = World().running().on(events.CancelRequested(actor=USER))
    assert (world.phase, world.words) == (Phase.RUNNING, ["task.cancel_requested"])
    assert world.report(events.Succeeded).phase is Phase.SUCCEEDED


def test_run_claimed_before_a_cancel_may_start_and_charges_no_attempt() -> None:
    world = World().claim().on(events.CancelRequested(actor=USER)).report(events.Started)
    assert (world.phase, world.task.attempt, world.words) == (Phase.RUNNING, 0, ["task.started"])
    assert world.report(events.CancelledByHolder).phase is Phase.CANCELLED
    assert world.task.attempt == 0


def test_run_cancelled_before_its_start_records_no_start() -> None:
    world = World().claim().on(events.CancelRequested(actor=USER)).report(events.CancelledByHolder)
    assert (world.phase, world.task.attempt, world.words) == (Phase.CANCELLED, 0, ["task.cancelled"])


def test_a_failure_after_a_cancel_becomes_cancelled_without_a_retry() -> None:
    world = World(max_retries=3).running().on(events.CancelRequested(actor=USER)).fail()
    assert (world.phase, world.task.retry_count) == (Phase.CANCELLED, 0)
    assert world.effects(transition.EndRun)[0].state is RunState.FAILED


@pytest.mark.parametrize("reason", list(ReleaseReason))
def test_a_lease_released_after_a_cancel_cancels_the_task(reason: ReleaseReason) -> None:
    world = World().running().on(events.CancelRequested(actor=USER))
    assert world.report(events.Released, reason=reason).phase is Phase.CANCELLED


def test_an_ignored_cancel_is_forced_at_its_deadline() -> None:
    world = World().running().on(events.CancelRequested(actor=USER, grace=timedelta(seconds=30)))
    assert world.after(29).on(events.ActionDeadlinePassed()).last.duplicate
    assert world.after(1).on(events.ActionDeadlinePassed()).phase is Phase.CANCELLED


def test_a_shorter_grace_brings_the_forced_cancel_forward() -> None:
    world = World().running().on(events.CancelRequested(actor=USER, grace=timedelta(hours=1)))
    world.on(events.CancelRequested(actor=USER, grace=timedelta(0)))
    assert world.on(events.ActionDeadlinePassed()).phase is Phase.CANCELLED


def test_a_task_that_is_redistributed_is_not_claimable_after_a_cancel() -> None:
    world = World().running().lose().on(events.CancelRequested(actor=USER))
    assert world.phase is Phase.REDISTRIBUTING
    assert world.effects(transition.Dequeue)
    with pytest.raises(PhaseConflict):
        world.claim(lease_id=2)


def test_a_cancelled_run_whose_runner_is_lost_is_not_redistributed() -> None:
    world = World().running().on(events.CancelRequested(actor=USER, grace=timedelta(hours=1))).lose()
    assert world.phase is Phase.CANCELLED


def test_a_cancel_on_an_ended_task_is_refused() -> None:
    with pytest.raises(TaskTerminal):
        World().running().report(events.Succeeded).on(events.CancelRequested(actor=USER))


def test_a_replaced_task_names_its_replacement() -> None:
    world = World(slot="lane").on(events.Replaced(actor=USER, by_task_id="t2"))
    assert world.phase is Phase.CANCELLED
    assert world.last.changes[0].details == {"reason": "replaced by t2"}
    assert world.effects(transition.FreeSlot)


# --- pause


def test_pause_of_a_waiting_task_is_immediate_and_resume_queues_it_anew() -> None:
    world = World().on(events.PauseRequested(actor=USER))
    assert world.phase is Phase.PAUSED
    assert world.on(events.PauseRequested(actor=USER)).last.duplicate
    world.after(5).on(events.ResumeRequested(actor=USER))
    assert (world.phase, world.task.ready_time) == (Phase.PENDING, world.now)


def test_pause_of_a_running_task_takes_effect_when_its_holder_releases_it() -> None:
    world = World().running().on(events.PauseRequested(actor=USER))
    assert world.words == ["task.pause_requested"]
    world.report(events.Released, reason=ReleaseReason.PAUSED)
    assert (world.phase, world.task.retry_count, world.task.runner_loss_count) == (Phase.PAUSED, 0, 0)
    assert world.effects(transition.EndRun)[0].state is RunState.RELEASED


def test_a_pause_can_be_withdrawn_and_its_late_release_is_not_a_loss() -> None:
    world = World().running().on(events.PauseRequested(actor=USER)).on(events.ResumeRequested(actor=USER))
    assert (world.words, world.task.requested) == (["task.resumed"], None)
    world.report(events.Released, reason=ReleaseReason.PAUSED)
    assert (world.phase, world.task.runner_loss_count) == (Phase.REDISTRIBUTING, 0)


def test_a_failure_under_a_pause_is_charged_and_held_until_resumed() -> None:
    world = World().running().on(events.PauseRequested(actor=USER)).fail(retry_after=timedelta(seconds=60))
    assert (world.phase, world.task.retry_count) == (Phase.PAUSED, 1)
    world.on(events.ResumeRequested(actor=USER))
    assert (world.task.pending_reason, world.task.next_attempt_time) == (
        PendingReason.BACKOFF,
        T0 + timedelta(seconds=60),
    )


def test_pause_is_refused_while_a_cancel_is_under_way_and_for_external_tasks() -> None:
    with pytest.raises(PhaseConflict, match="CANCEL under way"):
        World().running().on(events.CancelRequested(actor=USER)).on(events.PauseRequested(actor=USER))
    with pytest.raises(PhaseConflict, match="not external"):
        World(kind=Kind.EXTERNAL).on(events.PauseRequested(actor=USER))


# --- loss of the runner


def test_an_expired_first_lease_uses_no_budget() -> None:
    world = World(max_runner_losses=0).claim().lose()
    assert (world.phase, world.task.runner_loss_count, world.task.retry_count) == (Phase.PENDING, 0, 0)
    assert world.words == ["task.released"]


@pytest.mark.parametrize("reason", set(ReleaseReason) - {ReleaseReason.WAITING})
def test_a_lease_released_before_the_start_uses_no_budget(reason: ReleaseReason) -> None:
    world = World(max_runner_losses=0, slot="lane").claim().report(events.Released, reason=reason)
    assert (world.phase, world.task.runner_loss_count, world.task.attempt) == (Phase.PENDING, 0, 0)
    assert world.task.claimable
    assert not world.effects(transition.FreeSlot), "it stays the head of its slot"


def test_an_expired_lease_is_redistributed_and_the_next_claim_makes_a_lost_run_of_it() -> None:
    world = World().running().lose()
    assert (world.phase, world.task.generation, world.task.runner_loss_count) == (Phase.REDISTRIBUTING, 1, 1)
    assert world.task.lease is not None and world.effects(transition.Enqueue)
    world.claim(lease_id=2)
    assert world.task.generation == 2
    assert world.effects(transition.EndRun)[0].state is RunState.LOST


def test_a_late_outcome_is_salvaged_until_the_next_claim() -> None:
    world = World().running().lose().report(events.Succeeded, result=b"42")
    assert (world.phase, world.task.result, world.task.runner_loss_count) == (Phase.SUCCEEDED, b"42", 0)
    assert world.effects(transition.Dequeue)


def test_the_old_holder_may_reconnect_when_overlap_is_allowed() -> None:
    world = World().running().lose()
    world.report(events.HolderReturned, session_epoch=2, expire_time=world.now + timedelta(seconds=30))
    assert (world.phase, world.task.generation, world.task.runner_loss_count) == (Phase.RUNNING, 1, 0)
    assert world.words == ["task.reconnected"]


def test_the_old_holder_of_forbid_work_is_refused_when_it_returns() -> None:
    world = World(overlap=Overlap.FORBID).running().lose()
    with pytest.raises(LeaseExpired):
        world.report(events.HolderReturned, session_epoch=2, expire_time=world.now + timedelta(seconds=30))


def test_losses_spend_their_own_budget_and_end_in_quarantine() -> None:
    world = World(max_runner_losses=1, max_retries=0).running().lose()
    assert world.phase is Phase.REDISTRIBUTING
    world.running().lose()
    assert (world.phase, world.task.retry_count) == (Phase.EXHAUSTED, 0)
    assert world.task.error is not None and world.task.error.code == "QUARANTINED"
    assert world.words == ["task.redistributed", "task.exhausted"]


@pytest.mark.parametrize(
    ("policy", "phase"), [(RunnerLostPolicy.FAIL, Phase.FAILED), (RunnerLostPolicy.HOLD, Phase.PAUSED)]
)
def test_on_runner_lost_fail_and_hold(policy: RunnerLostPolicy, phase: Phase) -> None:
    world = World(on_runner_lost=policy).running().lose()
    assert (world.phase, world.task.lease) == (phase, None)


def test_disconnect_redistributes_at_once_only_if_the_policy_requires_it() -> None:
    def lost(policy: RunnerLostPolicy, **fields: Any) -> Phase:
        world = World(on_runner_lost=policy, **fields).running()
        return world.on(events.RunnerLost(generation=1, cause=events.LossCause.DISCONNECTED)).phase

    assert lost(RunnerLostPolicy.REDISTRIBUTE) is Phase.REDISTRIBUTING
    assert lost(RunnerLostPolicy.WAIT) is Phase.RUNNING
    assert lost(RunnerLostPolicy.REDISTRIBUTE, overlap=Overlap.FORBID) is Phase.RUNNING
    assert lost(RunnerLostPolicy.REDISTRIBUTE, slot="lane") is Phase.RUNNING


def test_forbid_work_that_a_hello_does_not_list_keeps_its_recorded_expiry() -> None:
    world = World(overlap=Overlap.FORBID).running()
    world.on(events.RunnerLost(generation=1, cause=events.LossCause.NOT_LISTED))
    assert world.phase is Phase.RUNNING
    assert world.task.lease is not None and not world.task.lease.follows_session
    assert world.after(15).on(events.LeaseExpired(generation=1)).phase is Phase.REDISTRIBUTING


def test_allow_work_that_a_hello_does_not_list_is_redistributed_at_once() -> None:
    world = World().running().on(events.RunnerLost(generation=1, cause=events.LossCause.NOT_LISTED))
    assert world.phase is Phase.REDISTRIBUTING


def test_forced_pause_of_forbid_work_waits_for_the_lease_to_expire() -> None:
    world = World(overlap=Overlap.FORBID).running().on(events.PauseRequested(actor=USER, grace=timedelta(0)))
    world.after(1).on(events.ActionDeadlinePassed())
    assert world.phase is Phase.RUNNING
    assert world.task.lease is not None and not world.task.lease.follows_session
    world.report(events.HolderReturned, session_epoch=2, expire_time=world.now + timedelta(hours=1))
    assert world.task.lease is not None and world.task.lease.expire_time == T0 + timedelta(seconds=15)
    assert world.after(14).on(events.ActionDeadlinePassed()).phase is Phase.PAUSED


def test_a_lease_that_expires_after_the_runs_deadline_is_a_timeout_not_a_loss() -> None:
    world = World(attempt_timeout=timedelta(seconds=1), stop_grace_period=timedelta(0)).running().lose()
    assert (world.phase, world.task.runner_loss_count) == (Phase.TIMED_OUT, 0)


def test_an_expiry_event_before_the_expiry_time_changes_nothing() -> None:
    world = World().running().after(14).on(events.LeaseExpired(generation=1))
    assert world.last.duplicate


# --- checkpoints, edits, deletion


def test_checkpoints_only_go_forward() -> None:
    world = World().running().report(events.CheckpointStored, sequence=5, progress=b"50")
    assert (world.task.checkpoint_sequence, world.task.progress) == (5, b"50")
    assert world.last.changes[0].details == {"checkpoint_sequence": 5}
    assert world.report(events.CheckpointStored, sequence=5, repeated=True).last.duplicate
    assert world.report(events.CheckpointStored, sequence=4, repeated=True).last.duplicate
    for sequence in (4, 5):
        with pytest.raises(CheckpointSequenceConflict):
            world.report(events.CheckpointStored, sequence=sequence)


def test_a_checkpoint_without_a_start_starts_the_run_now_and_from_the_checkpoint_before() -> None:
    world = World().claim().after(9)
    world.report(events.CheckpointStored, sequence=5)
    assert (world.phase, world.task.attempt) == (Phase.RUNNING, 1)
    assert world.words == ["task.started", "task.checkpoint_created"]
    assert world.task.lease is not None
    assert (world.task.start_time, world.task.lease.start_checkpoint) == (world.now, 0)
    assert world.report(events.Started, time=T0).last.duplicate


def test_checkpoint_without_a_start_after_a_cancel_charges_no_attempt() -> None:
    world = World().claim().on(events.CancelRequested(actor=USER)).report(events.CheckpointStored, sequence=5)
    assert (world.phase, world.task.attempt) == (Phase.RUNNING, 0)
    assert world.words == ["task.started", "task.checkpoint_created"]


def test_an_edited_priority_is_a_new_place_in_the_queue() -> None:
    world = World()
    old = world.task.queue_key
    world.after(9).on(events.Edited(actor=USER, priority=500))
    assert world.last.effects == (transition.Dequeue(old), transition.Enqueue(world.task.queue_key))  # type: ignore[arg-type]
    assert (world.task.priority, world.task.ready_time) == (500, world.now)


def test_labels_may_change_in_every_phase_without_touching_the_queue() -> None:
    world = World().on(events.Edited(actor=USER))
    assert (world.words, world.last.effects) == (["task.updated"], ())
    assert World().running().report(events.Succeeded).on(events.Edited(actor=USER)).words == ["task.updated"]


def test_the_spec_may_change_before_the_first_start_only() -> None:
    world = World().on(events.Edited(actor=USER, spec=True, class_id=5))
    assert world.task.class_id == 5
    with pytest.raises(PhaseConflict):
        world.running().on(events.Edited(actor=USER, priority=1))
    with pytest.raises(PhaseConflict):
        world.fail().on(events.Edited(actor=USER, spec=True, class_id=6))


def test_only_an_ended_task_can_be_deleted() -> None:
    with pytest.raises(PhaseConflict, match="cancel it first"):
        World().on(events.Deleted(actor=USER))
    world = World().on(events.CancelRequested(actor=USER)).on(events.Deleted(actor=USER))
    assert world.effects(transition.DeleteTask)


def test_an_ended_task_with_a_callback_calls_it_once() -> None:
    world = World(has_callback=True).running().report(events.Succeeded)
    assert len(world.effects(transition.CallWebhook)) == 1
    assert not world.on(events.Edited(actor=USER)).effects(transition.CallWebhook)


# --- external tasks


def external(**policy: Any) -> World:
    return World(kind=Kind.EXTERNAL, **policy)


def test_an_external_task_is_moved_by_its_owner_without_a_lease() -> None:
    world = external()
    assert (world.task.pending_reason, world.last.effects) == (PendingReason.EXTERNAL, ())
    with pytest.raises(PhaseConflict):
        world.claim()
    world.on(events.ExternalReported(actor=USER, phase=Phase.RUNNING))
    assert (world.phase, world.task.attempt, world.task.generation) == (Phase.RUNNING, 1, 0)
    world.on(events.ExternalReported(actor=USER, phase=Phase.SUCCEEDED, result=b"42"))
    assert (world.phase, world.task.result) == (Phase.SUCCEEDED, b"42")


def test_an_external_end_without_a_start_implies_it() -> None:
    world = external().on(events.ExternalReported(actor=USER, phase=Phase.FAILED))
    assert world.words == ["task.started", "task.failed"]
    assert world.task.error is not None


def test_an_external_end_is_final_and_repeating_it_is_a_duplicate() -> None:
    world = external().on(events.ExternalReported(actor=USER, phase=Phase.SUCCEEDED))
    assert world.on(events.ExternalReported(actor=USER, phase=Phase.SUCCEEDED)).last.duplicate
    with pytest.raises(TaskTerminal):
        world.on(events.ExternalReported(actor=USER, phase=Phase.RUNNING))
    with pytest.raises(TaskTerminal):
        world.on(events.ExternalReported(actor=USER, details=b"late"))


def test_only_external_tasks_accept_reports_of_their_owners() -> None:
    with pytest.raises(PhaseConflict):
        World().on(events.ExternalReported(actor=USER, phase=Phase.RUNNING))


def test_an_external_task_whose_owner_is_silent_times_out() -> None:
    world = external(report_timeout=timedelta(seconds=30))
    world.on(events.ExternalReported(actor=USER, phase=Phase.RUNNING))
    assert world.effects(transition.SetTimer) == [
        transition.SetTimer(TimerKind.REPORT_TIMEOUT, T0 + timedelta(seconds=30))
    ]
    assert world.after(30).on(events.ReportTimeoutPassed()).phase is Phase.TIMED_OUT


# --- slots


def test_a_slot_is_kept_while_queued_or_leased_and_freed_for_backoff_and_pause() -> None:
    world = World(slot="lane")
    assert world.effects(transition.TakeSlot)
    assert not world.running().effects(transition.FreeSlot)
    assert world.fail().effects(transition.FreeSlot)
    world.after(1).on(events.Due())
    assert (world.task.pending_reason, world.effects(transition.WaitForSlot)) == (
        PendingReason.SLOT_BUSY,
        [transition.WaitForSlot("lane")],
    )
    with pytest.raises(PhaseConflict):
        World().on(events.Promoted())


def test_every_word_of_the_log_is_short_dotted_lower_case_and_unique() -> None:
    words = [event.word for event in ChangeEvent]
    assert len(set(words)) == len(words)
    assert all(len(word) <= 64 and word.count(".") == 1 and word == word.lower() for word in words)
    assert ChangeEvent.TASK_TYPE_CREATED.word == "task_type.created"
    assert ChangeEvent.API_KEY_REVOKED.word == "api_key.revoked"
