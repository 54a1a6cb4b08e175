"""Groups, their drawing and named limits from the command line."""

from __future__ import annotations

from tests.acceptance.suite import Suite


def test_a_group_is_filled_closed_drawn_and_waited_for(suite: Suite) -> None:
    assert "parts" in suite.done("group", "create", "parts")
    for n in (1, 2):
        suite.done("submit", "--id", f"part-{n}", "--group", "parts", "--", "true")
    suite.done("submit", "--id", "join", "--group", "parts", "--after", "part-1,part-2", "--", "true")
    assert suite.done("group", "-o", "name").split() == ["parts"]
    assert "closed" in suite.done("group", "close", "parts")
    assert "3 succeeded" in suite.done("group", "wait", "parts", "--timeout", "60s")
    shown = suite.done("group", "get", "parts")
    assert "COMPLETE" in shown.upper() and "3" in shown
    drawn = suite.done("graph", "parts")
    assert all(task in drawn for task in ("part-1", "part-2", "join"))
    assert "deleted" in suite.done("group", "delete", "parts")
    assert "parts" not in suite.done("group", "list")


def test_a_cancelled_group_has_no_live_task(suite: Suite) -> None:
    task = suite.done("submit", "--group", "stopped", "--", "sleep", "600").split()[0]
    assert "cancel" in suite.done("group", "cancel", "stopped", "--reason", "enough")
    assert suite.cli("wait", task).code != 0
    assert "enough" in suite.done("audit", "--filter", 'event_type = "group.cancelled"')


def test_a_named_limit_is_created_changed_and_deleted(suite: Suite) -> None:
    assert "created" in suite.done("limits", "create", "api", "--max-running-per-key", "1")
    first = suite.done("submit", "--limit", "api:k", "--", "sleep", "600").split()[0]
    second = suite.done("submit", "--limit", "api:k", "--", "true").split()[0]
    assert "max_running_per_key" in suite.cli("explain", second).out
    assert "api" in suite.done("limits") and "1" in suite.done("limits", "show", "api")
    assert "changed" in suite.done("limits", "update", "api", "--max-running-per-key", "2")
    assert suite.cli("wait", second).code == 0
    suite.done("cancel", first)
    assert "deleted" in suite.done("limits", "delete", "api", "--yes")
