"""The decision on a new task whose slot has live tasks."""

from __future__ import annotations

import pytest

from taskyard.errors import SlotQueueFull
from taskyard_taskdb.domain.admission import MAX_WAITING, Admitted, Dropped, admit
from taskyard_taskdb.domain.words import Admission


@pytest.mark.parametrize("admission", list(Admission))
def test_an_empty_slot_admits_everything(admission: Admission) -> None:
    assert admit(admission, "acme", "lane", None, []) == Admitted()


def test_drop_if_running_answers_with_the_head_or_else_with_a_waiter() -> None:
    assert admit(Admission.DROP_IF_RUNNING, "acme", "lane", "b", ["a", "b"]) == Dropped("b")
    assert admit(Admission.DROP_IF_RUNNING, "acme", "lane", None, ["a"]) == Dropped("a")


def test_replace_cancels_every_live_task_however_many_wait() -> None:
    live = [f"t{number}" for number in range(MAX_WAITING + 1)]
    assert admit(Admission.REPLACE, "acme", "lane", "t0", live) == Admitted(tuple(live))


def test_queue_latest_replaces_the_waiters_and_keeps_the_head() -> None:
    live = [f"t{n}" for n in range(200)]
    assert admit(Admission.QUEUE_LATEST, "acme", "lane", "t0", live) == Admitted(tuple(live[1:]))
    assert admit(Admission.QUEUE_LATEST, "acme", "lane", None, live) == Admitted(tuple(live))


def test_queue_waits_behind_at_most_a_hundred() -> None:
    full = [f"t{number}" for number in range(MAX_WAITING)]
    assert admit(Admission.QUEUE, "acme", "lane", "t0", full) == Admitted()
    with pytest.raises(SlotQueueFull, match="lane"):
        admit(Admission.QUEUE, "acme", "lane", "t0", [*full, "one-more"])
    with pytest.raises(SlotQueueFull):
        admit(Admission.QUEUE, "acme", "lane", None, full)


def test_a_full_slot_names_when_to_retry() -> None:
    live = [str(n) for n in range(MAX_WAITING + 1)]
    with pytest.raises(SlotQueueFull) as caught:
        admit(Admission.QUEUE, "t", "s", live[0], live)
    assert caught.value.retryable
