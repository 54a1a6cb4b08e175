"""A cache bounded in entries and in bytes: what tenants define is kept, and no tenant decides how much."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")

# A larger entry would evict too many others.
_LARGEST_PART = 8


class BoundedCache(Generic[K, V]):
    """Evicts what was stored first."""

    def __init__(self, entries: int, size: int) -> None:
        self._entries = entries
        self._size = size
        self._used = 0
        self._found: OrderedDict[K, tuple[V, int]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._found)

    def get(self, key: K) -> V | None:
        """The value; None if it is not kept."""
        found = self._found.get(key)
        return None if found is None else found[0]

    def put(self, key: K, value: V, size: int) -> None:
        """Keep a value of about `size` bytes, its key included, unless it is too large."""
        self.drop(key)
        if size > self._size // _LARGEST_PART:
            return
        self._found[key] = (value, size)
        self._used += size
        while len(self._found) > self._entries or self._used > self._size:
            self._used -= self._found.popitem(last=False)[1][1]

    def drop(self, key: K) -> None:
        """Forget a value."""
        found = self._found.pop(key, None)
        if found is not None:
            self._used -= found[1]

    def drop_all(self, condition: Callable[[K], bool]) -> None:
        """Forget the values of these keys."""
        for key in [key for key in self._found if condition(key)]:
            self.drop(key)
