"""Functions that wait for children: without a place meanwhile, each child once, over kills of processes."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from services.runner.tests.runner_process import Gate, RunnerProcess
from taskyard import Client, Created, Phase, RunState, function
from tests.harness.control_plane import ControlPlane, control_plane
from tests.harness.pause import Pause
from tests.integration.conftest import StartRunner
from tests.integration.test_runner_faults import PATIENCE, SCHEDULER, TASKDB, Effects, until

if TYPE_CHECKING:
    from tests.harness.postgres import PostgresServer

APP = ("--app", "tests.integration.spawning_app:app", "--kind", "function")


@pytest.fixture(scope="module")
def plane(postgres_server: PostgresServer, migrated_template: str) -> Iterator[ControlPlane]:
    made = control_plane(postgres_server, migrated_template, taskdb_flags=TASKDB, scheduler_flags=SCHEDULER)
    with made as running:
        yield running


@pytest.fixture
def runner_flags() -> tuple[str, ...]:
    return (*APP, "--capacity", "20")


async def children(client: Client, parent: Created) -> list[str]:
    return [task.id async for task in client.list(filter=f'metadata.parent_task = "{parent.name}"')]


@pytest.mark.parametrize("name", ["squares", "plain_squares"])
async def test_a_parent_holds_no_place_while_it_waits(
    client: Client, start_runner: StartRunner, tmp_path: Path, name: str
) -> None:
    # The children need the only place.
    await start_runner("--capacity", "1")
    effects = Effects(tmp_path)
    parent = await client.create(function(name, {"count": 3, "effects": str(effects.path)}, retry=0))
    done = await client.wait(parent, timeout=PATIENCE)
    assert (done.phase, done.result) == (Phase.SUCCEEDED, 5), done.proto
    assert (done.proto.status.attempt, done.proto.status.retry_count) == (1, 0)
    assert [run.state async for run in client.runs(parent)] == [RunState.SUCCEEDED, RunState.RELEASED]
    leaves = {f"leaf {n}": 1 for n in range(3)}
    assert effects.count() == Counter({"parent 1": 2, **leaves} | ({"spawned": 2} if "_" in name else {}))
    assert len(await children(client, parent)) == 3


async def kill_and_restart(plane: ControlPlane, runner: RunnerProcess, target: str) -> None:
    if target == "agent":
        before = runner.sessions()
        os.kill(runner.agent_pid, signal.SIGKILL)
        await runner.connected(before + 1)
        return
    if target == "runner":
        before = runner.sessions()
        await runner.kill()
        await runner.start(*APP, "--capacity", "20")
        await runner.connected(before + 1)
        return
    service = plane.taskdbs[0] if target == "taskdb" else plane.schedulers[0]
    service.kill()
    service.start()


# The step of taskdb at which a process is killed, and its number: the parent is the first create. The one
# function spawns two batches, the other each child by itself.
BATCHES, SINGLE = ("create.before_commit", 3, "squares", 120), ("create.after_commit", 4, "plain_squares", 4)


@pytest.mark.parametrize(
    ("target", "step", "hit", "name", "count"),
    [
        ("taskdb", *BATCHES),
        ("taskdb", *SINGLE),
        ("scheduler", *BATCHES),
        ("agent", *SINGLE),
        ("runner", *BATCHES),
    ],
)
async def test_a_kill_in_the_middle_of_a_spawn_creates_each_child_once(
    plane: ControlPlane,
    client: Client,
    start_runner: StartRunner,
    tmp_path: Path,
    target: str,
    step: str,
    hit: int,
    name: str,
    count: int,
) -> None:
    taskdb, pause, effects = plane.taskdbs[0], Pause(tmp_path / "pause", step), Effects(tmp_path)
    taskdb.terminate()
    setting = f"{step}=kill" if target == "taskdb" else pause.setting
    taskdb.start(TASKYARD_FAILPOINTS=f"{setting}@{hit}")
    runner = await start_runner()
    parent = await client.create(function(name, {"count": count, "effects": str(effects.path)}))
    if target == "taskdb":
        await asyncio.to_thread(taskdb.wait_killed)
        taskdb.start()
    else:
        await pause.reached()
        await kill_and_restart(plane, runner, target)
        await pause.release()
    done = await client.wait(parent, timeout=PATIENCE)
    assert (done.phase, done.result) == (Phase.SUCCEEDED, sum(n * n for n in range(count))), done.proto
    if target == "agent":
        # The next one answers the function, which notices nothing.
        assert (done.proto.status.attempt, done.proto.status.retry_count) == (1, 0)
    # The call is repeated: a lease may be lost on a busy machine, but the function does not fail.
    assert done.proto.status.retry_count == 0
    # As many children as there are numbers, of which each has run.
    assert len(await children(client, parent)) == count
    assert {f"leaf {n}" for n in range(count)} <= effects.count().keys()


@pytest.mark.parametrize("target", ["taskdb", "scheduler", "runner"])
async def test_a_kill_between_spawn_and_gather_loses_and_repeats_nothing(
    plane: ControlPlane, client: Client, start_runner: StartRunner, tmp_path: Path, target: str
) -> None:
    runner = await start_runner()
    effects, gate = Effects(tmp_path), Gate(tmp_path)
    payload = {"count": 4, "effects": str(effects.path), "before": str(gate)}
    parent = await client.create(function("plain_squares", payload))
    await until(lambda: effects.count()["spawned"] >= 1)
    await kill_and_restart(plane, runner, target)
    gate.open()
    done = await client.wait(parent, timeout=PATIENCE)
    assert (done.phase, done.result) == (Phase.SUCCEEDED, 14), done.proto
    assert len(await children(client, parent)) == 4
    assert done.proto.status.retry_count == 0
    # A leaf may have run again where its lease was lost, as any task; none was created twice.
    assert {f"leaf {n}" for n in range(4)} <= effects.count().keys()


@pytest.mark.parametrize("target", ["taskdb", "scheduler", "runner"])
async def test_a_kill_while_the_parent_waits_does_not_keep_it_waiting(
    plane: ControlPlane, client: Client, start_runner: StartRunner, tmp_path: Path, target: str
) -> None:
    runner = await start_runner()
    effects, gate = Effects(tmp_path), Gate(tmp_path)
    payload = {"count": 3, "effects": str(effects.path), "gate": str(gate)}
    parent = await client.create(function("squares", payload))
    async for event in client.watch(parent, snapshot=True):
        if event.task.proto.status.pending_reason == 6:
            break
    await kill_and_restart(plane, runner, target)
    gate.open()
    done = await client.wait(parent, timeout=PATIENCE)
    assert (done.phase, done.result) == (Phase.SUCCEEDED, 5), done.proto
    assert len(await children(client, parent)) == 3


async def test_explain_names_the_children_and_the_audit_trail_has_the_wait(
    plane: ControlPlane,
    client: Client,
    start_runner: StartRunner,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TASKYARD_SCHEDULER", plane.schedulers[0].address)
    monkeypatch.setenv("TASKYARD_ADDRESS", plane.taskdbs[0].address)
    monkeypatch.setenv("TASKYARD_KEY", plane.keys["tenant"])
    await start_runner()
    effects, gate = Effects(tmp_path), Gate(tmp_path)
    payload = {"count": 5, "effects": str(effects.path), "gate": str(gate)}
    parent = await client.create(function("squares", payload))
    async for event in client.watch(parent, snapshot=True):
        if event.task.proto.status.pending_reason == 6:
            break
    async with Client(tenant="default") as by_environment:
        found = await by_environment.explain(parent.name)
    (closed,) = [one for one in found.gates if not one.passed]
    assert (found.runnable, closed.name) == (False, "dependency")
    assert closed.blocker in {f"tenants/default/tasks/{id}" for id in await children(client, parent)}
    assert closed.message.startswith("it waits for children that it has spawned: ")
    assert closed.message.endswith(", and 2 more") and closed.blocker in closed.message
    words = [one.event_type async for one in client.audit(f'resource = "{parent.name}"')]
    assert "task.waiting" in words
    gate.open()
    assert (await client.wait(parent, timeout=PATIENCE)).result == 30


async def test_a_child_that_fails_fails_its_parent_by_name(client: Client, start_runner: StartRunner) -> None:
    await start_runner()
    parent = await client.create(function("careless", retry=3))
    done = await client.wait(parent, timeout=PATIENCE)
    (child,) = await children(client, parent)
    assert done.phase is Phase.FAILED and done.proto.status.error.code == "CHILD_FAILED"
    assert f"tasks/{child} ended as FAILED: EXCEPTION: ValueError: it is broken" in (
        done.proto.status.error.message
    )


async def test_failures_are_returned_on_request(client: Client, start_runner: StartRunner) -> None:
    await start_runner()
    result = await client.call("careful", deadline=PATIENCE)
    assert (result["value"], result["phase"], result["code"]) == (5, "FAILED", "EXCEPTION")


async def test_a_function_that_swallows_the_wait_is_called_again_all_the_same(
    client: Client, start_runner: StartRunner
) -> None:
    await start_runner()
    assert await client.call("swallowing", deadline=PATIENCE) == "got 7"


async def test_a_function_waits_in_stages_and_children_wait_themselves(
    client: Client, start_runner: StartRunner
) -> None:
    await start_runner("--capacity", "2")
    assert await client.call("stages", deadline=PATIENCE) == 6


async def test_a_function_that_spawns_otherwise_in_each_run_fails_with_the_remedy(
    client: Client, start_runner: StartRunner
) -> None:
    await start_runner()
    done = await client.wait(await client.create(function("changing", retry=0)), timeout=PATIENCE)
    assert done.phase is Phase.FAILED
    assert "has to spawn the same children in the same order" in done.proto.status.error.message


async def test_a_thousand_children_are_spawned_in_batches(client: Client, start_runner: StartRunner) -> None:
    await start_runner("--capacity", "200")
    began = time.monotonic()
    parent = await client.create(function("wide", {"count": 1000}))
    done = await client.wait(parent, timeout=2 * PATIENCE)
    assert (done.phase, done.result) == (Phase.SUCCEEDED, 499_500), done.proto
    print(f"1,000 children in {time.monotonic() - began:.1f} s")
    assert len(await children(client, parent)) == 1000
    assert done.proto.status.attempt == 1
