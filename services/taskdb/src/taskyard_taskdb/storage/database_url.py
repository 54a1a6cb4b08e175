"""What connections are made with beyond the operator's URL; what the URL sets itself is kept."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from psycopg.conninfo import conninfo_to_dict

# The shortest time that libpq accepts. A host that does not answer delays the next one by this.
HOST_SECONDS = 2


def arguments(url: str, own: Mapping[str, Any], server: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments for a connection: those of `own` that the URL does not set, and server settings.

    The options of the URL follow ours, so PostgreSQL applies them.
    """
    given = conninfo_to_dict(url)
    made = {name: value for name, value in own.items() if name not in given}
    options = [f"-c {name}={value}" for name, value in server.items()]
    if given.get("options"):
        options.append(str(given["options"]))
    if options:
        made["options"] = " ".join(options)
    return made


def connect_timeout(url: str, default: timedelta) -> int:
    """The seconds within which a host must answer: those of the URL; few if there are several hosts."""
    given = conninfo_to_dict(url).get("connect_timeout")
    if given is not None and int(given) > 0:
        return int(given)
    return HOST_SECONDS if hosts(url) > 1 else max(1, round(default.total_seconds()))


def hosts(url: str) -> int:
    """How many hosts the URL names."""
    given = conninfo_to_dict(url)
    return str(given.get("host") or given.get("hostaddr") or "").count(",") + 1
