"""The agent as the warden's child: restarted when it exits, with a full hello each time."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sys
from collections.abc import Callable, Mapping

from taskyard_runner.warden import process
from taskyard_runner.warden.linux import boottime
from taskyard_runner.warden.loop import READ, WRITE, Loop
from taskyard_runner.warden.process import ChildSetup, Launch
from taskyard_runner.warden.protocol import AGENT_FD, Decoder, Message, encode

_MESSAGE_LIMIT = 64 << 20
_READ_BYTES = 1 << 18
_FIRST_DELAY = 0.1
_MAX_DELAY = 5.0
# An agent that lived this long was healthy, so the next one starts without delay.
_HEALTHY_SECONDS = 30.0


class AgentProcess:
    """Starts agents and carries messages. The next hello covers messages that an ended agent did not get."""

    def __init__(self, loop: Loop, env: Mapping[str, str], nofile: int) -> None:
        self._loop = loop
        self._env = dict(env)
        self._nofile = nofile
        self._socket: socket.socket | None = None
        self._outgoing = bytearray()
        self._latest: dict[tuple[str, str], Message] = {}
        self._decoder = Decoder(_MESSAGE_LIMIT)
        self._started = 0.0
        self._delay = 0.0
        self.pid = 0
        self.on_connect: Callable[[], Message] = dict
        self.on_message: Callable[[Message], None] = lambda message: None

    def start(self) -> None:
        """Start an agent and send it hello."""
        ours, theirs = socket.socketpair()
        argv = [sys.executable, "-m", "taskyard_runner.agent"]
        launch = Launch(argv, self._env, os.getcwd(), self._nofile)
        setup = ChildSetup(extra=theirs.fileno(), confined=False)
        try:
            self.pid, errors = process.spawn(setup, lambda: launch)
        except OSError:
            ours.close()
            self._retry()
            return
        finally:
            theirs.close()
        os.close(errors)
        self._started = boottime()
        ours.setblocking(False)
        self._socket, self._decoder = ours, Decoder(_MESSAGE_LIMIT)
        self._outgoing.clear()
        self._latest.clear()
        self._loop.watch(ours.fileno(), self._ready)
        self.send(self.on_connect())

    def send(self, message: Message) -> None:
        """Send a message, if there is an agent; never blocks."""
        if self._socket is not None:
            self._outgoing += encode(message)
            self._flush()

    def send_latest(self, message: Message) -> None:
        """Send a message of which, while the agent does not read, only the newest per run is kept."""
        if self._socket is not None:
            self._latest[message["op"], message["run"]] = message
            self._flush()

    def signal(self, number: signal.Signals) -> None:
        if self.pid:
            process.signal_process(self.pid, number)

    def exited(self, status: int) -> int:
        """The agent has ended; its exit code (128 + n after signal n). Follow with restart(), or not."""
        self._take_rest()
        self._disconnect()
        self.pid = 0
        code = os.waitstatus_to_exitcode(status)
        return code if code >= 0 else 128 - code

    def restart(self) -> None:
        """Start the next agent: at once after a healthy one, later and later after short-lived ones."""
        if boottime() - self._started > _HEALTHY_SECONDS:
            self._delay = 0.0
        self._retry()

    def _retry(self) -> None:
        self._loop.after(self._delay, self.start)
        self._delay = min(max(_FIRST_DELAY, self._delay * 2), _MAX_DELAY)

    def _ready(self) -> None:
        self._receive()
        self._flush()

    def _receive(self) -> bool:
        if self._socket is None:
            return False
        try:
            data = self._socket.recv(_READ_BYTES)
        except BlockingIOError:
            return False
        except OSError:
            data = b""
        if not data:
            self._disconnect()
            return False
        try:
            messages = self._decoder.feed(data)
        except ValueError:
            # An agent that talks nonsense is replaced; the runs do not depend on it.
            self.signal(signal.SIGKILL)
            self._disconnect()
            return False
        for message in messages:
            self.on_message(message)
        return True

    def _take_rest(self) -> None:
        # Messages sent just before the exit are still handled: the agent may have sent forget or bye.
        while self._receive():
            pass

    def _flush(self) -> None:
        if self._socket is None:
            return
        if not self._outgoing and self._latest:
            self._outgoing += b"".join(encode(message) for message in self._latest.values())
            self._latest.clear()
        if self._outgoing:
            with contextlib.suppress(BlockingIOError, BrokenPipeError, ConnectionResetError):
                del self._outgoing[: self._socket.send(self._outgoing)]
        waiting = self._outgoing or self._latest
        self._loop.watch(self._socket.fileno(), self._ready, READ | WRITE if waiting else READ)

    def _disconnect(self) -> None:
        if self._socket is not None:
            self._loop.unwatch(self._socket.fileno())
            self._socket.close()
            self._socket = None


assert AGENT_FD == 3, "Launch.extra is placed at descriptor 3"
