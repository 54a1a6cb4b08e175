"""The lease clock and the differences that heartbeats carry."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskyard.v1.lease_pb2 import LeaseRef
from taskyard.v1.runner_link_service_pb2 import HELD_STATE_ENDED, HELD_STATE_RUNNING
from taskyard_runner.agent.leases import Held, Leases, lease_end


def held(number: int, until: float = 100.0) -> Held:
    return Held(
        LeaseRef(task=f"tenants/d/tasks/t{number}", generation=1, lease_id=number), f"run{number}", until
    )


def opened(now: float = 0.0, duration: float = 30.0) -> Leases:
    leases = Leases()
    leases.begin_session(now)
    leases.welcomed(duration)
    return leases


def test_a_lease_counts_from_the_sending_of_the_heartbeat() -> None:
    leases = opened()
    leases.add(held(1, until=15.0))
    leases.heartbeat(10.0, full=False)
    (renewed,) = leases.acknowledge(1, 30.0)
    assert renewed.until == lease_end(10.0, 30.0) == 39.0


def test_an_ack_renews_only_what_its_heartbeat_listed() -> None:
    leases = opened()
    leases.heartbeat(10.0, full=False)
    leases.add(held(1, until=20.0))
    assert leases.acknowledge(1, 30.0) == []
    leases.heartbeat(11.0, full=False)
    assert [found.run for found in leases.acknowledge(2, 30.0)] == ["run1"]


def test_a_first_lease_counts_from_the_heartbeat_it_names_even_after_a_later_ack() -> None:
    leases = opened(now=1.0)
    leases.heartbeat(10.0, full=False)
    leases.heartbeat(12.0, full=False)
    leases.acknowledge(2, 30.0)
    assert leases.first_lease(0, 15.0) == lease_end(1.0, 15.0)
    assert leases.first_lease(1, 15.0) == lease_end(10.0, 15.0)
    assert leases.first_lease(9, 15.0) is None


def test_a_first_lease_never_outlasts_the_session() -> None:
    leases = opened(now=0.0, duration=5.0)
    assert leases.first_lease(0, 15.0) == lease_end(0.0, 5.0)


@pytest.mark.seed("S2.112")
def test_heartbeats_list_changes_until_they_are_acknowledged() -> None:
    leases = opened()
    first, second = held(1), held(2)
    leases.add(first)
    leases.add(second)
    assert len(leases.heartbeat(1.0, full=False).changed) == 2
    first.change(HELD_STATE_RUNNING)
    assert len(leases.heartbeat(2.0, full=False).changed) == 2
    leases.acknowledge(1, 30.0)
    (changed,) = leases.heartbeat(3.0, full=False).changed
    assert (changed.lease.lease_id, changed.state) == (1, HELD_STATE_RUNNING)
    leases.acknowledge(3, 30.0)
    assert not leases.heartbeat(4.0, full=False).changed
    assert len(leases.heartbeat(5.0, full=True).changed) == 2


def test_listed_leases_are_reported_dropped_until_acknowledged() -> None:
    leases = opened()
    listed, unlisted = held(1), held(2)
    leases.add(listed)
    leases.heartbeat(1.0, full=False)
    leases.add(unlisted)
    leases.drop(listed.key)
    leases.drop(unlisted.key)
    beat = leases.heartbeat(2.0, full=False)
    assert [lease.lease_id for lease in beat.dropped] == [1]
    assert beat.held_count == 0
    leases.acknowledge(2, 30.0)
    assert not leases.heartbeat(3.0, full=False).dropped


class Server:
    """A scheduler's view after hello and heartbeats."""

    def __init__(self) -> None:
        self.held: set[int] = set()


@given(
    st.lists(
        st.tuples(st.sampled_from(["add", "drop", "beat", "ack", "end", "reconnect"]), st.integers(1, 6))
    )
)
def test_schedulers_view_is_correct_after_every_heartbeat(steps: list[tuple[str, int]]) -> None:
    leases, server, now, beats = opened(), Server(), 0.0, [0]
    known: dict[int, Held] = {}
    for what, number in steps:
        now += 1
        if what == "add" and number not in known:
            known[number] = held(number)
            leases.add(known[number])
        elif what == "end" and number in known:
            known[number].change(HELD_STATE_ENDED)
        elif what == "drop" and number in known:
            leases.drop(known.pop(number).key)
        elif what == "beat":
            beat = leases.heartbeat(now, full=False)
            beats.append(beat.heartbeat_id)
            server.held |= {found.lease.lease_id for found in beat.changed}
            server.held -= {lease.lease_id for lease in beat.dropped}
            assert len(server.held) == beat.held_count
            assert server.held == set(known)
        elif what == "ack":
            for renewed in leases.acknowledge(beats[-1], 30.0):
                assert renewed.until <= lease_end(now, 30.0)
        elif what == "reconnect":
            server.held = {found.lease.lease_id for found in leases.begin_session(now)}
            leases.welcomed(30.0)
            beats = [0]
            assert server.held == set(known)
