"""Free capacity of a runner: reported capacity, assignments sent, runs ended (rule 3)."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from taskyard_scheduler.domain.capacity import Capacity, Run, RunKey
from taskyard_scheduler.domain.resources import Resources


def key(n: int) -> RunKey:
    return (f"tenants/t/tasks/{n}", 1)


def test_free_capacity_is_the_reported_capacity_minus_assignments_sent_since() -> None:
    capacity = Capacity(4, 2)
    capacity.update(4, None, [])
    assert capacity.room(0) == 6
    capacity.send(key(1), Run(expire_time=10))
    assert capacity.room(0) == 5
    capacity.update(4, None, [])
    assert capacity.room(0) == 5, "a heartbeat that does not list it was composed before it arrived"
    capacity.update(3, None, [(key(1), False)])
    assert capacity.room(0) == 5
    capacity.end(key(1))
    assert capacity.room(0) == 6
    capacity.update(4, None, [], [key(1)])
    assert capacity.room(0) == 6


def test_run_end_already_listed_by_a_heartbeat_is_not_counted_again() -> None:
    capacity = Capacity(2, 0)
    capacity.update(2, None, [])
    capacity.send(key(1), Run(expire_time=10))
    capacity.update(2, None, [(key(1), True)])
    capacity.end(key(1))
    assert capacity.room(0) == 2


def test_an_assignment_never_listed_frees_its_place_when_its_first_lease_is_over() -> None:
    capacity = Capacity(1, 0)
    capacity.update(1, None, [])
    capacity.send(key(1), Run(expire_time=15.0))
    assert capacity.room(14.9) == 0
    assert capacity.room(15.0) == 1


def test_budget_follows_assignments_sent_and_runs_ended() -> None:
    capacity = Capacity(10, 0)
    capacity.update(10, Resources(2000), [])
    capacity.send(key(1), Run(cost=Resources(600), expire_time=9))
    assert capacity.budget == Resources(1400, extended={})
    capacity.update(10, Resources(2000), [])
    assert capacity.budget == Resources(1400, extended={})
    capacity.end(key(1))
    assert capacity.budget == Resources(2000, extended={})


@given(st.lists(st.sampled_from(["send", "list", "end", "ack", "cross"]), max_size=60), st.integers(0, 3))
def test_whatever_happens_the_runner_never_holds_more_than_capacity_and_prefetch(
    steps: Sequence[str], prefetch: int
) -> None:
    """Drives the accounting with a model of an honest agent and a network that delays assignments."""
    limit = 3
    capacity = Capacity(limit, prefetch)
    capacity.update(limit, None, [], full=True)
    flying: list[RunKey] = []
    held: dict[RunKey, bool] = {}
    count = 0
    for step in steps:
        live = [k for k, ended in held.items() if not ended]
        if step == "send" and capacity.room(0) > 0:
            count += 1
            capacity.send(key(count), Run(expire_time=1e9))
            flying.append(key(count))
        elif step == "list" or step == "cross":
            if step == "list":
                held.update((k, False) for k in flying)
                flying.clear()
            free = max(0, limit - sum(not ended for ended in held.values()))
            capacity.update(free, None, list(held.items()))
        elif step == "end" and live:
            held[live[0]] = True
            capacity.end(live[0])
        elif step == "ack":
            gone = [k for k, ended in held.items() if ended]
            held = {k: e for k, e in held.items() if not e}
            free = max(0, limit - len(held))
            capacity.update(free, None, list(held.items()), gone)
        assert sum(not ended for ended in held.values()) + len(flying) <= limit + prefetch
