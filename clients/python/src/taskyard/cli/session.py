"""A command's connection: the options that name the server, and how a command's coroutine is run with it."""

from __future__ import annotations

import asyncio
import functools
import os
import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Concatenate, ParamSpec

import click

from taskyard import errors, tracing
from taskyard.cli import screen, waiting
from taskyard.cli.failure import FAILED, REFUSED, TIME_UP, UNREACHABLE, CommandFailed, explain
from taskyard.client import Client
from taskyard.context import ContextError

P = ParamSpec("P")


@dataclass(frozen=True)
class Connection:
    """The options of the command line that select the server."""

    address: str | None = None
    key: str | None = field(default=None, repr=False)
    tenant: str | None = None

    def client(self) -> Client:
        """A client of that server; raises CommandFailed if none is named."""
        try:
            return Client(self.address, key=self.key, tenant=self.tenant)
        except ContextError as error:
            raise CommandFailed(str(error), UNREACHABLE) from None


def with_client(
    command: Callable[Concatenate[Client, P], Awaitable[int | None]],
) -> Callable[P, Any]:
    """Turns a coroutine function into a click callback; it returns the exit code."""

    @click.pass_obj
    @functools.wraps(command)
    def callback(connection: Connection, /, *args: P.args, **kwargs: P.kwargs) -> int:
        return call(connection, lambda client: command(client, *args, **kwargs))

    return callback


def call(connection: Connection, command: Callable[[Client], Awaitable[int | None]]) -> int:
    """Runs a coroutine function with a client; it returns the exit code."""
    # A traced shell script passes its trace in this variable.
    tracing.pass_on(os.environ.get("TRACEPARENT", ""))
    return asyncio.run(_run(connection, command))


async def _run(connection: Connection, command: Callable[[Client], Awaitable[int | None]]) -> int:
    client = connection.client()
    try:
        async with waiting.announced(client):
            return await command(client) or 0
    except errors.TaskyardError as error:
        raise explain(error, client.context) from error
    except TimeoutError as error:
        raise CommandFailed(str(error), TIME_UP) from error
    except ContextError as error:
        raise CommandFailed(str(error), UNREACHABLE) from error
    finally:
        await client.close()


async def for_each(
    client: Client, tasks: Sequence[str], act: Callable[[str], Awaitable[Any]], report: Callable[[Any], None]
) -> int:
    """Calls `act` for each task and `report` with its result; a failure does not stop the others."""
    failures = []
    for task in tasks:
        try:
            report(await act(task))
        except errors.TaskyardError as error:
            failure = explain(error, client.context)
            if failure.exit_code in (UNREACHABLE, REFUSED):
                raise failure from error
            failures.append(failure)
            click.echo(f"taskyard: {screen.shown(str(failure), sys.stderr)}", err=True)
    codes = {failure.exit_code for failure in failures}
    return codes.pop() if len(codes) == 1 else FAILED if codes else 0
