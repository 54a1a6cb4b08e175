"""What the programs here share: a preset that is applied, and a runner of their own for their functions."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_BIN = Path(sys.executable).parent


def apply_preset(name: str) -> None:
    """The same as `taskyard apply --preset NAME` on a terminal."""
    subprocess.run([_BIN / "taskyard", "apply", "--preset", name], check=True, stdout=subprocess.DEVNULL)


@contextmanager
def runner(program: str, runner_id: str, *flags: str) -> Iterator[None]:
    """A runner that executes the functions which `program` registers as `app`."""
    folder = str(Path(program).parent)
    command = [_BIN / "taskyard-runner", "--app", f"{Path(program).stem}:app", "--id", runner_id, *flags]
    with tempfile.TemporaryDirectory() as data:
        # Each run may have a user of its own, who has to reach it.
        Path(data).chmod(0o755)
        process = subprocess.Popen(
            [*command, "--data-dir", data],
            env=os.environ | {"PYTHONPATH": folder},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            yield
        finally:
            process.terminate()
            process.wait(60)
