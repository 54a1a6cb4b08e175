"""The settings of `taskyard up`."""

import ipaddress
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from taskyard_standalone.errors import SettingError
from taskyard_standalone.programs import Programs

TASKDB_METRICS_PORT = 9420
SCHEDULER_METRICS_PORT = 9421
RUNNER_METRICS_PORT = 9423
GATEWAY_METRICS_PORT = 9424
# Where the commands of the Global tasks DB call.
GLOBAL_TASKS_PORT = 5000


def default_data_dir() -> Path:
    """The default data directory of `taskyard up`, below the user's XDG data directory."""
    return Path(os.environ.get("XDG_DATA_HOME") or "~/.local/share", "taskyard")


@dataclass(frozen=True)
class UpSettings:
    """The settings of one `up`: port 0 is any free one, a `database_url` replaces the embedded PostgreSQL."""

    data_dir: Path = field(default_factory=default_data_dir)
    host: str = "127.0.0.1"
    taskdb_port: int = 7420
    scheduler_port: int = 7421
    gateway_port: int = 7480
    # Serves callers without a key as the tenant "default", on a port of its own.
    global_tasks: bool = False
    global_tasks_port: int = GLOBAL_TASKS_PORT
    database_url: str | None = field(default=None, repr=False)
    metrics: bool = False
    runner: bool = True
    # Who runs PostgreSQL when `up` is started by root; by default a user id of its own.
    postgres_user: str | None = None
    # How often within a minute a part that ends is started again.
    restart_limit: int = 6
    programs: Programs = field(default_factory=Programs)

    def data_path(self) -> Path:
        """The data directory as an absolute path; raises SettingError if that needs an unknown home."""
        try:
            return self.data_dir.expanduser().absolute()
        except RuntimeError:
            raise SettingError(f"this user has no home for {self.data_dir}: set --data-dir or HOME") from None

    def check(self) -> None:
        """Raises SettingError for a value that cannot work."""
        if not _is_loopback(self.host):
            raise SettingError(
                f"--host {self.host} is not a loopback address, and `up` speaks without TLS:"
                " use 127.0.0.1 or ::1, or start the services one by one with certificates"
            )
        taken: dict[int, str] = {}
        for name, port in self._ports():
            if not 0 <= port <= 65535:
                raise SettingError(f"{name} {port} is not a port: use 0 (any free one) to 65535")
            if port in taken:
                raise SettingError(f"{taken[port]} and {name} are both {port}: they must differ")
            if port != 0:
                taken[port] = name

    def _ports(self) -> Iterator[tuple[str, int]]:
        yield "--taskdb-port", self.taskdb_port
        yield "--scheduler-port", self.scheduler_port
        yield "--gateway-port", self.gateway_port
        if self.global_tasks:
            yield "--global-tasks-port", self.global_tasks_port


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
