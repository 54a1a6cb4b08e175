"""The agent's settings, which the warden's hello carries as plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal


@dataclass(frozen=True)
class AgentConfig:
    """The agent's settings; a warden of another version may leave some out or send more."""

    scheduler: str
    id: str
    data_dir: str
    key: str = field(default="", repr=False)
    capacity: int = 1
    labels: Mapping[str, str] = field(default_factory=dict)
    task_types: tuple[str, ...] = ("*",)
    env: Mapping[str, str] = field(default_factory=dict)
    app: str = ""
    prefetch: int = 0
    function_hosts: int = 1
    host_max_tasks: int = 0
    host_growth_bytes: int = 0
    log_limit_bytes: int = 16 << 20
    backend_type: str = ""
    resources: Mapping[str, int] = field(default_factory=dict)
    # What may be offered of the kinds that work; empty = all of them.
    kinds: tuple[str, ...] = ()
    container_engine: str = "auto"
    container_pull: bool = False
    container_network: bool = False
    image_dir: str = ""
    takeover: bool = False
    pids_limit: int = 0
    # Limits of tasks that ask for none; -1 = half of what the host has.
    task_memory_mb: int = 0
    task_disk_mb: int = 0
    spool_limit_bytes: int = 256 << 20
    tls: bool = False
    tls_ca: str = ""
    allow_plaintext: bool = False
    log_format: Literal["auto", "json", "console"] = "auto"
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    otlp_endpoint: str = ""
    metrics_listen: str = ""
    path: str = "/usr/local/bin:/usr/bin:/bin"

    @classmethod
    def parse(cls, values: Mapping[str, Any]) -> AgentConfig:
        """Unknown values are ignored."""
        field_names = {f.name for f in fields(cls)}
        chosen = {name: value for name, value in values.items() if name in field_names}
        chosen["task_types"] = tuple(chosen.get("task_types", ("*",)))
        chosen["kinds"] = tuple(chosen.get("kinds", ()))
        return cls(**chosen)
