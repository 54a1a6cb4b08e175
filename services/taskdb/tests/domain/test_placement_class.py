"""Sizes in steps, class ids, pinned lanes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from taskyard_taskdb.domain.placement_class import class_id, pinned_runner, round_up

amounts = st.integers(0, 2**31 - 1)


@given(amounts)
def test_rounding_up_reserves_less_than_a_quarter_more(amount: int) -> None:
    rounded = round_up(amount)
    assert amount <= rounded < 2**31
    assert rounded == amount or rounded < amount * 1.25
    assert round_up(rounded) == rounded


@given(amounts, amounts)
def test_rounding_up_keeps_the_order(one: int, other: int) -> None:
    assert (one <= other) <= (round_up(one) <= round_up(other))


def test_steps_are_few() -> None:
    assert len({round_up(amount) for amount in range(65_537)}) < 100
    assert [round_up(amount) for amount in (0, 1, 7, 8, 9, 100, 1000, 1001, 1025)] == [
        0, 1, 7, 8, 10, 112, 1000, 1024, 1250,
    ]  # fmt: skip


def test_discrete_resources_are_not_rounded() -> None:
    """Or a task of four cores would fit no host of four."""
    cores = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128]
    exact = [1000 * count for count in cores] + [250, 500, 1500, 2500] + [2**n for n in range(20)]
    assert [round_up(amount) for amount in exact] == exact


def test_class_ids_are_stable_signed_and_64_bits_wide() -> None:
    assert class_id(b"") == -2039914840885289964
    ids = {class_id(str(number).encode()) for number in range(1000)}
    assert len(ids) == 1000
    assert min(ids) < 0 < max(ids)
    assert all(-(2**63) <= found < 2**63 for found in ids)


def test_exactly_one_required_runner_pins() -> None:
    assert pinned_runner(["r1"]) == "r1"
    assert pinned_runner([]) == pinned_runner(["r1", "r2"]) == ""
