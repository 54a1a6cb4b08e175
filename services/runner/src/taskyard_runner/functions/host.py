"""A function host: a process of the warden that calls an application's functions.

A shared host calls many `async def` at a time on one event loop. An exclusive one calls one function at a
time, plain ones on the main thread, so that a run that does not obey can be killed without harm to another.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import queue
import signal
import sys
import threading
import time
import traceback
from concurrent.futures import Future
from typing import Any

from taskyard_runner.functions import context, verdict
from taskyard_runner.functions.app import App, AppError, Function, load_app
from taskyard_runner.functions.context import AsyncContext, BaseContext, Context
from taskyard_runner.functions.errors import Cancelled, InvalidPayload, Permanent
from taskyard_runner.functions.output import RunOutput, TaskHandler, TaskStream
from taskyard_runner.functions.wire import Wire
from taskyard_runner.functions.work import Row, Work, parse
from taskyard_runner.warden.journal import Kind
from taskyard_runner.warden.protocol import Message

CONFIG = "TASKYARD_HOST"
# An event loop without a step for this long is blocked by a function.
_STALL_SECONDS = 2.0
# The wire's thread must not wait for the interpreter's default switch interval of 5 ms.
_SWITCH_SECONDS = 0.001
# Ends within this time of each other are sent in one message.
_GATHER_SECONDS = 0.001
_EXIT_BROKEN = 3


class Host:
    """What both kinds share: the application, the live runs, their output, and the way to the agent."""

    def __init__(self, config: Message, app: App) -> None:
        self._app = app
        self._runs_directory: str = config["runs_directory"]
        self._log_limit: int = config["log_limit_bytes"]
        self._contexts: dict[str, BaseContext] = {}
        self._outputs: dict[str, RunOutput] = {}
        self._output_lock = threading.Lock()
        self._offers = 0
        # In an exclusive host, whose only run is also that of threads the function has started.
        self._only: BaseContext | None = None
        functions = {found.name: {"async": found.is_async, "schema": found.schema} for found in app}
        hello = {"op": "hello", "host": config["host"], "token": config["token"], "functions": functions}
        self.wire = Wire(config["socket"], hello)
        self.wire.on_stop = self._stop
        self._capture()

    def _capture(self) -> None:
        streams = ((Kind.STDOUT, sys.stdout, "stdout"), (Kind.STDERR, sys.stderr, "stderr"))
        for kind, original, name in streams:
            setattr(sys, name, TaskStream(kind, original, self._find, self._write))
        root = logging.getLogger()
        if not root.handlers:
            # An application that has set up its own logging is left alone.
            root.addHandler(TaskHandler(self._find))
            if root.level == logging.WARNING:
                root.setLevel(logging.INFO)

    def _find(self) -> BaseContext | None:
        return context.current.get() or self._only

    # -- what contexts ask of their host

    def progress(self, run: str, progress: dict[str, Any]) -> None:
        self.wire.progress(run, progress)

    def log(self, run: str, message: dict[str, Any]) -> None:
        with self._output_lock:
            if run not in self._contexts:
                return
            self._output(run).append_message(message)
        self.wire.wrote(run)

    def ask(self, run: str, message: dict[str, Any]) -> Future[dict[str, Any]]:
        return self.wire.ask(run, message)

    def offer(self, run: str, content: bytes) -> str:
        folder = f"{self._runs_directory}/{run}/checkpoint"
        os.makedirs(folder, mode=0o700, exist_ok=True)
        self._offers += 1
        name = f"offered-{self._offers}"
        context.write_file(f"{folder}/{name}", content)
        return name

    def _write(self, run: BaseContext, kind: Kind, text: str) -> None:
        name = run._work.run
        with self._output_lock:
            # A thread that the function left behind may write after the end, when the journal is closed and
            # counted.
            if name not in self._contexts:
                return
            grown = self._output(name).write(kind, text)
        if grown:
            self.wire.wrote(name)

    def _output(self, run: str) -> RunOutput:
        found = self._outputs.get(run)
        if found is None:
            named = self._contexts[run]._work.lease()
            found = self._outputs[run] = RunOutput(f"{self._runs_directory}/{run}", self._log_limit, named)
        return found

    # -- runs

    def _stop(self, run: str, reason: str) -> None:
        """Ask a run to end; each kind of host has its own way."""
        raise NotImplementedError

    def _open(self, work: Work, function: Function | None) -> BaseContext:
        made = AsyncContext(work, self) if function is not None and function.is_async else Context(work, self)
        self._contexts[work.run] = made
        return made

    def _arguments(self, function: Function, run: BaseContext) -> tuple[tuple[Any, ...], dict[str, Any]]:
        signature = function.signature
        arguments = signature.bind(run.payload)
        return ((run,) if signature.takes_context else ()), arguments

    def _end(
        self, run: BaseContext, function: Function | None, value: Any, error: BaseException | None
    ) -> None:
        """Derive the outcome of a call and publish it."""
        outcome: dict[str, Any] | None = None
        stopped = bool(run.stop_reason) and (
            run.stop_handled or isinstance(error, Cancelled | asyncio.CancelledError)
        )
        # Whatever the function did after its gather: it is called again when the children have ended.
        waits = bool(run.waits_for) and not stopped
        try:
            if stopped:
                outcome = {"stopped": True}
            elif waits:
                outcome = {"waiting": run.waits_for}
            elif error is None:
                outcome = verdict.succeeded(value, run.reported_metrics)
        except Permanent as refused:
            error = refused
        if error is not None and not stopped and not waits:
            outcome = verdict.failed(error, function)
            if not isinstance(error, InvalidPayload):
                with contextlib.suppress(OSError):
                    run.log(verdict.trace(error), "error")
        name = run._work.run
        with self._output_lock:
            del self._contexts[name]
            output = self._outputs.pop(name, None)
            if output is not None:
                output.close()
        self.wire.end(name, output is not None, outcome)
        self._publish_ends()

    def _publish_ends(self) -> None:
        self.wire.wake()


class ExclusiveHost(Host):
    """One run at a time, on the main thread."""

    def __init__(self, config: Message, app: App) -> None:
        super().__init__(config, app)
        self._waiting: queue.SimpleQueue[Row | None] = queue.SimpleQueue()
        self.wire.on_run = self._take
        self.wire.on_return = self._return_waiting
        self.wire.on_exit = lambda: self._waiting.put(None)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[Any] | None = None
        self._published_at = 0.0
        # The warden's request to stop; the agent also sends a stop for the run.
        signal.signal(signal.SIGTERM, lambda *_: self._terminated())

    def _take(self, rows: list[Row]) -> None:
        for row in rows:
            self._waiting.put(row)

    def _return_waiting(self) -> list[str]:
        """Return the queued runs, because the run before them takes long."""
        found = []
        with contextlib.suppress(queue.Empty):
            while (row := self._waiting.get_nowait()) is not None:
                found.append(row[0])
            self._waiting.put(None)
        return found

    def _terminated(self) -> None:
        if self._only is not None:
            self._stop(self._only._work.run, "stop")
        else:
            self._waiting.put(None)

    def _publish_ends(self) -> None:
        # The ends of consecutive short runs go in one message. The wire checks the next run by itself
        # a few milliseconds after it began.
        now = time.monotonic()
        if now - self._published_at > _GATHER_SECONDS or self._waiting.empty():
            self._published_at = now
            self.wire.wake()

    def _stop(self, run: str, reason: str) -> None:
        found = self._contexts.get(run)
        if found is not None:
            found.request_stop(reason)
            loop, task = self._loop, self._task
            if loop is not None and task is not None:
                found.stop_handled = True
                loop.call_soon_threadsafe(task.cancel)

    def serve(self) -> None:
        """Call functions until the agent has no more for this host."""
        while (row := self._waiting.get()) is not None:
            self._call(parse(row))

    def _call(self, work: Work) -> None:
        function = self._app.get(work.function)
        run = self._open(work, function)
        token = context.current.set(run)
        self._only = run
        self.wire.begin(work.run)
        value, error = None, None
        try:
            if function is None:
                raise Permanent(f"the app has no function {work.function!r}", code="FUNCTION_UNKNOWN")
            positional, named = self._arguments(function, run)
            if function.is_async:
                value = asyncio.run(self._await(function, positional, named))
            else:
                value = function.call(*positional, **named)
        except BaseException as raised:
            error = raised
        finally:
            self._only = None
            context.current.reset(token)
        self._end(run, function, value, error)

    async def _await(self, function: Function, positional: tuple[Any, ...], named: dict[str, Any]) -> Any:
        self._loop = asyncio.get_running_loop()
        self._task = asyncio.current_task()
        try:
            return await function.call(*positional, **named)
        finally:
            self._loop = self._task = None


class SharedHost(Host):
    """Many `async def` at a time on one loop."""

    def __init__(self, config: Message, app: App) -> None:
        super().__init__(config, app)
        self._loop = asyncio.new_event_loop()
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._beat = time.monotonic()
        self._leaving = False
        self._publish_scheduled = False
        self.wire.on_run = lambda rows: self._post(self._begin, rows)
        self.wire.on_exit = lambda: self._post(self._leave)
        self.wire.on_beat = self._watch
        signal.signal(signal.SIGTERM, signal.SIG_IGN)

    def _post(self, action: Any, *arguments: Any) -> None:
        self._loop.call_soon_threadsafe(action, *arguments)

    def _watch(self) -> None:
        silent = time.monotonic() - self._beat
        self.wire.stalled = round(silent, 1) if silent > _STALL_SECONDS else 0.0
        self._post(self._record_beat)

    def _record_beat(self) -> None:
        self._beat = time.monotonic()

    def serve(self) -> None:
        """Run the loop until the agent has no more for this host."""
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()

    def _publish_ends(self) -> None:
        # Runs after all handlers that are ready now, so that many ends make one message.
        if not self._publish_scheduled:
            self._publish_scheduled = True
            self._loop.call_soon(self._publish_now)

    def _publish_now(self) -> None:
        self._publish_scheduled = False
        self.wire.wake()

    def _leave(self) -> None:
        self._leaving = True
        if not self._tasks:
            self._loop.stop()

    def _begin(self, rows: list[Row]) -> None:
        for row in rows:
            work = parse(row)
            self._tasks[work.run] = self._loop.create_task(self._call(work))

    async def _call(self, work: Work) -> None:
        function = self._app.get(work.function)
        run = self._open(work, function)
        context.current.set(run)
        self.wire.begin(work.run)
        value, error = None, None
        try:
            if function is None:
                raise Permanent(f"the app has no function {work.function!r}", code="FUNCTION_UNKNOWN")
            positional, named = self._arguments(function, run)
            value = await function.call(*positional, **named)
        except BaseException as raised:
            error = raised
        del self._tasks[work.run]
        self._end(run, function, value, error)
        if self._leaving and not self._tasks:
            self._loop.stop()

    def _stop(self, run: str, reason: str) -> None:
        self._post(self._cancel, run, reason)

    def _cancel(self, run: str, reason: str) -> None:
        found, task = self._contexts.get(run), self._tasks.get(run)
        if task is None:
            return
        if found is None:
            # It has not started; retried until its first step has made the context.
            self._loop.call_soon(self._cancel, run, reason)
            return
        found.request_stop(reason)
        # The exception reaches it before its next step, so its end counts as stopped.
        found.stop_handled = True
        task.cancel()


def main() -> None:
    """Load the application and serve; exit code 3, after a report to the agent, if it cannot be loaded."""
    config: Message = json.loads(os.environ.pop(CONFIG))
    sys.setswitchinterval(_SWITCH_SECONDS)
    try:
        app = load_app(config["app"])
    except BaseException as error:
        _report_broken_app(config, error)
        sys.exit(_EXIT_BROKEN)
    host = SharedHost(config, app) if config["shared"] else ExclusiveHost(config, app)
    threading.Thread(target=host.wire.serve, name="taskyard-wire", daemon=True).start()
    host.serve()
    host.wire.flush()


def _report_broken_app(config: Message, error: BaseException) -> None:
    if not isinstance(error, AppError):
        traceback.print_exception(error)
    wire = Wire(config["socket"], {**_hello(config), "error": _problem(config, error)})
    wire.send_hello_once()


def _hello(config: Message) -> Message:
    return {"op": "hello", "host": config["host"], "token": config["token"], "functions": {}}


def _problem(config: Message, error: BaseException) -> str:
    if isinstance(error, AppError):
        return str(error)
    return f"app {config['app']!r} cannot be imported: {verdict.describe(error)}"


if __name__ == "__main__":
    main()
