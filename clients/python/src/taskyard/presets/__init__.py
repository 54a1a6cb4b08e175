"""Task types that carry the rules of systems Taskyard replaces, as files for `taskyard apply -f`."""

from pathlib import Path

NAMES = ("aiopslab", "agent-functions", "niyanta", "global-tasks", "solti")


def path(name: str) -> Path:
    """The file of a preset; raises ValueError for an unknown name."""
    if name not in NAMES:
        raise ValueError(f"{name!r} is no preset; there are {', '.join(NAMES)}")
    return Path(__file__).with_name(f"{name}.yaml")
