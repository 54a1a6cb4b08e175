"""Back-off and its jitter."""

from __future__ import annotations

from datetime import timedelta
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from taskyard_taskdb.domain.policy import TaskPolicy
from taskyard_taskdb.domain.retry import SHORTEST, backoff, delay
from taskyard_taskdb.domain.words import Jitter

SECOND = timedelta(seconds=1)
durations = st.timedeltas(min_value=timedelta(milliseconds=1), max_value=timedelta(days=1))


@st.composite
def policies(draw: st.DrawFn) -> TaskPolicy:
    initial, longest = sorted((draw(durations), draw(durations)))
    return TaskPolicy(
        backoff_initial=initial,
        backoff_max=longest,
        backoff_factor=draw(st.floats(1, 1000)),
        jitter=draw(st.sampled_from(Jitter)),
    )


def test_the_defaults_double_from_one_second_up_to_300() -> None:
    policy = TaskPolicy()
    assert [backoff(policy, n) / SECOND for n in range(10)] == [1, 2, 4, 8, 16, 32, 64, 128, 256, 300]


@given(policies(), st.integers(0, 10**6))
def test_no_number_of_retries_leaves_the_bounds(policy: TaskPolicy, number: int) -> None:
    assert policy.backoff_initial - timedelta(microseconds=1) <= backoff(policy, number) <= policy.backoff_max


@given(policies(), st.integers(0, 100), durations, st.randoms(use_true_random=False))
def test_jitter_stays_within_its_range(
    policy: TaskPolicy, number: int, previous: timedelta, rng: Random
) -> None:
    full, drawn = backoff(policy, number), delay(policy, number, previous, rng)
    lowest = {
        Jitter.NONE: full,
        Jitter.FULL: timedelta(0),
        Jitter.EQUAL: full / 2,
        Jitter.DECORRELATED: policy.backoff_initial,
    }[policy.jitter]
    highest = full
    if policy.jitter is Jitter.DECORRELATED:
        highest = min(policy.backoff_max, max(3 * previous, policy.backoff_initial))
    rounding = timedelta(microseconds=2)
    assert max(lowest - rounding, SHORTEST) <= drawn <= max(highest + rounding, SHORTEST)


def test_decorrelated_jitter_builds_on_the_previous_delay() -> None:
    policy = TaskPolicy(jitter=Jitter.DECORRELATED, backoff_max=timedelta(hours=1))
    rng = Random(1)
    first = [delay(policy, 0, None, rng) for _ in range(500)]
    later = [delay(policy, 0, timedelta(seconds=100), rng) for _ in range(500)]
    assert max(first) <= 3 * SECOND
    assert max(later) > 100 * SECOND


def test_jitter_spreads() -> None:
    rng = Random(1)
    for jitter in (Jitter.FULL, Jitter.EQUAL, Jitter.DECORRELATED):
        policy = TaskPolicy(jitter=jitter)
        assert len({delay(policy, 5, timedelta(seconds=30), rng) for _ in range(100)}) > 90
