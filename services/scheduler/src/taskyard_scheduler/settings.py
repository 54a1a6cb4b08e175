"""The settings of a scheduler."""

from __future__ import annotations

import os
import re
import socket
import uuid
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Literal

from taskyard_kit.serve import ServeSettings
from taskyard_kit.settings import Problem, setting
from taskyard_kit.telemetry import TelemetrySettings
from taskyard_kit.values import Secret, format_duration
from taskyard_scheduler.domain.reservations import RESERVATION_DELAY_SECONDS
from taskyard_scheduler.link_config import LinkConfig

_ID = re.compile(r"[A-Za-z0-9._-]{1,128}")


def _seconds(count: float) -> timedelta:
    return timedelta(seconds=count)


class SchedulerSettings(ServeSettings, TelemetrySettings):
    """Read once; code below `server` gets plain values."""

    service = "scheduler"
    about = "Decides which task runs next, and on which runner."

    listen: str = setting("127.0.0.1:7421", help="host:port or unix:/path to serve gRPC on")
    id: str = setting("", help="name of this instance; default made of host name and process id")
    taskdb: tuple[str, ...] = setting(
        ("127.0.0.1:7420",),
        help="host:port of taskdb; of several, separated by commas, the first that answers",
    )
    taskdb_tls: bool = setting(False, help="use TLS towards taskdb")
    taskdb_ca: Path | None = setting(
        None, help="PEM file with the authority that signed taskdb's certificate"
    )
    key: Secret = setting(help="API key of kind scheduler, or file:<path> of one", env="TASKYARD_KEY")
    heartbeat_interval: timedelta = setting(
        _seconds(10), min=_seconds(0.1), max=_seconds(300), help="time between two heartbeats of a runner"
    )
    lease_duration: timedelta = setting(
        _seconds(30),
        min=_seconds(1),
        max=_seconds(3600),
        help="how long a session outlives its last heartbeat",
    )
    first_lease: timedelta = setting(
        _seconds(15), min=_seconds(1), max=_seconds(3600), help="lease of a task that was not started yet"
    )
    heartbeat_gather: timedelta = setting(
        _seconds(1), max=_seconds(10), help="how long heartbeats are gathered before they are stored together"
    )
    hello_timeout: timedelta = setting(
        _seconds(10), min=_seconds(0.1), help="how long a new stream may take to send hello"
    )
    goodbye_timeout: timedelta = setting(
        _seconds(10), min=_seconds(0.1), help="how long to wait after a goodbye of either side"
    )
    max_session_age: timedelta = setting(
        _seconds(3600),
        min=_seconds(1),
        help="session age at which a runner is asked to reconnect, plus or minus 10 %",
    )
    reconnect_spread: timedelta = setting(
        _seconds(2), max=_seconds(300), help="longest time a runner is asked to wait before it reconnects"
    )
    max_unacked_reports: int = setting(1000, min=1, help="reports a runner may have in flight")
    max_unacked_bytes: int = setting(
        16 * 1024 * 1024,
        min=11 * 1024 * 1024,
        help="bytes of reports, logs and checkpoints a runner may have in flight; one checkpoint must fit",
    )
    max_log_bytes_per_second: int = setting(0, min=0, help="log bytes a runner may send; 0 = unlimited")
    priority_order: Literal["aged", "strict"] = setting(
        "aged", help="aged: waiting raises priority by 5 a minute; strict: priority alone, then age"
    )

    reservation_delay: timedelta = setting(
        _seconds(RESERVATION_DELAY_SECONDS),
        min=_seconds(0.1),
        max=_seconds(86400),
        help="how long work that fits no runner's free resources is passed over before a runner is reserved",
    )

    eager_leases: bool = setting(
        True, help="let taskdb lease new tasks to idle runners when it creates them, before they are claimed"
    )

    def check(self) -> Iterator[Problem]:
        yield from super().check()
        if not self.taskdb:
            yield Problem("taskdb", "", "must be an address like 127.0.0.1:7420")
        if self.id and not _ID.fullmatch(self.id):
            yield Problem("id", self.id, "must be 1 to 128 of the characters A-Z a-z 0-9 . _ -")
        if not self.key:
            yield Problem("key", "", "must be an API key of kind scheduler; set TASKYARD_KEY")
        yield from self._check_leases()

    def _check_leases(self) -> Iterator[Problem]:
        if self.lease_duration < 2 * self.heartbeat_interval + self.heartbeat_gather:
            minimum = f"two heartbeats of {format_duration(self.heartbeat_interval)} and heartbeat_gather"
            yield Problem(
                "lease_duration", format_duration(self.lease_duration), f"must be at least {minimum}"
            )
        if self.first_lease < self.heartbeat_interval * 1.25 + self.heartbeat_gather:
            minimum = "1.25 times heartbeat_interval and heartbeat_gather, since it counts from a heartbeat"
            yield Problem("first_lease", format_duration(self.first_lease), f"must be at least {minimum}")

    def taskdb_target(self) -> str:
        """The addresses of taskdb as open_channel takes them."""
        return ",".join(self.taskdb)

    def instance_id(self) -> str:
        """The configured id, or a unique one."""
        if self.id:
            return self.id
        host = re.sub(r"[^A-Za-z0-9._-]", "-", socket.gethostname())[:64] or "host"
        return f"{host}-{os.getpid()}-{uuid.uuid4().hex[:6]}"

    def link_config(self) -> LinkConfig:
        return LinkConfig(
            scheduler_id=self.instance_id(),
            heartbeat_interval=self.heartbeat_interval.total_seconds(),
            lease_duration=self.lease_duration.total_seconds(),
            first_lease=self.first_lease.total_seconds(),
            hello_timeout=self.hello_timeout.total_seconds(),
            goodbye_timeout=self.goodbye_timeout.total_seconds(),
            max_session_age=self.max_session_age.total_seconds(),
            max_unacked_reports=self.max_unacked_reports,
            max_unacked_bytes=self.max_unacked_bytes,
            max_log_bytes_per_second=self.max_log_bytes_per_second,
        )
