"""The retry and timeout of every method: service_config.json, a gRPC service config that all clients read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any


@cache
def service_config() -> str:
    """The JSON text of service_config.json."""
    return Path(__file__).with_name("service_config.json").read_text(encoding="utf-8")


@cache
def retry_config() -> str:
    """The service config for gRPC's own use, without timeouts.

    gRPC in Python ends a call up to a second before a timeout of the service config (grpc issue 34547) and
    does not send the deadline to the server; the channel passes timeouts with each call instead.
    """
    config = json.loads(service_config())
    for method in config["methodConfig"]:
        method.pop("timeout", None)
    return json.dumps(config)


@cache
def timeouts() -> Mapping[str, float]:
    """The timeout in seconds by method, "/taskyard.v1.TaskService/GetTask"; streams have none."""
    configs: list[dict[str, Any]] = json.loads(service_config())["methodConfig"]
    return {
        f"/{name['service']}/{name['method']}": float(config["timeout"].removesuffix("s"))
        for config in configs
        if "timeout" in config
        for name in config["name"]
    }


@cache
def repeatable() -> frozenset[str]:
    """The methods that are safe to repeat: those with a retry policy."""
    configs: list[dict[str, Any]] = json.loads(service_config())["methodConfig"]
    return frozenset(
        f"/{name['service']}/{name['method']}"
        for config in configs
        if "retryPolicy" in config
        for name in config["name"]
    )
