"""Calling an application's functions in a test: in this process, as a host would, and without a runner.

called = run(app, "resize", {"width": 640})
assert called.result == {"height": 480} and called.progress[-1].percent == 100
"""

from __future__ import annotations

import asyncio
import base64
import json
import tempfile
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from taskyard_runner.functions import context, verdict
from taskyard_runner.functions.app import App, Function
from taskyard_runner.functions.context import AsyncContext, BaseContext, Context, write_file
from taskyard_runner.functions.errors import Cancelled, ChildFailed, Waiting
from taskyard_runner.functions.work import BYTES, JSON, Work, decode, encode

_TASK = "tenants/test/tasks/test"


@dataclass(frozen=True)
class Progress:
    """One progress report of a function."""

    percent: int
    message: str
    step: int


@dataclass(frozen=True)
class Failure:
    """How a failure would be reported."""

    message: str
    code: str
    permanent: bool
    retry_after: float | None


@dataclass
class TestRun:
    """The outcome of a call, and everything the function reported and requested."""

    # Pytest must not take it for a test.
    __test__ = False

    # As it would be stored: JSON, or bytes.
    result: Any = None
    failure: Failure | None = None
    # It obeyed a stop.
    stopped: bool = False
    # The exception itself, for a closer look.
    error: BaseException | None = None
    progress: list[Progress] = field(default_factory=list)
    logs: list[tuple[str, str]] = field(default_factory=list)
    checkpoints: list[Any] = field(default_factory=list)
    metrics: dict[str, float] = field(default_factory=dict)
    # Tasks it created or spawned, as TaskSpec's fields in JSON form.
    children: list[dict[str, Any]] = field(default_factory=list)
    # How often it ended to wait for children, and was called again.
    waits: int = 0


class _TestPort:
    """Records what a runner would receive."""

    def __init__(self, recorded: TestRun) -> None:
        self._recorded = recorded
        # Spawned children by name: the spec, and the outcome once there is one.
        self.spawned: dict[str, dict[str, Any]] = {}
        self.outcomes: dict[str, list[Any]] = {}

    def progress(self, run: str, progress: dict[str, Any]) -> None:
        self._recorded.progress.append(Progress(**progress))

    def log(self, run: str, message: dict[str, Any]) -> None:
        self._recorded.logs.append((message["level"], message["message"]))

    def offer(self, run: str, content: bytes) -> str:
        self._recorded.checkpoints.append(content)
        return "offered"

    def ask(self, run: str, message: dict[str, Any]) -> Future[dict[str, Any]]:
        answer: dict[str, Any] = {"ok": True, "current": True}
        if message["op"] == "checkpoint":
            content = self._recorded.checkpoints.pop()
            as_json = message["content_type"] == "application/json"
            self._recorded.checkpoints.append(json.loads(content) if as_json else content)
            answer["sequence"] = len(self._recorded.checkpoints)
        if message["op"] == "create":
            first = len(self._recorded.children) + 1
            self._recorded.children += [item["task"]["spec"] for item in message["tasks"]]
            answer["tasks"] = [f"{_TASK}-child-{first + n}" for n in range(len(message["tasks"]))]
        if message["op"] == "spawn":
            answer["tasks"] = [self._spawn(item["key"], item["task"]["spec"]) for item in message["tasks"]]
        if message["op"] == "children":
            live = ["", None, JSON, "", ""]
            answer["children"] = [[task, *self.outcomes.get(task, live)] for task in message["tasks"]]
        future: Future[dict[str, Any]] = Future()
        future.set_result(answer)
        return future

    def _spawn(self, key: str, spec: dict[str, Any]) -> str:
        task = f"{_TASK}.{key}"
        if self.spawned.setdefault(task, spec) is spec:
            self._recorded.children.append(spec)
        return task


def run(
    app: App,
    name: str,
    payload: Any = None,
    *,
    attempt: int = 1,
    checkpoint: Any = None,
    config: Any = None,
    env: Mapping[str, str] | None = None,
    inputs: Mapping[str, Any] | None = None,
    child_results: Mapping[str, Any] | None = None,
    stop: str = "",
    entity: tuple[str, str] | None = None,
    max_steps: int | None = None,
) -> TestRun:
    """Call a function to its end. With `stop` (such as "cancel") it is asked to stop before it begins.

    One that waits for children is called again with their results: those of `child_results` by key or
    function (an exception is a failure), else those of the app's own functions, which are called. Raises
    KeyError if the app has no such function. Not inside a running event loop: there, await `arun`.
    """
    return asyncio.run(
        arun(
            app,
            name,
            payload,
            attempt=attempt,
            checkpoint=checkpoint,
            config=config,
            env=env,
            inputs=inputs,
            child_results=child_results,
            stop=stop,
            entity=entity,
            max_steps=max_steps,
        )
    )


