"""A line on stderr while a command waits for servers that do not serve."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from taskyard.client import Client

PATIENCE_SECONDS = 3.0
CHECK_SECONDS = 5.0


@asynccontextmanager
async def announced(client: Client) -> AsyncIterator[None]:
    """While the block waits for longer than a few seconds and taskdb does not serve, print that once."""
    watching = asyncio.create_task(_watch(client))
    try:
        yield
    finally:
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)


async def _watch(client: Client) -> None:
    from taskyard.context import ContextError

    await asyncio.sleep(PATIENCE_SECONDS)
    while True:
        try:
            state = await client.server_state(client.context.address)
        except ContextError:
            return
        if state != "serving":
            address = client.context.address
            click.echo(f"taskyard: taskdb at {address} is {state}; waiting for it", err=True)
            return
        await asyncio.sleep(CHECK_SECONDS)
