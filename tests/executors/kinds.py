"""A kind of executor in the table: the same behaviours, each as a task of that kind."""

from __future__ import annotations

from typing import ClassVar, Protocol, Unpack

from taskyard import NewTask, Options


class Kind(Protocol):
    """One per kind. Every behaviour takes the options of a task and prints plain lines."""

    @property
    def flags(self) -> tuple[str, ...]:
        """Flags that a runner needs for this kind."""
        ...

    # The code of a task that took more memory than it may.
    memory_code: ClassVar[str]

    def prints(self, *lines: str, **options: Unpack[Options]) -> NewTask:
        """Prints the lines and succeeds."""
        ...

    def fails(self, **options: Unpack[Options]) -> NewTask:
        """Fails in a way that may pass, each time it is tried."""
        ...

    def fails_for_good(self, **options: Unpack[Options]) -> NewTask:
        """Fails in a way that no retry helps."""
        ...

    def hangs(self, **options: Unpack[Options]) -> NewTask:
        """Prints "ready", then runs forever."""
        ...

    def counts(self, **options: Unpack[Options]) -> NewTask:
        """Prints "from N" (N from its checkpoint, else 0) and ends if N > 0.

        Otherwise it prints "ready" once a checkpoint of 1 is stored, or will be when it is stopped, and
        goes on until then.
        """
        ...

    def reports_progress(self, **options: Unpack[Options]) -> NewTask:
        """Reports 60 percent, "half", and succeeds."""
        ...

    def returns(self, **options: Unpack[Options]) -> NewTask:
        """Succeeds with the result {"sum": 42}."""
        ...

    def takes_memory(self, **options: Unpack[Options]) -> NewTask:
        """Needs 400 MB."""
        ...

    def lingers(self, **options: Unpack[Options]) -> NewTask:
        """Prints "before", runs for about two seconds, prints "after" and succeeds."""
        ...
