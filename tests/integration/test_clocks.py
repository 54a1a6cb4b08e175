"""Wall clocks that are an hour off, another way in each service: nothing expires early or late (FAULTS 39).

A small library before libc shifts CLOCK_REALTIME of one process; boot time and PostgreSQL's clock are right.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from services.runner.tests.runner_process import RunnerProcess
from taskyard import Phase, RunState, command
from tests.harness.control_plane import ControlPlane, control_plane
from tests.harness.processes import Service

if TYPE_CHECKING:
    from tests.harness.postgres import PostgresServer

SHIM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>

int clock_gettime(clockid_t id, struct timespec *t) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int result = real(id, t);
    if (!result && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE))
        t->tv_sec += atoi(getenv("CLOCK_SHIFT"));
    return result;
}

int gettimeofday(struct timeval *t, void *zone) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    t->tv_sec = now.tv_sec;
    t->tv_usec = now.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *t) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (t) *t = now.tv_sec;
    return now.tv_sec;
}
"""
LEASE_SECONDS = 3.0
QUICK = ("--heartbeat-interval", "500ms", "--lease-duration", "3s", "--first-lease", "2s")
HOUR = 3600


@pytest.fixture(scope="module")
def shim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("cc") is None:
        pytest.skip("no C compiler is installed")
    library = tmp_path_factory.mktemp("clock") / "clock.so"
    build = ["cc", "-shared", "-fPIC", "-O2", "-x", "c", "-", "-o", str(library), "-ldl"]
    subprocess.run(build, input=SHIM.encode(), check=True)
    return library


def shifted(shim: Path, seconds: int) -> dict[str, str]:
    """The environment of a process whose clock is off by so much."""
    return {"LD_PRELOAD": str(shim), "CLOCK_SHIFT": str(seconds)}


def clock_of(service: Service) -> float:
    """The time of the first line of its log."""
    line = service.log.read_text().splitlines()[0]
    return datetime.fromisoformat(json.loads(line)["time"]).timestamp()


@pytest.fixture(params=[(HOUR, -HOUR, HOUR), (-HOUR, HOUR, -HOUR)], ids=["ahead", "behind"])
async def plane(
    request: pytest.FixtureRequest,
    shim: Path,
    tmp_path: Path,
    postgres_server: PostgresServer,
    migrated_template: str,
) -> AsyncIterator[ControlPlane]:
    """taskdb, scheduler and runner, each with another clock."""
    taskdb, scheduler, runner = (shifted(shim, seconds) for seconds in request.param)
    with control_plane(postgres_server, migrated_template, taskdbs=0, schedulers=0) as plane:
        plane.add_taskdb("--reap-grace", "4s", **taskdb)
        plane.add_scheduler("", *QUICK, **scheduler)
        address, key = plane.schedulers[0].address, plane.keys["runner"]
        for service, seconds in zip((*plane.taskdbs, *plane.schedulers), request.param, strict=False):
            assert abs(clock_of(service) - time.time() - seconds) < HOUR / 2, "the clock is not shifted"
        process = RunnerProcess(tmp_path / "runner", address, id="runner", key=key, **runner)
        await process.start("--capacity", "4")
        try:
            await process.connected()
            yield plane
        finally:
            await process.kill()
            process.clean()


async def test_fault_39_clocks_an_hour_off_cost_no_lease_and_move_no_timer(
    plane: ControlPlane,
) -> None:
    async with plane.client() as client:
        held = await client.create(command("sleep", str(3 * LEASE_SECONDS), overlap="forbid"))
        begin = time.monotonic()
        delayed = await client.create(command("true", not_before=datetime.now(UTC) + timedelta(seconds=2)))
        late = await client.create(command("sleep", "60", queue_timeout=60.0, timeout=2.0, retry=0))
        assert (await client.wait(delayed, timeout=60)).phase is Phase.SUCCEEDED
        assert time.monotonic() - begin > 1.5, "a clock that is ahead made it start early"
        assert (await client.wait(late, timeout=60)).phase is Phase.TIMED_OUT
        assert (await client.wait(held, timeout=60)).phase is Phase.SUCCEEDED
        assert [run.state async for run in client.runs(held)] == [RunState.SUCCEEDED]
