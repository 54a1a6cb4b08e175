"""The arithmetic of placement classes: sizes in steps, a stable id, and what is a lane of its own."""

from collections.abc import Sequence
from hashlib import sha256

_LARGEST = 2**31 - 1
# Quarters of a core, of which CPUs have thousandths.
_UNITS = (1, 250)


def round_up(amount: int) -> int:
    """The next amount with at most three significant bits, as it is or counted in 250s.

    That is 1..8, 10, 12, 14, 16, 20, ..., 512, 1024, and 250, 500, 750, 1000, 1250, 1500, 1750, 2000, ...
    Whole cores and powers of two stay exact, so that a task of four cores fits a host of four. There are at
    most eight steps per doubling: a task reserves less than 25 % more than it requested, and tasks with
    similar requests share a class.
    """
    return min(_LARGEST, *(unit * _three_bits(-(-amount // unit)) for unit in _UNITS))


def _three_bits(amount: int) -> int:
    step = 1 << max(0, amount.bit_length() - 3)
    return -(-amount // step) * step


def class_id(definition: bytes) -> int:
    """The id of a class from its canonical definition: 64 bits of a SHA-256, signed as the column is.

    The definition is a PlacementClass without tenant and id, resources rounded up, the pinned runner taken
    out, serialised deterministically. Two forms of one meaning make two classes; that costs a lane, no more.
    """
    return int.from_bytes(sha256(definition).digest()[:8], "big", signed=True)


def pinned_runner(required_runner_ids: Sequence[str]) -> str:
    """The runner of a task that may run on one runner only; else "".

    It is part of the lane and not of the class: otherwise a thousand runners would be a thousand classes.
    """
    return required_runner_ids[0] if len(required_runner_ids) == 1 else ""
