"""The runner's settings. They are read by the warden's process, so nothing here may import grpc."""

from __future__ import annotations

import os
import re
import socket
import sys
from collections.abc import Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import ClassVar, Literal

from taskyard_kit.settings import Problem, Settings, setting
from taskyard_kit.values import Secret

_ID = re.compile(r"[A-Za-z0-9._-]{1,128}")
_TASK_TYPE = re.compile(r"[A-Za-z0-9._-]+\*?|\*")
_ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_APP = re.compile(r"[A-Za-z_][\w.]*(:[A-Za-z_]\w*)?")
MIB = 1 << 20
KINDS = ("command", "script", "container", "wasm", "function")
# Prefetched functions for each running one: enough to cover a round trip to the scheduler.
_PREFETCH = 4


def default_id() -> str:
    """The host's name, as far as it can be an id."""
    return re.sub(r"[^A-Za-z0-9._-]", "-", socket.gethostname())[:128] or "runner"


def default_data_dir() -> Path:
    """Where a user's programs keep data."""
    base = os.environ.get("XDG_DATA_HOME") or "~/.local/share"
    return Path(base).expanduser() / "taskyard" / "runner"


class RunnerSettings(Settings):
    """The settings of `taskyard-runner`."""

    service: ClassVar[str] = "runner"
    about: ClassVar[str] = (
        "Executes Taskyard tasks on this host. SIGTERM drains: running tasks may finish within "
        "--drain-timeout, then they are given back; a second SIGTERM gives them back now. SIGHUP replaces "
        "the agent (after an upgrade) while tasks go on."
    )

    scheduler: str = setting(
        "127.0.0.1:7421",
        env="TASKYARD_SCHEDULER",
        help="host:port of the scheduler; of several, separated by commas, the first that answers",
    )
    key: Secret = setting(Secret(), env="TASKYARD_KEY", help="runner key, or file:PATH of one")
    id: str = setting(default_id(), help="stable id of this runner")
    data_dir: Path = setting(default_data_dir(), help="directory for the spool and running tasks")
    runs_dir: Path | None = setting(
        None,
        help="directory for those of running tasks, where tasks can reach it [the data directory; where only "
        "root can reach that, one below /var/lib/taskyard]",
    )
    capacity: int = setting(os.cpu_count() or 1, help="most tasks at a time", min=1, max=10000)
    label: tuple[str, ...] = setting((), help="label for placement, name=value; repeatable")
    task_type: tuple[str, ...] = setting(("*",), help="task type it executes, 'prefix*' or '*'; repeatable")
    kind: tuple[str, ...] = setting(
        (), help=f"kind of execution to offer: {', '.join(KINDS)}; repeatable, all that work if none is named"
    )
    env: tuple[str, ...] = setting((), help="NAME=value put into every task's environment; repeatable")
    env_file: Path | None = setting(None, help="file of NAME=value lines put into every task's environment")
    app: str = setting(
        "", help="module:app whose functions it executes; it takes nothing else then, unless a kind is named"
    )
    prefetch: int = setting(
        -1, help="functions it takes beyond its capacity; -1 = four times the capacity", min=-1, max=10000
    )
    function_hosts: int = setting(
        1, help="processes that async functions share; plain ones have one each", min=1, max=1000
    )
    host_max_tasks: int = setting(0, help="functions after which a host is replaced; 0 = any", min=0)
    host_growth_mb: int = setting(
        512, help="memory a function host may gain before it is replaced; 0 = any", min=0
    )
    backend_type: str = setting("", help="backend configuration type, for placement")
    cpu_millis: int = setting(0, help="CPU to offer in thousandths of a core; 0 = not accounted", min=0)
    memory_mb: int = setting(0, help="memory to offer; 0 = not accounted", min=0)
    disk_mb: int = setting(0, help="scratch disk to offer; 0 = not accounted", min=0)

    drain_timeout: timedelta = setting(
        timedelta(seconds=30), help="after SIGTERM, how long tasks may take to finish", min=timedelta(0)
    )
    takeover: bool = setting(False, help="take the id over although another runner with it seems alive")
    pids_limit: int = setting(1024, help="most processes of one task; 0 = no limit", min=0)
    task_memory_mb: int = setting(
        -1,
        help="memory of a task that asks for none, where control groups limit it; 0 = no limit, -1 = half of "
        "the host's",
        min=-1,
    )
    task_disk_mb: int = setting(
        -1,
        help="scratch disk of a task that asks for none; 0 = no limit, -1 = half of the file system",
        min=-1,
    )
    log_limit_mb: int = setting(16, help="most output kept per run; the rest is counted and dropped", min=1)
    spool_limit_mb: int = setting(256, help="most unacknowledged reports kept on disk", min=8)
    sandbox: Literal["auto", "none", "user", "bubblewrap"] = setting(
        "auto",
        help="what keeps tasks away from the host: none, user (a user per run; needs root), bubblewrap "
        "(besides, files read-only and processes out of sight), or auto: user if the runner is root, else "
        "bubblewrap, else none for one tenant alone",
    )
    sandbox_user: str = setting("", help="user of all tasks, name or uid[:gid], instead of one per run")
    container_engine: Literal["auto", "podman", "runc", "none"] = setting(
        "auto", help="podman, runc, none, or auto: the first that works"
    )
    container_pull: bool = setting(True, help="let podman pull images that are not on the host")
    container_network: bool = setting(False, help="let containers that ask for it use the host's network")
    image_dir: Path | None = setting(
        None, help="directory of root file systems, the images of runc [the data directory's images]"
    )
    cgroups: bool = setting(True, help="limit tasks by control groups where the host lets the runner")

    tls: bool = setting(False, help="speak TLS with the scheduler")
    tls_ca: Path | None = setting(None, help="PEM file of the authority behind the scheduler's certificate")
    allow_plaintext: bool = setting(False, help="send the key in plaintext to another host")

    log_format: Literal["auto", "json", "console"] = setting(
        "auto", help="json, console, or auto: console on a terminal"
    )
    log_level: Literal["debug", "info", "warning", "error"] = setting(
        "info", help="least severe level that is logged"
    )
    otlp_endpoint: str = setting(
        "",
        env="OTEL_EXPORTER_OTLP_ENDPOINT",
        help="OTLP/gRPC collector for traces and metrics (extra telemetry)",
    )
    metrics_listen: str = setting("", help="host:port of the Prometheus endpoint (extra telemetry)")

    def check(self) -> Iterator[Problem]:
        yield from super().check()
        if not _ID.fullmatch(self.id) or self.id in (".", "..", "-"):
            yield Problem("id", self.id, "must be 1 to 128 of A-Z a-z 0-9 . _ -")
        for label in self.label:
            name, equals, value = label.partition("=")
            if not equals or not 1 <= len(name) <= 128 or len(value) > 256:
                yield Problem("label", label, "must be name=value, at most 128 and 256 characters")
        if self.app and not _APP.fullmatch(self.app):
            yield Problem("app", self.app, "must be module:app, such as worker:app")
        for task_type in self.task_type:
            if not _TASK_TYPE.fullmatch(task_type) or len(task_type) > 128:
                yield Problem("task_type", task_type, "must be a task type, 'prefix*' or '*'")
        for kind in self.kind:
            if kind not in KINDS:
                yield Problem("kind", kind, f"must be one of {', '.join(KINDS)}")
        for entry in self.env:
            if not _ENV_NAME.fullmatch(entry.partition("=")[0]) or "=" not in entry:
                yield Problem("env", entry.partition("=")[0], "must be NAME=value")
        if self.env_file is not None and not os.access(self.env_file, os.R_OK):
            yield Problem("env_file", str(self.env_file), "must be a readable file")
        if self.tls_ca is not None and not os.access(self.tls_ca, os.R_OK):
            yield Problem("tls_ca", str(self.tls_ca), "must be a readable PEM file")

    def offered(self) -> tuple[str, ...]:
        """The kinds to offer; none named = all that work, and functions only where there is an app."""
        return tuple(dict.fromkeys((*self.kind, "function"))) if self.app else self.kind

    def prefetched(self) -> int:
        """Assignments beyond the capacity; programs are never taken ahead."""
        prefetch = _PREFETCH * self.capacity if self.prefetch < 0 else self.prefetch
        return min(prefetch, 10000) if self.offered() == ("function",) else 0

    def hidden_files(self) -> tuple[str, ...]:
        """Files with secrets of the runner, which tasks of its own user could read."""
        return tuple(str(file.absolute()) for file in (self.key.file, self.env_file) if file is not None)

    def labels(self) -> dict[str, str]:
        """The labels by name; of two with one name the later counts."""
        return dict(label.split("=", 1) for label in self.label)

    def task_env(self) -> dict[str, str]:
        """The variables that every task gets: those of the file, then those of the flags."""
        lines = self.env_file.read_text().splitlines() if self.env_file is not None else []
        given = [line for line in lines if "=" in line and not line.lstrip().startswith("#")]
        return dict(entry.split("=", 1) for entry in (*given, *self.env))


