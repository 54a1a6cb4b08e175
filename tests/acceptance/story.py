"""What the stories share: a client of the suite, runners with functions of their own, and patience."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from taskyard import SyncClient
from tests.acceptance.suite import BIN, Suite, client_environment
from tests.harness.leash import tied

SECONDS = 120.0


@contextmanager
def client_of(
    suite: Suite, key: str = "", tenant: str | None = None, outage_timeout: float = 300
) -> Iterator[SyncClient]:
    """A client of the suite, with the key of its default tenant or with another one."""
    found = suite.context
    given: dict[str, Any] = {"scheduler": found["scheduler"], "outage_timeout": outage_timeout}
    with SyncClient(found["address"], key=key or found["key"], tenant=tenant, **given) as client:
        yield client


@dataclass
class AppRunner:
    """A runner with an application, as its team starts it."""

    process: subprocess.Popen[bytes]
    log: Path

    def kill(self) -> None:
        """Ends it on the spot, with all it has started."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(60)

    def stop(self) -> None:
        """Ends it as Ctrl-C does, twice: what it holds is released."""
        for _ in range(2):
            if self.process.poll() is None:
                self.process.send_signal(signal.SIGTERM)
                time.sleep(0.2)
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.kill()


@contextmanager
def app_runner(suite: Suite, source: str, runner_id: str, *flags: str) -> Iterator[AppRunner]:
    """A runner whose application is this source; it is stopped afterwards."""
    with tempfile.TemporaryDirectory(prefix="taskyard-story-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        folder.chmod(0o755)
        (folder / "story_app.py").write_text(source)
        log = folder / "runner.log"
        command = ["--app", "story_app:app", "--id", runner_id, "--data-dir", str(folder / "data"), *flags]
        with log.open("wb") as output:
            process = subprocess.Popen(
                tied(BIN / "taskyard-runner", *command),
                cwd=suite.folder,
                env={**client_environment(), "PYTHONPATH": str(folder)},
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        runner = AppRunner(process, log)
        try:
            yield runner
        finally:
            runner.stop()


def until(holds: Callable[[], Any], what: str, seconds: float = SECONDS) -> Any:
    """What holds as soon as it is true; fails with the reason if it does not become so in time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if found := holds():
            return found
        time.sleep(0.1)
    raise AssertionError(f"not within {seconds:.0f} s: {what}")
