"""An embedded server under test, and copies of a cluster that was made once."""

import asyncio
import contextlib
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

from taskyard_standalone.datadir import DataDirectory
from taskyard_standalone.postgres import EmbeddedPostgres, PostgresOptions

FAST = PostgresOptions(server_arguments=("-c", "fsync=off", "-c", "shared_buffers=16MB"))


@contextlib.asynccontextmanager
async def running(
    path: Path, options: PostgresOptions = FAST, announced: list[str] | None = None
) -> AsyncIterator[EmbeddedPostgres]:
    """A started server on the data directory `path`."""
    with DataDirectory(path) as data:
        postgres = EmbeddedPostgres(data, options, (announced if announced is not None else []).append)
        try:
            await postgres.start()
            yield postgres
        finally:
            await postgres.stop(asyncio.Event())


def run(*argv: str, check: bool = True) -> "subprocess.CompletedProcess[str]":
    """Runs a program to its end."""
    return subprocess.run(argv, check=check, capture_output=True, text=True)


def copy_tree(source: Path, target: Path) -> None:
    """Copies a directory with owners and permissions."""
    run("cp", "-a", str(source), str(target))
