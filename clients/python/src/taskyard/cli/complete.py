"""Completion of ids: tasks, runners, tenants, task types and contexts, as the server has them now."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

if TYPE_CHECKING:
    from taskyard.client import Client

    Find = Callable[[Client, str], AsyncIterator[tuple[str, str]]]

# A shell waits for completions; nobody waits long for them.
SECONDS = 3.0
LIMIT = 50


def _completing(find: Find) -> Callable[[click.Context, click.Parameter, str], list[CompletionItem]]:
    """A callback for click that lists ids with a word about each; nothing if the server is away."""

    def complete(context: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        async def collect() -> list[CompletionItem]:
            async with asyncio.timeout(SECONDS):
                async with connection.client() as client:
                    return [CompletionItem(one, help=about) async for one, about in find(client, incomplete)]

        connection = replace(_connection(context), patience=0.0)
        try:
            return asyncio.run(collect())
        except Exception:
            # A shell shows a traceback in the middle of the line; no completion is better than that.
            return []

    return complete


def _connection(context: click.Context) -> Any:
    """The connection of the options before the command; a completion never runs the command itself."""
    from taskyard.cli.session import Connection

    options = context.find_root().params
    return Connection(
        options.get("address"), options.get("key"), options.get("tenant"), options.get("context_name") or ""
    )


async def _tasks(client: Client, incomplete: str) -> AsyncIterator[tuple[str, str]]:
    from taskyard.reader import quoted

    filter_ = f"id = {quoted(f'{incomplete}*')}" if incomplete else ""
    async for task in client.list(filter_, limit=LIMIT):
        yield task.id, str(task.phase)


async def _runners(client: Client, incomplete: str) -> AsyncIterator[tuple[str, str]]:
    async for runner in client.admin.runners():
        if (runner_id := runner.name.rpartition("/")[2]).startswith(incomplete):
            yield runner_id, runner.registration.host


async def _tenants(client: Client, incomplete: str) -> AsyncIterator[tuple[str, str]]:
    async for tenant in client.admin.tenants():
        if (tenant_id := tenant.name.rpartition("/")[2]).startswith(incomplete):
            yield tenant_id, tenant.display_name


async def _types(client: Client, incomplete: str) -> AsyncIterator[tuple[str, str]]:
    async for task_type in client.admin.types():
        if (type_id := task_type.name.rpartition("/")[2]).startswith(incomplete):
            yield type_id, task_type.description


async def _keys(client: Client, incomplete: str) -> AsyncIterator[tuple[str, str]]:
    async for key in client.admin.keys():
        if (key_id := key.name.rpartition("/")[2]).startswith(incomplete):
            yield key_id, key.description


async def _schedules(client: Client, incomplete: str) -> AsyncIterator[tuple[str, str]]:
    async for schedule in client.schedules.list():
        if (schedule_id := schedule.name.rpartition("/")[2]).startswith(incomplete):
            yield schedule_id, schedule.description


async def _groups(client: Client, incomplete: str) -> AsyncIterator[tuple[str, str]]:
    async for group in client.groups.list():
        if (group_id := group.name.rpartition("/")[2]).startswith(incomplete):
            yield group_id, f"{group.live_count} live"


async def _limits(client: Client, incomplete: str) -> AsyncIterator[tuple[str, str]]:
    async for limit in client.limits.list():
        if (limit_id := limit.name.rpartition("/")[2]).startswith(incomplete):
            yield limit_id, limit.description


task_ids = _completing(_tasks)
runner_ids = _completing(_runners)
tenant_ids = _completing(_tenants)
type_ids = _completing(_types)
key_ids = _completing(_keys)
schedule_ids = _completing(_schedules)
group_ids = _completing(_groups)
limit_ids = _completing(_limits)


def context_names(context: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The contexts of the configuration file."""
    from taskyard.context import ContextError, config_file, read_config

    try:
        contexts = read_config(config_file()).contexts
    except ContextError:
        return []
    return [
        CompletionItem(name, help=one.get("address", ""))
        for name, one in contexts.items()
        if name.startswith(incomplete)
    ]
