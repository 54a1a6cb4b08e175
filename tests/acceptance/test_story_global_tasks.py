"""Modules of a cluster that record their work in Taskyard: reports, a backlog, and a killed writer."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import Any

import pytest

from taskyard import typed
from tests.acceptance.story import client_of, until
from tests.acceptance.suite import Suite

TYPES = [
    "vdag_creation",
    "block_alloc",
    "cluster_infra_creation",
    "cluster_infra_remove",
    "node_addition",
    "node_removal",
]


def call(suite: Suite, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
    """A path of the document, on the gateway, with a key."""
    request = urllib.request.Request(
        suite.context["gateway"] + path,
        json.dumps(body).encode() if body is not None else None,
        {"Content-Type": "application/json", "Authorization": f"Bearer {suite.context['key']}"},
        method=method,
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.loads(answer.read())


@pytest.mark.seed("S3.1", "S3.20-25")
def test_the_preset_has_the_six_types_and_a_module_reports_as_it_works(suite: Suite) -> None:
    suite.done("apply", "--preset", "global-tasks")
    assert "7 unchanged" in suite.cli("apply", "--preset", "global-tasks").err
    with client_of(suite) as client:
        for name in TYPES:
            task = client.create(typed(name, {"cluster": "c1"}))
            client.report(task, "running", details={"done": 1})
            suite.done("report", task.id, "--details", '{"done": 2}')
            assert suite.done("report", task.id, "completed", "--details", '{"ok": true}').endswith(
                "SUCCEEDED\n"
            )
            shown = call(suite, "GET", f"/task/{task.id}")
            assert (shown["task_type"], shown["task_status"]) == (name, "completed")
            assert shown["task_status_data"] == {"done": 2, "ok": True}


@pytest.mark.seed("S3.12-18")
def test_the_six_calls_of_the_document(suite: Suite) -> None:
    made = call(suite, "POST", "/task", {"task_data": {"nodes": 3}, "task_type": "node_addition"})
    path = f"/task/{made['task_id']}"
    assert call(suite, "GET", path)["task_status"] == "pending"
    changed = call(suite, "PUT", path, {"task_status": "in_progress", "task_data": {"nodes": 4}})
    assert (changed["task_status"], changed["task_data"]) == ("in_progress", {"nodes": 4})
    update = {"task_id": made["task_id"], "status": "completed", "task_status_data": {"added": 4}}
    call(suite, "POST", "/task_update", update)
    until(lambda: call(suite, "GET", path)["task_status"] == "completed", "the update is applied")
    listed = call(suite, "GET", "/tasks?task_type=node_addition&task_status=completed")["tasks"]
    assert made["task_id"] in [one["task_id"] for one in listed]
    call(suite, "DELETE", path)
    with pytest.raises(urllib.error.HTTPError):
        call(suite, "GET", path)


@pytest.mark.seed("S3.3", "S3.18")
def test_a_backlog_of_updates_survives_a_killed_writer_in_order(suite: Suite) -> None:
    made = call(suite, "POST", "/task", {"task_type": "block_alloc"})["task_id"]
    for number in range(20):
        data = {"task_id": made, "status": "in_progress", "task_status_data": {"block": number}}
        call(suite, "POST", "/task_update", data)
    suite.kill_service("taskdb")

    def pushed() -> bool:
        try:
            call(suite, "POST", "/task_update", {"task_id": made, "status": "completed"})
        except OSError:
            return False
        return True

    until(pushed, "taskdb is back")

    def applied() -> Any:
        found = call(suite, "GET", f"/task/{made}")
        return found if found["task_status"] == "completed" else None

    assert until(applied, "the backlog is applied")["task_status_data"] == {"block": 19}
