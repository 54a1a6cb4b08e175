"""What administrators and the curious type; against a suite of its own, since its runner is drained."""

import json
import os
import re
import stat
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.suite import Suite, running_suite, until_open
from tests.acceptance.terminal import on_terminal


@pytest.fixture(scope="module")
def suite() -> Iterator[Suite]:
    with running_suite() as suite:
        yield suite


def new_id(word: str) -> str:
    return f"{word}-{uuid.uuid4().hex[:8]}"


def rows(shown: str) -> dict[str, list[str]]:
    """The rows of a table by their first column."""
    return {line.split()[0]: re.split(r"  +", line.strip()) for line in shown.splitlines()[1:]}


def started(suite: Suite, gate: Path) -> str:
    """A task that runs until the gate opens."""
    task = suite.done("submit", "--", *until_open(gate)).strip()
    following = suite.start_cli("logs", "-F", task)
    assert following.stdout is not None and following.stdout.readline() == "before\n"
    following.kill()
    following.communicate()
    return task


def test_explain_names_the_obstacle_and_the_remedy(suite: Suite) -> None:
    task = new_id("moon")
    suite.done("submit", "--id", task, "--runner-label", "zone=moon", "--", "true")
    ended = suite.cli("explain", task)
    assert ended.code == 1
    assert "✓ phase" in ended.out and "✗ runner" in ended.out
    assert re.search(r"✗ local .*zone.*\n +→ .*zone.*moon", ended.out)
    printed = json.loads(suite.cli("explain", task, "-o", "json").out)
    assert printed["runners"][0]["obstacle"] == "RUNNER_OBSTACLE_REQUIRED"
    suite.done("runners", "label", "local", "zone=moon")
    assert suite.done("wait", task) == f"{task}  SUCCEEDED\n"
    ended = suite.cli("explain", task)
    assert "SUCCEEDED" in ended.out
    assert suite.cli("explain", "no-such-task").code == 5
    suite.done("runners", "label", "local", "zone=")


def test_a_dry_run_creates_nothing_and_shows_whether_the_task_could_run(suite: Suite) -> None:
    ended = suite.cli("submit", "--dry-run", "--id", "never", "--", "true")
    assert ended.code == 0 and "✓ runner" in ended.out
    assert suite.cli("submit", "--dry-run", "--runner-label", "zone=mars", "--", "true").code == 1
    assert suite.cli("submit", "--dry-run", "--slot", "a b", "--", "true").code == 1
    assert suite.cli("get", "never").code == 5


def test_runners_are_listed_shown_and_labelled(suite: Suite) -> None:
    row = rows(suite.done("runners"))["local"]
    assert row[1] == "healthy" and re.fullmatch(r"\d+/\d+", row[2]) and "command" in row[3]
    assert suite.done("runners", "-o", "name") == "local\n"
    assert json.loads(suite.done("runners", "-o", "json"))[0]["name"] == "runners/local"
    shown = suite.done("runners", "show", "local")
    assert "state" in shown and "healthy" in shown
    assert suite.done("runners", "label", "local", "zone=b", "rack=7") == "local  rack=7,zone=b\n"
    assert suite.done("runners", "--filter", 'labels.zone = "c"', "-o", "name") == ""
    assert suite.done("runners", "label", "local", "zone=", "rack=") == "local  no labels\n"
    ended = suite.cli("runners", "show", "nobody")
    assert ended.code == 5 and ended.err == 'taskyard: no runner "nobody"; to list them: `taskyard runners`\n'


def test_a_drained_runner_finishes_and_takes_no_more_until_it_is_undrained(suite: Suite, gate: Path) -> None:
    running = started(suite, gate)
    ended = suite.cli("drain", "local", "--timeout", "100ms", "--reason", "test")
    assert ended.code == 124 and "the drain stays in force" in ended.err
    waiting = suite.done("submit", "--", "true").strip()
    draining = suite.start_cli("drain", "local")
    gate.touch()
    assert draining.communicate(timeout=60)[0] == "local  drained\n"
    assert rows(suite.done("runners"))["local"][1] == "drained"
    assert "draining" in suite.cli("explain", waiting).out
    assert suite.done("undrain", "local") == "local  healthy\n"
    assert suite.done("wait", running, waiting).count("SUCCEEDED") == 2
    assert suite.cli("drain", "nobody").code == 5
    assert suite.cli("undrain", "nobody").code == 5


def test_a_busy_runner_is_not_deleted(suite: Suite, gate: Path) -> None:
    task = started(suite, gate)
    ended = suite.cli("runners", "delete", "local")
    assert ended.code == 1 and ended.err.count("\n") == 1
    gate.touch()
    suite.done("wait", task)


