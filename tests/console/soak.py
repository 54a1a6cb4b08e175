"""`make console-soak`: the console beside a million tasks and a log of a million lines.

Every page is opened and timed, a log is followed and scrolled while it is written, and a busy list is watched
for some minutes. Ends with 1 if a page took a second, the page was frozen, or its heap passed its bound.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

from tests.acceptance.suite import BIN, Suite, running_suite
from tests.bench import fill
from tests.harness import browser
from tests.harness.leash import tied

HERE = Path(__file__).parent
TASKS, PENDING = 1_000_000, 100_000
DAY = timedelta(hours=23)


def main() -> int:
    """Fill a new suite and drive the browser against it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--minutes", type=float, default=30.0, help="how long the busy list is watched; 0: not at all"
    )
    parser.add_argument("--tasks", type=int, default=TASKS, help="tasks in the database")
    parser.add_argument(
        "--lines", type=int, default=1_000_000, help="lines of the followed log; 0: none is followed"
    )
    arguments = parser.parse_args()
    if not (HERE / "node_modules").exists():
        subprocess.run(["npm", "ci", "--no-audit", "--no-fund"], cwd=HERE, check=True)
    with running_suite() as suite:
        pending = min(PENDING, arguments.tasks // 10)
        # Within the day that lists and counts show, evenly.
        apart = DAY / arguments.tasks
        fill.deepen(
            database_of(suite), pending=pending, finished=arguments.tasks - pending, age=DAY, apart=apart
        )
        return subprocess.run(
            tied("node", "soak.mjs"), cwd=HERE, env=_environment(suite, arguments), check=False
        ).returncode


def database_of(suite: Suite) -> str:
    """How PostgreSQL of the suite is reached."""
    found = re.search(r"psql '([^']+)'", suite.output())
    assert found is not None, suite.output()
    return found[1]


def _environment(suite: Suite, arguments: argparse.Namespace) -> dict[str, str]:
    context = suite.context
    return {
        **os.environ,
        "BASE": context["gateway"],
        "KEY": context["key"],
        "ADMIN_KEY": context["admin_key"],
        "TASKYARD": str(BIN / "taskyard"),
        "FOLDER": str(suite.folder),
        "CHROMIUM": str(browser.PROGRAM),
        "MINUTES": str(arguments.minutes),
        "LINES": str(arguments.lines),
    }


if __name__ == "__main__":
    sys.exit(main())
