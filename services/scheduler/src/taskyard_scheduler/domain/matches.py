"""Which claimants may take which placement class, computed once and kept until the claimant changes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from taskyard_scheduler.domain.placement import PlacementClass, RunnerProfile, judge, without_running_types

# Number of changes kept for updating classes; a class that is further behind is recomputed.
JOURNAL_LENGTH = 10_000


class Matches:
    """Claimants by key, and per class the eligible ones with their score.

    A class is updated with changed claimants when it is next used, so that many connecting runners cost
    nothing for classes without work. `revivals` counts how often a class without claimants got one: lanes
    that were skipped for lack of claimants have to be checked again then.
    """

    def __init__(self) -> None:
        self.revivals = 0
        self._profiles: dict[str, RunnerProfile] = {}
        self._found: dict[int, dict[str, int]] = {}
        self._read: dict[int, int] = {}
        self._unmatched: dict[int, PlacementClass] = {}
        # Classes that had a claimant when they were last checked.
        self._matched: set[int] = set()
        self._unmatched_read = 0
        self._journal: list[str] = []
        self._begin = 0

    @property
    def version(self) -> int:
        """Changes with every claimant that was added, updated or removed."""
        return self._begin + len(self._journal)

    @property
    def profiles(self) -> Mapping[str, RunnerProfile]:
        return self._profiles

    def put(self, key: str, profile: RunnerProfile) -> None:
        """Adds or updates a claimant."""
        self._profiles[key] = profile
        self._note(key)

    def remove(self, key: str) -> None:
        """Removes a claimant."""
        if self._profiles.pop(key, None) is not None:
            self._note(key)

    def of(self, wanted: PlacementClass) -> Mapping[str, int]:
        """The claimants of a class with their score; rules on running task types are ignored here."""
        class_id = wanted.class_id
        end = self._begin + len(self._journal)
        if self._read.get(class_id) == end:
            return self._found[class_id]
        return self._catch_up(wanted, end)

    def any(self, wanted: PlacementClass) -> bool:
        """Whether the class has a claimant, or had one at the last check."""
        return wanted.class_id in self._matched or bool(self.of(wanted))

    def revive(self) -> None:
        """Checks the classes without claimants again, if claimants have changed."""
        end = self._begin + len(self._journal)
        if self._unmatched_read == end:
            return
        self._unmatched_read = end
        for wanted in list(self._unmatched.values()):
            self.of(wanted)

    def keep(self, class_ids: Iterable[int]) -> None:
        """Drops every class except these."""
        retained = set(class_ids)
        for class_id in [class_id for class_id in self._found if class_id not in retained]:
            del self._found[class_id], self._read[class_id]
            self._unmatched.pop(class_id, None)
            self._matched.discard(class_id)

    def _catch_up(self, wanted: PlacementClass, end: int) -> Mapping[str, int]:
        class_id = wanted.class_id
        read = self._read.get(class_id, -1)
        if read < self._begin:
            found = self._found[class_id] = {}
            changed: Iterable[str] = self._profiles
        else:
            found = self._found[class_id]
            changed = dict.fromkeys(self._journal[read - self._begin :])
        static_class = without_running_types(wanted)
        for key in changed:
            profile = self._profiles.get(key)
            score = None if profile is None else _score(profile, static_class)
            if score is None:
                found.pop(key, None)
            else:
                found[key] = score
        self._read[class_id] = end
        self._mark(wanted, found)
        return found

    def _mark(self, wanted: PlacementClass, found: Mapping[str, int]) -> None:
        if not found:
            self._unmatched[wanted.class_id] = wanted
            self._matched.discard(wanted.class_id)
            return
        self._matched.add(wanted.class_id)
        if self._unmatched.pop(wanted.class_id, None) is not None:
            self.revivals += 1

    def _note(self, key: str) -> None:
        self._journal.append(key)
        if len(self._journal) > JOURNAL_LENGTH:
            half = len(self._journal) // 2
            del self._journal[:half]
            self._begin += half


def _score(profile: RunnerProfile, wanted: PlacementClass) -> int | None:
    verdict = judge(profile, wanted)
    return verdict.score if verdict.eligible else None
