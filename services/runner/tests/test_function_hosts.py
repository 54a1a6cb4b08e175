"""Function hosts: who pays when one ends, what outlives the agent, and when there are more of them."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path

import psutil
import pytest

from services.runner.tests.function_calls import APP, call, kinds, output
from services.runner.tests.runner_process import Gate, Pause, RunnerProcess, function, wait_gone
from services.runner.tests.scheduler_peer import SchedulerPeer
from taskyard import errors
from taskyard.v1.common_pb2 import ERROR_CLASS_TRANSIENT, Resources
from taskyard.v1.lease_pb2 import (
    LEASE_ACTION_CANCEL,
    RELEASE_REASON_DRAINED,
    RELEASE_REASON_LOST,
)
from taskyard.v1.runner_link_service_pb2 import HELD_STATE_RUNNING, Command, UndrainCommand
from taskyard.v1.runner_pb2 import DRAIN_MODE_FINISH, DrainRequest
from taskyard.v1.task_pb2 import OVERLAP_POLICY_FORBID
from taskyard_runner.warden.cgroup import find_hierarchy

StartRunner = Callable[..., Awaitable[RunnerProcess]]
# Each has a process of its own; `make blocking` takes a hundred.
BLOCKING = int(os.environ.get("TASKYARD_BLOCKING", "20"))
# Heartbeats, two a second, for which they block.
BEATS = int(os.environ.get("TASKYARD_BEATS", "10"))

_hierarchy, _why = find_hierarchy(f"functions-{os.getpid()}")
if _hierarchy is not None:
    _hierarchy.close()


@pytest.fixture
async def runner(start_runner: StartRunner) -> RunnerProcess:
    return await start_runner(*APP)


async def test_a_host_that_dies_costs_its_run_a_classed_error(
    peer: SchedulerPeer, runner: RunnerProcess
) -> None:
    report = await peer.outcome(peer.assign(function("die")))
    assert (report.failed.error.code, report.failed.exit_code) == ("KILLED_BY_SIGNAL", 137)
    assert report.failed.error.error_class == ERROR_CLASS_TRANSIENT
    report = await peer.outcome(peer.assign(function("exit", {"code": 65})))
    assert (report.failed.error.code, report.failed.exit_code) == ("EXIT_NONZERO", 65)
    report = await peer.outcome(peer.assign(function("exit", {"code": 0})))
    assert report.failed.error.code == "HOST_EXITED"
    assert await call(peer, "add-sync", {"a": 1}) == 2


async def test_runs_of_a_shared_host_that_dies_are_released(
    peer: SchedulerPeer, runner: RunnerProcess
) -> None:
    others = [peer.assign(function("sleep-async")) for _ in range(3)]
    for other in others:
        await peer.line(other, "ready")
    peer.assign(function("die-async"))
    for other in others:
        assert (await peer.outcome(other)).released.reason == RELEASE_REASON_LOST
    alone = await peer.outcome(peer.assign(function("die-async")))
    assert alone.failed.error.code == "KILLED_BY_SIGNAL"


@pytest.mark.skipif(_hierarchy is None, reason=f"no control groups: {_why}")
async def test_the_memory_limit_of_a_function_is_its_own(peer: SchedulerPeer, runner: RunnerProcess) -> None:
    neighbour = peer.assign(function("sleep-async", {"seconds": 1}))
    hog = peer.assign(function("hog", resources=Resources(memory_mb=128)))
    error = (await peer.outcome(hog)).failed.error
    assert (error.error_class, error.code) == (ERROR_CLASS_TRANSIENT, "OUT_OF_MEMORY")
    assert (await peer.outcome(neighbour)).WhichOneof("report") == "succeeded"
    assert await call(peer, "hog") == 400_000_000


async def test_a_killed_agent_is_replaced_while_functions_go_on(
    peer: SchedulerPeer, runner: RunnerProcess, tmp_path: Path
) -> None:
    gate = Gate(tmp_path)
    tasks = [peer.assign(function(name, {"gate": str(gate)})) for name in ("wait", "wait-async")]
    for task in tasks:
        await peer.report(task, "started")
    hosts = set(runner.host_pids())
    os.kill(runner.agent_pid, signal.SIGKILL)
    session = await peer.next_session(2)
    assert {held.lease.task for held in session.hello.held} == {t.assignment.lease.task for t in tasks}
    assert {held.state for held in session.hello.held} == {HELD_STATE_RUNNING}
    gate.open()
    for task in tasks:
        assert output(await peer.outcome(task)) == "through"
    assert set(runner.host_pids()) == hosts
    await peer.line(tasks[1], "ready")


async def test_a_function_whose_start_waits_in_the_spool_is_held_as_running(
    peer: SchedulerPeer, runner: RunnerProcess, tmp_path: Path
) -> None:
    gate = Gate(tmp_path)
    peer.ack_reports = False
    tasks = [peer.assign(function(name, {"gate": str(gate)})) for name in ("wait", "wait-async")]
    for task in tasks:
        await peer.report(task, "started")
    os.kill(runner.agent_pid, signal.SIGKILL)
    session = await peer.next_session(2)
    assert [held.state for held in session.hello.held] == [HELD_STATE_RUNNING] * 2
    peer.ack_reports = True
    gate.open()
    for task in tasks:
        assert output(await peer.outcome(task)) == "through"


async def test_failure_of_a_function_waits_for_its_checkpoint_over_a_killed_agent(
    peer: SchedulerPeer, runner: RunnerProcess
) -> None:
    peer.checkpoint_failures = [errors.StorageUnavailable("unknown") for _ in range(1000)]
    task = peer.assign(function("keep-and-fail"))
    await peer.until(lambda: len(peer.checkpoint_failures) < 998 or None)
    os.kill(runner.agent_pid, signal.SIGKILL)
    await peer.next_session(2)
    peer.checkpoint_failures.clear()
    assert (await peer.outcome(task)).WhichOneof("report") == "failed"
    assert task.assignment.lease.task in peer.checkpoints


async def test_several_outcomes_of_functions_in_the_spool_survive_a_killed_agent(
    peer: SchedulerPeer, runner: RunnerProcess
) -> None:
    peer.ack_reports = peer.ack_logs = False
    tasks = [peer.assign(function("talk")) for _ in range(4)]
    for task in tasks:
        await peer.outcome(task)
    os.kill(runner.agent_pid, signal.SIGKILL)
    # No log was acknowledged, so none counts as stored.
    peer.logs.clear()
    await peer.next_session(2)
    agent = runner.agent_pid
    peer.ack_reports = peer.ack_logs = True
    peer.session.outbox.put_nowait(None)
    await peer.next_session(3)
    await peer.until(lambda: not [path for path in runner.kept_runs() if path.name.startswith("f")])
    assert runner.agent_pid == agent
    assert "KeyError" not in runner.output()
    for task in tasks:
        assert [entry.message for entry in await peer.lines(task, 5)][-1] == "unfinished"


async def test_output_of_ended_functions_survives_a_killed_warden(
    peer: SchedulerPeer, runner: RunnerProcess, start_runner: StartRunner
) -> None:
    peer.ack_reports = peer.ack_logs = False
    tasks = [peer.assign(function("talk")) for _ in range(4)]
    for task in tasks:
        await peer.outcome(task)
    await runner.kill()
    # No log was acknowledged, so none counts as stored.
    peer.logs.clear()
    peer.ack_reports = peer.ack_logs = True
    again = await start_runner(*APP)
    for task in tasks:
        assert [entry.message for entry in await peer.lines(task, 5)][-1] == "unfinished"
    await peer.until(lambda: not [path for path in again.kept_runs() if path.name.startswith("j")])


@pytest.mark.parametrize("step", ["agent.run_ended", "agent.outcome_saved", "agent.report_sent"])
@pytest.mark.parametrize("name", ["add", "talk"])
async def test_result_survives_the_agent_that_received_it(
    peer: SchedulerPeer, start_runner: StartRunner, tmp_path: Path, step: str, name: str
) -> None:
    pause = Pause(tmp_path, step)
    runner = await start_runner(*APP, TASKYARD_FAILPOINTS=pause.setting)
    peer.ack_reports = False
    task = peer.assign(function(name, {"a": 20} if name == "add" else None))
    await pause.reached()
    peer.ack_reports = True
    os.kill(runner.agent_pid, signal.SIGKILL)
    if step != "agent.outcome_saved":
        # The next agent comes to the same step.
        await pause.reached()
        await pause.proceed()
    assert (await peer.outcome(task)).WhichOneof("report") == "succeeded"
    if name == "talk":
        assert [entry.message for entry in await peer.lines(task, 5)][-1] == "unfinished"
    session = await peer.next_session(2)
    assert task.key[0] in [held.lease.task for held in session.hello.held]


async def test_a_leaking_host_is_replaced(peer: SchedulerPeer, start_runner: StartRunner) -> None:
    await start_runner(*APP, "--host-growth-mb", "30")
    first = await call(peer, "leak", {"size": 60_000_000})
    assert isinstance(first, int)
    await wait_gone(first)
    assert await call(peer, "where") != first


async def test_a_host_is_replaced_after_its_share_of_runs(
    peer: SchedulerPeer, start_runner: StartRunner
) -> None:
    await start_runner(*APP, "--host-max-tasks", "3")
    seen = [await call(peer, "where-sync") for _ in range(8)]
    assert 3 <= len(set(map(str, seen))) <= 4


async def test_a_blocked_loop_delays_neither_heartbeats_nor_other_functions(
    peer: SchedulerPeer, runner: RunnerProcess
) -> None:
    blocker = peer.assign(function("block-loop", {"seconds": 8}))
    await peer.line(blocker, "ready")
    before = len(peer.session.heartbeats)
    assert await call(peer, "add", {"a": 1}) == 2
    assert len(peer.sessions) == 1 and len(peer.session.heartbeats) > before
    assert (await peer.outcome(blocker)).WhichOneof("report") == "succeeded"


async def test_work_beyond_the_capacity_waits_its_turn(
    peer: SchedulerPeer, runner: RunnerProcess, tmp_path: Path
) -> None:
    gate = Gate(tmp_path)
    tasks = [peer.assign(function("wait-async", {"gate": str(gate)})) for _ in range(14)]
    for task in tasks[:10]:
        await peer.report(task, "started")
    assert [kinds(peer, task) for task in tasks[10:]] == [[]] * 4
    peer.send_verdict(tasks[13], LEASE_ACTION_CANCEL)
    assert (await peer.outcome(tasks[13])).WhichOneof("report") == "cancelled"
    gate.open()
    for task in tasks[:13]:
        assert output(await peer.outcome(task)) == "through"


async def test_drain_releases_runs_that_have_not_started(
    peer: SchedulerPeer, runner: RunnerProcess, tmp_path: Path
) -> None:
    gate = Gate(tmp_path)
    tasks = [peer.assign(function("wait-async", {"gate": str(gate)})) for _ in range(12)]
    for task in tasks[:10]:
        await peer.report(task, "started")
    runner.send(signal.SIGTERM)
    for task in tasks[10:]:
        assert (await peer.outcome(task)).released.reason == RELEASE_REASON_DRAINED
    gate.open()
    for task in tasks[:10]:
        assert output(await peer.outcome(task)) == "through"
    assert await runner.wait() == 0


async def test_forbidden_overlap_ends_with_the_lease_although_the_agent_is_frozen(
    peer: SchedulerPeer, start_runner: StartRunner
) -> None:
    peer.lease_duration = peer.first_lease = 2.0
    peer.heartbeat_interval = 0.5
    runner = await start_runner(*APP)
    agent = runner.agent_pid
    for name in ("block", "sleep-async"):
        task = peer.assign(function(name, overlap=OVERLAP_POLICY_FORBID))
        await peer.line(task, "ready")
    free = peer.assign(function("sleep-async"))
    await peer.line(free, "ready")
    hosts = set(runner.host_pids())
    os.kill(agent, signal.SIGSTOP)
    try:
        async with asyncio.timeout(10):
            while len(runner.host_pids()) > len(hosts) - 2:  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        # Work that may overlap goes on in its own host.
        assert any(psutil.pid_exists(pid) for pid in runner.host_pids())
    finally:
        os.kill(agent, signal.SIGCONT)


async def test_a_drain_and_its_end_load_the_application_anew(
    peer: SchedulerPeer, start_runner: StartRunner, tmp_path: Path
) -> None:
    module = tmp_path / "changing.py"
    text = "from taskyard_runner.functions import task\n\n@task('{name}')\ndef f():\n    return '{name}'\n"
    module.write_text(text.format(name="old"))
    await start_runner("--app", "changing", "--kind", "function", PYTHONPATH=str(tmp_path))
    assert list(peer.session.hello.registration.functions) == ["old"]
    assert await call(peer, "old") == "old"
    peer.session.send(command=Command(drain=DrainRequest(mode=DRAIN_MODE_FINISH)))
    module.write_text(text.format(name="newer"))
    peer.session.send(command=Command(undrain=UndrainCommand()))
    updated = await peer.until(
        lambda: [b for b in peer.session.heartbeats if list(b.registration.functions) == ["newer"]]
    )
    assert updated and await call(peer, "newer") == "newer"


async def test_a_new_agent_after_sighup_brings_new_code_while_old_runs_finish(
    peer: SchedulerPeer, start_runner: StartRunner, tmp_path: Path
) -> None:
    gate = Gate(tmp_path)
    module = tmp_path / "changing.py"
    text = """
