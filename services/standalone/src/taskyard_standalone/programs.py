"""The command lines of Taskyard's services, and the environment each of them gets."""

import os
import secrets
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from taskyard_standalone.process import Program

TENANT = "default"
RUNNER_ID = "local"
# What addresses a client, or is a secret: handed to the one service that needs it, never inherited.
_WITHHELD = frozenset(
    {
        "TASKYARD_ADDRESS",
        "TASKYARD_ADMIN_KEY",
        "TASKYARD_DATABASE_URL",
        "TASKYARD_KEY",
        "TASKYARD_SCHEDULER",
    }
)


# Shorter than the services' own default, because a user waits at the terminal.
_DRAIN = ("--drain-timeout", "10s")


def _module(name: str) -> tuple[str, ...]:
    return (sys.executable, "-m", name)


@dataclass(frozen=True)
class Programs:
    """How each service is called, before its arguments."""

    taskdb: tuple[str, ...] = _module("taskyard_taskdb")
    scheduler: tuple[str, ...] = _module("taskyard_scheduler")
    runner: tuple[str, ...] = _module("taskyard_runner")
    gateway: tuple[str, ...] = _module("taskyard_gateway")

    def migrate(self, database_url: str) -> Program:
        """Brings the schema up to date, then ends."""
        return _program((*self.taskdb, "migrate"), {"TASKYARD_DATABASE_URL": database_url})

    def create_keys(self, database_url: str, suffix: str) -> Program:
        """Prints a new key of each kind as TOML, then ends."""
        arguments = ("keys", "create-set", "--tenant", TENANT, "--suffix", suffix)
        return _program((*self.taskdb, *arguments), {"TASKYARD_DATABASE_URL": database_url})

    def serve_taskdb(self, listen: str, database_url: str, metrics: str | None) -> Program:
        """taskdb; its database URL may hold a password and so goes by the environment."""
        argv = (*self.taskdb, "serve", "--listen", listen, *_DRAIN, *_metrics(metrics))
        return _program(argv, {"TASKYARD_DATABASE_URL": database_url})

    def serve_scheduler(self, listen: str, taskdb: str, key: str, metrics: str | None) -> Program:
        """The scheduler of the taskdb at `taskdb`."""
        argv = (*self.scheduler, "serve", "--listen", listen, "--taskdb", taskdb, *_DRAIN, *_metrics(metrics))
        return _program(argv, {"TASKYARD_KEY": key})

    def serve_runner(self, scheduler: str, directory: Path, key: str, metrics: str | None) -> Program:
        """This machine's runner."""
        named = ("--scheduler", scheduler, "--id", RUNNER_ID, "--data-dir", str(directory))
        # Its readiness is read from the log, so that must hold its events.
        level = "debug" if os.environ.get("TASKYARD_RUNNER_LOG_LEVEL") == "debug" else "info"
        logged = ("--log-format", "json", "--log-level", level)
        argv = (*self.runner, *named, *_DRAIN, *logged, *_sandbox(), *_metrics(metrics))
        return _program(argv, {"TASKYARD_KEY": key})

    def serve_gateway(
        self, listen: str, taskdb: str, scheduler: str, key: str, metrics: str | None, keyless: str | None
    ) -> Program:
        """HTTP in front of both; `keyless` is where callers without a key are served, if at all."""
        argv = (*self.gateway, "serve", "--listen", listen, "--taskdb", taskdb, "--scheduler", scheduler)
        # Sessions of browsers outlive a restart of the gateway, not one of `up`.
        passed = {"TASKYARD_GATEWAY_SESSION_SECRET": secrets.token_hex(32)}
        if keyless is not None:
            argv += ("--keyless-tenant", TENANT, "--keyless-listen", keyless)
            passed["TASKYARD_GATEWAY_KEYLESS_KEY"] = key
        return _program((*argv, *_DRAIN, *_metrics(metrics)), passed)


def _sandbox() -> tuple[str, ...]:
    # Tasks of an ordinary user's own Taskyard are that user's, and write where the user can.
    named = os.geteuid() == 0 or "TASKYARD_RUNNER_SANDBOX" in os.environ
    return () if named else ("--sandbox", "none")


def _metrics(listen: str | None) -> tuple[str, ...]:
    return ("--metrics-listen", listen) if listen else ()


def _program(argv: tuple[str, ...], given: Mapping[str, str]) -> Program:
    inherited = {name: value for name, value in os.environ.items() if name not in _WITHHELD}
    return Program(argv, {**inherited, **given})
