"""Figures of all rounds: medians with their spread, and the ratios of Taskyard to each peer."""

from __future__ import annotations

import json
import os
import platform
import statistics
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from tests.bench.peers.systems import Figures

OURS = "taskyard"
# Name, title, decimals; a ratio of CPU, WAL or latency is better when it is small.
METRICS = (
    ("drain", "drain of no-op tasks /s", 0),
    ("batch", "batch create /s", 0),
    ("single", "single create /s, 50 callers", 0),
    ("p50", "create → start p50 ms at 100/s", 1),
    ("p99", "create → start p99 ms at 100/s", 1),
    ("drain_cpu_programs", "CPU of a drained task, programs µs", 0),
    ("drain_cpu_server", "CPU of a drained task, PostgreSQL or Redis µs", 0),
    ("drain_cpu", "CPU of a drained task µs", 0),
    ("batch_cpu", "CPU of a batch-created task µs", 0),
    ("wal", "WAL of create + run, B", 0),
)


@dataclass
class Results:
    """One run: who took part, what each round found, and drains of growing backlogs."""

    titles: dict[str, str]
    skipped: dict[str, str]
    postgres: str
    date: str = field(default_factory=lambda: datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"))
    cores: int = field(default_factory=lambda: os.cpu_count() or 0)
    python: str = field(default_factory=platform.python_version)
    # The machine's load average of a minute at the beginning of each round, and at the end.
    loads: list[float] = field(default_factory=list)
    rounds: list[dict[str, Figures]] = field(default_factory=list)
    growth: list[dict[str, float | str]] = field(default_factory=list)
    # Which system failed in which round, and why; its round has no figures.
    failures: list[str] = field(default_factory=list)

    def note_load(self) -> None:
        self.loads.append(round(os.getloadavg()[0], 2))

    def write(self, path: Path) -> None:
        path.write_text(json.dumps(asdict(self), indent=1, ensure_ascii=False) + "\n")

    def add(self, path: Path) -> None:
        """Take in the rounds of an earlier run, each of which compares its systems for itself."""
        earlier = json.loads(path.read_text())
        self.titles = earlier["titles"] | self.titles
        skipped = earlier["skipped"] | self.skipped
        self.skipped = {name: why for name, why in skipped.items() if name not in self.titles}
        self.loads[:0], self.rounds[:0] = earlier["loads"], earlier["rounds"]
        self.growth[:0] = earlier["growth"]
        self.failures[:0] = earlier.get("failures", [])

    def values(self, system: str, metric: str) -> list[float]:
        """What each round found; rounds without it are left out."""
        return [found[system][metric] for found in self.rounds if metric in found.get(system, {})]

    def ratios(self, peer: str, metric: str) -> list[float]:
        """Taskyard divided by the peer, round by round."""
        return [
            found[OURS][metric] / found[peer][metric]
            for found in self.rounds
            if metric in found.get(peer, {}) and metric in found.get(OURS, {})
        ]

    def tables(self) -> str:
        """Two tables in Markdown: the medians with their spread, and the ratios."""
        present = [name for name in self.titles if any(name in found for found in self.rounds)]
        peers = [name for name in present if name != OURS]
        heads = [self.titles[name] for name in present]
        lines = [_row("median (min to max)", *heads), _row(*["---"] * (len(heads) + 1))]
        for metric, title, decimals in METRICS:
            cells = [_spread(self.values(name, metric), decimals) for name in present]
            lines.append(_row(title, *cells))
        if OURS in present:
            lines += ["", _row("Taskyard / peer", *(self.titles[name] for name in peers))]
            lines.append(_row(*["---"] * (len(peers) + 1)))
            for metric, title, _ in METRICS:
                lines.append(_row(title, *(_spread(self.ratios(name, metric), 2) for name in peers)))
        return "\n".join(lines)


def line(title: str, figures: Figures) -> str:
    """A round of one system on one line."""
    parts = [
        f"{metric} {figures[metric]:,.{decimals}f}" for metric, _, decimals in METRICS if metric in figures
    ]
    return f"  {title:<26} {', '.join(parts)}"


def _spread(values: list[float], decimals: int) -> str:
    if not values:
        return "–"
    middle = f"{statistics.median(values):,.{decimals}f}"
    if len(values) == 1:
        return middle
    return f"{middle} ({min(values):,.{decimals}f} to {max(values):,.{decimals}f})"


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"
