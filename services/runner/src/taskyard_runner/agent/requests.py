"""What workloads ask by TASKYARD_SOCKET and the agent answers: keep a checkpoint, is my lease still good."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from taskyard_runner.agent.checkpoints import CheckpointRefused, Uploads
from taskyard_runner.agent.environment import fencing_token
from taskyard_runner.agent.run import AgentRun
from taskyard_runner.agent.runs import Runs
from taskyard_runner.warden.linux import boottime
from taskyard_runner.warden.protocol import Message

_LONGEST_WAIT = 3600.0


class Requests:
    """Answers each request once, by way of the warden."""

    def __init__(self, runs: Runs, uploads: Uploads, tell_warden: Callable[[Message], None]) -> None:
        self._runs = runs
        self._uploads = uploads
        self._tell = tell_warden
        self._waiting: set[asyncio.Task[None]] = set()

    def handle(self, number: int, asked: Message) -> None:
        """Answer now, or once a checkpoint is stored."""
        run = self._runs.find(str(asked.get("run")))
        if run is None:
            self._answer(number, {"ok": False, "error": "the run has ended"})
        elif asked.get("op") == "fence":
            self._answer(number, _fence(run))
        elif asked.get("op") == "checkpoint":
            self._keep(number, run, asked)
        else:
            self._answer(number, {"ok": False, "error": f"unknown op {asked.get('op')!r}"})

    def _keep(self, number: int, run: AgentRun, asked: Message) -> None:
        name = str(asked.get("file", ""))
        percent = run.held.progress.percent if run.held.progress else 0
        try:
            if not name or "/" in name or name in (".", ".."):
                raise CheckpointRefused(
                    f"file {name!r} must be the name of a file in TASKYARD_CHECKPOINT_DIR"
                )
            source = run.directory.checkpoint / name
            sequence = self._uploads.keep(run.key, source, str(asked.get("content_type", "")), percent)
        except CheckpointRefused as error:
            self._answer(number, {"ok": False, "error": str(error)})
            return
        self._tell({"op": "note", "run": run.name, "notes": {"checkpoint": sequence}})
        wait = asked.get("wait")
        if isinstance(wait, int | float) and wait > 0:
            task = asyncio.create_task(self._wait(number, run, sequence, min(float(wait), _LONGEST_WAIT)))
            self._waiting.add(task)
            task.add_done_callback(self._waiting.discard)
        else:
            self._answer(number, {"ok": True, "sequence": sequence, "stored": False})

    async def _wait(self, number: int, run: AgentRun, sequence: int, timeout: float) -> None:
        try:
            error = await asyncio.wait_for(self._uploads.stored(run.key, sequence), timeout)
        except TimeoutError:
            self._answer(number, {"ok": True, "sequence": sequence, "stored": False})
            return
        if error:
            self._answer(number, {"ok": False, "error": error})
        else:
            self._answer(number, {"ok": True, "sequence": sequence, "stored": True})

    def _answer(self, number: int, message: Message) -> None:
        self._tell({"op": "answer", "request": number, "message": message})


def _fence(run: AgentRun) -> Message:
    left = run.held.until - boottime()
    return {
        "ok": True,
        "token": fencing_token(run.lease),
        "current": left > 0,
        "lease_seconds": max(0.0, round(left, 3)),
    }
