"""Whether this process serves, for the pages of the metrics endpoint, which run on a thread of their own."""

from __future__ import annotations

_ready = False


def set_ready(ready: bool) -> None:
    """Record whether the service can do its work."""
    global _ready
    _ready = ready


def is_ready() -> bool:
    """Whether the service can do its work."""
    return _ready
