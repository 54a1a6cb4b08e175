"""Runs the example of a worker: a success, a permanent failure and a cancel, through the real suite."""

from __future__ import annotations

import subprocess
from pathlib import Path

from taskyard import SyncClient, function
from tests.acceptance.suite import Suite
from tests.clients.toolchain import tool_environment
from tests.harness.leash import leashed

TASKS = 3


def watch_example_work(command: list[str], cwd: Path, suite: Suite, runner_key: str) -> None:
    """Start the example for three tasks, which it serves one after the other."""
    context = suite.context
    environment = tool_environment(
        TASKYARD_ADDRESS=context["address"], TASKYARD_SCHEDULER=context["scheduler"], TASKYARD_KEY=runner_key
    )
    worker = subprocess.Popen(
        leashed(*command, str(TASKS)),
        cwd=cwd,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        with SyncClient(context["address"], key=context["key"]) as client:
            greeted = client.wait(client.create(function("greet", {"name": "Ada"})), timeout=120)
            assert (str(greeted.phase), greeted.output) == ("SUCCEEDED", {"hello": "Ada"})
            refused = client.wait(client.create(function("greet", {}, retry=3)), timeout=60)
            assert refused.error is not None
            assert (str(refused.phase), refused.attempt, refused.error.code) == ("FAILED", 1, "GREET_FAILED")
            slow = client.create(function("greet", {"name": "Eve", "seconds": 300}))
            next(event for event in client.watch(slow, snapshot=True) if str(event.phase) == "RUNNING")
            client.cancel(slow)
            assert str(client.wait(slow, timeout=60).phase) == "CANCELLED"
        output, _ = worker.communicate(timeout=60)
        assert worker.returncode == 0, output
    finally:
        worker.kill()
        worker.wait()
