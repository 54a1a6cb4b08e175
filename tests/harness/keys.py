"""Keys for tests and benchmarks, written to the database as `taskyard-taskdb keys create` does."""

import os
import subprocess
import sys


def make_key(url: str, kind: str, tenant: str = "") -> str:
    """A new key of that kind, made by the real command."""
    of_tenant = ("--tenant", tenant) if tenant else ()
    made = subprocess.run(
        [sys.executable, "-m", "taskyard_taskdb", "keys", "create", "--kind", kind, *of_tenant],
        env={**os.environ, "TASKYARD_DATABASE_URL": url},
        check=True,
        capture_output=True,
        text=True,
    )
    return made.stdout.strip()
