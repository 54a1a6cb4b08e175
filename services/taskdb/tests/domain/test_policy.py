"""The policy as it is stored."""

from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from services.taskdb.tests.lifecycle_sequences import draw_policy
from taskyard_taskdb.domain.policy import DEFAULT_POLICY, TaskPolicy, unpack
from taskyard_taskdb.domain.words import Restart


@given(st.randoms(use_true_random=False))
def test_a_packed_policy_round_trips(rng: Random) -> None:
    policy = draw_policy(rng)
    assert unpack(policy.pack()) == policy


def test_the_default_policy_is_stored_as_null() -> None:
    assert DEFAULT_POLICY.pack() is None
    assert unpack(None) == TaskPolicy()


def test_only_what_differs_is_stored() -> None:
    assert TaskPolicy(restart=Restart.NEVER, max_retries=0).pack() == b'{"max_retries":0,"restart":1}'
