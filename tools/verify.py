"""Runs the checks of `make verify`, all or those named, and prints the command that fixes each failure."""

import argparse
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

IMAGE = "protos/image.binpb"
PYTHON = sys.executable


@dataclass(frozen=True)
class Check:
    """One command that must succeed, and what to do when it does not."""

    name: str
    command: tuple[str, ...]
    fix: str


CHECKS = (
    Check(
        "lint", ("ruff", "check", "--quiet", "--output-format=concise"), "make fix, then edit what remains"
    ),
    Check("format", ("ruff", "format", "--diff"), "make fix"),
    Check("types", ("mypy", "--no-error-summary"), "edit the lines named above"),
    Check("imports", ("lint-imports", "--no-cache", "--no-logo"), "import from a layer that may"),
    Check("proto-lint", ("buf", "lint"), "edit the protos named above"),
    Check("proto-format", ("buf", "format", "protos", "--diff", "--exit-code"), "make fix"),
    Check(
        "proto-breaking",
        ("buf", "breaking", "protos", "--against", IMAGE),
        "keep the old names and numbers; or, when the break is meant, make image",
    ),
    Check("stubs", (PYTHON, "tools/generate.py", "--check", "--root", "."), "make generate"),
    Check("state-machine", (PYTHON, "tools/state_machine.py", "--check", "--root", "."), "make generate"),
    Check("equivalence", (PYTHON, "tools/equivalence.py", "--root", "."), "write the tests named above"),
    Check("schema", (PYTHON, "tools/schema_sql.py", "--check", "--root", "."), "make generate"),
    Check("reference", (PYTHON, "tools/reference.py", "--check", "--root", "."), "make generate"),
    Check("openapi", (PYTHON, "tools/openapi.py", "--check", "--root", "."), "make generate"),
    Check("metrics", (PYTHON, "tools/metrics_page.py", "--check", "--root", "."), "make generate"),
    Check(
        "requirements",
        (PYTHON, "tools/requirements.py", "--check", "--root", "."),
        "mark tests or explain lines in docs/requirements.toml, then make generate",
    ),
    Check("lock", (PYTHON, "tools/lock.py", "--check", "--root", "."), "make lock"),
    Check("tree", (PYTHON, "tools/tree.py", "--root", "."), "edit the files named above"),
)


def environment(root: Path) -> dict[str, str]:
    """Return an environment that prefers the tools of this Python and the sources of `root`."""
    sources = [root / "tools", root / "clients/python/src", *sorted(root.glob("services/*/src"))]
    path = [str(Path(PYTHON).parent), os.environ.get("PATH", os.defpath)]
    return os.environ | {
        "PATH": os.pathsep.join(path),
        "PYTHONPATH": os.pathsep.join(str(source.resolve()) for source in sources),
    }


def run(check: Check, root: Path) -> bool:
    """Run one check and print its line, followed by its output if it fails."""
    start = time.monotonic()
    result = subprocess.run(
        check.command,
        cwd=root,
        env=environment(root),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    passed = result.returncode == 0
    print(f"{'ok  ' if passed else 'FAIL'}  {check.name:<15}{time.monotonic() - start:5.1f} s", flush=True)
    if not passed:
        print(result.stdout.rstrip(), end="\n\n", flush=True)
    return passed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=Path, default=Path(__file__).parents[1], help="the checkout to check")
    parser.add_argument("names", nargs="*", metavar="check", help=", ".join(check.name for check in CHECKS))
    arguments = parser.parse_args()
    unknown = set(arguments.names) - {check.name for check in CHECKS}
    if unknown:
        parser.error(f"no such check: {', '.join(sorted(unknown))}")
    chosen = [check for check in CHECKS if not arguments.names or check.name in arguments.names]
    failed = [check for check in chosen if not run(check, arguments.root)]
    for check in failed:
        print(f"{check.name} failed. Fix: {check.fix}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
