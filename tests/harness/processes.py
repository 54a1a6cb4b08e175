"""Real service processes for tests: started, awaited by their health, stopped or killed by their own id."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

START_SECONDS = 90.0


def free_port() -> int:
    """A loopback port that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@dataclass
class Service:
    """One process of the suite. `log` holds all it printed."""

    module: str
    arguments: tuple[str, ...]
    port: int
    log: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        """Where it serves."""
        return f"127.0.0.1:{self.port}"

    def start(self, *, wait: bool = True, **environment: str) -> Service:
        """Start it and wait until its health is SERVING; `environment` is added for this start only."""
        assert self.process is None or self.process.poll() is not None, f"{self.module} runs already"
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("TASKYARD_", "OTEL_"))}
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", self.module, *self.arguments],
                env={**clean, **self.environment, **environment},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        if wait:
            self.wait_serving()
        return self

    def wait_live(self) -> None:
        """Return once its process answers, whether or not it can do its work."""
        self._wait_healthy("liveness")

    def wait_serving(self) -> None:
        """Return once its health is SERVING; fails with its log if it ends or takes too long."""
        self._wait_healthy("")

    def _wait_healthy(self, name: str) -> None:
        request = health_pb2.HealthCheckRequest(service=name)
        deadline = time.monotonic() + START_SECONDS
        with grpc.insecure_channel(self.address) as channel:
            stub: Any = health_pb2_grpc.HealthStub(channel)
            while time.monotonic() < deadline:
                assert self.process is not None and self.process.poll() is None, self.log_text()
                try:
                    answer = stub.Check(request, timeout=1, wait_for_ready=True)
                except grpc.RpcError:
                    continue
                if answer.status == health_pb2.HealthCheckResponse.SERVING:
                    return
        raise AssertionError(f"{self.module} does not serve\n{self.log_text()}")

    def log_text(self) -> str:
        """The end of its log, for a failure's message."""
        return f"--- log of {self.module}\n{self.log.read_text(errors='replace')[-4000:]}"

    @property
    def pid(self) -> int:
        """Its process id."""
        assert self.process is not None
        return self.process.pid

    @property
    def ended(self) -> bool:
        """Whether its process is gone."""
        return self.process is None or self.process.poll() is not None

    def kill(self) -> None:
        """End it with SIGKILL."""
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def suspend(self) -> None:
        """Freeze it with SIGSTOP; returns once it does not run any more."""
        os.kill(self.pid, signal.SIGSTOP)
        self.wait_suspended()

    def wait_suspended(self, seconds: float = 30.0) -> None:
        """Return once it is frozen, by its own failpoint or from outside."""
        deadline = time.monotonic() + seconds
        while os.waitid(os.P_PID, self.pid, os.WSTOPPED | os.WNOWAIT | os.WNOHANG) is None:
            assert time.monotonic() < deadline, f"{self.module} is not stopped\n{self.log_text()}"
            time.sleep(0.01)

    def resume(self) -> None:
        """Resume it."""
        os.kill(self.pid, signal.SIGCONT)

    def terminate(self, seconds: float = 30.0) -> int:
        """Ask it to end and return its exit code."""
        assert self.process is not None
        self.process.terminate()
        return self.process.wait(seconds)

    def wait_killed(self, seconds: float = 30.0) -> None:
        """Return once it has killed itself, as a failpoint does."""
        assert self.process is not None
        assert self.process.wait(seconds) == -signal.SIGKILL, self.log_text()

    def stop(self) -> None:
        """End it if it still runs."""
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            # One that a failed test has left frozen has to wake up for it.
            self.process.send_signal(signal.SIGCONT)
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.kill()
