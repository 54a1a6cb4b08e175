"""The host's end of its socket, on its own thread: it answers the agent even while functions block.

    agent: run  ack  stop  return  answer  exit
    host:  hello  update  request

A message is a JSON object in a line. `update` batches the events since the last one: started, done, output,
progress. A start is sent only if the run has not ended within a few milliseconds, so that short runs cost one
entry; a result is kept until it is acknowledged, and sent again to the next agent.
"""

from __future__ import annotations

import contextlib
import os
import resource
import selectors
import socket
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from taskyard_runner.functions.work import Row
from taskyard_runner.warden.protocol import Decoder, Message, encode

_MESSAGE_LIMIT = 64 << 20
_READ_BYTES = 1 << 18
_RETRY_SECONDS = 0.05
_START_SECONDS = 0.005
# Least time between updates for progress and output.
_UPDATE_SECONDS = 0.05
_BEAT_SECONDS = 1.0
_PAGE = resource.getpagesize()


class Wire:
    """Carries messages. Its methods may be called by any thread; handlers are called on its own."""

    def __init__(self, path: str, hello: Message) -> None:
        self._path = path
        self._hello = hello
        self._socket: socket.socket | None = None
        self._selector = selectors.DefaultSelector()
        self._wake_read, self._wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._selector.register(self._wake_read, selectors.EVENT_READ)
        self._woken = False
        self._lock = threading.Lock()
        self._outgoing = bytearray()
        self._decoder = Decoder(_MESSAGE_LIMIT)
        # What this host has: live runs, results that are not acknowledged, requests without an answer.
        self._live: dict[str, Row] = {}
        self._results: dict[str, tuple[Row, list[Any]]] = {}
        self._requests: dict[int, tuple[Message, Future[dict[str, Any]]]] = {}
        self._next_request = 1
        # What the next update carries.
        self._begun: dict[str, float] = {}
        self._started: dict[str, float] = {}
        self._done: list[list[Any]] = []
        self._output: dict[str, None] = {}
        self._progress: dict[str, Message] = {}
        self._next_update = 0.0
        # Memory of the loaded application, the baseline of leak detection.
        self._first_rss = self._sent_rss = _rss()
        self.stalled = 0.0
        self._sent_stalled = 0.0
        self.on_run: Callable[[list[Row]], None] = lambda rows: None
        self.on_return: Callable[[], list[str]] = list
        self.on_stop: Callable[[str, str], None] = lambda run, reason: None
        self.on_exit: Callable[[], None] = lambda: None
        self.on_beat: Callable[[], None] = lambda: None

    # -- called by the functions' thread

    def begin(self, run: str) -> None:
        """The run is about to be called."""
        self._begun[run] = time.time()

    def end(self, run: str, wrote: bool, outcome: dict[str, Any] | None) -> None:
        """The run has ended; None is a success that returned nothing. wake() sends it."""
        begun = self._begun.pop(run, None) or self._started.get(run) or time.time()
        result = [run, begun, time.time(), wrote, outcome]
        with self._lock:
            self._results[run] = (self._live.pop(run, []), result)
            self._started.pop(run, None)
            self._done.append(result)

    def progress(self, run: str, progress: Message) -> None:
        with self._lock:
            self._progress[run] = progress
        self.wake()

    def wrote(self, run: str) -> None:
        """The run's journal has grown."""
        with self._lock:
            self._output[run] = None
        self.wake()

    def ask(self, run: str, message: Message) -> Future[dict[str, Any]]:
        """Send a request; after a reconnect it is sent again, and the later agent answers it."""
        future: Future[dict[str, Any]] = Future()
        with self._lock:
            number = self._next_request
            self._next_request += 1
            request = {"op": "request", "request": number, "message": {"run": run, **message}}
            self._requests[number] = (request, future)
            if self._socket is not None:
                # A checkpoint is stored with the progress that was reported before it.
                if (progress := self._progress.pop(run, None)) is not None:
                    self._outgoing += encode({"op": "update", "progress": {run: progress}})
                self._outgoing += encode(request)
        self.wake()
        return future

    def wake(self) -> None:
        """Have the thread check for something to send."""
        if not self._woken:
            self._woken = True
            with contextlib.suppress(BlockingIOError):
                os.write(self._wake_write, b"!")

    def flush(self, seconds: float = 60.0) -> None:
        """Returns once every result is acknowledged, so that the process may end."""
        give_up = time.monotonic() + seconds
        while (self._results or self._outgoing) and time.monotonic() < give_up:
            time.sleep(_START_SECONDS)

    def send_hello_once(self) -> None:
        """Send the hello of a host that cannot serve."""
        self._connect()
        with contextlib.suppress(OSError):
            while self._outgoing:
                self._send()
                self._selector.select(_BEAT_SECONDS)

    # -- the thread

    def serve(self) -> None:
        """Serve until the process ends; reconnects when the agent is replaced."""
        while True:
            self._connect()
            with contextlib.suppress(OSError):
                self._exchange()
            self._disconnect()

    def _connect(self) -> None:
        while True:
            connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            try:
                connection.connect(self._path)
                break
            except OSError:
                connection.close()
                time.sleep(_RETRY_SECONDS)
        connection.setblocking(False)
        self._decoder = Decoder(_MESSAGE_LIMIT)
        self._selector.register(connection, selectors.EVENT_READ)
        with self._lock:
            self._socket = connection
            hello = {
                **self._hello,
                "rss": self._first_rss,
                "runs": list(self._live.values()),
                "started": {**self._begun, **self._started},
                "done": list(self._results.values()),
            }
            self._done.clear()
            self._started.update(self._begun)
            self._begun.clear()
            self._output.update(dict.fromkeys(self._live))
            self._outgoing = bytearray(encode(hello))
            for request, _ in self._requests.values():
                self._outgoing += encode(request)

    def _disconnect(self) -> None:
        with self._lock:
            connection, self._socket = self._socket, None
            self._outgoing.clear()
        if connection is not None:
            self._selector.unregister(connection)
            connection.close()

    def _exchange(self) -> None:
        next_beat = time.monotonic() + _BEAT_SECONDS
        while True:
            self._send()
            now = time.monotonic()
            wait = next_beat - now
            if len(self._live) > len(self._started):
                # A run has started, or is about to, whose start is not sent yet.
                wait = min(wait, _START_SECONDS)
            elif self._output or self._progress:
                wait = min(wait, self._next_update - now)
            for key, _ in self._selector.select(max(0.0, wait)):
                if key.fd == self._wake_read:
                    self._clear_wake()
                else:
                    self._receive()
            if time.monotonic() >= next_beat:
                next_beat = time.monotonic() + _BEAT_SECONDS
                self.on_beat()
                self._send_health()
            self._gather()

    def _clear_wake(self) -> None:
        self._woken = False
        with contextlib.suppress(BlockingIOError):
            os.read(self._wake_read, 4096)

    def _gather(self) -> None:
        now = time.monotonic()
        update: Message = {}
        with self._lock:
            started_before = time.time() - _START_SECONDS
            for run, begun in list(self._begun.items()):
                # One that ends meanwhile takes its start along.
                if begun <= started_before and self._begun.pop(run, None) is not None:
                    self._started[run] = begun
                    update.setdefault("started", {})[run] = begun
            # A run's last progress must precede its end.
            if (self._done or now >= self._next_update) and (self._output or self._progress):
                update["output"], update["progress"] = list(self._output), self._progress
                self._output, self._progress = {}, {}
                self._next_update = now + _UPDATE_SECONDS
            if self._done:
                update["done"], self._done = self._done, []
            if update:
                update["op"] = "update"
                self._outgoing += encode(update)

    def _send_health(self) -> None:
        rss = _rss()
        if abs(rss - self._sent_rss) > 1 << 20 or self.stalled != self._sent_stalled:
            self._sent_rss, self._sent_stalled = rss, self.stalled
            with self._lock:
                self._outgoing += encode({"op": "update", "rss": rss, "stalled": self.stalled})

    def _send(self) -> None:
        connection = self._socket
        assert connection is not None
        with self._lock:
            if self._outgoing:
                with contextlib.suppress(BlockingIOError):
                    del self._outgoing[: connection.send(self._outgoing)]
            waiting = bool(self._outgoing)
        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if waiting else 0)
        if self._selector.get_key(connection).events != events:
            self._selector.modify(connection, events)

    def _receive(self) -> None:
        assert self._socket is not None
        try:
            data = self._socket.recv(_READ_BYTES)
        except BlockingIOError:
            return
        if not data:
            raise ConnectionResetError("the agent is gone")
        for message in self._decoder.feed(data):
            self._handle(message)

    def _handle(self, message: Message) -> None:
        match message.get("op"):
            case "run":
                rows = message["rows"]
                with self._lock:
                    self._live.update((row[0], row) for row in rows)
                self.on_run(rows)
            case "ack":
                with self._lock:
                    for run in message["runs"]:
                        self._results.pop(run, None)
            case "stop":
                self.on_stop(message["run"], message["reason"])
            case "answer":
                with self._lock:
                    request, future = self._requests.pop(message["request"], (None, None))
                    self._remember_checkpoint(request, message["message"])
                if future is not None and future.set_running_or_notify_cancel():
                    future.set_result(message["message"])
            case "return":
                with self._lock:
                    names = [run for run in self.on_return() if self._live.pop(run, None) is not None]
                    self._outgoing += encode({"op": "update", "returned": names})
            case "exit":
                self.on_exit()

    def _remember_checkpoint(self, request: Message | None, answer: Message) -> None:
        # The next agent continues the numbering from here.
        row = self._live.get(request["message"]["run"]) if request is not None else None
        if row is not None and "sequence" in answer:
            row[7] = {**(row[7] or {}), "checkpoint": answer["sequence"]}


def _rss() -> int:
    with open("/proc/self/statm", "rb") as file:
        return int(file.read().split()[1]) * _PAGE
