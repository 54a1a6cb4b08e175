"""`make bench`: runs the benchmarks on a durable PostgreSQL, one by one, prints and stores the figures."""

import argparse
import asyncio
import functools
import tempfile
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from tests.bench import (
    archive,
    commands,
    core,
    depth,
    drain,
    end_to_end,
    functions,
    gateway,
    idle,
    lone,
    memory,
    planning,
    wal,
    watch,
    workers,
)
from tests.bench.database import durable_server
from tests.bench.measure import Report

Bench = Callable[..., Coroutine[Any, Any, None]]
BENCHES: dict[str, Bench] = {
    "core": core.run,
    "wal": wal.run,
    "end_to_end": end_to_end.run,
    "idle": idle.run,
    "lone": lone.run,
    "commands": commands.run,
    "functions": functions.run,
    "watch": watch.run,
    "workers": workers.run,
    "gateway": gateway.run,
    "archive": archive.run,
    "planning": planning.run,
    "drain": drain.run,
    "depth": depth.run,
    "memory": memory.run,
}
# The others take many minutes or concern one part only.
DEFAULT = ("core", "wal", "end_to_end", "idle", "commands", "functions", "watch")


def main() -> None:
    """Parse the arguments and run what they name."""
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument(
        "names",
        nargs="*",
        default=DEFAULT,
        help=f"of {', '.join(BENCHES)}; {', '.join(DEFAULT)} if none is named",
    )
    parser.add_argument("--json", type=Path, default=Path("bench.json"), help="where the figures go")
    parser.add_argument("--quick", action="store_true", help="small counts, one run: to see that it works")
    parser.add_argument(
        "--scale",
        type=float,
        default=1.0,
        help="a fraction: of 1,000,000 pending and 5,000,000 finished tasks (depth), 1,000,000 (archive)",
    )
    arguments = parser.parse_args()
    if unknown := set(arguments.names) - BENCHES.keys():
        parser.error(f"no benchmark is named {', '.join(sorted(unknown))}; there are {', '.join(BENCHES)}")
    scaled = {name: functools.partial(BENCHES[name], scale=arguments.scale) for name in ("archive", "depth")}
    benches: dict[str, Bench] = {**BENCHES, **scaled}
    report = Report()
    with tempfile.TemporaryDirectory(prefix="taskyard-bench-", dir="/var/tmp") as name:
        directory = Path(name)
        directory.chmod(0o755)
        with durable_server(directory / "postgres") as server:
            for bench in arguments.names:
                print(f"-- {bench}", flush=True)
                start = time.monotonic()
                asyncio.run(benches[bench](server, directory, report, quick=arguments.quick))
                print(f"-- {bench} took {time.monotonic() - start:.0f} s", flush=True)
                # Not only at the end: what follows may fail.
                report.write(arguments.json)
    print(f"figures are in {arguments.json}")


if __name__ == "__main__":
    main()
