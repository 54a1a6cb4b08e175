"""A client of Server-Sent Events that does as a browser's EventSource: it comes back with the last id."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any


class EventSource:
    """Reads in a thread until it is closed; `received` are the messages, `ends` counts the broken streams.

    As in a browser, a status other than 200 ends it for good; it is then in `failed`.
    """

    def __init__(self, port: int, path: str, key: str) -> None:
        self._port = port
        self._path = path
        self._headers = {"Authorization": f"Bearer {key}", "Accept": "text/event-stream"}
        self.received: list[Any] = []
        self.last_id = ""
        self.ends = 0
        self.failed = 0
        self.opened = threading.Event()
        self._closed = False
        self._connection: http.client.HTTPConnection | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._closed = True
        if self._connection is not None and self._connection.sock is not None:
            with contextlib.suppress(OSError):
                self._connection.sock.shutdown(socket.SHUT_RDWR)
        self._thread.join(40)

    def _run(self) -> None:
        while not self._closed and not self.failed:
            with contextlib.suppress(OSError, http.client.HTTPException):
                self._read_stream()
            self.ends += 1
            time.sleep(0.05)

    def _read_stream(self) -> None:
        connection = self._connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=30)
        try:
            sent = {**self._headers, **({"Last-Event-ID": self.last_id} if self.last_id else {})}
            connection.request("GET", self._path, headers=sent)
            answer = connection.getresponse()
            if answer.status != 200:
                self.failed = answer.status
                return
            for event in _events(answer):
                self._take(event)
                if self._closed:
                    return
        finally:
            connection.close()

    def _take(self, event: dict[str, str]) -> None:
        if "data" in event and "event" not in event:
            self.received.append(json.loads(event["data"]))
        # The id counts once the event has been handed over, and not before.
        self.last_id = event.get("id", self.last_id)
        if "id" in event:
            self.opened.set()


def _events(answer: http.client.HTTPResponse) -> Iterator[dict[str, str]]:
    event: dict[str, str] = {}
    while line := answer.readline():
        text = line.decode().rstrip("\n")
        if not text:
            # What a broken connection has left unfinished is no event.
            yield event
            event = {}
        elif not text.startswith(":"):
            name, _, value = text.partition(": ")
            event[name] = value
