"""Measuring: repeated runs, medians, and a report as a table and as JSON."""

import json
import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Figure:
    """One measured quantity: the median of its runs, and what it is compared with."""

    name: str
    value: float
    unit: str
    runs: tuple[float, ...] = ()
    # value divided by the same run's reference, and the goal of that ratio or of the value itself.
    ratio: float | None = None
    reference: str = ""
    goal: str = ""
    met: bool | None = None


@dataclass
class Report:
    """All figures of one run of the benchmarks."""

    figures: list[Figure] = field(default_factory=list)

    def add(self, figure: Figure) -> Figure:
        """Take a figure in and print its line."""
        self.figures.append(figure)
        ratio = "" if figure.ratio is None else f"{figure.ratio:6.2f} x {figure.reference}"
        verdict = "" if figure.met is None else ("  met" if figure.met else "  MISSED")
        goal = f"  goal {figure.goal}" if figure.goal else ""
        print(f"{figure.name:<46} {figure.value:>12,.1f} {figure.unit:<8} {ratio}{goal}{verdict}", flush=True)
        return figure

    def value(self, name: str) -> float:
        """The value of a figure that was measured before."""
        return next(figure.value for figure in self.figures if figure.name == name)

    def write(self, path: Path) -> None:
        """Store the report as JSON."""
        path.write_text(json.dumps([asdict(figure) for figure in self.figures], indent=2) + "\n")


def rate(count: int, work: Callable[[], object]) -> float:
    """Items per second of one call of `work`, which handles `count` of them."""
    start = time.perf_counter()
    work()
    return count / (time.perf_counter() - start)


def median(values: list[float]) -> float:
    """The middle one."""
    return statistics.median(values)
