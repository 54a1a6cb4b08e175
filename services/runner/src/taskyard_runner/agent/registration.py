"""The runner's registration, which hello carries."""

from __future__ import annotations

import importlib.metadata
import socket
from collections.abc import Iterable

from taskyard.v1.common_pb2 import EnvVar, Resources
from taskyard.v1.runner_pb2 import RunnerRegistration
from taskyard_runner.agent.config import AgentConfig
from taskyard_runner.agent.selftest import SelfTestResult

_REDACTED = "********"


def version() -> str:
    """The installed version of the runner."""
    try:
        return importlib.metadata.version("taskyard-runner")
    except importlib.metadata.PackageNotFoundError:
        return "unknown"


def describe(
    config: AgentConfig,
    tested: SelfTestResult,
    limits: str,
    sandbox: str,
    functions: Iterable[str] = (),
) -> RunnerRegistration:
    """Labels, kinds, capacity; the values of injected variables stay here."""
    registration = RunnerRegistration(
        labels=config.labels,
        task_types=config.task_types,
        execution_kinds=tested.kinds,
        capacity=config.capacity,
        resources=total_resources(config),
        backend_type=config.backend_type,
        version=version(),
        host=socket.gethostname()[:255],
        env=[EnvVar(name=name, value=_REDACTED) for name in config.env],
        functions=sorted(functions),
        prefetch=config.prefetch,
    )
    registration.metadata.update(
        {"limits": limits, "sandbox": sandbox, "interpreters": list(tested.interpreters)}
    )
    if tested.engine is not None:
        registration.metadata["container_engine"] = tested.engine.name
    return registration


def total_resources(config: AgentConfig) -> Resources | None:
    """The resources that the runner offers; None = only capacity counts."""
    offered = config.resources
    if not any(offered.values()):
        return None
    return Resources(
        cpu_millis=offered.get("cpu_millis", 0),
        memory_mb=offered.get("memory_mb", 0),
        disk_mb=offered.get("disk_mb", 0),
    )
