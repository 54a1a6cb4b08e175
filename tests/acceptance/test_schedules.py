"""Schedules from the command line to the workload, on a running suite."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime
from pathlib import Path

from tests.acceptance.suite import Suite

MANIFEST = """
kind: TaskType
id: stamp
execution:
  script: {interpreter: bash, body: 'echo "$TASKYARD_SCHEDULED_TIME" > "$TASKYARD_RESULT_FILE"'}
---
kind: Schedule
id: from-file
cron: "0 4 * * 1-5"
time_zone: Europe/Berlin
overlap: queue_latest
catch_up_window: 2h
task:
  type: stamp
  labels: {team: docs}
"""


def wait_for(suite: Suite, schedule: str, fired: int) -> str:
    """The id of the newest task of a schedule that has created at least `fired` tasks."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        shown = json.loads(suite.done("schedule", "show", schedule, "-o", "json"))
        if int(shown.get("firedCount", 0)) >= fired:
            return str(shown["lastTask"]).rpartition("/")[2]
        time.sleep(0.1)
    raise AssertionError(f"{schedule} did not fire {fired} times")


def test_a_schedule_runs_its_command_with_the_nominal_time(suite: Suite) -> None:
    script = 'echo "$TASKYARD_SCHEDULED_TIME"'
    made = suite.done("schedule", "create", "tick", "--every", "1s", "--", "bash", "-c", script)
    assert "created; next" in made
    task = wait_for(suite, "tick", 1)
    assert suite.cli("wait", task).code == 0
    nominal = datetime.strptime(task.removeprefix("tick."), "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    found = json.loads(suite.done("get", task, "-o", "json"))
    assert f"{nominal:%Y-%m-%dT%H:%M:%SZ}" in str(found["spec"]["scheduledTime"])
    assert f"{nominal:%Y-%m-%dT%H:%M:%SZ}" in suite.done("logs", task)
    events = suite.done("audit", "--filter", 'event_type = "schedule.fired"')
    assert f"task=tenants/default/tasks/{task}" in events
    assert "paused" in suite.done("schedule", "pause", "tick", "--note", "enough")
    assert "resumed" in suite.done("schedule", "resume", "tick")
    assert "deleted" in suite.done("schedule", "delete", "tick", "--yes")


def test_a_file_describes_schedules(suite: Suite, tmp_path: Path) -> None:
    file = tmp_path / "yard.yaml"
    file.write_text(MANIFEST)
    assert "Schedule from-file  created" in suite.done("apply", "-f", str(file))
    assert "unchanged" in suite.done("apply", "-f", str(file))
    file.write_text(MANIFEST.replace("0 4 * * 1-5", "0 5 * * 1-5"))
    assert "cron" in suite.done("apply", "-f", str(file))
    shown = suite.done("schedule")
    assert "from-file" in shown and "0 5 * * 1-5" in shown
    preview = suite.done("schedule", "preview", "from-file", "-n", "2", "--from", "2026-03-27T00:00:00Z")
    assert preview.split() == ["2026-03-27T05:00:00+01:00", "2026-03-30T05:00:00+02:00"]
    asked = ("schedule", "preview", "from-file", "-n", "2", "--from", "2026-03-27T00:00:00Z", "-o", "json")
    found = json.loads(suite.done(*asked))
    assert [one["scheduledTime"] for one in found] == ["2026-03-27T04:00:00Z", "2026-03-30T03:00:00Z"]
    assert [one["localTime"] for one in found] == preview.split()
    task = suite.done("schedule", "run", "from-file").strip()
    assert suite.cli("wait", task).code == 0
    made = suite.done("schedule", "backfill", "from-file", "--from", "2026-11-09", "--to", "2026-11-14")
    assert made.splitlines() == [f"from-file.202611{day:02}T040000Z" for day in range(9, 14)]
