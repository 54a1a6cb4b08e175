"""How a service listens and drains, whatever it speaks: address, TLS, and plaintext on loopback only."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

from taskyard.channel import is_local
from taskyard_kit.settings import Problem, Settings, setting


class ListenSettings(Settings):
    """A service overrides the default of `listen`."""

    listen: str = setting("127.0.0.1:0", help="host:port or unix:/path to serve gRPC on")
    tls_cert: Path | None = setting(None, help="PEM file with the certificate chain of the server")
    tls_key: Path | None = setting(None, help="PEM file with the private key of the certificate")
    allow_plaintext: bool = setting(False, help="serve beyond loopback without TLS")
    reuse_port: bool = setting(False, help="share the port with other processes of this service")
    lame_duck: timedelta = setting(
        timedelta(0),
        max=timedelta(minutes=5),
        help="time between NOT_SERVING and refusing new calls, for load balancers to notice",
    )
    drain_timeout: timedelta = setting(
        timedelta(seconds=30), max=timedelta(hours=1), help="time for calls in flight to finish"
    )

    def check(self) -> Iterator[Problem]:
        yield from super().check()
        if not self.listen.startswith("unix:") and not self.listen.rpartition(":")[2].isdigit():
            yield Problem("listen", self.listen, "must be host:port or unix:/path, like 127.0.0.1:7420")
        elif self.tls_cert is None and not self.allow_plaintext and not is_local(self.listen):
            yield Problem(
                "listen",
                self.listen,
                "plaintext is for loopback only; set tls_cert and tls_key, or allow_plaintext",
            )
        if (self.tls_cert is None) != (self.tls_key is None):
            one = "tls_cert" if self.tls_key is None else "tls_key"
            yield Problem(one, str(getattr(self, one)), "tls_cert and tls_key go together; set both")
        for name in ("tls_cert", "tls_key"):
            path = getattr(self, name)
            if path is not None and not os.access(path, os.R_OK):
                yield Problem(name, str(path), "must be a readable file")