from services.runner.tests.function_app import wait
from taskyard_runner.functions import App
app = App()
app.task("wait")(wait)
app.task("{name}")(lambda: "{name}")
"""
    module.write_text(text.format(name="old"))
    runner = await start_runner("--app", "changing:app", "--kind", "function", PYTHONPATH=str(tmp_path))
    task = peer.assign(function("wait", {"gate": str(gate)}))
    await peer.report(task, "started")
    module.write_text(text.format(name="newer"))
    runner.send(signal.SIGHUP)
    session = await peer.next_session(2)
    assert list(session.hello.registration.functions) == ["newer", "wait"]
    assert await call(peer, "newer") == "newer"
    # Code that cannot be loaded changes nothing.
    module.write_text("1 / 0")
    runner.send(signal.SIGHUP)
    session = await peer.next_session(3)
    assert list(session.hello.registration.functions) == ["newer", "wait"]
    gate.open()
    assert output(await peer.outcome(task)) == "through"
    assert "ZeroDivisionError" in runner.output()


@pytest.mark.parametrize(
    ("app", "text", "message"),
    [
        ("no_such_module:app", "", "there is no module 'no_such_module'"),
        ("broken:app", "1 / 0", "app 'broken:app' cannot be imported: ZeroDivisionError"),
        ("broken:app", "app = 3", "app is no App"),
        ("broken:app", "from taskyard_runner.functions import App\napp = App()", "has no functions"),
    ],
)
async def test_an_app_that_cannot_be_loaded_ends_the_runner_with_the_reason(
    start_runner: StartRunner, tmp_path: Path, app: str, text: str, message: str
) -> None:
    (tmp_path / "broken.py").write_text(text)
    runner = await start_runner("--app", app, "--kind", "function", welcomed=False, PYTHONPATH=str(tmp_path))
    assert await runner.wait() == 1
    assert message in runner.output()


async def test_a_line_of_short_functions_makes_way_for_none_behind_a_long_one(
    peer: SchedulerPeer, runner: RunnerProcess, tmp_path: Path
) -> None:
    gate = Gate(tmp_path)
    for _ in range(3):
        for task in [peer.assign(function("noop-sync")) for _ in range(20)]:
            await peer.outcome(task)
    long = peer.assign(function("wait", {"gate": str(gate)}))
    short = [peer.assign(function("add-sync", {"a": n})) for n in range(20)]
    for n, task in enumerate(short):
        assert output(await peer.outcome(task)) == n + 1
    assert "succeeded" not in kinds(peer, long)
    gate.open()
    assert output(await peer.outcome(long)) == "through"


async def test_functions_that_block_for_a_moment_do_so_at_the_same_time(
    peer: SchedulerPeer, start_runner: StartRunner
) -> None:
    await start_runner(*APP, "--capacity", "100")
    # Two hosts would come back often enough to look busy, and still take long for so many.
    hosts: set[object] = set()
    for _ in range(30):
        tasks = [peer.task(function("nap", {"seconds": 0.015})) for _ in range(100)]
        peer.send(*tasks)
        hosts |= {output(await peer.outcome(task)) for task in tasks}
        if len(hosts) >= 4:
            return
    raise AssertionError(f"{len(hosts)} hosts for a hundred functions at a time")


async def test_many_functions_each_have_one_start_and_one_outcome(
    peer: SchedulerPeer, start_runner: StartRunner
) -> None:
    await start_runner(*APP, "--capacity", "50")
    names = ("noop", "noop-sync", "add", "add-sync")
    tasks = [peer.task(function(names[n % 4], {"a": n} if n % 4 > 1 else None)) for n in range(400)]
    for start in range(0, 400, 50):
        peer.send(*tasks[start : start + 50])
        for task in tasks[start : start + 50]:
            await peer.outcome(task)
    assert [kinds(peer, task) for task in tasks] == [["started", "succeeded"]] * 400


@pytest.mark.timeout(240)
async def test_many_blocking_functions_delay_no_heartbeat(
    peer: SchedulerPeer, start_runner: StartRunner, tmp_path: Path
) -> None:
    peer.heartbeat_interval = 0.5
    gate = Gate(tmp_path)
    await start_runner(*APP, "--capacity", str(BLOCKING))
    tasks = [peer.task(function("wait", {"gate": str(gate)})) for _ in range(BLOCKING)]
    peer.send(*tasks)
    await peer.until(lambda: all(kinds(peer, task) for task in tasks), patience=180)
    before = len(peer.session.heartbeats)
    # The bound is generous because the machine may have other things to do.
    patience = 3 * BEATS * peer.heartbeat_interval
    await peer.until(lambda: len(peer.session.heartbeats) >= before + BEATS, patience=patience)
    gate.open()
    for task in tasks:
        assert output(await peer.outcome(task)) == "through"
    assert len(peer.sessions) == 1
