"""`taskyard-scheduler serve`: the scheduler as a process."""

from __future__ import annotations

import sys

from taskyard_kit.run import run
from taskyard_scheduler.server import serve
from taskyard_scheduler.settings import SchedulerSettings


def main() -> None:
    """Run the service; `serve` is its only verb and may be left out."""
    arguments = sys.argv[1:]
    run(SchedulerSettings, serve, arguments[1:] if arguments[:1] == ["serve"] else arguments)


if __name__ == "__main__":
    main()
