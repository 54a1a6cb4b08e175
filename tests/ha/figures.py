"""The table of figures that `make ha` prints."""

from __future__ import annotations

from dataclasses import dataclass, field

TITLES = (
    "fault",
    "PostgreSQL writable after",
    "first create after",
    "longest gap between creates",
    "lost",
    "ended twice",
    "ran twice",
    "watch",
)


@dataclass
class Figures:
    """One row per fault."""

    rows: list[tuple[str, ...]] = field(default_factory=list)

    def add(self, *values: str) -> None:
        """Add a row; a value for each title."""
        self.rows.append(values)

    def table(self) -> str:
        """The rows as Markdown."""
        lines = ["", " | ".join(TITLES), " | ".join("---" for _ in TITLES)]
        lines += [" | ".join(row) for row in self.rows]
        return "\n".join(f"| {line} |" if line else "" for line in lines)
