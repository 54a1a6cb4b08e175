"""Fixtures of the table: one control plane and one runner per module, so that a case costs only itself."""

from __future__ import annotations

import os
import tempfile
import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
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


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """A directory that others than the owner may pass through, as a sandbox needs it."""
    with tempfile.TemporaryDirectory(prefix="taskyard-", ignore_cleanup_errors=True) as made:
        os.chmod(made, 0o711)
        yield Path(made)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def bench(kind: Kind, plane: ControlPlane, folder: Path) -> AsyncIterator[Bench]:
    """A runner for the kind of the module's table, in the sandbox that it chooses by itself."""
    async with plane.client() as client:
        made = Bench(plane, client, folder, kind.flags, [], uuid.uuid4().hex[:8])
        await made.start_runner()
        yield made
        for runner in made.started:
            await runner.kill()
            runner.clean()
            print(runner.output())
