"""Tasks of real runners under a real taskdb and scheduler: every way a run can go, as a client sees it."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from typing import TYPE_CHECKING

import psutil
import pytest

from services.runner.tests.runner_process import RunnerProcess
from taskyard import Client, Created, NewTask, Phase, Retry, Task, command, script
from tests.harness.control_plane import ControlPlane, control_plane
from tests.integration.conftest import StartRunner

if TYPE_CHECKING:
    from tests.harness.postgres import PostgresServer

PATIENCE = 30


@pytest.fixture(scope="module")
def plane(postgres_server: PostgresServer, migrated_template: str) -> Iterator[ControlPlane]:
    with control_plane(postgres_server, migrated_template) as running:
        yield running


@pytest.fixture
def runner_flags() -> tuple[str, ...]:
    return ("--capacity", "4")


@pytest.fixture
async def runner(start_runner: StartRunner) -> RunnerProcess:
    return await start_runner()


async def run(client: Client, task: NewTask) -> Task:
    """Create it and wait for its end."""
    return await client.wait(await client.create(task), timeout=PATIENCE)


async def lines(client: Client, task: Task) -> list[str]:
    return [entry.message async for entry in client.logs(task, follow=True)]


async def written(client: Client, task: Created, text: str) -> None:
    """Returns once the task has logged this line."""
    async for entry in client.logs(task, follow=True):
        if entry.message == text:
            return
    raise AssertionError(f"{text!r} was not logged")


async def reached(client: Client, task: Created, phase: Phase) -> None:
    """Returns once the task is in this phase."""
    async for event in client.watch(task, snapshot=True):
        if event.phase is phase:
            return


async def test_success_with_result_and_ordered_logs(
    client: Client, runner: RunnerProcess, own: dict[str, str]
) -> None:
    body = 'seq 1 3000; echo \'{"sum": 4501500}\' > "$TASKYARD_RESULT_FILE"'
    task = await run(client, script.bash(body, runner_labels=own))
    assert (task.phase, task.exit_code, task.output) == (Phase.SUCCEEDED, 0, {"sum": 4501500})
    assert await lines(client, task) == [str(number) for number in range(1, 3001)]
    (only,) = [found async for found in client.runs(task)]
    assert (only.runner, only.attempt) == (runner.id, 1)


async def test_transient_failures_are_retried_and_permanent_ones_are_not(
    client: Client, runner: RunnerProcess, own: dict[str, str]
) -> None:
    retry: Retry = {"max_retries": 1, "initial": 0.05}
    transient = await run(client, command("bash", "-c", "exit 3", runner_labels=own, retry=retry))
    assert (transient.phase, transient.attempt, transient.exit_code) == (Phase.EXHAUSTED, 2, 3)
    permanent = await run(client, command("no-such-program", runner_labels=own, retry=retry))
    assert (permanent.phase, permanent.attempt) == (Phase.FAILED, 1)
    assert permanent.error is not None and permanent.error.code == "START_FAILED"


async def test_attempt_timeout(client: Client, runner: RunnerProcess, own: dict[str, str]) -> None:
    task = await run(client, command("sleep", "600", runner_labels=own, timeout=0.3))
    assert task.phase is Phase.TIMED_OUT
    assert task.error is not None and task.error.code == "ATTEMPT_TIMEOUT"


async def test_silence_timeout(client: Client, runner: RunnerProcess, own: dict[str, str]) -> None:
    task = await run(client, command("sleep", "600", runner_labels=own, silence_timeout=0.3))
    assert task.error is not None and task.error.code == "SILENCE_TIMEOUT"


async def test_cancel_ends_everything_the_task_started(
    client: Client, runner: RunnerProcess, own: dict[str, str]
) -> None:
    body = "setsid sleep 600 & echo $!; echo ready; wait"
    task = await client.create(script.bash(body, runner_labels=own))
    await written(client, task, "ready")
    await client.cancel(task)
    assert (await client.wait(task, timeout=PATIENCE)).phase is Phase.CANCELLED
    escaped = int((await lines(client, task))[0])
    assert not psutil.pid_exists(escaped)


COUNTER = """
i=0; [ -n "$TASKYARD_CHECKPOINT_FILE" ] && i=$(cat "$TASKYARD_CHECKPOINT_FILE")
echo "from $i on $TASKYARD_RUNNER"
trap 'echo $((i + 1)) > state; taskyard-task checkpoint state; exit 0' TERM
[ "$i" -ge 1 ] && exit 0
echo ready; while true; do sleep 600 & wait; done
"""


async def test_a_paused_task_resumes_from_its_checkpoint_on_another_runner(
    client: Client, start_runner: StartRunner, own: dict[str, str]
) -> None:
    first = await start_runner()
    task = await client.create(script.bash(COUNTER, runner_labels=own))
    await written(client, task, "ready")
    await client.pause(task)
    await reached(client, task, Phase.PAUSED)
    await first.kill()
    second = await start_runner()
    await client.resume(task)
    done = await client.wait(task, timeout=PATIENCE)
    assert done.phase is Phase.SUCCEEDED
    assert (await lines(client, done))[-1] == f"from 1 on {second.id}"


async def test_progress_and_levels_reach_the_client(
    client: Client, runner: RunnerProcess, own: dict[str, str]
) -> None:
    body = """
    taskyard-task progress 60 half; taskyard-task log --level error bad
    echo '{"level": "warning", "message": "w"}'
    """
    task = await run(client, script.bash(body, runner_labels=own))
    assert (task.proto.status.progress.percent, task.proto.status.progress.message) == (60, "half")
    levels = {entry.message: entry.level.name async for entry in client.logs(task)}
    assert levels == {"bad": "ERROR", "w": "WARNING"}


async def test_environment_and_isolation(
    client: Client, start_runner: StartRunner, own: dict[str, str]
) -> None:
    await start_runner("--env", "SHARED=runner", CANARY="of the runner")
    shown = "dict(os.environ), os.listdir('.'), os.listdir('/proc/self/fd')"
    program = f"import json, os; print(json.dumps([{shown}]))"
    task = await run(
        client,
        script.python(program, runner_labels=own, env={"SHARED": "task", "OWN": "1"}, payload={"a": 1}),
    )
    (line,) = await lines(client, task)
    env, files, descriptors = json.loads(line)
    assert (env["SHARED"], env["OWN"]) == ("runner", "1")
    assert "CANARY" not in env and "TASKYARD_KEY" not in env
    assert env["TASKYARD_TASK_ID"] == task.id
    assert files == []
    assert len(descriptors) <= 4


async def test_a_drained_runner_releases_its_task_to_another(
    client: Client, start_runner: StartRunner, own: dict[str, str]
) -> None:
    first = await start_runner("--drain-timeout", "0s")
    body = 'echo "on $TASKYARD_RUNNER"; [ -e "$MARK" ] && exit 0; touch "$MARK"; echo ready; exec sleep 600'
    mark = str(first.data_dir.parent / "mark")
    task = await client.create(script.bash(body, runner_labels=own, env={"MARK": mark}))
    await written(client, task, "ready")
    second = await start_runner()
    first.send(signal.SIGTERM)
    assert await first.wait() == 0
    done = await client.wait(task, timeout=PATIENCE)
    assert done.phase is Phase.SUCCEEDED
    assert [found.runner async for found in client.runs(done)].count(second.id) == 1
