"""The policy in a task's spec: retries, timeouts, overlap, loss of its runner."""

import json
from collections.abc import Callable
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from enum import IntEnum
from functools import lru_cache
from typing import Any

from taskyard_taskdb.domain.words import Jitter, Overlap, Restart, RunnerLostPolicy


@dataclass(frozen=True, slots=True)
class TaskPolicy:
    """The decided values: nothing is unspecified any more. None means "no such limit"."""

    restart: Restart = Restart.ON_FAILURE
    max_retries: int = 3
    max_runner_losses: int = 3
    retry_on_timeout: bool = False
    backoff_initial: timedelta = timedelta(seconds=1)
    backoff_max: timedelta = timedelta(seconds=300)
    backoff_factor: float = 2.0
    jitter: Jitter = Jitter.EQUAL
    attempt_timeout: timedelta | None = None
    silence_timeout: timedelta | None = None
    queue_timeout: timedelta | None = None
    total_timeout: timedelta | None = None
    # Of an external task: the longest RUNNING without a report.
    report_timeout: timedelta | None = None
    stop_grace_period: timedelta = timedelta(seconds=30)
    overlap: Overlap = Overlap.ALLOW
    on_runner_lost: RunnerLostPolicy = RunnerLostPolicy.WAIT
    not_before: datetime | None = None
    has_callback: bool = False
    # How long an ended task is kept; zero means forever.
    retention: timedelta = timedelta(days=90)

    @property
    def retries(self) -> bool:
        """Whether a transient failure can lead to another attempt at all."""
        return self.restart is Restart.ALWAYS or (self.restart is Restart.ON_FAILURE and self.max_retries > 0)

    @property
    def sets_timer(self) -> bool:
        """Whether a task that is stored with it has a timer from then on."""
        return any(time is not None for time in (self.not_before, self.queue_timeout, self.total_timeout))

    def pack(self) -> bytes | None:
        """The fields that differ from the defaults, for a column; None for the default policy."""
        changed = {
            f.name: _plain(value) for f in fields(self) if (value := getattr(self, f.name)) != f.default
        }
        return json.dumps(changed, sort_keys=True, separators=(",", ":")).encode() if changed else None


DEFAULT_POLICY = TaskPolicy()


@lru_cache(maxsize=4096)
def unpack(packed: bytes | None) -> TaskPolicy:
    """The policy that `pack` wrote."""
    if not packed:
        return DEFAULT_POLICY
    values: dict[str, Any] = {name: _READ[name](value) for name, value in json.loads(packed).items()}
    return TaskPolicy(**values)


def _plain(value: object) -> object:
    if isinstance(value, timedelta):
        return value // timedelta(microseconds=1)
    if isinstance(value, datetime):
        return value.isoformat()
    return int(value) if isinstance(value, IntEnum) else value


def _duration(value: int | None) -> timedelta | None:
    return None if value is None else timedelta(microseconds=value)


def _time(value: str | None) -> datetime | None:
    return None if value is None else datetime.fromisoformat(value)


def _reader(default: object) -> Callable[[Any], object]:
    if isinstance(default, IntEnum):
        return type(default)
    return type(default) if isinstance(default, bool | int | float) else _duration


_READ = {f.name: _reader(f.default) for f in fields(TaskPolicy)} | {"not_before": _time}
