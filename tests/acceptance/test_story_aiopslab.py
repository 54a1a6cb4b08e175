"""A day of an AIOpsLab team: problems, steps, logs by level, metrics, timeout, callback and statistics."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from taskyard import NewTask, SyncClient, errors, typed
from tests.acceptance.story import app_runner, client_of
from tests.acceptance.suite import Suite, running_suite

APP = """
from taskyard_runner.functions import App, Context, Permanent

app = App()


@app.task("aiopslab.problem")
def solve(ctx: Context, problem_id: str, agent_config: dict = {}, metadata: dict = {}) -> dict:
    ctx.log("agent starts", "debug", step=0)
    for step in range(1, min(3, ctx.max_steps) + 1):
        ctx.log(f"step {step}", step=step, action="kubectl", replicas=step)
        ctx.progress(step * 30, f"step {step}", step=step)
    if problem_id == "unsolvable":
        ctx.log("no action is left", "error", step=3)
        raise Permanent("agent gave up")
    if problem_id == "endless":
        ctx.sleep(300)
    ctx.metrics(steps=3, reward=0.5)
    return {"problem": problem_id, "max_steps": ctx.max_steps}
"""


@pytest.fixture(scope="module")
def suite() -> Iterator[Suite]:
    """A Taskyard that may call back to this machine."""
    with running_suite(TASKYARD_TASKDB_WEBHOOK_NETWORKS="127.0.0.0/8") as suite:
        yield suite


@pytest.fixture(scope="module")
def client(suite: Suite) -> Iterator[SyncClient]:
    suite.done("apply", "--preset", "aiopslab")
    with app_runner(suite, APP, "worker-001-kind"), client_of(suite) as client:
        yield client


def problem(problem_id: str, **options: Any) -> NewTask:
    return typed("aiopslab.problem", {"problem_id": problem_id}, **options)


@pytest.mark.seed("S0.1", "S0.12", "S0.15", "S0.16", "S0.56-58", "S0.63-64", "S0.73")
def test_a_problem_is_solved_in_steps_by_the_worker_of_a_cluster(client: SyncClient) -> None:
    task = client.create(problem("pod-failure-1", max_steps=50, priority=20))
    ended = client.wait(task, timeout=120)
    assert ended.succeeded and ended.result == {"problem": "pod-failure-1", "max_steps": 50}
    status = ended.proto.status
    assert status.last_runner == "runners/worker-001-kind" and not status.runner
    assert dict(status.result.metrics) == {"steps": 3, "reward": 0.5}
    written = [entry for entry in client.logs(task) if entry.proto.action == "kubectl"]
    assert [(one.message, one.proto.step) for one in written] == [(f"step {n}", n) for n in (1, 2, 3)]
    assert dict(written[2].proto.details) == {"replicas": 3}


@pytest.mark.seed("S0.17", "S0.53", "S0.62", "S0.65")
def test_a_failure_has_its_message_and_the_log_is_read_by_level(suite: Suite, client: SyncClient) -> None:
    task = client.create(problem("unsolvable"))
    ended = client.wait(task, timeout=120)
    assert str(ended.phase) == "FAILED" and ended.proto.status.attempt == 1
    assert "agent gave up" in ended.proto.status.error.message
    assert "step 1" in suite.done("logs", task.id)
    errors_only = suite.cli("logs", task.id, "--level", "error")
    assert "no action is left" in errors_only.out and "step 1" not in errors_only.out


@pytest.mark.seed("S0.9")
def test_the_callback_is_called_when_the_problem_has_ended(suite: Suite, client: SyncClient) -> None:
    called = threading.Event()
    bodies: list[bytes] = []

    class Receiver(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(204)
            self.end_headers()
            called.set()

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}/done"
    try:
        task = client.create(problem("pod-failure-2", callback=url))
        client.wait(task, timeout=120)
        assert called.wait(60) and task.id.encode() in bodies[0]
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.seed("S0.27", "S0.90", "S0.91", "S0.95")
def test_problems_are_found_counted_and_never_deleted(suite: Suite, client: SyncClient) -> None:
    task = client.create(problem("pod-failure-3"))
    client.wait(task, timeout=120)
    found = [one.id for one in client.list('payload.problem_id = "pod-failure-3"')]
    assert found == [task.id]
    assert "aiopslab.problem" in suite.done("stats", "--by", "task_type")
    with pytest.raises(errors.FailedPrecondition):
        client.delete(task)


@pytest.mark.seed("S0.25", "S0.66")
def test_a_problem_that_takes_too_long_is_stopped_and_times_out(suite: Suite, client: SyncClient) -> None:
    with pytest.raises(errors.FieldInvalid):
        client.create(problem("endless", timeout=59))
    task = client.create(problem("endless", total_timeout=5))
    ended = client.wait(task, timeout=120)
    assert str(ended.phase) == "TIMED_OUT"
