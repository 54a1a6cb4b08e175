"""How much work a function host is given, and how much is expected of it."""

from __future__ import annotations

import math

from taskyard_runner.agent.function_host import FunctionHost
from taskyard_runner.executors.function import HostClass


def host(*runs: float, place: HostClass | None = None) -> FunctionHost:
    """A host whose runs took so long."""
    made = FunctionHost("host-1", place or HostClass(shared=False), "token", 0.0)
    made.ready = True
    for seconds in runs:
        made.note_pace(seconds)
    return made


def test_new_host_gets_one_run_and_no_second_host_starts_at_once() -> None:
    fresh = host()
    assert fresh.depth == 1
    assert fresh.rate(fresh.last_moved) == math.inf
    assert fresh.rate(fresh.last_moved + 1.0) == 0


def test_host_before_its_hello_has_rate_zero() -> None:
    starting = host()
    starting.ready = False
    assert starting.rate(starting.last_moved) == 0


def test_short_runs_are_queued_until_a_long_one() -> None:
    assert host(0.0001).depth == 100
    assert host(0.0001, 0.1).depth == 1
    assert host(0.1, *[0.0001] * 12).depth > 50


def test_forbid_or_limited_work_is_not_queued_at_a_host() -> None:
    assert host(0.0001, place=HostClass(shared=False, forbid=True)).depth == 1
    assert host(0.0001, place=HostClass(shared=False, memory_mb=64)).depth == 1


def test_silent_host_has_rate_zero() -> None:
    quick = host(0.001)
    assert round(quick.rate(quick.last_moved + 0.1)) == 1000
    assert quick.rate(quick.last_moved + 1.0) == 0
