"""Containers pass the table under podman, and what is particular to them."""

from __future__ import annotations

import os
import signal
import subprocess

import pytest

from services.runner.tests.runner_process import RunnerProcess, wait_gone
from taskyard import Phase, container
from taskyard_runner.executors.container import container_name
from tests.docs.pages import blocks
from tests.executors.bench import PATIENCE, Bench
from tests.executors.cases import ExecutorCases
from tests.executors.containers import Containers
from tests.executors.images import find_engine

podman = Containers("podman")
PAGE = "docs/howto/run-a-runner.md"


def containers(runner: RunnerProcess) -> list[str]:
    """The names of the runner's containers; others may have some on this host."""
    engine = find_engine("podman")
    assert engine is not None
    listed = subprocess.run(
        [*engine.client, "ps", "--all", "--format={{.Names}}"], capture_output=True, text=True, check=True
    )
    prefix = container_name(runner.data_dir / "runs" / "run").removesuffix("run")
    return [name for name in listed.stdout.split() if name.startswith(prefix)]


class TestContainer(ExecutorCases):
    kind = podman

    async def test_a_container_has_no_network_no_capability_and_no_file_of_the_host(
        self, bench: Bench
    ) -> None:
        body = """
        ls /sys/class/net 2> /dev/null || true
        cat /proc/net/dev | while read -r name rest; do case $name in *:) echo "$name";; esac; done
        while read -r name value; do case $name in CapEff:|NoNewPrivs:) echo "$name $value";; esac; done \\
            < /proc/self/status
        [ -e /etc/shadow ] || [ -e /root ] && echo "files of the host"
        echo "$TASKYARD_KEY$CANARY"
        """
        task = await bench.run(podman.shell(body))
        lines = set(await bench.lines(task))
        assert lines == {"lo", "lo:", "CapEff: 0000000000000000", "NoNewPrivs: 1", ""}

    async def test_processes_are_limited(self, bench: Bench) -> None:
        own = bench.elsewhere()
        await own.start_runner("--pids-limit", "20")
        body = "i=0; while [ $i -lt 50 ]; do sleep 600 & i=$((i + 1)); done; echo all"
        task = await own.run(podman.shell(body, retry=0))
        lines = await own.lines(task)
        assert "all" not in lines and any("fork" in line for line in lines), lines

    async def test_environment_working_directory_and_payload(self, bench: Bench) -> None:
        body = 'echo "$GREETING"; echo "$PWD"; cat "$TASKYARD_PAYLOAD_FILE"'
        new = container(
            podman.image,
            "-c",
            body,
            entrypoint=["sh"],
            working_directory="/tmp",
            env={"GREETING": "good day = 'x'"},
            payload={"a": 1},
        )
        task = await bench.run(new)
        assert await bench.lines(task) == ["good day = 'x'", "/tmp", '{"a":1}']

    async def test_invalid_lines_of_the_pipe_are_reported_in_the_log(self, bench: Bench) -> None:
        task = await bench.run(podman.shell('echo garbage > "$TASKYARD_PIPE"; sleep 0.1'))
        assert task.phase is Phase.SUCCEEDED
        assert any("garbage" in line and "refused" in line for line in await bench.lines(task))

    async def test_the_commands_of_the_page_work_inside_a_container(self, bench: Bench) -> None:
        (lines,) = (block.text for block in blocks(PAGE) if block.language == "sh")
        again = '[ -n "$TASKYARD_CHECKPOINT_FILE" ] && exec cat "$TASKYARD_CHECKPOINT_FILE"'
        body = f"{again}\ncd /run/taskyard/work; echo 7 > state\n{lines}\nsleep 1; exit 1"
        task = await bench.run(podman.shell(body, retry={"max_retries": 1, "initial": 0.1}))
        assert task.phase is Phase.SUCCEEDED, task.proto
        assert await bench.lines(task) == ["7"], "the next run starts with the checkpoint"
        task = await bench.run(podman.shell(f"{lines.splitlines()[0]}\nsleep 0.2"))
        assert task.proto.status.progress.percent == 40

    @pytest.mark.parametrize(
        ("image", "reason"),
        [
            ("localhost/taskyard-no-such-image:1", "is not on this host"),
            ("oci:/etc", "is no image reference"),
            ("../../etc", "is no image reference"),
            ("--privileged", "is no image reference"),
        ],
    )
    async def test_a_bad_image_is_a_permanent_error_that_names_it(
        self, bench: Bench, image: str, reason: str
    ) -> None:
        task = await bench.run(container(image, "true", retry=3))
        assert (task.phase, task.attempt) == (Phase.FAILED, 1)
        assert task.error is not None and task.error.code == "START_FAILED"
        assert image in task.error.message and reason in task.error.message

    async def test_the_runner_decides_whether_a_container_has_network(self, bench: Bench) -> None:
        refused = await bench.run(container(podman.image, "true", network=True))
        assert refused.error is not None and "container.network" in refused.error.message
        own = bench.elsewhere()
        await own.start_runner("--container-network")
        allowed = await own.run(container(podman.image, "cat", "/proc/net/dev", network=True))
        assert allowed.phase is Phase.SUCCEEDED, allowed.proto

    async def test_a_container_that_ignores_sigterm_is_killed_and_removed(self, bench: Bench) -> None:
        body = "trap '' TERM; echo ready; while true; do sleep 1; done"
        task = await bench.create(podman.shell(body, stop_grace_period=0.5))
        await bench.written(task, "ready")
        assert len(containers(bench.runner)) == 1
        await bench.client.cancel(task)
        assert (await bench.client.wait(task, timeout=PATIENCE)).phase is Phase.CANCELLED
        assert not containers(bench.runner)

    async def test_the_next_warden_removes_the_containers_of_a_killed_one(self, bench: Bench) -> None:
        own = bench.elsewhere()
        first = await own.start_runner()
        task = await own.create(podman.hangs(stop_grace_period=0))
        await own.written(task, "ready")
        assert len(containers(first)) == 1
        os.kill(first.pid, signal.SIGKILL)
        await wait_gone(first.pid)
        await first.start("--capacity", "4", *own.flags)
        await first.connected(2)
        assert not containers(first)
        await own.client.cancel(task)
