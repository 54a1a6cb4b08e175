"""A cache is bounded in entries and in bytes."""

from __future__ import annotations

from taskyard_taskdb.domain.bounded_cache import BoundedCache


def filled(entries: int, size: int, each: int) -> BoundedCache[int, str]:
    cache: BoundedCache[int, str] = BoundedCache(entries, size)
    for number in range(100):
        cache.put(number, str(number), each)
    return cache


def test_the_oldest_entries_are_evicted_at_either_bound() -> None:
    for cache in (filled(10, 10_000, 1), filled(1000, 1000, 100)):
        assert len(cache) == 10
        assert cache.get(89) is None
        assert cache.get(90) == "90"


def test_a_large_entry_is_not_kept_and_replaces_the_one_before() -> None:
    cache = filled(10, 1000, 1)
    cache.put(99, "large", 126)
    assert len(cache) == 9
    assert cache.get(99) is None


def test_what_is_replaced_or_dropped_counts_no_more() -> None:
    cache: BoundedCache[int, str] = BoundedCache(100, 1000)
    for _ in range(50):
        cache.put(1, "again", 100)
        cache.put(2, "dropped", 100)
        cache.drop(2)
    for number in range(3, 12):
        cache.put(number, "other", 100)
    assert cache.get(1) == "again"
    cache.drop_all(lambda key: key < 12)
    assert len(cache) == 0
    assert filled(10, 1000, 100).get(99) == "99"
