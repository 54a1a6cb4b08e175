"""The sandbox: what tasks of root's runner may access, as which user, and the error if unavailable."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from services.runner.tests.runner_process import RunnerProcess, command, shell, variables
from services.runner.tests.scheduler_peer import SchedulerPeer
from taskyard.v1.common_pb2 import ERROR_CLASS_PERMANENT
from taskyard.v1.lease_pb2 import LEASE_ACTION_CANCEL
from taskyard_runner.warden.naming import digest

CANARY = "ty_canary_never_to_be_seen"
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="is about what root does")
pytestmark = needs_root


@pytest.fixture
def folder() -> Iterator[Path]:
    """A directory that others may pass through, unlike those of pytest."""
    with tempfile.TemporaryDirectory(prefix="taskyard-") as made:
        os.chmod(made, 0o711)
        yield Path(made)


@pytest.fixture
async def sandboxed(peer: SchedulerPeer, folder: Path) -> AsyncIterator[RunnerProcess]:
    started = RunnerProcess(folder / "data", peer.address, key=CANARY, TASKYARD_RUNNER_SANDBOX="auto")
    await started.start("--capacity", "4", CANARY=CANARY)
    await peer.next_session(1)
    yield started
    await started.kill()
    started.clean()
    print(started.output())


async def lines(peer: SchedulerPeer, body: str, **fields: object) -> list[str]:
    task = peer.assign(shell(body + "\necho end", **fields))
    await peer.line(task, "end")
    await peer.outcome(task)
    return [entry.message for _, entry in sorted(peer.logs[task.key].items())][:-1]


async def test_each_run_has_a_user_of_its_own_without_groups_and_capabilities(
    peer: SchedulerPeer, sandboxed: RunnerProcess
) -> None:
    body = (
        "id -u; id -G; grep -E 'Cap(Eff|Prm|Inh|Amb)|NoNewPrivs' /proc/self/status | tr -s '\\t\\n' ' '; echo"
    )
    first, second = [await lines(peer, body) for _ in range(2)]
    assert first[0] == first[1] != second[0] == second[1]
    assert int(first[0]) > 60_000
    sets = " ".join(f"{name}: 0000000000000000" for name in ("CapInh", "CapPrm", "CapEff", "CapAmb"))
    assert first[2].strip() == f"{sets} NoNewPrivs: 1"


async def test_a_task_cannot_read_the_runner_and_the_canary_stays_unseen(
    peer: SchedulerPeer, sandboxed: RunnerProcess
) -> None:
    data, pids = sandboxed.data_dir, (sandboxed.pid, sandboxed.agent_pid)
    reads = [f"cat /proc/{pid}/{name}" for pid in pids for name in ("environ", "mem", "maps")]
    reads += [f"ls -l /proc/{pid}/fd" for pid in pids]
    reads += [f"ls {data}/spool", f"ls {data}/runs", f"cat {data}/lock", "cat /etc/shadow"]
    reads += [f"kill -9 {pid}" for pid in pids]
    body = "\n".join(f"{read} 2>&1 > /dev/null && echo 'ALLOWED {read}'" for read in reads)
    output_lines = await lines(peer, f"{body}\nenv; ls -l /proc/self/fd | wc -l")
    assert not [line for line in output_lines if "ALLOWED" in line]
    assert not [line for line in output_lines if CANARY in line]
    assert (await peer.outcome(peer.assign(command("true")))).WhichOneof("report") == "succeeded"


async def test_a_task_cannot_see_or_change_the_files_of_another_run(
    peer: SchedulerPeer, sandboxed: RunnerProcess
) -> None:
    held = peer.assign(shell('echo secret > mine; echo "$PWD"; exec sleep 600'))
    work = next(iter(await peer.lines(held, 1))).message
    output_lines = await lines(
        peer, f"cat {work}/mine; touch {work}/x; ls {work}/..; ls {work}/../private; true"
    )
    assert len(output_lines) == 4 and all("denied" in line for line in output_lines)


async def test_results_checkpoints_payload_and_the_helper_work(
    peer: SchedulerPeer, sandboxed: RunnerProcess
) -> None:
    body = """
    taskyard-task progress 60 half && echo 1 > state && taskyard-task checkpoint state
    echo '{"ok": true}' > "$TASKYARD_RESULT_FILE"; touch here "$TMPDIR/there"; stat -c %a .
    """
    task = peer.assign(shell(body))
    outcome = await peer.outcome(task)
    assert outcome.succeeded.result.output.raw == b'{"ok": true}\n'
    assert [entry.message for entry in await peer.lines(task, 2)] == ["1", "700"]


@pytest.mark.parametrize("link", ["ln -s", "ln"])
async def test_a_link_to_somebody_elses_file_is_no_result_and_no_checkpoint(
    peer: SchedulerPeer, sandboxed: RunnerProcess, folder: Path, link: str
) -> None:
    secret = folder / "data" / "secret"
    secret.write_text(CANARY)
    secret.chmod(0o600)
    body = f"""
    {link} "$SECRET" "$TASKYARD_RESULT_FILE" || exit 7
    {link} "$SECRET" "$TASKYARD_CHECKPOINT_DIR/stolen"
    python3 - <<'END'
