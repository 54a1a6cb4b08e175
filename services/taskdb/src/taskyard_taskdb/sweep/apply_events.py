"""What sweeps share: lifecycle events applied to loaded tasks, and the callback after a commit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

from taskyard_kit.logs import get_log
from taskyard_taskdb.domain import lifecycle
from taskyard_taskdb.domain.event import Event
from taskyard_taskdb.domain.transition import Transition
from taskyard_taskdb.storage.notify.bus import CommitNotice
from taskyard_taskdb.storage.transition.load import Loaded
from taskyard_taskdb.storage.transition.task_rows import Key

log = get_log(__name__)

OnCommit = Callable[[CommitNotice], None]
"""Called with what a transaction has written, after its commit."""


def apply_events(loaded: Loaded, events: Sequence[tuple[Key, Event]]) -> list[Transition]:
    """Return the transitions of events on loaded tasks; an event that raises is logged and skipped."""
    rng = Random()
    transitions: list[Transition] = []
    tasks = dict(loaded.tasks)
    for key, event in events:
        if key not in tasks:
            continue
        try:
            transition = lifecycle.apply(tasks[key], event, loaded.now, rng)
        except Exception:
            # One task that cannot be decided must not stop the sweep of the others.
            log.exception("event_not_applied", change=type(event).__name__, tenant=key[0], task=key[1])
            continue
        tasks[key] = transition.task
        transitions.append(transition)
    return transitions
