"""TASKYARD_SOCKET: receives progress, log entries and requests of workloads as JSON lines."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import stat
import struct
from collections.abc import Callable

from taskyard_runner.warden.loop import READ, WRITE, Loop
from taskyard_runner.warden.naming import digest
from taskyard_runner.warden.protocol import Decoder, Message, encode

_MESSAGE_LIMIT = 64 * 1024
_CONNECTION_LIMIT = 512
# Per run, where its processes can be distinguished from those of others.
_RUN_LIMIT = 32
_CREDENTIALS = struct.Struct("3i")
_PATH_LIMIT = 100
_ACCEPT_PAUSE = 0.1

# Takes a message, the user it comes from and the function that answers it; whether its token is a run's.
Handler = Callable[[Message, int, Callable[[Message], None]], bool]


class TaskSocket:
    """Accepts connections of workloads and hands their messages on."""

    def __init__(
        self, loop: Loop, data_directory: str, handler: Handler, *, for_others: bool = False
    ) -> None:
        self._loop = loop
        self._handler = handler
        # In the order of their arrival.
        self._connections: dict[_Connection, None] = {}
        self.path = socket_path(data_directory, for_others=for_others)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.path)
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(self.path)
        # A client that may connect still needs the token of a run.
        os.chmod(self.path, 0o666 if for_others else 0o600)
        self._listener.listen(128)
        self._listener.setblocking(False)
        loop.watch(self._listener.fileno(), self._accept)

    def close(self) -> None:
        self._loop.unwatch(self._listener.fileno())
        self._listener.close()
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.path)

    def _accept(self) -> None:
        try:
            accepted, _ = self._listener.accept()
        except BlockingIOError:
            return
        except OSError:
            # No descriptors left: the listener stays ready, so it has to wait for some to be closed.
            self._loop.unwatch(self._listener.fileno())
            self._loop.after(_ACCEPT_PAUSE, lambda: self._loop.watch(self._listener.fileno(), self._accept))
            return
        peer = _peer(accepted)
        if sum(connection.peer == peer for connection in self._connections) >= _RUN_LIMIT:
            accepted.close()
            return
        if len(self._connections) >= _CONNECTION_LIMIT and not self._evict():
            accepted.close()
            return
        self._connections[_Connection(self._loop, accepted, peer, self._handler, self._closed)] = None

    def _closed(self, connection: _Connection) -> None:
        self._connections.pop(connection, None)

    def _evict(self) -> bool:
        """Make room: the oldest connection that has shown no token goes."""
        silent = next((connection for connection in self._connections if not connection.proved), None)
        if silent is not None:
            silent.close()
        return silent is not None


class _Connection:
    def __init__(
        self,
        loop: Loop,
        accepted: socket.socket,
        peer: tuple[int, int],
        handler: Handler,
        closed: Callable[[_Connection], None],
    ) -> None:
        self._loop, self._socket, self._handler, self._closed = loop, accepted, handler, closed
        self.peer = peer
        # It has named the token of a run.
        self.proved = False
        self._decoder = Decoder(_MESSAGE_LIMIT)
        self._outgoing = bytearray()
        self._open = True
        accepted.setblocking(False)
        loop.watch(accepted.fileno(), self._ready)

    def _ready(self) -> None:
        try:
            data = self._socket.recv(_MESSAGE_LIMIT)
        except BlockingIOError:
            self._flush()
            return
        except OSError:
            data = b""
        if not data:
            self.close()
            return
        try:
            messages = self._decoder.feed(data)
        except (ValueError, RecursionError) as error:
            self.answer({"ok": False, "error": f"not understood: {error}"})
            self.close()
            return
        for message in messages:
            self.proved = self._handler(message, self.peer[0], self.answer) or self.proved

    def answer(self, message: Message) -> None:
        """Send an answer, if the workload is still there to read it."""
        if self._open and len(self._outgoing) < _MESSAGE_LIMIT:
            self._outgoing += encode(message)
            self._flush()

    def _flush(self) -> None:
        try:
            if self._outgoing:
                del self._outgoing[: self._socket.send(self._outgoing)]
        except BlockingIOError:
            pass
        except OSError:
            self.close()
            return
        self._loop.watch(self._socket.fileno(), self._ready, READ | WRITE if self._outgoing else READ)

    def close(self) -> None:
        """End it; the workload reads an end."""
        if self._open:
            self._open = False
            self._loop.unwatch(self._socket.fileno())
            self._socket.close()
            self._closed(self)


def _peer(accepted: socket.socket) -> tuple[int, int]:
    """Whose connection it is: a user, and among processes of the runner's own user a session."""
    packed = accepted.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    pid, uid, _ = _CREDENTIALS.unpack(packed)
    if uid != os.geteuid():
        return uid, 0
    try:
        return uid, os.getsid(pid)
    except OSError:
        return uid, 0


def socket_path(data_directory: str, *, for_others: bool = False) -> str:
    """In the data directory, or under a short name of it where a socket's path could not be that long."""
    path = f"{data_directory}/task.sock"
    if len(path.encode()) <= _PATH_LIMIT:
        return path
    folder = f"{os.environ.get('TMPDIR') or '/tmp'}/taskyard-{os.getuid()}-{digest(data_directory)}"
    os.makedirs(folder, mode=0o700, exist_ok=True)
    owner = os.lstat(folder)
    if owner.st_uid != os.getuid() or owner.st_mode & 0o066 or not stat.S_ISDIR(owner.st_mode):
        raise OSError(f"{folder} belongs to somebody else; use a shorter data directory")
    os.chmod(folder, 0o711 if for_others else 0o700)
    return f"{folder}/task.sock"


def log_message(message: Message) -> bytes:
    """The journal record of a log message."""
    kept = {name: value for name, value in message.items() if name not in ("token", "op")}
    return json.dumps(kept).encode()