async def arun(
    app: App,
    name: str,
    payload: Any = None,
    *,
    attempt: int = 1,
    checkpoint: Any = None,
    config: Any = None,
    env: Mapping[str, str] | None = None,
    inputs: Mapping[str, Any] | None = None,
    child_results: Mapping[str, Any] | None = None,
    stop: str = "",
    entity: tuple[str, str] | None = None,
    max_steps: int | None = None,
) -> TestRun:
    """As run, inside a running event loop."""
    function = app.get(name)
    if function is None:
        raise KeyError(f"the app has no function {name!r}; it has {', '.join(found.name for found in app)}")
    recorded = TestRun()
    with tempfile.NamedTemporaryFile() as file:
        extra: dict[str, Any] = {"env": dict(env or {})}
        if config is not None:
            extra["config"] = json.dumps(config)
        if entity is not None:
            extra["entity"] = list(entity)
        if max_steps is not None:
            extra["max_steps"] = max_steps
        if inputs:
            extra["inputs"] = {alias: [json.dumps(value), JSON] for alias, value in inputs.items()}
        if checkpoint is not None:
            content, extra["restored_type"] = encode(checkpoint)
            extra["restored"] = file.name
            write_file(file.name, content)
        work = Work("test", name, _TASK, 1, 1, attempt, _raw(payload, extra), extra)
        port = _TestPort(recorded)
        while awaited := await _call(function, work, recorded, stop, port):
            recorded.waits += 1
            for task in awaited:
                key, spec = task.rpartition(".")[2], port.spawned[task]
                port.outcomes[task] = await _child_outcome(app, key, spec, child_results or {})
    return recorded


async def _child_outcome(app: App, key: str, spec: Mapping[str, Any], given: Mapping[str, Any]) -> list[Any]:
    """How a spawned child ends, as a runner passes it on."""
    name = spec.get("execution", {}).get("function", {}).get("function", "")
    if key in given or name in given:
        value = given[key] if key in given else given[name]
        if isinstance(value, ChildFailed):
            return [value.phase, None, JSON, value.error_code, value.error_message]
        if isinstance(value, Exception):
            found = verdict.failed(value, app.get(name))["error"]
            return ["FAILED", None, JSON, found["code"], found["message"]]
        return ["SUCCEEDED", *_as_input(value), "", ""]
    if app.get(name) is None:
        raise KeyError(f"child {key} ({name or 'no function'}) has no result; give it in child_results")
    payload = spec.get("payload")
    value = None
    if payload:
        content, content_type = base64.b64decode(payload["raw"]), payload["content_type"]
        value = content if content_type == BYTES else decode(content.decode(), content_type)
    done = await arun(app, name, value, child_results=given)
    if done.failure is not None:
        return ["FAILED", None, JSON, done.failure.code, done.failure.message]
    return ["SUCCEEDED", *_as_input(done.result), "", ""]


def _as_input(value: Any) -> tuple[Any, str]:
    extra: dict[str, Any] = {}
    raw = _raw(value, extra)
    return raw, extra.get("content_type", JSON)


def _raw(payload: Any, extra: dict[str, Any]) -> Any:
    if payload is None:
        return None
    content, content_type = encode(payload)
    if isinstance(payload, bytes | bytearray | memoryview):
        extra["content_type"] = content_type
        return {"b64": base64.b64encode(content).decode()}
    return content.decode()


async def _call(function: Function, work: Work, recorded: TestRun, stop: str, port: _TestPort) -> list[str]:
    """Call it once; returns the children that it waits for, to be called again."""
    made: BaseContext = AsyncContext(work, port) if function.is_async else Context(work, port)
    if stop:
        made.request_stop(stop)
    token = context.current.set(made)
    try:
        arguments = function.signature.bind(made.payload)
        positional = (made,) if function.signature.takes_context else ()
        value = await _result(function, positional, arguments, made)
        if made.waits_for:
            return made.waits_for
        recorded.stopped = bool(stop) and made.stop_handled
        recorded.metrics = made.reported_metrics
        stored = None if recorded.stopped else verdict.succeeded(value)
        recorded.result = _stored(stored)
    except (Exception, asyncio.CancelledError, Waiting) as error:
        if made.waits_for:
            return made.waits_for
        recorded.error = error
        recorded.stopped = bool(stop) and isinstance(error, Cancelled | asyncio.CancelledError)
        if not recorded.stopped:
            found = verdict.failed(error, function)["error"]
            permanent = found["class"] == "permanent"
            recorded.failure = Failure(found["message"], found["code"], permanent, found.get("retry_after"))
    finally:
        context.current.reset(token)
    return []


async def _result(
    function: Function, positional: tuple[Any, ...], named: dict[str, Any], run: BaseContext
) -> Any:
    if not function.is_async:
        return function.call(*positional, **named)
    task = asyncio.ensure_future(function.call(*positional, **named))
    if run.stop_reason:
        # After its first step, as a stop that comes while it waits for something.
        await asyncio.sleep(0)
        run.stop_handled = True
        task.cancel()
    return await task


def _stored(output: dict[str, Any] | None) -> Any:
    if output is None:
        return None
    return base64.b64decode(output["b64"]) if "b64" in output else json.loads(output["text"])
