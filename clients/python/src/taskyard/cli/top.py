"""The live view: queue, runners, throughput and what runs, drawn anew every other second."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys
import termios
import time
import tty
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import click

from taskyard import errors
from taskyard.cli import runners as runner_rows
from taskyard.cli import screen
from taskyard.cli.session import with_client
from taskyard.cli.values import DURATION
from taskyard.client import Client
from taskyard.task import Phase, Task
from taskyard.v1 import runner_pb2
from taskyard.v1 import task_service_pb2 as pb

_BARS = "▁▂▃▄▅▆▇█"
HISTORY = 60
SHOWN = 100
# Alternate screen without a cursor, and back.
_ENTER, _LEAVE = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"


@click.command()
@click.option(
    "--interval", type=DURATION, default=2.0, metavar="DURATION", help="Refresh interval.  [default: 2s]"
)
@click.option("--once", is_flag=True, help="Print once and exit; the default without a terminal.")
@with_client
async def top(client: Client, interval: float, once: bool) -> None:
    """Watch queue, runners and throughput live.

    Ends with q or Ctrl-C.

    \b
    Examples:
      taskyard top
      taskyard top --once
    """
    dashboard = _Dashboard(client)
    await dashboard.refresh()
    if once or not sys.stdout.isatty() or not sys.stdin.isatty():
        click.echo("\n".join(dashboard.lines(100, 40)))
        return
    stop = asyncio.Event()
    draw = asyncio.Event()
    with _full_screen(stop, draw):
        while not stop.is_set():
            size = shutil.get_terminal_size()
            _paint(dashboard.lines(size.columns, size.lines))
            if await _interrupted(stop, draw, interval):
                continue
            await dashboard.refresh()


async def _interrupted(stop: asyncio.Event, draw: asyncio.Event, seconds: float) -> bool:
    """Whether `stop` or `draw` was set within the time."""
    waits = [asyncio.ensure_future(stop.wait()), asyncio.ensure_future(draw.wait())]
    done, _ = await asyncio.wait(waits, timeout=max(0.1, seconds), return_when=asyncio.FIRST_COMPLETED)
    for one in waits:
        one.cancel()
    draw.clear()
    return bool(done)


@contextmanager
def _full_screen(stop: asyncio.Event, draw: asyncio.Event) -> Iterator[None]:
    """Uses the whole terminal and restores it; q, Ctrl-C and a closed terminal stop, a new size redraws."""
    loop = asyncio.get_running_loop()
    stdin = sys.stdin.fileno()
    before = termios.tcgetattr(stdin)

    def read() -> None:
        typed = os.read(stdin, 1024)
        # A closed terminal reads as empty.
        if not typed or set(typed) & set(b"qQ\x03\x04"):
            stop.set()

    tty.setcbreak(stdin)
    sys.stdout.write(_ENTER)
    loop.add_reader(stdin, read)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, stop.set)
    loop.add_signal_handler(signal.SIGWINCH, draw.set)
    try:
        yield
    finally:
        loop.remove_reader(stdin)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGWINCH):
            loop.remove_signal_handler(number)
        termios.tcsetattr(stdin, termios.TCSADRAIN, before)
        sys.stdout.write(_LEAVE)
        sys.stdout.flush()


def _paint(lines: Sequence[str]) -> None:
    # Each line clears its rest and the end clears the rows below, to avoid flicker.
    sys.stdout.write("\x1b[H" + "\n".join(f"{line}\x1b[K" for line in lines) + "\x1b[J")
    sys.stdout.flush()


@dataclass
class _Dashboard:
    """The state of the servers at the last refresh, and the rate of ended tasks over time."""

    client: Client
    stats: pb.TaskStats = field(default_factory=pb.TaskStats)
    runners: list[runner_pb2.Runner] = field(default_factory=list)
    tasks: list[Task] = field(default_factory=list)
    error_text: str = ""
    rates: deque[float] = field(default_factory=lambda: deque(maxlen=HISTORY))
    _last: tuple[float, int] | None = None

    async def refresh(self) -> None:
        """Reads the state of the servers; an error is shown and the next refresh tries again."""
        try:
            groups = (await self.client.stats()).groups
            self.stats = groups[0] if groups else pb.TaskStats()
            self._record_rate()
            # Running tasks may be older than the newest live tasks.
            found = {task.name: task async for task in self.client.list(phase="running", limit=SHOWN)}
            found |= {task.name: task async for task in self.client.list(phase="live", limit=SHOWN)}
            self.tasks = list(found.values())
            self.runners = [runner async for runner in self.client.admin.runners()]
            self.error_text = ""
        except errors.TaskyardError as error:
            self.error_text = " ".join(error.message.split())

    def _record_rate(self) -> None:
        ended = sum(count.count for count in self.stats.phases if Phase(count.phase).terminal)
        now = time.monotonic()
        if self._last is not None and now > self._last[0]:
            self.rates.append(max(0.0, (ended - self._last[1]) / (now - self._last[0])))
        self._last = now, ended

    def lines(self, columns: int, rows: int) -> list[str]:
        """The screen, at most `rows` lines of `columns` characters."""
        context = self.client.context
        where = f"{context.address}   tenant {context.tenant}"
        head = f"taskyard top   {where}   {datetime.now():%H:%M:%S}   q quits"
        shown = [screen.dim(head[:columns]), "", *self._queue(columns)]
        if self.error_text:
            shown += ["", screen.paint(self.error_text[:columns], "error")]
        if self.runners:
            room = max(3, (rows - len(shown)) // 3)
            found = [runner_rows.row_of(runner, exact=False) for runner in self.runners[:room]]
            shown += ["", *screen.table_lines(runner_rows.TITLES, found, columns)]
        room = max(0, rows - len(shown) - 2)
        if self.tasks and room:
            titles = ("TASK", "PHASE", "AGE", "TOOK", "RUNNER", "PROGRESS", "WHAT")
            order = sorted(self.tasks, key=_urgency)
            shown += ["", *screen.table_lines(titles, map(_task_row, order[: room - 1]), columns)]
        return shown[:rows]

    def _queue(self, columns: int) -> list[str]:
        counts = {Phase(count.phase): count.count for count in self.stats.phases}
        always_shown = [
            Phase.PENDING,
            Phase.SCHEDULED,
            Phase.RUNNING,
            Phase.PAUSED,
            Phase.SUCCEEDED,
            Phase.FAILED,
        ]
        phases = sorted({*always_shown, *(phase for phase, count in counts.items() if count)})
        table = screen.table_lines(
            [str(phase) for phase in phases], [[str(counts.get(phase, 0)) for phase in phases]], columns
        )
        rate = f"{self.rates[-1]:.1f} ended/s" if self.rates else "ended/s after the next refresh"
        waits = self.stats.oldest_pending_age.ToTimedelta()
        oldest = f"   oldest waits {screen.span(waits)}" if waits > timedelta() else ""
        graph = sparkline(self.rates, max(0, columns - len(rate) - len(oldest) - 4))
        return [*table, "", f"{rate}  {graph}{oldest}"]


def sparkline(values: Sequence[float], room: int) -> str:
    """The last values as a row of bars, the highest of them at full height."""
    shown = list(values)[-room:] if room else []
    top_ = max(shown, default=0.0)
    return "".join(_BARS[round(value / top_ * (len(_BARS) - 1)) if top_ else 0] for value in shown)


def _urgency(task: Task) -> tuple[int, str]:
    """Sort key: running tasks first, then scheduled ones, then waiting ones."""
    order = [Phase.RUNNING, Phase.SCHEDULED, Phase.REDISTRIBUTING, Phase.PENDING, Phase.PAUSED]
    return (order.index(task.phase) if task.phase in order else len(order), task.id)


def _task_row(task: Task) -> tuple[str, ...]:
    progress = task.proto.status.progress
    text = f"{progress.percent}% {progress.message}" if progress.percent or progress.message else ""
    return (
        task.id,
        str(task.phase),
        screen.format_time(task.create_time, False).removesuffix(" ago"),
        screen.span(screen.duration_of(task)),
        task.runner,
        screen.shorten(screen.clean(text), 24),
        screen.shorten(screen.describe_execution(task), 60),
    )
