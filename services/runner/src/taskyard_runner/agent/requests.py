"""What workloads ask and the agent answers: keep a checkpoint, create tasks, read what became of them, is my
lease still good.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from taskyard_runner.agent.checkpoints import CheckpointRefused, Uploads
from taskyard_runner.agent.children import Children, ChildrenRefused
from taskyard_runner.agent.environment import fencing_token
from taskyard_runner.agent.run import AgentRun
from taskyard_runner.agent.runs import Runs
from taskyard_runner.warden.linux import boottime
from taskyard_runner.warden.protocol import Message

_MAX_WAIT = 3600.0

Answer = Callable[[Message], None]


class Requests:
    """Answers each request once."""

    def __init__(self, runs: Runs, uploads: Uploads, children: Children) -> None:
        self._runs = runs
        self._uploads = uploads
        self._children = children
        self._waiting: set[asyncio.Task[None]] = set()

    def handle(self, request: Message, answer: Answer) -> None:
        """Answer now, or once a checkpoint is stored or a task created."""
        run = self._runs.table.find_live(str(request.get("run")))
        if run is None:
            answer({"ok": False, "error": "the run has ended"})
        elif request.get("op") == "fence":
            answer(_fence(run))
        elif request.get("op") == "checkpoint":
            self._keep(run, request, answer)
        elif request.get("op") == "create":
            self._spawn(self._relay(self._create(run, request), answer))
        elif request.get("op") == "spawn":
            self._spawn(self._relay(self._create(run, request, spawned=True), answer))
        elif request.get("op") == "children":
            self._spawn(self._relay(self._outcomes(run, request), answer))
        else:
            answer({"ok": False, "error": f"unknown op {request.get('op')!r}"})

    def _keep(self, run: AgentRun, request: Message, answer: Answer) -> None:
        name = str(request.get("file", ""))
        percent = run.held.progress.percent if run.held.progress else 0
        try:
            if not name or "/" in name or name in (".", ".."):
                raise CheckpointRefused(
                    f"file {name!r} must be the name of a file in TASKYARD_CHECKPOINT_DIR"
                )
            source = run.directory.checkpoint / name
            owner = run.directory.owner[0] if run.directory.owner is not None else None
            self._uploads.ensure(run.lease, run.directory.uploads, run.checkpoint_sequence)
            sequence = self._uploads.keep(
                run.key, source, str(request.get("content_type", "")), percent, owner
            )
        except CheckpointRefused as error:
            answer({"ok": False, "error": str(error)})
            return
        self._runs.reports.executor(run).note(run, checkpoint=sequence)
        wait = request.get("wait")
        if isinstance(wait, int | float) and wait > 0:
            self._spawn(self._wait(run, sequence, min(float(wait), _MAX_WAIT), answer))
        else:
            answer({"ok": True, "sequence": sequence, "stored": False})

    async def _wait(self, run: AgentRun, sequence: int, timeout: float, answer: Answer) -> None:
        try:
            async with asyncio.timeout(timeout):
                error = await self._uploads.stored(run.key, sequence)
        except TimeoutError:
            answer({"ok": True, "sequence": sequence, "stored": False})
            return
        if error:
            answer({"ok": False, "error": error})
        else:
            answer({"ok": True, "sequence": sequence, "stored": True})

    async def _create(self, run: AgentRun, request: Message, *, spawned: bool = False) -> Message:
        tasks = request.get("tasks") or []
        return {"tasks": await self._children.create(run, tasks, spawned=spawned)}

    async def _outcomes(self, run: AgentRun, request: Message) -> Message:
        return {"children": await self._children.outcomes(run, request.get("tasks") or [])}

    async def _relay(self, work: Coroutine[Any, Any, Message], answer: Answer) -> None:
        try:
            answer({"ok": True, **await work})
        except ChildrenRefused as error:
            answer({"ok": False, "error": str(error), "code": error.reason})

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._waiting.add(task)
        task.add_done_callback(self._waiting.discard)


def _fence(run: AgentRun) -> Message:
    left = run.held.until - boottime()
    return {
        "ok": True,
        "token": fencing_token(run.lease),
        "current": left > 0,
        "lease_seconds": max(0.0, round(left, 3)),
    }
