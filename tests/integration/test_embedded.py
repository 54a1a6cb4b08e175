"""client.run_embedded: a function of this process as a task of a real taskdb."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from taskyard import Client, Phase
from tests.harness.control_plane import ControlPlane, control_plane

if TYPE_CHECKING:
    from tests.harness.postgres import PostgresServer


@pytest.fixture(scope="module")
def plane(postgres_server: PostgresServer, migrated_template: str) -> Iterator[ControlPlane]:
    with control_plane(postgres_server, migrated_template) as running:
        yield running


@pytest.mark.seed("S4.30")
async def test_a_function_of_this_process_runs_as_a_task_and_is_retried(client: Client) -> None:
    calls: list[int] = []

    def work(payload: dict[str, int]) -> dict[str, int]:
        calls.append(payload["n"])
        if len(calls) == 1:
            raise OSError("the disk is slow")
        return {"n": payload["n"] + 1}

    ended = await client.run_embedded(work, {"n": 1}, retry={"max_retries": 1, "initial": 0.05}, slot="here")
    assert (ended.phase, ended.attempt, ended.result) == (Phase.SUCCEEDED, 2, {"n": 2})
    assert calls == [1, 1]
    first = [run async for run in client.runs(ended)][-1]
    assert first.error is not None and first.error.message == "OSError: the disk is slow"


async def test_timeout_and_permanent_failure_end_it(client: Client) -> None:
    async def hang() -> None:
        await asyncio.sleep(600)

    timed_out = await client.run_embedded(hang, timeout=0.2)
    assert timed_out.phase is Phase.TIMED_OUT
    failed = await client.run_embedded(lambda: 1 // 0, permanent=(ZeroDivisionError,))
    assert (failed.phase, failed.attempt) == (Phase.FAILED, 1)
