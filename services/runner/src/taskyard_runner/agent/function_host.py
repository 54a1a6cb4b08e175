"""One function host in the agent: its process, its connection and its runs."""

from __future__ import annotations

import asyncio
import json
import math
import os
import secrets
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from taskyard.v1.common_pb2 import Resources
from taskyard_runner.agent.directory import RunDirectory
from taskyard_runner.agent.executor import Executor
from taskyard_runner.agent.leases import Held
from taskyard_runner.agent.run import AgentRun
from taskyard_runner.executors.function import DEFAULT_GRACE, HostClass, Row, lease_of
from taskyard_runner.warden.deadline import Deadlines, StopReason
from taskyard_runner.warden.kill import MARKER
from taskyard_runner.warden.linux import boottime
from taskyard_runner.warden.protocol import Decoder, Message, encode

# Key in the metadata of a run that is a host.
HOST = "host"
CONFIG = "TASKYARD_HOST"
_MESSAGE_LIMIT = 64 << 20
# The assumed duration of an adopted lease until the session is renewed.
_ADOPTED_SECONDS = 15.0
# A host has no lease: only the agent and the end of the warden end it.
_FOR_EVER = 10 * 365 * 86400.0
# The queue of an exclusive host holds this many seconds of runs, up to a maximum.
_LINE_SECONDS = 0.01
_MAX_DEPTH = 100
# A host with work that sends nothing for this long counts as blocked.
_SILENT_SECONDS = 0.25
_PLAIN = HostClass(shared=False)


@dataclass
class FunctionRun(AgentRun):
    """A run that a function host executes."""

    row: Row = field(default_factory=list)
    place: HostClass = field(default_factory=lambda: HostClass(shared=True))
    host: FunctionHost | None = None
    deadlines: Deadlines | None = None
    timer: asyncio.TimerHandle | None = None
    reason: StopReason | None = None
    # It has a directory, with its output or checkpoints.
    has_files: bool = False

    @property
    def extra(self) -> dict[str, Any]:
        """What most rows do not have."""
        return self.row[7] or {}

    def read_row(self) -> None:
        """Restore the run from its row."""
        extra = self.row[7]
        if extra is None:
            return
        self.grace = extra.get("grace", DEFAULT_GRACE)
        self.checkpoint_sequence = extra.get("checkpoint", 0)
        if "resources" in extra:
            cpu, memory, disk = extra["resources"]
            self.resources = Resources(cpu_millis=cpu, memory_mb=memory, disk_mb=disk)


class FunctionHost:
    """A host from its order to its end."""

    def __init__(self, name: str, place: HostClass, token: str, code: float) -> None:
        self.name = name
        # When its code was requested: hosts of one reload share this number.
        self.code = code
        self.place = place
        self.token = token
        self.handle = ""
        self.runs: dict[str, FunctionRun] = {}
        # Ended runs whose results the host still keeps.
        self.kept: set[str] = set()
        self.connection: Connection | None = None
        # It has sent hello, so it accepts runs.
        self.ready = False
        # It gets no more runs, and exits when it has none.
        self.retired = False
        self.leaving = False
        # Its loop has been blocked for so many seconds.
        self.stalled = 0.0
        self.first_rss = 0
        self.done_count = 0
        self.idle_since = boottime()
        # When it last received a run or reported an end.
        self.last_moved = self.idle_since
        # How long its runs take, smoothed; unknown before the first.
        self.pace: float | None = None
        self.acks: list[str] = []
        # The run because of which it is being killed.
        self.culprit: FunctionRun | None = None

    @property
    def usable(self) -> bool:
        """Whether it accepts runs."""
        return self.ready and not self.retired and not self.stalled and self.connection is not None

    @property
    def head(self) -> FunctionRun | None:
        """Its first run: an exclusive host calls one after the other."""
        return next(iter(self.runs.values()), None)

    @property
    def depth(self) -> int:
        """How many runs it may hold: a queue of short runs saves round trips to the agent."""
        if self.place != _PLAIN or self.pace is None:
            return 1
        return max(1, min(_MAX_DEPTH, int(_LINE_SECONDS / self.pace)))

    def note_pace(self, seconds: float) -> None:
        """Update the smoothed duration of runs; a single long run is forgotten after a few short ones."""
        previous = seconds if self.pace is None else self.pace
        self.pace = max(1e-6, seconds, (previous + seconds) / 2)

    def rate(self, now: float) -> float:
        """The expected runs per second; infinite until its first run has ended."""
        head = self.head
        held_up = head is not None and head.started
        if not self.ready or held_up or now - self.last_moved > _SILENT_SECONDS:
            return 0.0
        return math.inf if self.pace is None else 1 / self.pace

    def send(self, message: Message) -> None:
        """Send a message if the host is connected; one that is not sends hello when it reconnects."""
        if self.connection is not None:
            self.connection.send(message)

    def order(self, config: Mapping[str, Any], env: Mapping[str, str], runs_directory: str) -> Message:
        """The warden's order to start the host."""
        host_config = {**config, "host": self.name, "token": self.token, "shared": self.place.shared}
        return {
            "op": "start",
            "run": self.name,
            "argv": [sys.executable, "-m", "taskyard_runner.functions.host"],
            "env": {**env, CONFIG: json.dumps(host_config), MARKER: f"{runs_directory}/{self.name}"},
            "cwd": os.getcwd(),
            "token": secrets.token_hex(16),
            "limits": self.place.limits,
            "lease_until": boottime() + _FOR_EVER,
            "forbid_overlap": False,
            "orphan_seconds": 0,
            "grace_seconds": 0,
            "meta": {HOST: asdict(self.place), "token": self.token, "code": self.code},
            "host": True,
        }


def restore_run(host: FunctionHost, row: Row, runs_directory: str, executor: Executor) -> FunctionRun:
    """Restore a run that an earlier agent gave to the host."""
    forbid = bool((row[7] or {}).get("forbid"))
    run = FunctionRun(
        Held(lease_of(row), row[0], boottime() + _ADOPTED_SECONDS, guarded=forbid),
        RunDirectory(runs_directory, row[0]),
        DEFAULT_GRACE,
        executor=executor,
        ordered=True,
        row=row,
        place=host.place,
        host=host,
    )
    run.read_row()
    run.has_files = run.directory.root.exists()
    return run


class Connection(asyncio.Protocol):
    """A host's connection; the first message identifies the host."""

    def __init__(
        self, received: Callable[[Connection, Message], None], lost: Callable[[Connection], None]
    ) -> None:
        self._received = received
        self._lost = lost
        self._decoder = Decoder(_MESSAGE_LIMIT)
        self._transport: asyncio.Transport | None = None
        self.host: FunctionHost | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        try:
            messages = self._decoder.feed(data)
        except (ValueError, RecursionError):
            self.close()
            return
        for message in messages:
            self._received(self, message)

    def connection_lost(self, exc: Exception | None) -> None:
        self._lost(self)

    def send(self, message: Message) -> None:
        if self._transport is not None:
            self._transport.write(encode(message))

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()
