"""A runner of an ordinary user: bubblewrap keeps tenants apart, else it serves one tenant."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from services.runner.tests.ordinary_user import as_user, ordinary_runner
from services.runner.tests.runner_process import RunnerProcess, command, shell, variables
from services.runner.tests.scheduler_peer import SchedulerPeer, Task
from taskyard.v1.runner_link_service_pb2 import Welcome

CANARY = "ty_canary_never_to_be_seen"


@pytest.fixture
def automatic(peer: SchedulerPeer) -> Iterator[RunnerProcess]:
    with ordinary_runner(peer.address, TASKYARD_RUNNER_SANDBOX="auto", key=CANARY) as runner:
        yield runner
        print(runner.output())


@pytest.fixture
def without_bubblewrap(automatic: RunnerProcess) -> RunnerProcess:
    """The same on a host where it does not work, because user namespaces are forbidden."""
    folder = automatic.data_dir.parent / "bin"
    folder.mkdir()
    (folder / "bwrap").write_text("#!/bin/sh\nexit 1\n")
    (folder / "bwrap").chmod(0o755)
    automatic.environment["PATH"] = f"{folder}:/usr/bin:/bin"
    return automatic


async def finished(peer: SchedulerPeer, task: Task) -> list[str]:
    await peer.line(task, "end")
    await peer.outcome(task)
    return [entry.message for _, entry in sorted(peer.logs[task.key].items())]


def bubblewrap_works() -> bool:
    argv = as_user("bwrap", "--unshare-pid", "--ro-bind", "/", "/", "--proc", "/proc", "true")
    return shutil.which("bwrap") is not None and subprocess.run(argv, check=False).returncode == 0


@pytest.mark.skipif(not bubblewrap_works(), reason="no bubblewrap works here: not for an ordinary user")
async def test_a_task_reads_neither_the_runners_key_nor_another_tenants_payload(
    peer: SchedulerPeer, automatic: RunnerProcess
) -> None:
    # Where the shipped unit has it, a path that only the runner's user can read; not below /tmp.
    key = Path("/var/tmp") / f"taskyard-{os.getpid()}.key"
    key.write_text(CANARY)
    key.chmod(0o600)
    os.chown(key, *((54321, 54321) if not os.getuid() else (-1, -1)))
    try:
        await automatic.start("--capacity", "4", TASKYARD_KEY=f"file:{key}")
        session = await peer.next_session(1)
        assert session.hello.registration.metadata["sandbox"] == "bubblewrap, the runner's user"
        spec = shell('echo "$TASKYARD_PAYLOAD_FILE"; echo $$; exec sleep 600', env=variables(SECRET=CANARY))
        spec.payload.raw = CANARY.encode()
        victim = peer.assign(spec, name="tenants/other/tasks/victim")
        payload = (await peer.lines(victim, 1))[0].message
        data = automatic.data_dir
        reads = f"cat {key} {payload} /proc/[0-9]*/environ | tr '\\0' '\\n'"
        body = f"{reads}; ls {data}/spool {data}/runs\necho end"
        output_lines = await finished(peer, peer.assign(shell(body)))
        assert not any(CANARY in line for line in output_lines)
        assert not any("spool" in line and "cannot access" not in line for line in output_lines)
        assert victim.assignment.lease.task.startswith("tenants/other/")
    finally:
        key.unlink()
        await automatic.kill()


async def test_without_bubblewrap_a_key_for_all_tenants_is_refused(
    peer: SchedulerPeer, without_bubblewrap: RunnerProcess
) -> None:
    await without_bubblewrap.start()
    assert await without_bubblewrap.wait() == 1
    output = without_bubblewrap.output()
    assert "--runner-tenant" in output and "bubblewrap" in output
    assert all(session.hello.free.tasks == 0 for session in peer.sessions)


async def test_without_bubblewrap_a_key_for_one_tenant_is_served(
    peer: SchedulerPeer, without_bubblewrap: RunnerProcess
) -> None:
    peer.welcome = {"tenants": ["acme"]}
    assert Welcome(**peer.welcome).tenants == ["acme"]
    try:
        await without_bubblewrap.start("--capacity", "4")
        session = await peer.next_session(1)
        assert session.hello.registration.metadata["sandbox"] == "none, one tenant"
        await peer.until(lambda: session.heartbeats and session.heartbeats[-1].free.tasks == 4)
        outcome = await peer.outcome(peer.assign(command("true"), name="tenants/acme/tasks/t"))
        assert outcome.WhichOneof("report") == "succeeded"
    finally:
        await without_bubblewrap.kill()


async def test_sandbox_none_serves_every_tenant(
    peer: SchedulerPeer, without_bubblewrap: RunnerProcess
) -> None:
    try:
        await without_bubblewrap.start("--sandbox", "none")
        await peer.next_session(1)
        assert (await peer.outcome(peer.assign(command("true")))).WhichOneof("report") == "succeeded"
    finally:
        await without_bubblewrap.kill()
