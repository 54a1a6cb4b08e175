"""`make bench`: runs the benchmarks on a durable PostgreSQL, one by one, prints and stores the figures."""

import argparse
import asyncio
import tempfile
from pathlib import Path

from tests.bench import archive, core, drain, end_to_end, functions, idle, wal, watch
from tests.bench.database import durable_server
from tests.bench.measure import Report

BENCHES = {
    "core": core.run,
    "wal": wal.run,
    "end_to_end": end_to_end.run,
    "idle": idle.run,
    "functions": functions.run,
    "archive": archive.run,
    "watch": watch.run,
    "drain": drain.run,
}


def main() -> None:
    """Parse the arguments and run what they name."""
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument(
        "names", nargs="*", default=["core", "functions", "watch"], help=f"of {', '.join(BENCHES)}"
    )
    parser.add_argument("--json", type=Path, default=Path("bench.json"), help="where the figures go")
    parser.add_argument("--quick", action="store_true", help="small counts, one run: to see that it works")
    parser.add_argument(
        "--depth", action="store_true", help="also with 1,000,000 pending and 5,000,000 finished"
    )
    arguments = parser.parse_args()
    report = Report()
    with tempfile.TemporaryDirectory(prefix="taskyard-bench-", dir="/var/tmp") as name:
        directory = Path(name)
        directory.chmod(0o755)
        with durable_server(directory / "postgres") as server:
            for bench in arguments.names:
                work = BENCHES[bench](server, directory, report, quick=arguments.quick, depth=arguments.depth)
                asyncio.run(work)
    report.write(arguments.json)
    print(f"figures are in {arguments.json}")


if __name__ == "__main__":
    main()
