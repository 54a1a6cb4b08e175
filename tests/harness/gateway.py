"""A gateway process for tests, awaited by its own health."""

from __future__ import annotations

import http.client
import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.harness.processes import START_SECONDS, Service, free_port

MODULE = "taskyard_gateway"


class GatewayService(Service):
    """A gateway; it serves once taskdb does."""

    def wait_serving(self) -> None:
        self.wait_answer("/healthz")

    def wait_answer(self, path: str) -> None:
        """Return once this path is answered with 200."""
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            assert self.process is not None and self.process.poll() is None, self.log_text()
            try:
                if call(self, "GET", path).status == 200:
                    return
            except OSError:
                pass
            time.sleep(0.02)
        raise AssertionError(f"{self.module} does not serve\n{self.log_text()}")


@dataclass(frozen=True)
class Answered:
    """An answer of the gateway."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


def gateway_service(taskdb: str, scheduler: str, folder: Path, *flags: str) -> GatewayService:
    """A gateway that is not started yet, with a port that it keeps."""
    port = free_port()
    servers = ("--taskdb", taskdb, "--scheduler", scheduler, "--log-format", "json")
    arguments = ("serve", "--listen", f"127.0.0.1:{port}", *servers, *flags)
    return GatewayService(MODULE, arguments, port, folder / f"gateway-{port}.log")


def call(
    gateway: Service,
    method: str,
    path: str,
    body: Any = None,
    *,
    key: str = "",
    headers: dict[str, str] | None = None,
    timeout: float = 60.0,
) -> Answered:
    """One request; a body that is not bytes is sent as JSON."""
    sent = dict(headers or {})
    if key:
        sent["Authorization"] = f"Bearer {key}"
    if body is not None and not isinstance(body, bytes):
        body = json.dumps(body).encode()
        sent.setdefault("Content-Type", "application/json")
    connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=timeout)
    try:
        connection.request(method, path, body, sent)
        answer = connection.getresponse()
        return Answered(answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read())
    finally:
        connection.close()
