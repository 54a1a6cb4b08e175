"""The recorded history of a run: JSON lines of clients, watchers, injector and tasks, by one clock.

Tasks read the clock from /proc/uptime, the harness from CLOCK_BOOTTIME, which is the same one.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple


def now() -> float:
    """Seconds since boot."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class Entry(NamedTuple):
    """One thing that happened, as its witness saw it."""

    t: float
    what: str
    fields: dict[str, Any]

    def __getattr__(self, name: str) -> Any:
        try:
            return self.fields[name]
        except KeyError:
            raise AttributeError(name) from None


@dataclass(frozen=True)
class Effect:
    """What a run did, written by itself: `what` is start, step, kept (a checkpoint), fail or end."""

    t: float
    task: str
    generation: int
    what: str
    n: int


class History:
    """Appends entries to a file, so that a failed run can be examined, and keeps them."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "history.jsonl"
        self.effects_path = folder / "effects.jsonl"
        self.effects_path.touch(0o666)
        self.effects_path.chmod(0o666)
        self._file = self.path.open("a", buffering=1)
        self.entries: list[Entry] = []

    def add(self, what: str, **fields: Any) -> Entry:
        entry = Entry(now(), what, fields)
        self.entries.append(entry)
        self._file.write(json.dumps({"t": entry.t, "what": what, **fields}) + "\n")
        return entry

    def of(self, what: str) -> list[Entry]:
        return [entry for entry in self.entries if entry.what == what]

    def effects(self) -> list[Effect]:
        return list(read_effects(self.effects_path))

    def close(self) -> None:
        self._file.close()


def read_effects(path: Path) -> Iterator[Effect]:
    """The effect log; a line that a kill cut short is not a line."""
    for line in path.read_text().splitlines():
        try:
            found = json.loads(line)
            yield Effect(found["t"], found["task"], found["gen"], found["what"], found["n"])
        except (ValueError, KeyError):
            continue
