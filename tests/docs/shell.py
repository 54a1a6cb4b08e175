"""Follows a page: its commands, typed into one shell."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.harness.leash import LEFT_SOMETHING, leashed

MARK = "--8<--"


def follow(
    commands: Sequence[str], folder: Path, environment: Mapping[str, str], seconds: float
) -> list[str]:
    """What each command prints; what one sets, the next one uses. Fails if programs are left behind."""
    script = "\n".join(f"echo '{MARK}'\n{command}" for command in commands)
    process = subprocess.Popen(
        leashed("bash", "-c", f"set -u\n{script}\n"),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=folder,
        env=environment,
    )
    try:
        output, _ = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.terminate()
        raise AssertionError(f"it did not end:\n{process.communicate()[0]}") from None
    assert process.returncode != LEFT_SOMETHING, f"programs are left behind:\n{output}"
    outputs = output.split(f"{MARK}\n")[1:]
    assert len(outputs) == len(commands), output
    return outputs
