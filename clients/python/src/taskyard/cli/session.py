"""A command's connection: the options that name the server, and how a command's coroutine is run with it."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import os
import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec

import click

from taskyard.cli import waiting
from taskyard.cli.failure import FAILED, REFUSED, TIME_UP, UNREACHABLE, CommandFailed, explain

if TYPE_CHECKING:
    from taskyard.client import Client

P = ParamSpec("P")


@dataclass(frozen=True)
class Connection:
    """The options of the command line that select the server, and how calls to it are made."""

    address: str | None = None
    key: str | None = field(default=None, repr=False)
    tenant: str | None = None
    context: str = ""
    patience: float | None = None
    debug: bool = False

    def client(self) -> Client:
        """A client of that server; raises CommandFailed if none is named."""
        from taskyard.client import Client
        from taskyard.context import ContextError

        try:
            return Client(
                self.address,
                key=self.key,
                tenant=self.tenant,
                context=self.context,
                patience=self.patience,
            )
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


def call(
    connection: Connection, command: Callable[[Client], Awaitable[int | None]], *, announces: bool = True
) -> int:
    """Runs a coroutine function with a client; it returns the exit code.

    With `announces` a line is printed while the command waits for servers that do not serve.
    """
    from taskyard import tracing

    _await_start(connection)
    # A traced shell script passes its trace in this variable.
    tracing.pass_on(os.environ.get("TRACEPARENT", ""))
    _log_to_stderr(connection.debug)
    return asyncio.run(_run(connection, command, announces))


def _await_start(connection: Connection) -> None:
    from taskyard.cli.background import await_start
    from taskyard.context import ContextError

    try:
        await_start(connection)
    except ContextError as error:
        raise CommandFailed(str(error), UNREACHABLE) from None


async def _run(
    connection: Connection, command: Callable[[Client], Awaitable[int | None]], announces: bool
) -> int:
    from taskyard import errors
    from taskyard.context import ContextError

    client = connection.client()
    try:
        if connection.tenant and connection.tenant != "-":
            # To an administrator a tenant that does not exist looks like an empty one.
            await client.admin.get_tenant(connection.tenant)
        async with waiting.announced(client) if announces else contextlib.nullcontext():
            return await command(client) or 0
    except errors.TaskyardError as error:
        raise explain(error, client.context) from error
    except TimeoutError as error:
        raise CommandFailed(str(error), TIME_UP) from error
    except ContextError as error:
        raise CommandFailed(str(error), UNREACHABLE) from error
    finally:
        await client.close()


def _log_to_stderr(debug: bool) -> None:
    """Prints what the client logs: outages, and with --debug every call."""
    import logging

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            from taskyard.cli import screen

            click.echo(f"taskyard: {screen.shown(self.format(record), sys.stderr)}", err=True)

    log = logging.getLogger("taskyard")
    log.handlers[:], log.propagate = [Handler()], False
    log.setLevel(logging.DEBUG if debug else logging.WARNING)


async def for_each(
    client: Client, tasks: Sequence[str], act: Callable[[str], Awaitable[Any]], report: Callable[[Any], None]
) -> int:
    """Calls `act` for each task and `report` with its result; a failure does not stop the others."""
    from taskyard import errors
    from taskyard.cli import screen

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
