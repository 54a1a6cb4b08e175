"""The socket by which gRPC wakes the event loop, read empty each time.

A thread of grpc.aio writes a byte for every event of every call, and the loop reads one byte in a pass.
Behind 278 unread bytes the socket is full and the thread waits: from then on one event arrives in a pass, in
the order in which they happened. A tenant that opens and leaves hundreds of streams thereby delays the calls
of all others by seconds, while the loop itself is idle for most of the time.

Here the loop reads all bytes at once, and the thread never waits. grpc.aio offers no setting for it; it makes
the two sockets with Python's `socket.socketpair` when it is initialised.
"""

from __future__ import annotations

import socket
from typing import Any

import grpc.aio

from taskyard_kit.logs import get_log

log = get_log(__name__)

_MOST_BYTES = 1 << 16


class _Wakeups(socket.socket):
    def recv(self, bufsize: int, flags: int = 0) -> bytes:
        """One byte for all that are there: every event before them is in grpc.aio's queue already."""
        return super().recv(_MOST_BYTES, flags)[:1]


def initialise() -> None:
    """Initialise grpc.aio in this process; has an effect before its first channel or server only."""
    made: list[_Wakeups] = []
    make_pair: Any = socket.socketpair

    def make_drained_pair(*arguments: Any) -> tuple[socket.socket, socket.socket]:
        read, write = make_pair(*arguments)
        # A full socket has bytes that the loop will read, and with them the event of one that did not fit.
        write.setblocking(False)
        made.append(_Wakeups(fileno=read.detach()))
        return made[-1], write

    socket.socketpair = make_drained_pair  # type: ignore[assignment]
    try:
        grpc.aio.init_grpc_aio()
    finally:
        socket.socketpair = make_pair
    if not made:
        log.warning("wakeups_read_one_by_one", grpc=grpc.__version__)
