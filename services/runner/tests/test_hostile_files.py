"""Files that a task leaves behind to harm the runner: swapped parents, trees of any depth."""

from __future__ import annotations

import asyncio
import ctypes
import os
import stat
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from services.runner.tests.ordinary_user import ordinary_runner
from services.runner.tests.runner_process import RunnerProcess, command, shell, variables
from services.runner.tests.scheduler_peer import SchedulerPeer
from taskyard.v1.common_pb2 import Resources
from taskyard_runner.agent.removal import remove_below

DEPTH = 3000
_IN_ANY_CHANGE = 0x00000FC6
PATIENCE = 40.0

# Gets a descriptor of another task's directory. As soon as the runner begins to remove what is in
# parent/victim, the name `parent` becomes a link to the place outside, and victim is kept from being empty.
ATTACKER = r"""
import array, contextlib, os, socket, sys, time
with socket.socket(socket.AF_UNIX) as listener:
    listener.bind("\0" + sys.argv[1])
    listener.listen(1)
    print("listening", flush=True)
    link, _ = listener.accept()
    _, ancillary, _, _ = link.recvmsg(1, socket.CMSG_SPACE(4))
    theirs = array.array("i", ancillary[0][2][:4])[0]
victim = os.open("parent/victim", os.O_RDONLY, dir_fd=theirs)
files = {os.open(f"parent/victim/{n}", os.O_RDONLY, dir_fd=theirs) for n in range(0, 4000, 100)}
link.send(b"x")
end = time.monotonic() + 8
while all(os.fstat(fd).st_nlink for fd in files) and time.monotonic() < end:
    pass
with contextlib.suppress(OSError):
    os.rename("parent", "was", src_dir_fd=theirs, dst_dir_fd=theirs)
with contextlib.suppress(OSError):
    os.symlink(sys.argv[2], "parent", dir_fd=theirs)
print("swapped", flush=True)
end = time.monotonic() + 2
for count in range(20000):
    with contextlib.suppress(OSError):
        os.mkdir(f"x{count}", dir_fd=victim)
    if time.monotonic() > end:
        break
"""
# Opens the own directory to everybody, fills it and hands it over.
VICTIM = r"""
import array, os, socket, sys
os.chmod(".", 0o777)
os.makedirs("parent/victim")
for n in range(4000):
    open(f"parent/victim/{n}", "w").close()
os.chmod("parent", 0o777)
os.chmod("parent/victim", 0o777)
with socket.socket(socket.AF_UNIX) as link:
    link.connect("\0" + sys.argv[1])
    here = array.array("i", [os.open(".", os.O_RDONLY)])
    link.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, here)])
    link.recv(1)
"""
NEST = f"""
import os
for _ in range({DEPTH}):
    os.mkdir("d")
    os.chdir("d")
"""


async def until(found: Callable[[], bool], *folders: Path) -> None:
    """Returns once the condition holds; inotify reports changes in the folders."""
    libc, changed, loop = ctypes.CDLL(None), asyncio.Event(), asyncio.get_running_loop()
    watch: int = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
    for folder in folders:
        libc.inotify_add_watch(watch, os.fsencode(folder), _IN_ANY_CHANGE)

    def more() -> None:
        os.read(watch, 65536)
        changed.set()

    loop.add_reader(watch, more)
    try:
        async with asyncio.timeout(PATIENCE):
            while not found():
                await changed.wait()
                changed.clear()
    finally:
        loop.remove_reader(watch)
        os.close(watch)


@pytest.fixture
def folder() -> Iterator[Path]:
    made = tempfile.mkdtemp(prefix="taskyard-")
    os.chmod(made, 0o711)
    yield Path(made)
    # Python's own removal is recursive.
    subprocess.run(["rm", "-rf", made], check=True)


@pytest.fixture(params=["root", "ordinary"])
async def runner(
    peer: SchedulerPeer, folder: Path, request: pytest.FixtureRequest
) -> AsyncIterator[RunnerProcess]:
    """A runner that gives its tasks users of their own, and one that cannot."""
    if request.param == "root":
        if os.geteuid() != 0:
            pytest.skip("is about what root does")
        started = RunnerProcess(folder / "data", peer.address, TASKYARD_RUNNER_SANDBOX="user")
        async for each in serving(peer, started):
            yield each
        return
    with ordinary_runner(peer.address) as started:
        async for each in serving(peer, started):
            yield each


