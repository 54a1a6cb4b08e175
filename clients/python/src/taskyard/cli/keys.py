"""Commands about API keys."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import TextIO

import click

from taskyard.cli import screen
from taskyard.cli.complete import key_ids
from taskyard.cli.lists import pairs, print_list, word
from taskyard.cli.printing import exact_option, output_option
from taskyard.cli.session import call, for_each, with_client
from taskyard.cli.values import DURATION, PAIR
from taskyard.client import Client
from taskyard.convert import to_datetime, to_timestamp
from taskyard.names import last_segment
from taskyard.v1 import api_key_pb2

TITLES = ("KEY", "KIND", "FOR", "STATE", "CREATED", "ENDS", "DESCRIPTION")
KINDS = ("tenant", "admin", "scheduler", "runner")


@click.group(invoke_without_command=True)
@output_option("table", "json", "yaml", "name", "jsonpath")
@exact_option
@click.pass_context
def keys(context: click.Context, output: str, exact: bool) -> int | None:
    """List keys; create or revoke one.

    \b
    Examples:
      taskyard keys
      taskyard keys create --kind tenant --for acme --description "web shop"
      taskyard keys create --kind runner --runner-id 'w-*' --runner-label zone=a
      taskyard keys revoke 5f2c9a
    """
    if context.invoked_subcommand is not None:
        return None

    async def print_all(client: Client) -> None:
        await print_list(client.admin.keys(), output, TITLES, lambda one: _row(one, exact), "No keys.")

    return call(context.obj, print_all)


def _row(key: api_key_pb2.ApiKey, exact: bool) -> tuple[str, ...]:
    return (
        last_segment(key.name),
        word(api_key_pb2.PrincipalKind, key.kind, "PRINCIPAL_KIND_"),
        _holder(key),
        _state(key),
        screen.format_time(to_datetime(key.create_time), exact),
        screen.format_time(to_datetime(key.expire_time), exact) or "never",
        screen.clean(key.description),
    )


def _holder(key: api_key_pb2.ApiKey) -> str:
    """The tenant or runners that a key is for."""
    scope = key.runner_scope
    parts = [key.tenant + (" (reads only)" if key.read_only else ""), scope.runner_id]
    parts += [pairs(scope.labels), " ".join(scope.tenants)]
    return screen.clean(" ".join(part for part in parts if part))


def _state(key: api_key_pb2.ApiKey) -> str:
    ends = to_datetime(key.expire_time)
    if key.HasField("revoke_time"):
        return "revoked"
    return "expired" if ends and ends <= datetime.now(UTC) else "in force"


@keys.command()
@click.option("--kind", type=click.Choice(KINDS), default="tenant", show_default=True, help="What it is for.")
@click.option("--for", "tenant", metavar="TENANT", help="Tenant of a tenant's key.  [default: your own]")
@click.option("--read-only", is_flag=True, help="A tenant's key that can only read.")
@click.option(
    "--runner-id", default="", metavar="ID", help="Runner that may use it; a trailing * matches a prefix."
)
@click.option(
    "--runner-tenant", "tenants", multiple=True, metavar="TENANT", help="Tenant that the runner may serve."
)
@click.option("--runner-label", "labels", type=PAIR, multiple=True, help="Label of the runner.")
@click.option("--id", "key_id", default="", metavar="ID", help="Id of the key; made by the server otherwise.")
@click.option("--expires", type=DURATION, metavar="DURATION", help="How long it is valid.")
@click.option("--to", "file", metavar="FILE", help="New file to write it to, which only you can read.")
@click.option("--description", default="", help="For people.")
@with_client
async def create(
    client: Client,
    kind: str,
    tenant: str | None,
    read_only: bool,
    runner_id: str,
    tenants: tuple[str, ...],
    labels: tuple[tuple[str, str], ...],
    key_id: str,
    expires: float | None,
    file: str | None,
    description: str,
) -> None:
    """Create a key and print it; it cannot be shown again.

    \b
    Examples:
      taskyard keys create --for acme --expires 90d
      taskyard keys create --kind runner --runner-id 'worker-*' --to worker.key
    """
    key = api_key_pb2.ApiKey(
        kind=api_key_pb2.PrincipalKind.Value(f"PRINCIPAL_KIND_{kind.upper()}"),
        tenant=(tenant or await client.tenant()) if kind == "tenant" else "",
        read_only=read_only,
        description=description,
    )
    if kind != "runner" and (runner_id or tenants or labels):
        raise click.UsageError("--runner-id, --runner-tenant and --runner-label need --kind runner")
    if kind != "tenant" and (tenant or read_only):
        raise click.UsageError("--for and --read-only need --kind tenant")
    if kind == "runner":
        scope = api_key_pb2.RunnerScope(runner_id=runner_id, tenants=tenants, labels=dict(labels))
        key.runner_scope.CopyFrom(scope)
    if expires is not None:
        key.expire_time.CopyFrom(to_timestamp(datetime.now(UTC) + timedelta(seconds=expires)))
    with private_file(file) if file else contextlib.nullcontext(sys.stdout) as output:
        made, secret = await client.admin.create_key(key, key_id)
        hint = f"it is in {file}" if file else "store it, it cannot be shown again:"
        click.echo(f"Key {last_segment(made.name)}; {hint}", err=True)
        click.echo(secret, file=output)


@keys.command()
@click.argument("keys_", nargs=-1, required=True, metavar="KEY...", shell_complete=key_ids)
@with_client
async def revoke(client: Client, keys_: tuple[str, ...]) -> int:
    """Revoke keys permanently, on every server within 10 seconds.

    \b
    Example:
      taskyard keys revoke 5f2c9a
    """

    def print_key(key: api_key_pb2.ApiKey) -> None:
        click.echo(f"{last_segment(key.name)}  revoked")

    return await for_each(client, keys_, client.admin.revoke_key, print_key)


@contextlib.contextmanager
def private_file(path: str) -> Iterator[TextIO]:
    """A new file with mode 0600, whatever the umask; removed again if the caller fails."""
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise click.UsageError(f"--to {path}: {error.strerror}; name a new file") from None
    with open(fd, "w", encoding="utf-8") as file:
        try:
            yield file
        except BaseException:
            os.unlink(path)
            raise
