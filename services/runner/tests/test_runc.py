"""Containers of runc: images lie below the image directory, and no system call opens the host."""

from __future__ import annotations

import os
import platform
import shutil
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from services.runner.tests.runner_process import RunnerProcess
from services.runner.tests.scheduler_peer import SchedulerPeer
from taskyard.v1.task_pb2 import ContainerExecution, Execution, TaskSpec
from taskyard_runner.executors.container import static_program

# unshare(CLONE_NEWUSER), and then exit with the number of its error.
UNSHARE = bytes.fromhex("bf00000010b8100100000f05f7d889c7b83c0000000f05")
pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="is about what root does"),
    pytest.mark.skipif(
        shutil.which("runc") is None or platform.machine() != "x86_64",
        reason="no container engine works here: runc on x86_64 is not installed",
    ),
]


def make_rootfs(folder: Path) -> None:
    for name in ("bin", "proc", "dev", "sys", "etc", "tmp", "run"):
        (folder / name).mkdir(parents=True)
    program = folder / "bin" / "probe"
    program.write_bytes(static_program(62, UNSHARE))
    program.chmod(0o755)


@pytest.fixture
async def runner(peer: SchedulerPeer) -> AsyncIterator[RunnerProcess]:
    with tempfile.TemporaryDirectory(prefix="taskyard-") as made:
        folder = Path(made)
        folder.chmod(0o711)
        make_rootfs(folder / "images" / "probe")
        make_rootfs(folder / "outside")
        (folder / "images" / "probe" / "run" / "host").symlink_to(folder / "outside")
        started = RunnerProcess(
            folder / "data",
            peer.address,
            TASKYARD_RUNNER_SANDBOX="user",
            TASKYARD_RUNNER_KIND="command,container",
            TASKYARD_RUNNER_CONTAINER_ENGINE="runc",
        )
        await started.start("--image-dir", str(folder / "images"))
        session = await peer.next_session(1)
        if len(session.hello.registration.execution_kinds) < 2:
            await started.kill()
            pytest.skip("no container engine works here: runc does not start a container")
        yield started
        await started.kill()
        started.clean()
        print(started.output())


def container(image: str) -> TaskSpec:
    return TaskSpec(execution=Execution(container=ContainerExecution(image=image, args=["/bin/probe"])))


@pytest.mark.parametrize("image", ["probe/../../outside", "probe/run/host", "probe/./run/../../../outside"])
async def test_an_image_lies_below_the_image_directory(
    peer: SchedulerPeer, runner: RunnerProcess, image: str
) -> None:
    failed = (await peer.outcome(peer.assign(container(image)))).failed
    assert failed.error.code == "START_FAILED" and "image directory" in failed.error.message


async def test_a_container_has_no_user_namespace_of_its_own_making(
    peer: SchedulerPeer, runner: RunnerProcess
) -> None:
    report = await peer.outcome(peer.assign(container("probe")))
    assert report.failed.exit_code == 1, "EPERM"
