"""A question on its way through planner and worker functions: entities, locks, retries, batches, recovery."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from taskyard import NewTask, SyncClient, errors, typed
from tests.acceptance.story import app_runner, client_of, until
from tests.acceptance.suite import Suite

APP = """
import pathlib, time
from taskyard_runner.functions import App, Context, Transient

app = App()


@app.task("execute_initial_planning")
def plan(ctx: Context, user_question: str, instruction: str) -> dict:
    return {"planner": ctx.entity.id, "todo": [f"{user_question} {n}" for n in (1, 2)]}


@app.task("execute_task_creation")
def create(ctx: Context) -> list:
    return [f"{ctx.entity.id}-worker-{n}" for n in (1, 2)]


@app.task("execute_standard_worker")
def work(ctx: Context, until: str = "") -> dict:
    while until and not pathlib.Path(until).exists():
        time.sleep(0.1)
    return {"worker": ctx.entity.id, "attempt": ctx.attempt, "began": time.time()}


@app.task("execute_sql_worker")
def flaky(ctx: Context) -> int:
    if ctx.attempt == 1:
        raise Transient("database is locked", retry_after=0.1)
    return ctx.attempt


@app.task("execute_synthesis")
def synthesis(ctx: Context) -> str:
    return f"answer of {ctx.entity.type} {ctx.entity.id}"
"""
QUESTION = {"user_question": "how many", "instruction": "count"}


@pytest.fixture(scope="module")
def client(suite: Suite) -> Iterator[SyncClient]:
    suite.done("apply", "--preset", "agent-functions")
    with app_runner(suite, APP, "agent-1", "--capacity", "8"), client_of(suite) as client:
        yield client


def work(entity: str, **payload: str) -> NewTask:
    return typed("execute_standard_worker", payload, entity=("worker", entity), stop_grace_period=2)


@pytest.mark.seed("S1.1", "S1.4", "S1.5", "S1.37")
def test_a_question_becomes_a_plan_tasks_work_and_an_answer(client: SyncClient) -> None:
    planner = ("planner", "p1")
    plan = client.wait(
        client.create(typed("execute_initial_planning", QUESTION, entity=planner)), timeout=120
    )
    assert plan.result == {"planner": "p1", "todo": ["how many 1", "how many 2"]}
    created = client.wait(client.create(typed("execute_task_creation", entity=planner)), timeout=120)
    results = [client.wait(client.create(work(name)), timeout=120).result for name in created.result]
    assert [one["worker"] for one in results] == ["p1-worker-1", "p1-worker-2"]
    answer = client.wait(client.create(typed("execute_synthesis", entity=planner)), timeout=120)
    assert answer.result == "answer of planner p1"


@pytest.mark.seed("S1.43-45", "S1.60")
def test_a_batch_runs_one_after_the_other_per_entity(client: SyncClient) -> None:
    made = [
        one
        for one in client.create_many([work("same") for _ in range(3)])
        if not isinstance(one, errors.TaskyardError)
    ]
    assert len(made) == 3 and all(len(task.id) == 32 for task in made)
    ended = [client.wait(task, timeout=120) for task in made]
    began = [task.result["began"] for task in ended]
    assert began == sorted(began)
    ends = [task.proto.status.end_time.ToNanoseconds() for task in ended]
    starts = [task.proto.status.start_time.ToNanoseconds() for task in ended]
    assert ends[0] <= starts[1] and ends[1] <= starts[2]


@pytest.mark.seed("S1.38", "S1.39", "S1.50", "S1.54")
def test_a_failure_is_retried_after_its_back_off_and_leaves_no_error(client: SyncClient) -> None:
    task = client.create(typed("execute_sql_worker", entity=("worker", "flaky")))
    ended = client.wait(task, timeout=120)
    assert ended.result == 2 and not ended.proto.status.HasField("error")
    first, second = sorted(client.runs(task), key=lambda run: run.proto.attempt)
    wait = second.proto.start_time.ToMilliseconds() - first.proto.end_time.ToMilliseconds()
    assert wait >= 1900


@pytest.mark.seed("S1.56", "S1.57")
def test_a_task_that_hangs_is_found_and_reset(client: SyncClient, gate: Path) -> None:
    task = client.create(work("hangs", until=str(gate)))
    until(lambda: str(client.get(task).phase) == "RUNNING", "the first run has begun")
    found = [one.id for one in client.list('status.phase = RUNNING AND spec.entity.id = "hangs"')]
    assert found == [task.id]
    outcomes = list(client.reset_all('spec.entity.id = "hangs"', reason="Task timed out and was reset"))
    assert [error for _, error in outcomes] == [None]
    # Tasks of an entity never overlap: the next run begins once the runner has stopped the hanging one.
    until(lambda: client.get(task).proto.status.generation >= 2, "the next run has begun")
    assert client.get(task).proto.status.error.message == "Task timed out and was reset"
    gate.touch()
    ended = client.wait(task, timeout=120)
    assert ended.succeeded and ended.proto.status.retry_count == 0 and ended.proto.status.generation == 2
    first, second = sorted(client.runs(task), key=lambda run: run.proto.generation)
    assert first.proto.end_time.ToNanoseconds() <= second.proto.start_time.ToNanoseconds()


@pytest.mark.seed("S1.58")
def test_ended_tasks_expire_after_a_week(client: SyncClient) -> None:
    task = client.wait(client.create(work("clean")), timeout=120)
    kept = task.proto.metadata.expire_time.seconds - task.proto.status.end_time.seconds
    assert kept in (7 * 86400, 7 * 86400 + 1, 7 * 86400 - 1)
