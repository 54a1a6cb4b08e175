"""The context of a function: its payload and attempt, reporting, requests, and stop requests.

Context is for plain functions, AsyncContext for `async def`; both have the same methods, and those of
AsyncContext that wait for the runner are awaited.
"""

from __future__ import annotations

import asyncio
import contextvars
import itertools
import json
import math
import os
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from datetime import datetime
from typing import Any, NamedTuple, Protocol

from taskyard_runner.functions import children as of_children
from taskyard_runner.functions.children import Child, Spawned, Spawning, Steps
from taskyard_runner.functions.errors import Cancelled, RequestFailed
from taskyard_runner.functions.work import JSON, Work, encode

_LEVELS = ("debug", "info", "warning", "error", "critical")

# The run that the calling code belongs to, for log records and output.
current: contextvars.ContextVar[BaseContext | None] = contextvars.ContextVar("taskyard_run", default=None)


class Port(Protocol):
    """The way from a context to the runner."""

    def progress(self, run: str, progress: dict[str, Any]) -> None: ...

    def log(self, run: str, message: dict[str, Any]) -> None: ...

    def ask(self, run: str, message: dict[str, Any]) -> Future[dict[str, Any]]: ...

    def offer(self, run: str, content: bytes) -> str:
        """Put a checkpoint where the runner finds it; its name."""
        ...


class Entity(NamedTuple):
    """The business object that a task works on."""

    type: str
    id: str


