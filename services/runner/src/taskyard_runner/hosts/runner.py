"""A host's messages to the runner: over the run's socket, and in its error file."""

from __future__ import annotations

import json
import os
import socket
from typing import Any

_TIMEOUT = 30.0


def ask(path: str, token: str, message: dict[str, Any]) -> dict[str, Any]:
    """Send a message and return the answer; {"ok": False, "error": …} if there is none."""
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(_TIMEOUT)
            connection.connect(path)
            connection.sendall(json.dumps({**message, "token": token}).encode() + b"\n")
            with connection.makefile("rb") as stream:
                answer = json.loads(stream.readline() or b"null")
    except (OSError, ValueError) as error:
        return {"ok": False, "error": f"the runner does not answer: {error}"}
    return answer if isinstance(answer, dict) else {"ok": False, "error": "the runner does not answer"}


def write_failure(path: str, code: str, message: str, *, permanent: bool) -> None:
    """Write the failure for the runner to report, unless the workload wrote one itself."""
    if os.path.lexists(path):
        return
    failure = {"class": "permanent" if permanent else "transient", "code": code, "message": message}
    with open(path, "w", opener=_create) as file:
        json.dump(failure, file)


def _create(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_EXCL | os.O_NOFOLLOW, 0o600)
