"""Questions that rows of several kinds ask."""

from taskyard_taskdb.domain.draft import Draft
from taskyard_taskdb.domain.event import Event
from taskyard_taskdb.domain.row import Guard
from taskyard_taskdb.domain.words import Action, Phase


def in_phases(*phases: Phase) -> frozenset[Phase]:
    """The source of a row."""
    return frozenset(phases)


def cancel_requested(draft: Draft, event: Event) -> bool:
    """Whether a cancel was acknowledged; after it no new attempt starts."""
    return draft.task.requested is Action.CANCEL


def pause_requested(draft: Draft, event: Event) -> bool:
    """Whether a pause has been requested."""
    return draft.task.requested is Action.PAUSE


def both(*guards: Guard) -> Guard:
    """All of the guards hold; evaluated in this order."""
    return lambda draft, event: all(guard(draft, event) for guard in guards)


def held_back(draft: Draft) -> bool:
    """Whether an end that taskdb forces has to wait for the lease to expire.

    Work that must not overlap, and work that holds a slot, may still be running at its holder.
    """
    lease = draft.task.lease
    active = draft.task.phase in (Phase.SCHEDULED, Phase.RUNNING)
    return active and lease is not None and draft.task.exclusive and lease.expire_time > draft.now


def pin(draft: Draft, event: Event) -> None:
    """Ends the renewal of the lease: it keeps the expiry that it has now."""
    draft.set_lease(follows_session=False)
