"""How long a task waits before its next attempt."""

from datetime import timedelta
from random import Random

from taskyard_taskdb.domain.policy import TaskPolicy
from taskyard_taskdb.domain.words import Jitter

# A retry always passes through a wait, so that it never overtakes what became ready in the same moment.
SHORTEST = timedelta(milliseconds=1)


def backoff(policy: TaskPolicy, number: int) -> timedelta:
    """The delay before retry `number` (0 is the first) without jitter: min(max, initial * factor^number)."""
    ceiling = policy.backoff_max
    try:
        seconds = policy.backoff_initial.total_seconds() * policy.backoff_factor**number
    except OverflowError:
        return ceiling
    return ceiling if seconds >= ceiling.total_seconds() else timedelta(seconds=seconds)


def delay(policy: TaskPolicy, number: int, previous: timedelta | None, rng: Random) -> timedelta:
    """The delay before retry `number`, with the policy's jitter.

    `previous` is the delay before the attempt that failed; only decorrelated jitter builds on it.
    """
    match policy.jitter:
        case Jitter.NONE:
            drawn = backoff(policy, number)
        case Jitter.FULL:
            drawn = backoff(policy, number) * rng.random()
        case Jitter.EQUAL:
            drawn = backoff(policy, number) * (0.5 + 0.5 * rng.random())
        case Jitter.DECORRELATED:
            drawn = _decorrelated(policy, previous, rng)
    return max(drawn, SHORTEST)


def _decorrelated(policy: TaskPolicy, previous: timedelta | None, rng: Random) -> timedelta:
    initial = policy.backoff_initial
    highest = max(3 * (previous or initial), initial)
    return min(policy.backoff_max, initial + (highest - initial) * rng.random())
