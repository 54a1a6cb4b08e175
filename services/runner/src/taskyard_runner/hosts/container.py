"""The host of a container: starts it by podman or runc, forwards its messages, reports its end, removes it.

The engine's client is a child of this process and gets its signals with the process group. What the container
writes into TASKYARD_PIPE, a JSON object per line, goes to the runner as if it had come by TASKYARD_SOCKET.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
from typing import Any, NoReturn

from taskyard_runner.hosts.engines import ENGINES, End, Engine, ImageProblem
from taskyard_runner.hosts.runner import ask, write_failure

_PIPE_BYTES = 65536
# Exit codes of an engine's client when the container's program cannot be executed.
_NOT_EXECUTABLE = (126, 127)
_KILLED = 128 + signal.SIGKILL


def main() -> NoReturn:
    """The container's exit code, or 1 with TASKYARD_ERROR_FILE if there was no container."""
    with open(sys.argv[1]) as file:
        spec = json.load(file)
    engine = ENGINES[spec["engine"]](spec)
    try:
        code = Host(spec, engine).run()
    except ImageProblem as problem:
        write_failure(spec["error_file"], "START_FAILED", str(problem), permanent=problem.permanent)
        code = 1
    sys.exit(code)


class Host:
    """One container, run once."""

    def __init__(self, spec: dict[str, Any], engine: Engine) -> None:
        self._spec = spec
        self._engine = engine
        self._pipe = _make_pipe(spec["pipe"], spec["user"])
        self._line = b""
        self._stopping = False
        # The client passes the signal on to the container; this process has to outlive both.
        signal.signal(signal.SIGTERM, self._note_stop)

    def _note_stop(self, *_: object) -> None:
        self._stopping = True

    def run(self) -> int:
        """The exit code. Raises ImageProblem."""
        self._engine.prepare()
        client = subprocess.Popen(self._engine.run_argv(), stdin=subprocess.DEVNULL)
        self._relay(client)
        code = client.wait()
        end = self._engine.end()
        self._engine.remove()
        return self._judge(code if code >= 0 else 128 - code, end)

    def _judge(self, code: int, end: End) -> int:
        # On hybrid cgroups podman does not see why, and nobody else kills a container that has a limit.
        killed = code == _KILLED and bool(self._spec["memory_bytes"]) and not self._stopping
        if end.out_of_memory or (end.started and killed):
            message = "a process of the container was killed because the task reached its memory limit"
            self._fail("OUT_OF_MEMORY", message, permanent=False)
        elif not end.started:
            self._fail(
                "START_FAILED",
                f"{self._engine.name} could not start the container (exit code {code}); see the log",
                permanent=code in _NOT_EXECUTABLE,
            )
            return code or 1
        return code

    def _fail(self, code: str, message: str, *, permanent: bool) -> None:
        write_failure(self._spec["error_file"], code, message, permanent=permanent)

    # -- messages of the container

    def _relay(self, client: subprocess.Popen[bytes]) -> None:
        ended = os.pidfd_open(client.pid)
        try:
            while True:
                ready, _, _ = select.select([self._pipe, ended], [], [])
                while self._pass_on():
                    pass
                if ended in ready:
                    return
        finally:
            os.close(ended)

    def _pass_on(self) -> bool:
        try:
            data = os.read(self._pipe, _PIPE_BYTES)
        except BlockingIOError:
            return False
        *lines, self._line = (self._line + data).split(b"\n")
        self._line = self._line[-_PIPE_BYTES:]
        for line in lines:
            self._forward(line)
        return True

    def _forward(self, line: bytes) -> None:
        try:
            message = json.loads(line)
        except ValueError:
            message = None
        answer = {"error": "not a JSON object"}
        if isinstance(message, dict):
            answer = ask(self._spec["socket"], self._spec["token"], message)
        if not answer.get("ok"):
            sys.stderr.write(f"TASKYARD_PIPE: {line[:200]!r} was refused: {answer.get('error')}\n")
            sys.stderr.flush()


def _make_pipe(path: str, user: tuple[int, int] | None) -> int:
    with contextlib.suppress(FileExistsError):
        os.mkfifo(path, 0o622)
        os.chmod(path, 0o622)
        if user is not None:
            os.chown(path, *user)
    # Open for writing as well, so that it has no end between two writers.
    return os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW)


if __name__ == "__main__":
    main()
