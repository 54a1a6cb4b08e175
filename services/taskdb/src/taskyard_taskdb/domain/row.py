"""The shape of the state machine's table: one row per transition."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from taskyard_taskdb.domain.change import ChangeEvent
from taskyard_taskdb.domain.draft import Draft
from taskyard_taskdb.domain.event import Event
from taskyard_taskdb.domain.words import Phase

# Rows of different events share guards and acts, so these take any event.
Guard = Callable[[Draft, Any], bool]
Act = Callable[[Draft, Any], None]
Then = Callable[[Draft, Any], Event | None]


def always(draft: Draft, event: Event) -> bool:
    """The guard of a row without a condition."""
    return True


def nothing(draft: Draft, event: Event) -> None:
    """The act of a row that only recognises a repeat."""


def again(draft: Draft, event: Event) -> Event | None:
    """Applies the same event to the new phase."""
    return event


@dataclass(frozen=True, slots=True)
class Row:
    """From any of `source`, on any of `events`, `when` the guard holds, to `target` (None: the phase stays).

    The first row whose guard holds is taken. `word` is what the change log says; None: nothing a user sees
    changes. `by`: U user, S scheduler, R report of the holder, T timer, O owner of an external task.

    `sql` names the statements that decide the row for speed, all of its cases or, beside Python, the common
    ones (`also_python`). Each has a test marked `equivalence(row, statement)`; `make verify` looks for it.
    """

    name: str
    events: tuple[type[Event], ...]
    source: frozenset[Phase]
    target: Phase | None
    word: ChangeEvent | None
    by: str
    when: str
    guard: Guard = always
    act: Act = nothing
    then: Then | None = None
    sql: tuple[str, ...] = ()
    also_python: bool = True

    @property
    def decided_in(self) -> str:
        """Where the row is decided: Python, SQL or both."""
        statements = f"SQL: {', '.join(self.sql)}" if self.sql else ""
        return "; ".join(filter(None, ("Python" if self.also_python else "", statements)))