def test_stats_count_by_phase_and_group(suite: Suite) -> None:
    m = new_id("m")
    ids = [
        suite.done("submit", "-l", f"m={m}", "--retries", "0", "--", word).strip()
        for word in ("true", "false")
    ]
    suite.cli("wait", *ids)
    head, row = suite.done("stats", "--filter", f'metadata.labels.m = "{m}"').splitlines()
    counted = dict(zip(head.split(), row.split(), strict=False))
    assert (counted["TASKS"], counted["SUCCEEDED"], counted["FAILED"]) == ("2", "1", "1")
    assert "local" in rows(suite.done("stats", "--by", "runner", "--since", "1h"))
    assert json.loads(suite.done("stats", "-o", "json"))["groups"]
    assert suite.cli("stats", "--filter", "colour = red").code == 1


def test_audit_lists_actors_and_actions(suite: Suite) -> None:
    task = new_id("audited")
    suite.done("submit", "--id", task, "--runner-label", "zone=mars", "--", "true")
    suite.done("cancel", task)
    events = [line.split()[1] for line in suite.done("audit", task).splitlines()[1:]]
    assert events[-1] == "task.created" and "task.cancelled" in events
    (created,) = json.loads(suite.done("audit", task, "--type", "task.created", "-o", "json"))
    assert created["resource"].endswith(task) and created["actor"]["type"] == "ACTOR_TYPE_USER"
    assert len(suite.done("audit", "-n", "2").splitlines()) == 3
    assert suite.cli("audit", "no-such-task").err == "No events.\n"


def test_tenants_are_made_changed_and_deleted(suite: Suite) -> None:
    tenant = new_id("acme")
    assert (
        suite.done("tenants", "create", tenant, "--tier", "standard", "--max-running", "7")
        == f"{tenant}  created\n"
    )
    assert rows(suite.done("tenants"))[tenant][1:6] == ["standard", "open", "7", "500", "10"]
    assert suite.done("tenants", "update", tenant, "--tier", "premium", "--suspend").strip() == (
        f"{tenant}  premium, suspended"
    )
    shown = suite.done("tenants", "show", tenant)
    assert "suspended" in shown and "0 of 7" in shown
    assert suite.cli("tenants", "update", tenant).code == 2
    assert suite.cli("tenants", "create", tenant, "--tier", "free").code == 1
    refused = suite.cli("tenants", "delete", tenant)
    assert refused.code == 130, "without a terminal nothing can be confirmed"
    assert suite.done("tenants", "delete", tenant, "--yes") == f"{tenant}  deleted\n"
    assert suite.cli("tenants", "show", tenant).code == 5


def test_a_key_works_until_it_is_revoked(suite: Suite) -> None:
    name = f"k{uuid.uuid4().hex[:8]}"
    made = suite.cli(
        "keys", "create", "--id", name, "--read-only", "--expires", "1h", "--description", "a test"
    )
    assert made.code == 0 and "cannot be shown again" in made.err
    key = made.out.strip()
    row = rows(suite.done("keys"))[name]
    assert row[1:4] == ["tenant", "default (reads only)", "in force"] and row[-1] == "a test"
    assert suite.cli("--key", key, "list").code == 0
    assert suite.cli("--key", key, "submit", "--", "true").code == 4
    runners = suite.cli("--key", key, "runners")
    assert runners.code == 4 and "TASKYARD_ADMIN_KEY" in runners.err
    assert suite.done("keys", "revoke", name) == f"{name}  revoked\n"
    assert rows(suite.done("keys"))[name][3] == "revoked"
    scoped = ("keys", "create", "--kind", "runner", "--runner-id", "worker-*", "--runner-label", "zone=a")
    assert suite.done(*scoped).startswith("ty_")
    assert suite.cli("keys", "create", "--kind", "admin", "--read-only").code == 2
    file = suite.folder / f"{name}.key"
    before = os.umask(0)
    try:
        assert suite.cli("keys", "create", "--kind", "runner", "--to", str(file)).out == ""
    finally:
        os.umask(before)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600 and file.read_text().startswith("ty_")
    assert suite.cli("keys", "create", "--kind", "runner", "--to", str(file)).code == 2
    assert suite.cli("keys", "revoke", "nokey").code == 5