async def serving(peer: SchedulerPeer, started: RunnerProcess) -> AsyncIterator[RunnerProcess]:
    await started.start("--capacity", "4")
    await peer.next_session(1)
    yield started
    await started.kill()
    started.clean()
    print(started.output())


async def test_removal_does_not_follow_a_parent_swapped_by_another_task(
    peer: SchedulerPeer, runner: RunnerProcess, folder: Path
) -> None:
    outside = folder / "outside"
    (outside / "victim" / "deep").mkdir(parents=True)
    (outside / "victim" / "deep" / "file").write_text("precious")
    outside.chmod(0o700)
    owner = runner.data_dir.stat()
    for path in (outside, *outside.rglob("*")):
        # The runner's own user could remove it: only the way of the removal protects it.
        os.chown(path, owner.st_uid, owner.st_gid)
    before = stat.S_IMODE(outside.stat().st_mode)
    runs_mode = stat.S_IMODE((runner.data_dir / "runs").stat().st_mode)
    for turn in range(2):
        name = f"taskyard-{os.getpid()}-{turn}"
        env = variables(ATTACKER=ATTACKER, VICTIM=VICTIM)
        attacker = peer.assign(shell(f'python3 -c "$ATTACKER" {name} {outside}', env=env))
        await peer.line(attacker, "listening")
        await peer.outcome(peer.assign(shell(f'python3 -c "$VICTIM" {name}', env=env)))
        await peer.line(attacker, "swapped")
        await peer.outcome(attacker)
    assert (outside / "victim" / "deep" / "file").read_text() == "precious"
    assert stat.S_IMODE(outside.stat().st_mode) == before
    assert stat.S_IMODE((runner.data_dir / "runs").stat().st_mode) == runs_mode
    assert (await peer.outcome(peer.assign(command("true")))).WhichOneof("report") == "succeeded"


async def test_three_thousand_nested_directories_are_removed(
    peer: SchedulerPeer, runner: RunnerProcess
) -> None:
    task = peer.assign(shell('python3 -c "$NEST"; cd; echo "$PWD"', env=variables(NEST=NEST)))
    work = Path((await peer.lines(task, 1))[0].message)
    assert (await peer.outcome(task)).WhichOneof("report") == "succeeded"
    trash = runner.data_dir / "trash"
    await until(lambda: not work.parent.exists() and not os.listdir(trash), work.parents[1], trash)
    assert "RecursionError" not in runner.output()


async def test_runner_starts_despite_a_tree_left_by_an_earlier_one(
    peer: SchedulerPeer, runner: RunnerProcess
) -> None:
    body = 'python3 -c "$NEST"; cd; echo "$PWD"; exec sleep 600'
    task = peer.assign(shell(body, env=variables(NEST=NEST)))
    work = Path((await peer.lines(task, 1))[0].message)
    await runner.kill()
    await runner.start("--capacity", "4")
    await peer.next_session(2)
    assert (await peer.outcome(peer.assign(command("true")))).WhichOneof("report") == "succeeded"
    trash = runner.data_dir / "trash"
    await until(lambda: not work.parent.exists() and not os.listdir(trash), work.parents[1], trash)
    assert len(peer.sessions) == 2


async def test_a_limit_of_disk_counts_what_lies_below_three_thousand_directories(
    peer: SchedulerPeer, runner: RunnerProcess
) -> None:
    body = 'python3 -c "$NEST"; exec sleep 600'
    nest = NEST + 'for n in range(8):\n    open(str(n), "wb").write(bytes(1 << 20))\n'
    task = peer.assign(shell(body, env=variables(NEST=nest), resources=Resources(disk_mb=4)))
    assert (await peer.outcome(task)).failed.error.code == "DISK_LIMIT_REACHED"
    assert len(peer.sessions) == 1


def test_a_directory_that_gains_entries_while_it_is_removed_is_left_in_time(tmp_path: Path) -> None:
    (tmp_path / "tree" / "below").mkdir(parents=True)
    tmp_path.chmod(0o700)
    assert "takes long" in str(remove_below(str(tmp_path), "tree", deadline=0.0))
    assert remove_below(str(tmp_path), "tree", deadline=time.monotonic() + 60) is None
    assert not list(tmp_path.iterdir())
