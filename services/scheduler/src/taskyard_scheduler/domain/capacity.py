"""The free capacity of a runner and the runs it holds (rules 3 and 5 of the link)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from taskyard_scheduler.domain.resources import Resources

# (task, generation) names a run.
RunKey = tuple[str, int]


@dataclass(slots=True)
class Run:
    """A run on the runner."""

    task_type: str = ""
    # The execution's kind by name, and the function if it is one.
    kind: str = ""
    function: str = ""
    cost: Resources | None = None
    ended: bool = False
    # Renewed once with the session, so that its lease follows it.
    following: bool = False
    # When its first lease runs out, on the scheduler's clock; for assignments not listed yet.
    expire_time: float = 0.0


class Capacity:
    """A runner's free capacity: what it reported last, minus assignments sent since, plus runs ended since.

    `sent` are assignments that no heartbeat has listed yet, so the reported figure may not include them;
    `held` are the runs that its heartbeats have listed.
    """

    def __init__(self, capacity: int, prefetch: int) -> None:
        self.capacity = capacity
        self.prefetch = prefetch
        self.held: dict[RunKey, Run] = {}
        self.sent: dict[RunKey, Run] = {}
        self._live = 0
        self._free = 0
        self._budget: Resources | None = None
        self._freed = 0
        self._refused = False

    def update(
        self,
        free: int,
        budget: Resources | None,
        listed: Iterable[tuple[RunKey, bool]],
        dropped: Iterable[RunKey] = (),
        *,
        full: bool = False,
    ) -> list[RunKey]:
        """Applies a hello or heartbeat: free capacity, listed runs with whether they ended, dropped runs.

        Returns the runs whose lease does not follow the session yet.
        """
        before = self.held
        if full:
            self.held = {}
        new = [key for key, ended in listed if self._list(key, ended, before)]
        for key in dropped:
            self.held.pop(key, None)
        self._free, self._budget = free, budget
        self._freed = 0
        self._refused = False
        self._live = sum(not run.ended for run in self.held.values())
        for run in self.sent.values():
            self._charge(run, -1)
        return new

    def _list(self, key: RunKey, ended: bool, before: dict[RunKey, Run]) -> bool:
        run = before.get(key)
        if run is None:
            sent = self.sent.pop(key, None)
            # Runs that were sent together share theirs.
            run = replace(sent) if sent is not None else Run()
        run.ended = run.ended or ended
        self.held[key] = run
        return not run.following

    def follow(self, keys: Iterable[RunKey]) -> None:
        """The leases of these runs were renewed with the session."""
        for key in keys:
            if run := self.held.get(key):
                run.following = True

    def send(self, key: RunKey, run: Run) -> None:
        """Counts an assignment as sent; several may share the run."""
        self.sent[key] = run
        if self._budget is not None:
            self._charge(run, -1)

    def withdraw(self, key: RunKey) -> None:
        """Undoes `send` for an assignment that was not sent."""
        if run := self.sent.pop(key, None):
            self._charge(run, 1)

    def end(self, key: RunKey) -> None:
        """Frees the place of a run whose outcome or release arrived, before the next heartbeat."""
        if key in self.sent:
            self.withdraw(key)
        elif (run := self.held.get(key)) and not run.ended:
            run.ended = True
            self._live -= 1
            self._freed += 1
            self._charge(run, 1)

    def end_all(self, keys: Iterable[RunKey]) -> None:
        """Frees the places of many runs."""
        sent = self.sent
        if self._budget is None:
            keys = [key for key in keys if sent.pop(key, None) is None]
        for key in keys:
            self.end(key)

    def refuse(self) -> None:
        """The runner released work for lack of capacity: it gets no work before its next heartbeat."""
        self._refused = True

    def room(self, now: float) -> int:
        """The number of assignments that the runner may still get."""
        self._expire(now)
        if self._refused:
            return 0
        reported = self._free + self._freed + self.prefetch
        # The reported figure may omit prefetched runs; the total bounds them.
        total = self.capacity + self.prefetch - self._live
        return max(0, min(reported, total) - len(self.sent))

    @property
    def budget(self) -> Resources | None:
        """Free resources; None = not accounted."""
        return self._budget

    @property
    def used(self) -> int:
        """The number of occupied places."""
        return self._live + len(self.sent)

    def has(self, key: RunKey) -> bool:
        """Whether the run is held by the runner or was sent to it."""
        return key in self.held or key in self.sent

    def is_live(self, key: RunKey) -> bool:
        """Whether the runner has listed the run, and no outcome of it has arrived."""
        run = self.held.get(key)
        return run is not None and not run.ended

    def executing(self) -> set[str]:
        """The task types of runs that were sent or are held and have not ended, where known."""
        runs = [*self.held.values(), *self.sent.values()]
        return {run.task_type for run in runs if run.task_type and not run.ended}

    def _expire(self, now: float) -> None:
        # An assignment that was never listed was dropped by the runner when its first lease ran out. They
        # were sent in the order in which they expire.
        while self.sent:
            key, run = next(iter(self.sent.items()))
            if run.expire_time > now:
                return
            self.withdraw(key)

    def _charge(self, run: Run, sign: int) -> None:
        if self._budget is not None and run.cost:
            self._budget = self._budget.less(run.cost, -sign)