class BaseContext:
    """What both kinds of context share."""

    def __init__(self, work: Work, port: Port) -> None:
        self._work = work
        self._port = port
        self._numbers = itertools.count(1)
        self._stopped: threading.Event | None = None
        # Why the run is being stopped; empty while it is not.
        self._reason = ""
        # The function has observed the stop, so its end counts as stopped.
        self.stop_handled = False
        # The numbers of the result, by name.
        self.reported_metrics: dict[str, float] = {}
        self._spawning = Spawning()
        # The live children that the run has ended for, to be called again when they have ended.
        self.waits_for: list[str] = []

    @property
    def payload(self) -> Any:
        """The input: JSON as a value, text as text, everything else as bytes."""
        return self._work.payload()

    @property
    def inputs(self) -> Mapping[str, Any]:
        """Results of the tasks of spec.after by alias, in the forms of a payload; None where there is none.

        A result that was too large to be passed on is not in it: read it with GetTask.
        """
        return self._work.inputs()

    @property
    def config(self) -> Any:
        """The task type's configuration, if there is one."""
        found = self._work.extra.get("config")
        return None if found is None else json.loads(found)

    @property
    def task(self) -> str:
        """tenants/{tenant}/tasks/{task}"""
        return self._work.task

    @property
    def tenant(self) -> str:
        return self._work.task.split("/")[1]

    @property
    def task_id(self) -> str:
        return self._work.task.split("/")[3]

    @property
    def attempt(self) -> int:
        """1 for the first."""
        return self._work.attempt

    @property
    def entity(self) -> Entity | None:
        """The business object that the task works on: its type and id."""
        found = self._work.extra.get("entity")
        return Entity(*found) if found else None

    @property
    def max_steps(self) -> int | None:
        """The step budget of the task."""
        found = self._work.extra.get("max_steps")
        return None if found is None else int(found)

    @property
    def checkpoint_interval(self) -> float:
        """Seconds between checkpoints that the task asks for; 0 = as the function sees fit."""
        return float(self._work.extra.get("checkpoint_interval", 0))

    @property
    def fence(self) -> str:
        """Token for the function's own side effects: a store that has seen a later one refuses this one."""
        return self._work.fence

    @property
    def env(self) -> dict[str, str]:
        """The task's environment variables; those of the process belong to the host."""
        return dict(self._work.extra.get("env", {}))

    @property
    def labels(self) -> dict[str, str]:
        return dict(self._work.extra.get("labels", {}))

    @property
    def traceparent(self) -> str:
        """W3C trace context of the run."""
        return str(self._work.extra.get("traceparent", ""))

    @property
    def scheduled_time(self) -> datetime | None:
        """The time that the task is for: of its schedule, else its not_before; None if it has neither."""
        found = self._work.extra.get("scheduled_time")
        return None if found is None else datetime.fromisoformat(found)

    # -- reporting

    def progress(self, percent: int, message: str = "", *, step: int = 0) -> None:
        """Report how far the work is; only the newest is kept. Raises ValueError for a bad percentage."""
        if not 0 <= percent <= 100:
            raise ValueError(f"percent {percent} is not between 0 and 100")
        self._port.progress(self._work.run, {"percent": int(percent), "message": message, "step": step})

    def log(
        self, message: str, level: str = "info", *, step: int | None = None, action: str = "", **details: Any
    ) -> None:
        """Write a log entry, with the step and the action it belongs to. Raises ValueError."""
        if level not in _LEVELS:
            raise ValueError(f"level {level!r} is unknown; use one of {', '.join(_LEVELS)}")
        if step is not None and not 0 <= step < 2**31:
            raise ValueError(f"step {step} is not between 0 and {2**31 - 1}")
        entry: dict[str, Any] = {"level": level, "message": message}
        if step is not None:
            entry["step"] = int(step)
        if action:
            entry["action"] = action
        if details:
            entry["details"] = json.loads(json.dumps(details, default=str))
        self._port.log(self._work.run, entry)

    def metrics(self, **numbers: float) -> None:
        """Set numbers of the result (`result.metrics`); a later value of a name replaces the earlier one.

        Raises ValueError for what is no finite number. They are stored if the run succeeds.
        """
        for name, number in numbers.items():
            if isinstance(number, bool) or not isinstance(number, int | float) or not math.isfinite(number):
                raise ValueError(f"metric {name} is {number!r}, which is no finite number")
        self.reported_metrics |= numbers

    # -- stopping

    @property
    def cancelled(self) -> bool:
        """Whether the run is to stop: save a checkpoint, then return or raise Cancelled."""
        if self._reason:
            self.stop_handled = True
        return bool(self._reason)

    @property
    def stop_reason(self) -> str:
        """cancel, pause, drain, attempt_timeout, …; empty while the run is not being stopped."""
        return self._reason

    def raise_if_cancelled(self) -> None:
        """Raises Cancelled if the run is to stop."""
        if self.cancelled:
            raise Cancelled(self._reason)

    def request_stop(self, reason: str) -> None:
        """For the host, on whatever thread."""
        # The warden's signal carries no reason; the agent's message, which may come later, does.
        self._reason = reason if self._reason in ("", "stop") else self._reason
        if self._stopped is not None:
            self._stopped.set()

    # -- messages to the runner

    def load_checkpoint(self) -> Any:
        """The newest checkpoint of an earlier run, as it was saved; None if there is none."""
        path = self._work.extra.get("restored")
        if not path:
            return None
        with open(path, "rb") as file:
            content = file.read()
        return json.loads(content) if self._work.extra.get("restored_type") == JSON else content

    def _checkpoint(self, state: Any, wait: float) -> dict[str, Any]:
        content, content_type = encode(state)
        name = self._port.offer(self._work.run, content)
        return {"op": "checkpoint", "file": name, "content_type": content_type, "wait": wait}

    def _creation(self, children: Sequence[Child]) -> dict[str, Any]:
        return {"op": "create", "tasks": [self._named(child) for child in children]}

    def _named(self, child: Child) -> dict[str, Any]:
        key = child.key or f"{self._work.generation}/{next(self._numbers)}"
        return {"key": key, "task": child.message()}

    def _gathering(self, children: Sequence[Spawned], return_exceptions: bool) -> Steps:
        return of_children.gather(children, return_exceptions=return_exceptions, waits_for=self.waits_for)