YARD = """
kind: Task
id: {mark}-task
type: {mark}
payload: {{width: 640}}
---
kind: TaskType
id: {mark}
execution: {{command: {{program: echo, args: [encoding]}}}}
attempt_timeout: {timeout}
payload_schema: {{type: object, required: [width], properties: {{width: {{type: integer}}}}}}
---
kind: Tenant
id: {mark}
tier: standard
quota: {{max_concurrent_tasks: {most}}}
"""


def test_a_file_of_all_resources_is_applied_in_order_and_is_idempotent(suite: Suite) -> None:
    m = new_id("yard")
    (suite.folder / "yard.yaml").write_text(YARD.format(mark=m, timeout="5m", most=5))
    dry = suite.cli("apply", "-f", "yard.yaml", "--dry-run")
    assert dry.code == 0 and dry.err == "3 created (dry run: nothing was changed)\n"
    assert suite.cli("types", "show", m).code == 5
    made = [line for line in suite.done("apply", "-f", "yard.yaml").splitlines() if not line.startswith(" ")]
    assert made == [f"Tenant {m}  created", f"TaskType {m}  created", f"Task {m}-task  created"]
    assert suite.cli("apply", "-f", "yard.yaml").err == "3 unchanged\n"
    (suite.folder / "yard.yaml").write_text(YARD.format(mark=m, timeout="10m", most=6))
    changed = suite.done("apply", "-f", "yard.yaml").splitlines()
    assert changed == [
        f"Tenant {m}  changed",
        "  ~ quota.max_concurrent_tasks: 5 → 6",
        f"TaskType {m}  changed",
        "  ~ attempt_timeout: 300s → 600s",
        f"Task {m}-task  unchanged",
    ]
    assert suite.cli("apply", "-f", "yard.yaml").err == "3 unchanged\n"
    assert suite.done("wait", f"{m}-task") == f"{m}-task  SUCCEEDED\n"


def test_task_types_are_listed_checked_and_deleted(suite: Suite) -> None:
    m = new_id("type")
    (suite.folder / "type.yaml").write_text(YARD.format(mark=m, timeout="5m", most=5).split("---")[1])
    suite.done("apply", "-f", "type.yaml")
    assert rows(suite.done("types"))[m][1:4] == ["open", "command", "1"]
    assert "5m00s" in suite.done("types", "show", m)
    assert suite.done("types", "check", m, '{"width": 1}') == "The payload matches.\n"
    wrong = suite.cli("types", "check", m, '{"width": "x"}')
    assert wrong.code == 1 and "width" in wrong.out
    refused = suite.cli("submit", "--type", m, "--payload", "{}")
    assert refused.code == 1 and "width" in refused.err and refused.err.count("\n") == 1
    assert suite.done("types", "delete", m, "--yes") == f"{m}  deleted\n"
    assert suite.cli("types", "show", m).code == 5


def test_the_doctor_finds_nothing_wrong(suite: Suite) -> None:
    shown = suite.done("doctor")
    assert shown.splitlines()[0].split()[:3] == ["CHECK", "STATE", "FOUND"]
    assert "Healthy." in shown
    printed = json.loads(suite.done("doctor", "--repair", "-o", "json"))
    assert printed["healthy"] and printed["findings"]
    one = printed["findings"][0]["check"]
    assert list(rows(suite.done("doctor", one))) == [one, "Healthy."]
    ended = suite.cli("doctor", "no-such-check")
    assert ended.code == 1 and "no-such-check" in ended.err and ended.err.count("\n") == 1


def test_quarantines_are_listed(suite: Suite) -> None:
    ended = suite.cli("quarantines")
    assert (ended.code, ended.out, ended.err) == (0, "", "No quarantines.\n")
    assert suite.done("quarantines", "-o", "json") == "[]\n"
    assert suite.cli("quarantines", "release", "tenants/default/quarantines/00ff").code in (0, 5)


def test_top_draws_the_whole_screen_and_restores_the_terminal(suite: Suite) -> None:
    once = suite.done("top", "--once")
    assert "PENDING" in once and "local" in once and "\x1b" not in once
    with on_terminal(suite.folder, "top", "--interval", "200ms", columns=80, rows=20) as terminal:
        terminal.read_until("ended/s")
        terminal.read_until("local")
        terminal.press("q")
        drawn = terminal.read_all()
        assert terminal.process.returncode == 0
    assert drawn.startswith("\x1b[?1049h") and drawn.endswith("\x1b[?1049l")
    for line in re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", drawn.split("\x1b[H")[1]).splitlines():
        assert len(line) <= 80, line


def test_top_ends_with_its_terminal(suite: Suite) -> None:
    with on_terminal(suite.folder, "top") as terminal:
        terminal.read_until("local")
        terminal.hang_up()
        terminal.process.wait(30)
