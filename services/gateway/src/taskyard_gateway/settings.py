"""The settings of a gateway."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

from taskyard.channel import MIB, is_local
from taskyard_kit.listen import ListenSettings
from taskyard_kit.settings import Problem, setting
from taskyard_kit.telemetry import TelemetrySettings
from taskyard_kit.values import Secret

_IP_PORT = re.compile(r"[0-9.]+:[0-9]+")
_MIN_SECRET = 32
_ORIGIN = re.compile(r"https?://[A-Za-z0-9.\[\]:-]+")


class GatewaySettings(ListenSettings, TelemetrySettings):
    """Read once; what is below `server` gets plain values."""

    service = "gateway"
    about = "Serves Taskyard over HTTP: JSON, Server-Sent Events and the Connect protocol."

    listen: str = setting("127.0.0.1:7480", help="host:port to serve HTTP on")
    taskdb: tuple[str, ...] = setting(
        ("127.0.0.1:7420",), help="address of taskdb; of replicas, as ip:port, the first that answers is used"
    )
    taskdb_tls: bool = setting(False, help="use TLS towards taskdb")
    taskdb_ca: Path | None = setting(
        None, help="PEM file with the authority that signed taskdb's certificate"
    )
    scheduler: tuple[str, ...] = setting(
        ("127.0.0.1:7421",), help="address of the scheduler, or of several; as for taskdb"
    )
    scheduler_tls: bool = setting(False, help="use TLS towards the scheduler")
    scheduler_ca: Path | None = setting(
        None, help="PEM file with the authority that signed the scheduler's certificate"
    )
    keyless_tenant: str = setting(
        "", help="serve the Global tasks DB to callers without a key as this tenant, on keyless_listen"
    )
    keyless_listen: str = setting(
        "127.0.0.1:5000", help="host:port for callers without a key; a loopback address"
    )
    keyless_key: Secret = setting(
        Secret(), help="API key of keyless_tenant that is used for callers without a key, or file:<path>"
    )
    session_secret: Secret = setting(
        Secret(),
        help="seals the sessions of browsers, the same in all replicas; none = no sessions; or file:<path>",
    )
    session_duration: timedelta = setting(
        timedelta(hours=12), min=timedelta(seconds=1), max=timedelta(days=30), help="how long a session lasts"
    )
    cors_origins: tuple[str, ...] = setting(
        (), help="origins whose web pages may call, like https://console.example.com; none by default"
    )
    access_log: bool = setting(True, help="log every request")
    max_body_bytes: int = setting(
        8 * MIB, min=1024, max=64 * MIB, help="largest body of a request; a larger one is answered with 413"
    )
    max_batch_bytes: int = setting(
        24 * MIB,
        min=1024,
        max=64 * MIB,
        help="largest body of BatchCreateTasks, whose message may have 16 MiB; JSON takes a third more",
    )
    max_header_bytes: int = setting(
        32 * 1024, min=4096, max=MIB, help="largest request line with headers; beyond it the answer is 431"
    )
    max_connections: int = setting(
        8192, min=1, max=1_000_000, help="connections at a time; one more is answered with 503"
    )
    max_requests: int = setting(
        1024, min=1, max=100_000, help="unary requests at a time; one more is answered with 503"
    )
    max_streams: int = setting(4096, min=1, max=100_000, help="event streams at a time; as for requests")
    header_timeout: timedelta = setting(
        timedelta(seconds=10), min=timedelta(milliseconds=100), help="time for a client to send its headers"
    )
    body_timeout: timedelta = setting(
        timedelta(seconds=30), min=timedelta(milliseconds=100), help="time for a client to send its body"
    )
    call_timeout: timedelta = setting(
        timedelta(minutes=6), min=timedelta(milliseconds=100), help="longest time for one unary request"
    )
    stall_timeout: timedelta = setting(
        timedelta(seconds=60),
        min=timedelta(milliseconds=100),
        help="how long a client may read nothing of its answer before it is cut off",
    )
    keep_alive: timedelta = setting(
        timedelta(seconds=75), min=timedelta(seconds=1), help="how long an idle connection is kept"
    )
    heartbeat: timedelta = setting(
        timedelta(seconds=15),
        min=timedelta(milliseconds=100),
        help="time between two comments on an idle event stream",
    )

    def check(self) -> Iterator[Problem]:
        yield from super().check()
        if self.listen.startswith("unix:"):
            yield Problem("listen", self.listen, "must be host:port, like 127.0.0.1:7480")
        for name in ("taskdb", "scheduler"):
            addresses: tuple[str, ...] = getattr(self, name)
            if not addresses:
                yield Problem(name, "", "must be an address like 127.0.0.1:7420")
            if len(addresses) > 1 and not all(_IP_PORT.fullmatch(address) for address in addresses):
                yield Problem(name, ",".join(addresses), "must be ip:port each if there are several")
            secured = getattr(self, f"{name}_tls") or getattr(self, f"{name}_ca") is not None
            if not secured and not self.allow_plaintext and not all(map(is_local, addresses)):
                remedy = f"would get keys in plaintext; set {name}_tls or {name}_ca, or allow_plaintext"
                yield Problem(name, ",".join(addresses), remedy)
        yield from self._check_keyless()
        if self.session_secret and len(self.session_secret.reveal()) < _MIN_SECRET:
            yield Problem("session_secret", "…", f"must have at least {_MIN_SECRET} characters")
        for origin in self.cors_origins:
            if not _ORIGIN.fullmatch(origin):
                yield Problem("cors_origins", origin, "must be scheme://host[:port] without a path")

    def _check_keyless(self) -> Iterator[Problem]:
        if not self.keyless_tenant:
            return
        if not self.keyless_key:
            yield Problem("keyless_key", "", "must be an API key of keyless_tenant")
        address = self.keyless_listen
        if address.startswith("unix:") or not address.rpartition(":")[2].isdigit():
            yield Problem("keyless_listen", address, "must be host:port, like 127.0.0.1:5000")
        elif not is_local(address):
            # No setting allows this: every caller that reaches the address acts for the tenant.
            yield Problem("keyless_listen", address, "must be a loopback address; callers need no key there")

    def target(self, name: str) -> str:
        """A server as gRPC names it."""
        addresses: tuple[str, ...] = getattr(self, name)
        return addresses[0] if len(addresses) == 1 else "ipv4:" + ",".join(addresses)