def task_path() -> str:
    """The PATH of tasks: the runner's, and at its end the place of taskyard-task."""
    return os.pathsep.join((os.environ.get("PATH", os.defpath), os.path.dirname(sys.executable)))


def agent_config(settings: RunnerSettings) -> Mapping[str, object]:
    """The settings as plain values for the agent, which gets them from the warden with each start."""
    return {
        "scheduler": settings.scheduler,
        "key": settings.key.reveal(),
        "id": settings.id,
        "data_dir": str(settings.data_dir.absolute()),
        "capacity": settings.capacity,
        "labels": settings.labels(),
        "task_types": list(dict.fromkeys(settings.task_type)),
        "kinds": list(dict.fromkeys(settings.offered())),
        "container_engine": settings.container_engine,
        "container_pull": settings.container_pull,
        "container_network": settings.container_network,
        "image_dir": str((settings.image_dir or settings.data_dir / "images").absolute()),
        "env": settings.task_env(),
        "app": settings.app,
        "prefetch": settings.prefetched(),
        "function_hosts": settings.function_hosts,
        "host_max_tasks": settings.host_max_tasks,
        "host_growth_bytes": settings.host_growth_mb * MIB,
        "log_limit_bytes": settings.log_limit_mb * MIB,
        "backend_type": settings.backend_type,
        "resources": {
            "cpu_millis": settings.cpu_millis,
            "memory_mb": settings.memory_mb,
            "disk_mb": settings.disk_mb,
        },
        "takeover": settings.takeover,
        "pids_limit": settings.pids_limit,
        "task_memory_mb": settings.task_memory_mb,
        "task_disk_mb": settings.task_disk_mb,
        "spool_limit_bytes": settings.spool_limit_mb * MIB,
        "tls": settings.tls,
        "tls_ca": str(settings.tls_ca) if settings.tls_ca else "",
        "allow_plaintext": settings.allow_plaintext,
        "log_format": settings.log_format,
        "log_level": settings.log_level,
        "otlp_endpoint": settings.otlp_endpoint,
        "metrics_listen": settings.metrics_listen,
        "path": task_path(),
    }
