"""Fixtures of the table: one control plane and one runner per module, so that a case costs only itself."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING

import pytest
import pytest_asyncio

from tests.executors.bench import Bench
from tests.executors.cases import ExecutorCases
from tests.executors.kinds import Kind
from tests.harness.control_plane import ControlPlane, control_plane

if TYPE_CHECKING:
    from tests.harness.postgres import PostgresServer


@pytest.fixture(scope="module")
def kind(request: pytest.FixtureRequest) -> Kind:
    """What the module's table is about; skips it where the host lacks what the kind needs."""
    for found in vars(request.module).values():
        if isinstance(found, type) and issubclass(found, ExecutorCases) and found is not ExecutorCases:
            if problem := getattr(found.kind, "problem", str)():
                pytest.skip(problem)
            return found.kind
    raise AssertionError("the module has no table of its own")


@pytest.fixture(scope="module")
def plane(kind: Kind, postgres_server: PostgresServer, migrated_template: str) -> Iterator[ControlPlane]:
    with control_plane(postgres_server, migrated_template) as running:
        yield running


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def bench(
    kind: Kind, plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Bench]:
    """A runner for the kind of the module's table."""
    async with plane.client() as client:
        made = Bench(plane, client, tmp_path_factory.mktemp("runners"), kind.flags, [], uuid.uuid4().hex[:8])
        await made.start_runner()
        yield made
        for runner in made.started:
            await runner.kill()
            runner.clean()
            print(runner.output())
