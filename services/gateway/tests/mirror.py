"""A gateway in front of a server with prepared answers."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from services.gateway.tests.echo import Echo
from tests.harness.gateway import GatewayService, gateway_service


@contextlib.contextmanager
def mirror_of(echo: Echo, folder: Path, *flags: str) -> Iterator[GatewayService]:
    """A running gateway with these flags; its log is printed at the end."""
    service = gateway_service(echo.address, echo.address, folder, *flags)
    try:
        service.start()
        yield service
    finally:
        service.stop()
        print(service.log_text())
