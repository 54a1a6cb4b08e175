"""`python -m tests.runner_kit -- COMMAND`: a verdict per rule of the link about any runner."""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path

import pytest

from tests.runner_kit.broken import BREAKS, Tampering
from tests.runner_kit.subject import KNOWN, Runner, build_go_runner
from tests.runner_kit.verdicts import judge


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.runner_kit", description=__doc__)
    parser.add_argument("--runner", choices=sorted(KNOWN), help="a runner of this repository")
    parser.add_argument(
        "--only", type=int, action="append", default=[], help="play this rule; may be repeated"
    )
    parser.add_argument("--break", dest="broken", type=int, choices=sorted(BREAKS), help="break this rule")
    parser.add_argument(
        "--prove",
        action="store_true",
        help="play the runner in Go and every broken runner",
    )
    parser.add_argument("command", nargs="*", help="with {scheduler}, {id} and {data}")
    arguments = parser.parse_args()
    if arguments.prove:
        return pytest.main(["-q", str(Path(__file__).with_name("heavy_verdicts.py"))])
    if bool(arguments.runner) == bool(arguments.command):
        parser.error("give either --runner or -- and a command")
    if arguments.runner == "go":
        build_go_runner()
    command = arguments.command or KNOWN[arguments.runner]
    runner = Runner(command, BREAKS.get(arguments.broken, Tampering))
    verdicts = asyncio.run(judge(runner, arguments.only))
    broken = [number for number, verdict in verdicts.items() if verdict]
    print(f"broken: {', '.join(map(str, broken))}" if broken else "every rule is kept")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