import json, os, socket
with socket.socket(socket.AF_UNIX) as link:
    link.connect(os.environ["TASKYARD_SOCKET"])
    ask = {{"op": "checkpoint", "file": "stolen", "token": os.environ["TASKYARD_TOKEN"]}}
    link.sendall(json.dumps(ask).encode() + b"\\n")
    print(link.recv(4096).decode())
END
    """
    task = peer.assign(shell(body, env=variables(SECRET=str(secret))))
    failed = (await peer.outcome(task)).failed
    # Where the kernel protects links, the task does not even come that far.
    assert failed.error.code == "RESULT_UNREADABLE" or failed.exit_code == 7
    output_lines = [entry.message for entry in peer.logs[task.key].values()]
    assert not any(CANARY in line or '"ok":true' in line for line in output_lines)


async def test_unreadable_working_directory_is_a_permanent_error(
    peer: SchedulerPeer, sandboxed: RunnerProcess, folder: Path
) -> None:
    private = folder / "private"
    private.mkdir(mode=0o700)
    spec = command("true")
    spec.execution.command.working_directory = str(private)
    error = (await peer.outcome(peer.assign(spec))).failed.error
    assert (error.code, error.error_class) == ("START_FAILED", ERROR_CLASS_PERMANENT)
    assert "working directory" in error.message and "user of its own" in error.message


async def test_description_names_the_sandbox_in_force(peer: SchedulerPeer, sandboxed: RunnerProcess) -> None:
    assert peer.session.hello.registration.metadata["sandbox"] == "user, a user per run"
    await sandboxed.kill()
    await sandboxed.start("--sandbox-user", "nobody")
    session = await peer.next_session(2)
    assert session.hello.registration.metadata["sandbox"] == "user, one user"
    assert await lines(peer, "id -un") == ["nobody"]


@pytest.fixture
async def unreachable(peer: SchedulerPeer, folder: Path) -> AsyncIterator[RunnerProcess]:
    """A runner, not started yet, whose data directory lies below one that only root can enter."""
    folder.chmod(0o700)
    runner = RunnerProcess(folder / "data", peer.address, key=CANARY, TASKYARD_RUNNER_SANDBOX="auto")
    yield runner
    await runner.kill()
    runner.clean()
    place = Path(f"/var/lib/taskyard/runner-{digest(str(runner.data_dir))}")
    shutil.rmtree(place, ignore_errors=True)
    print(runner.output())


async def test_below_a_private_home_tasks_have_users_of_their_own_all_the_same(
    peer: SchedulerPeer, unreachable: RunnerProcess, folder: Path
) -> None:
    (folder / "admin.key").write_text(CANARY)
    await unreachable.start()
    session = await peer.next_session(1)
    assert session.hello.registration.metadata["sandbox"] == "user, a user per run"
    body = f"""
    id -u; cat {folder}/admin.key; ls {unreachable.data_dir}/spool; touch here "$TMPDIR/there"
    taskyard-task progress 60 half && cat "$TASKYARD_PAYLOAD_FILE" > "$TASKYARD_RESULT_FILE"
    """
    spec = shell(body + "echo end")
    spec.payload.raw = b"[1]"
    task = peer.assign(spec)
    assert (await peer.outcome(task)).succeeded.result.output.raw == b"[1]"
    await peer.line(task, "end")
    output_lines = [entry.message for _, entry in sorted(peer.logs[task.key].items())]
    assert int(output_lines[0]) > 60_000
    assert sum("denied" in line for line in output_lines) == 2 and not any(
        CANARY in line for line in output_lines
    )


async def test_files_outside_the_data_directory_are_removed_with_the_runner(
    peer: SchedulerPeer, unreachable: RunnerProcess
) -> None:
    await unreachable.start()
    await peer.next_session(1)
    task = peer.assign(shell("pwd"))
    work = Path((await peer.lines(task, 1))[0].message)
    await peer.outcome(task)
    unreachable.send(signal.SIGTERM)
    assert await unreachable.wait() == 0
    assert not work.parents[2].exists(), [str(p) for p in work.parents[2].rglob("*")]


@pytest.mark.parametrize("mode", ["auto", "user", "bubblewrap"])
async def test_runner_of_root_without_a_reachable_directory_does_not_start(
    peer: SchedulerPeer, unreachable: RunnerProcess, folder: Path, mode: str
) -> None:
    await unreachable.start("--sandbox", mode, "--runs-dir", str(folder / "runs"))
    assert await unreachable.wait() == 1
    output_lines = unreachable.output()
    assert (
        "others cannot reach" in output_lines
        and "--runs-dir" in output_lines
        and "--sandbox none" in output_lines
    )
    assert not peer.sessions


async def test_only_the_name_none_lets_tasks_run_as_root(
    peer: SchedulerPeer, unreachable: RunnerProcess
) -> None:
    await unreachable.start("--sandbox", "none")
    await peer.next_session(1)
    assert await lines(peer, "id -u") == ["0"]


async def test_a_run_survives_the_agent_with_its_user(peer: SchedulerPeer, sandboxed: RunnerProcess) -> None:
    body = 'id -u; read -r x < "$FIFO"; id -u > "$TASKYARD_RESULT_FILE"'
    fifo = sandboxed.data_dir.parent / "fifo"
    os.mkfifo(fifo)
    fifo.chmod(0o666)
    task = peer.assign(shell(body, env=variables(FIFO=str(fifo))))
    (uid,) = await peer.lines(task, 1)
    os.kill(sandboxed.agent_pid, 9)
    await peer.next_session(2)
    fifo.write_text("go\n")
    assert (await peer.outcome(task)).succeeded.result.output.raw.decode().strip() == uid.message


bubblewrap = pytest.mark.skipif(
    shutil.which("bwrap") is None, reason="no bubblewrap works here: not installed"
)


@bubblewrap
async def test_bubblewrap_shows_files_read_only_and_no_process_of_the_host(
    peer: SchedulerPeer, folder: Path
) -> None:
    runner = RunnerProcess(folder / "data", peer.address, TASKYARD_RUNNER_SANDBOX="bubblewrap")
    try:
        await runner.start("--capacity", "4")
        session = await peer.next_session(1)
        assert session.hello.registration.metadata["sandbox"] == "bubblewrap, a user per run"
        body = f"""
        ls /proc | grep -c '^[0-9]'; ls {runner.data_dir}; touch /var/tmp/x 2>&1
        cat /proc/{runner.pid}/environ
        touch here && taskyard-task progress 50 && echo 5 > "$TASKYARD_RESULT_FILE"
        """
        output_lines = await lines(peer, body)
        assert int(output_lines[0]) < 10
        assert "spool" not in output_lines and "lock" not in output_lines
        assert any("Read-only" in line for line in output_lines)
        loop = "while true; do sleep 600 & wait; done"
        polite = peer.assign(shell(f"trap 'echo bye; exit 0' TERM; echo ready; {loop}"))
        await peer.line(polite, "ready")
        peer.send_verdict(polite, LEASE_ACTION_CANCEL)
        await peer.line(polite, "bye")
        assert (await peer.outcome(polite)).WhichOneof("report") == "cancelled"
    finally:
        await runner.kill()
        runner.clean()
        print(runner.output())
