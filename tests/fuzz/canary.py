"""Whether the suite still works for an uninvolved tenant: its task runs, its webhook and watch arrive."""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections.abc import Iterator

from services.taskdb.tests.sweep.receiver import Receiver, receiving
from taskyard import Client, Event, Phase, Stream, command
from taskyard.v1 import api_key_pb2
from tests.fuzz.service import Service
from tests.fuzz.world import add_key, add_tenant
from tests.harness.link_runner import LinkRunner

# A webhook that waits for its turn behind those of the fuzzed tenant has to arrive within this.
SECONDS = 60.0


async def broken_promises(service: Service) -> list[str]:
    """What does not work for a fresh tenant with a runner of its own; empty if all does."""
    tenant = f"canary-{uuid.uuid4().hex[:8]}"
    await add_tenant(service, tenant)
    key = (await add_key(service, tenant=tenant)).secret
    scope = api_key_pb2.RunnerScope(tenants=[tenant])
    runner_key = (await add_key(service, kind=api_key_pb2.PRINCIPAL_KIND_RUNNER, runner_scope=scope)).secret
    broken: list[str] = []
    async with (
        receiving(Receiver()) as receiver,
        Client(service.taskdb, key=key, tenant=tenant) as client,
        LinkRunner(service.scheduler, runner_key, tenant) as runner,
    ):
        events = client.watch(snapshot=True)
        seen = asyncio.create_task(_first_success(events))
        with _reported(broken, "the canary task"):
            async with asyncio.timeout(SECONDS):
                await runner.connect()
                created = await client.create(command("true", callback=receiver.url()))
                await runner.complete(await runner.next_assignment(SECONDS))
                ended = await client.wait(created, timeout=SECONDS)
                assert ended.phase is Phase.SUCCEEDED, ended.phase
        with _reported(broken, "the watch"):
            async with asyncio.timeout(SECONDS):
                await seen
        with _reported(broken, "the webhook"):
            async with asyncio.timeout(SECONDS):
                await receiver.holds(1)
        seen.cancel()
        await asyncio.wait([seen])
        await events.aclose()
    return broken


async def _first_success(events: Stream[Event]) -> None:
    async for event in events:
        if event.task is not None and event.task.phase is Phase.SUCCEEDED:
            return


@contextlib.contextmanager
def _reported(broken: list[str], what: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        broken.append(f"{what} of another tenant does not work: {type(error).__name__} {error}")
