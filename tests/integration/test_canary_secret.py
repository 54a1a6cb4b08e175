"""Keys are nowhere but with their holders: not in logs, statuses, the audit or any table (FAULTS 59)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import psycopg
import pytest
from psycopg import sql

from taskyard import Client, Phase, command, errors
from taskyard.v1 import api_key_pb2
from tests.harness.control_plane import ControlPlane, control_plane
from tests.integration.conftest import StartRunner

if TYPE_CHECKING:
    from tests.harness.postgres import PostgresServer


@pytest.fixture(scope="module")
def plane(postgres_server: PostgresServer, migrated_template: str) -> Iterator[ControlPlane]:
    with control_plane(postgres_server, migrated_template) as running:
        yield running


def tables_with(url: str, text: str) -> list[str]:
    """The tables of which a row holds the text."""
    named = "SELECT relname FROM pg_stat_user_tables ORDER BY 1"
    row_has = sql.SQL("SELECT EXISTS (SELECT FROM {} t WHERE position(%s in t::text) > 0)")
    with psycopg.connect(url) as connection:
        names = [row[0] for row in connection.execute(named).fetchall()]
        return [
            name
            for name in names
            if connection.execute(row_has.format(sql.Identifier(name)), (text,)).fetchone() == (True,)
        ]


async def test_fault_59_no_key_is_in_a_log_a_status_the_audit_or_a_table(
    plane: ControlPlane, client: Client, start_runner: StartRunner, own: dict[str, str]
) -> None:
    runner = await start_runner()
    canaries = dict(plane.keys)
    async with Client(plane.taskdbs[0].address, key=plane.keys["admin"]) as admin:
        wanted = api_key_pb2.ApiKey(kind=api_key_pb2.PRINCIPAL_KIND_TENANT, tenant="default")
        _, canaries["made"] = await admin.admin.create_key(wanted)
    canaries["wrong"] = canaries["made"][:-6] + "canary"
    seen = []
    async with Client(plane.taskdbs[0].address, key=canaries["made"], tenant="default") as user:
        for body in ("env", "exit 3"):
            task = await user.create(command("sh", "-c", body, runner_labels=own, retry=0))
            done = await user.wait(task, timeout=60)
            assert done.phase in (Phase.SUCCEEDED, Phase.FAILED, Phase.EXHAUSTED)
            seen += [repr(done), *[repr(run) async for run in user.runs(task)]]
            seen += [entry.message async for entry in user.logs(task)]
    async with Client(plane.taskdbs[0].address, key=canaries["wrong"], tenant="default") as stranger:
        with pytest.raises(errors.Unauthenticated) as refused:
            await stranger.create(command("true"))
        seen.append(repr(refused.value))
    seen += [service.log.read_text() for service in (*plane.taskdbs, *plane.schedulers)]
    seen.append(runner.output())
    for name, canary in canaries.items():
        secret = canary.rpartition("_")[2]
        assert not [text for text in seen if secret in text], f"the {name} key is visible"
        assert not tables_with(plane.url, secret), f"the {name} key is stored"
    # The search finds what is there.
    assert "tasks" in tables_with(plane.url, task.id)
