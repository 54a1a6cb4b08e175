"""The socket of workloads: one run cannot take it from the others."""

from __future__ import annotations

import os
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from services.runner.tests.ordinary_user import ordinary_runner
from services.runner.tests.runner_process import RunnerProcess, shell, variables
from services.runner.tests.scheduler_peer import SchedulerPeer

# Holds as many connections as it can get, from processes of its own sessions as well.
GREEDY = """
import os, socket, sys, time
for child in range(4):
    if os.fork() == 0:
        os.setsid()
        break
held = []
for _ in range(300):
    link = socket.socket(socket.AF_UNIX)
    link.settimeout(5)
    try:
        link.connect(os.environ["TASKYARD_SOCKET"])
        held.append(link)
    except OSError:
        break
print("holding", flush=True)
time.sleep(600)
"""
ASK = """
import json, os, socket, sys
with socket.socket(socket.AF_UNIX) as link:
    link.connect(os.environ["TASKYARD_SOCKET"])
    ask = {"op": "log", "message": "forged", "token": sys.argv[1]}
    link.sendall(json.dumps(ask).encode() + b"\\n")
    print(link.recv(4096).decode())
"""


@pytest.fixture(params=["root", "ordinary"])
async def runner(peer: SchedulerPeer, request: pytest.FixtureRequest) -> AsyncIterator[RunnerProcess]:
    if request.param == "ordinary":
        with ordinary_runner(peer.address) as started:
            await started.start("--capacity", "4")
            await peer.next_session(1)
            yield started
            await started.kill()
        return
    if os.geteuid() != 0:
        pytest.skip("is about what root does")
    with tempfile.TemporaryDirectory(prefix="taskyard-") as folder:
        os.chmod(folder, 0o711)
        started = RunnerProcess(Path(folder) / "data", peer.address, TASKYARD_RUNNER_SANDBOX="user")
        await started.start("--capacity", "4")
        await peer.next_session(1)
        yield started
        await started.kill()
        started.clean()


async def test_a_run_that_holds_connections_leaves_some_to_the_others(
    peer: SchedulerPeer, runner: RunnerProcess
) -> None:
    greedy = peer.assign(shell('exec python3 -c "$GREEDY"', env=variables(GREEDY=GREEDY)))
    await peer.until(lambda: sum(e.message == "holding" for e in peer.logs[greedy.key].values()) == 5)
    task = peer.assign(shell('python3 -c "$ASK" "$TASKYARD_TOKEN"', env=variables(ASK=ASK)))
    await peer.outcome(task)
    assert {entry.message for entry in await peer.lines(task, 2)} >= {"forged", '{"ok":true}'}


@pytest.mark.parametrize("runner", ["root"], indirect=True)
async def test_token_of_another_user_is_rejected(peer: SchedulerPeer, runner: RunnerProcess) -> None:
    owner = peer.assign(shell('echo "$TASKYARD_TOKEN"; exec sleep 600'))
    token = (await peer.lines(owner, 1))[0].message
    thief = peer.assign(shell(f'python3 -c "$ASK" {token}', env=variables(ASK=ASK)))
    assert '"ok":false' in (await peer.lines(thief, 1))[0].message.replace(" ", "")
    assert len(peer.logs[owner.key]) == 1
