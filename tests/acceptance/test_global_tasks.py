"""The commands of the Global tasks DB's document, run verbatim by curl, without a key."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.suite import Suite, running_suite
from tests.harness.processes import free_port

COMMANDS = Path(__file__).with_name("data") / "global_tasks_commands.txt"
CREATE, GET, PUT, DELETE, LIST, PUSH = COMMANDS.read_text().strip().split("\n\n")

pytestmark = pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")

Run = Callable[..., Any]


@pytest.fixture(scope="module")
def port() -> int:
    return free_port()


@pytest.fixture(scope="module")
def suite(port: int) -> Iterator[Suite]:
    """A Taskyard as `taskyard up --global-tasks` starts it, but for the port."""
    with running_suite(("--global-tasks", "--global-tasks-port", str(port))) as suite:
        yield suite


@pytest.fixture
def run(suite: Suite, port: int, tmp_path: Path) -> Run:
    """Runs a command of the document, with its placeholders filled in; its answer."""
    # The commands call port 5000; curl connects to the one that is free here, and says 5000.
    (tmp_path / ".curlrc").write_text(f'connect-to = "localhost:5000:127.0.0.1:{port}"\nsilent\nshow-error\n')

    def run(command: str, task_id: str = "", *more: str) -> Any:
        filled = command.replace("<task_id>", task_id).replace("12345", task_id or "12345")
        filled = filled.replace("your-api-host", "localhost:5000")
        ended = subprocess.run(
            ["sh", "-c", f"{filled} {' '.join(more)}"],
            env={"CURL_HOME": str(tmp_path), "PATH": os.defpath},
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert ended.returncode == 0, f"{filled}\n{ended.stderr}\n{suite.logs()}"
        return json.loads(ended.stdout)

    return run


@pytest.mark.seed("S3.12-19")
def test_the_commands_of_the_document_work_verbatim(run: Run) -> None:
    created = run(CREATE)
    assert list(created) == ["task_id"]
    task_id = created["task_id"]
    assert str(uuid.UUID(task_id, version=4)) == task_id
    found = run(GET, task_id)
    made = found.pop("task_create_timestamp")
    assert isinstance(made, int) and abs(made - time.time()) < 120
    assert found == {
        "task_id": task_id,
        "task_data": {"key": "value"},
        "task_type": "example_task_type",
        "task_update_timestamp": found["task_update_timestamp"],
        "task_status": "pending",
        "task_status_data": {"info": "status info"},
    }
    assert isinstance(found["task_update_timestamp"], int) and found["task_update_timestamp"] >= made
    put = run(PUT, task_id)
    assert put == {
        **found,
        "task_create_timestamp": made,
        "task_data": {"updated_key": "updated_value"},
        "task_status": "in_progress",
        "task_update_timestamp": put["task_update_timestamp"],
    }
    assert run(GET, task_id) == put
    assert run(PUSH, task_id) == {}
    ended = until_completed(run, task_id)
    assert (ended["task_status_data"], ended["task_data"]) == ({}, {"updated_key": "updated_value"})
    assert run(DELETE, task_id) == {}
    gone = run(GET, task_id)
    assert (gone["code"], gone["details"][0]["reason"]) == (5, "NOT_FOUND")
    assert run(PUSH)["code"] == 5


def until_completed(run: Run, task_id: str) -> Any:
    """The task once the update has been applied, as the document says: eventually."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        found = run(GET, task_id)
        if found["task_status"] == "completed":
            return found
    raise AssertionError("the update was not applied")


@pytest.mark.seed("S3.16")
def test_the_list_of_the_document_is_by_type_and_status(run: Run) -> None:
    assert run(LIST) == {"tasks": []}
    wanted = run(CREATE.replace("example_task_type", "vdag_creation"))["task_id"]
    run(CREATE)
    run(CREATE.replace("example_task_type", "vdag_creation").replace("pending", "in_progress"))
    listed = run(LIST)
    assert list(listed) == ["tasks"] and [task["task_id"] for task in listed["tasks"]] == [wanted]
    assert listed["tasks"][0] == run(GET, wanted)


def refused(port: int, method: str, path: str, body: bytes | None = None, **headers: str) -> int:
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", body, method=method)
    for name, value in headers.items():
        request.add_header(name.replace("_", "-"), value)
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


def test_no_web_page_can_use_it_and_it_offers_nothing_else(suite: Suite, port: int, run: Run) -> None:
    before = run(LIST.replace("?task_type=vdag_creation&task_status=pending", ""))
    assert refused(port, "GET", "/tasks") == 200
    assert refused(port, "GET", "/tasks", Host="evil.example") == 403
    assert refused(port, "GET", "/tasks", Origin="http://evil.example") == 403
    assert refused(port, "GET", "/tasks", Sec_Fetch_Site="cross-site") == 403
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data"):
        assert refused(port, "POST", "/task", b"{}", Content_Type=kind) == 415
        assert refused(port, "POST", "/task", b"", Content_Type=kind) == 415
    assert refused(port, "OPTIONS", "/task", Access_Control_Request_Method="POST") == 405
    for path in ("/v1/tenants", "/v1/tenants/default/tasks", "/docs", "/healthz", "/openapi.json"):
        assert refused(port, "GET", path) == 404
    method = "/taskyard.v1.TaskService/ListTasks"
    assert refused(port, "POST", method, b"{}", Content_Type="application/json") == 404
    # The tenant is the listener's, and a caller's key is of no use.
    assert refused(port, "GET", "/tasks", X_Tenant="acme", Authorization="Bearer nonsense") == 200
    assert run(LIST.replace("?task_type=vdag_creation&task_status=pending", "")) == before


def test_tasks_of_runners_are_out_of_reach(suite: Suite, port: int) -> None:
    suite.done("submit", "--id", "of-a-runner", "--", "true")
    assert refused(port, "GET", "/task/of-a-runner") == 404
    assert refused(port, "DELETE", "/task/of-a-runner") == 404


def test_up_says_who_can_use_it(suite: Suite, port: int) -> None:
    assert f"Global tasks without a key: http://127.0.0.1:{port}" in suite.output()
    assert "Everything that runs on this machine can use it" in suite.output()