class Context(BaseContext):
    """For plain functions."""

    def sleep(self, seconds: float) -> None:
        """Sleep. Raises Cancelled as soon as the run is to stop."""
        self._stopped = self._stopped or threading.Event()
        if not self._reason:
            self._stopped.wait(seconds)
        self.raise_if_cancelled()

    def save_checkpoint(self, state: Any, *, wait: float = 0) -> int:
        """Store bytes, or any JSON value, as the checkpoint for the next run; its number.

        Returns once the runner has it, which is enough to survive this host; with `wait` once it is stored,
        or after so many seconds. Raises RequestFailed.
        """
        return int(self._ask(self._checkpoint(state, wait))["sequence"])

    def create(
        self,
        function: str = "",
        payload: Any = None,
        *,
        key: str = "",
        labels: Mapping[str, str] | None = None,
        **spec: Any,
    ) -> str:
        """Create a child task of the same tenant; its name. See Child. Raises RequestFailed."""
        return self.create_all([Child(function, payload, key, labels or {}, spec)])[0]

    def create_all(self, children: Sequence[Child]) -> list[str]:
        """Create all these children or none; their names. Raises RequestFailed."""
        return list(self._ask(self._creation(children))["tasks"])

    def spawn(
        self,
        function: str = "",
        payload: Any = None,
        *,
        key: str = "",
        labels: Mapping[str, str] | None = None,
        **spec: Any,
    ) -> Spawned:
        """Create a child to wait for with gather; once, however often the function starts again.

        Without a key it is found by its position: spawn the same children in the same order. See Child.
        Raises RequestFailed, ValueError for a key of digits.
        """
        return self.spawn_all([Child(function, payload, key, labels or {}, spec)])[0]

    def spawn_all(self, children: Sequence[Child]) -> list[Spawned]:
        """Spawn many children, in batches. Raises as spawn."""
        request = self._spawning.request(children)
        return of_children.spawned(request, self._ask(request) if children else {"tasks": []})

    def gather(self, *children: Spawned, return_exceptions: bool = False) -> list[Any]:
        """The results of spawned children, in this order.

        While one of them is live this ends the run: the function is called again, from its beginning, when
        they have ended. Raises ChildFailed for the first that did not succeed, or returns it in the place of
        the result; RequestFailed.
        """
        steps = self._gathering(children, return_exceptions)
        try:
            request = next(steps)
            while True:
                request = steps.send(self._ask(request))
        except StopIteration as done:
            return list(done.value)

    def check_fence(self) -> bool:
        """Whether this runner still holds the lease."""
        return bool(self._ask({"op": "fence"})["current"])

    def _ask(self, message: dict[str, Any]) -> dict[str, Any]:
        answer = self._port.ask(self._work.run, message).result()
        if not answer.get("ok"):
            # A call that waits out an outage is given up when its run is to stop.
            self.raise_if_cancelled()
        return _unpack(answer)


class AsyncContext(BaseContext):
    """For `async def`; a stop arrives as asyncio.CancelledError."""

    async def sleep(self, seconds: float) -> None:
        """Sleep."""
        await asyncio.sleep(seconds)

    async def save_checkpoint(self, state: Any, *, wait: float = 0) -> int:
        """As Context.save_checkpoint."""
        return int((await self._ask(self._checkpoint(state, wait)))["sequence"])

    async def create(
        self,
        function: str = "",
        payload: Any = None,
        *,
        key: str = "",
        labels: Mapping[str, str] | None = None,
        **spec: Any,
    ) -> str:
        """As Context.create."""
        return (await self.create_all([Child(function, payload, key, labels or {}, spec)]))[0]

    async def create_all(self, children: Sequence[Child]) -> list[str]:
        """As Context.create_all."""
        return list((await self._ask(self._creation(children)))["tasks"])

    async def spawn(
        self,
        function: str = "",
        payload: Any = None,
        *,
        key: str = "",
        labels: Mapping[str, str] | None = None,
        **spec: Any,
    ) -> Spawned:
        """As Context.spawn."""
        return (await self.spawn_all([Child(function, payload, key, labels or {}, spec)]))[0]

    async def spawn_all(self, children: Sequence[Child]) -> list[Spawned]:
        """As Context.spawn_all."""
        request = self._spawning.request(children)
        return of_children.spawned(request, await self._ask(request) if children else {"tasks": []})

    async def gather(self, *children: Spawned, return_exceptions: bool = False) -> list[Any]:
        """As Context.gather."""
        steps = self._gathering(children, return_exceptions)
        try:
            request = next(steps)
            while True:
                request = steps.send(await self._ask(request))
        except StopIteration as done:
            return list(done.value)

    async def check_fence(self) -> bool:
        """As Context.check_fence."""
        return bool((await self._ask({"op": "fence"}))["current"])

    async def _ask(self, message: dict[str, Any]) -> dict[str, Any]:
        # A stop must not interrupt a checkpoint in flight.
        future = asyncio.wrap_future(self._port.ask(self._work.run, message))
        return _unpack(await asyncio.shield(future))


def _unpack(answer: dict[str, Any]) -> dict[str, Any]:
    if not answer.get("ok"):
        raise RequestFailed(str(answer.get("error", "refused")), code=str(answer.get("code", "")))
    return answer


def write_file(path: str, content: bytes) -> None:
    """A private file."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with open(fd, "wb") as file:
        file.write(content)
