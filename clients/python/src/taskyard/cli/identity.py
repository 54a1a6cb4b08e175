"""Commands about who uses which server: login, whoami, version, open."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from taskyard.cli import screen
from taskyard.cli.failure import MISSING, REFUSED, CommandFailed
from taskyard.cli.printing import output_option
from taskyard.cli.session import Connection, call, with_client

if TYPE_CHECKING:
    from taskyard.client import Client
    from taskyard.v1.api_key_service_pb2 import WhoAmIResponse


@click.command()
@output_option("text", "json", "yaml", "jsonpath")
@with_client
async def whoami(client: Client, output: str) -> None:
    """Show whose key is in use, and where it comes from.

    \b
    Example:
      taskyard whoami
    """
    from taskyard.cli import printing

    found = await client.whoami()
    if output != "text":
        printing.print_message(found, output)
        return
    screen.print_fields(_fields(client, found))


def _fields(client: Client, found: WhoAmIResponse) -> list[tuple[str, str]]:
    from taskyard.cli.lists import word
    from taskyard.convert import to_datetime
    from taskyard.names import last_segment
    from taskyard.v1.api_key_pb2 import PrincipalKind

    key, context = found.api_key, client.context
    own = key.tenant or "any"
    return [
        ("key", last_segment(key.name)),
        ("kind", word(PrincipalKind, key.kind, "PRINCIPAL_KIND_") + (", read-only" if key.read_only else "")),
        ("tenant", own if context.tenant in ("", key.tenant) else f"{own}; working in {context.tenant}"),
        ("description", screen.clean(key.description)),
        ("expires", screen.format_time(to_datetime(key.expire_time), True) or "never"),
        ("admin key", "yes" if context.admin_key else "no"),
        ("server", f"{context.address}, version {found.server_version}"),
        ("from", context.source),
    ]


@click.command()
@click.option("--address", required=True, metavar="HOST:PORT", help="Server to use; https://… for TLS.")
@click.option("--name", metavar="NAME", help="Name of the context.  [default: the host]")
@click.option("--scheduler", metavar="HOST:PORT", help="Scheduler, for `taskyard explain`.")
@click.option("--gateway", metavar="URL", help="Where HTTP is served, for `taskyard open`.")
@click.option("--tls-ca", metavar="FILE", help="Certificate authority of the server.")
@click.option("--as-tenant", metavar="TENANT", help="Tenant to work in; by default that of the key.")
@click.pass_obj
def login(connection: Connection, /, name: str | None, as_tenant: str | None, **given: Any) -> int:
    """Store a server and its key as a context.

    Asks for the key, or reads it from standard input or TASKYARD_KEY; checks it with the server, and makes
    the context the current one. The file is readable only by you.

    \b
    Examples:
      taskyard login --address https://tasks.example.com:7420 --name production
      taskyard login --address 127.0.0.1:7420 < worker.key
    """
    from taskyard.cli.config import store

    key = connection.key or os.environ.get("TASKYARD_KEY") or _asked_key()
    values = {**{name: value for name, value in given.items() if value}, "key": key}
    if tenant := as_tenant or connection.tenant:
        values["tenant"] = tenant
    host = str(given["address"]).removeprefix("https://").removeprefix("http://").rpartition(":")[0]
    label = name or connection.context or host.strip("[]") or "default"

    async def check(client: Client) -> int:
        found = await client.whoami()
        shown = f"key {found.api_key.name.rpartition('/')[2]} of tenant {found.api_key.tenant or 'any'}"
        file = store(label, values)
        click.echo(f"Context {label} is in use: {given['address']}, {shown} (stored in {file}).")
        return 0

    checked = replace(
        connection, address=given["address"], key=key, context="", patience=connection.patience or 0.0
    )
    if given.get("tls_ca"):
        os.environ["TASKYARD_TLS_CA"] = str(given["tls_ca"])
    return call(checked, check)


def _asked_key() -> str:
    key = click.prompt("Key", hide_input=True, err=True) if sys.stdin.isatty() else sys.stdin.readline()
    if not key.strip():
        raise CommandFailed("no key was given; type it, or send it to standard input", REFUSED)
    return str(key).strip()


@click.command("version")
@click.option("--client", "client_only", is_flag=True, help="Do not ask the server.")
@output_option("text", "json")
@click.pass_obj
def show_version(connection: Connection, /, client_only: bool, output: str) -> int:
    """Show the versions of client and server.

    \b
    Example:
      taskyard version -o json
    """
    import json
    import platform
    from importlib.metadata import version

    versions = {"client": version("taskyard"), "python": platform.python_version()}
    code = 0
    if not client_only:

        async def ask(client: Client) -> int:
            versions["server"] = (await client.whoami()).server_version
            return 0

        try:
            code = call(replace(connection, patience=connection.patience or 0.0), ask)
        except CommandFailed as failed:
            versions["server"] = f"unknown: {failed}"
            code = failed.exit_code
    if output == "json":
        click.echo(json.dumps(versions))
    else:
        screen.print_fields(versions.items())
    return code


@click.command("open")
@click.option("--print", "print_only", is_flag=True, help="Print the address and open no browser.")
@with_client
async def open_console(client: Client, print_only: bool) -> None:
    """Open the web console, signed in.

    The link signs one browser in, once and within five minutes, with the rights of the administrator's key if
    there is one, and of the ordinary key otherwise.

    \b
    Example:
      taskyard open --print
    """
    url = await _console_url(client)
    click.echo(url)
    if not print_only and sys.stdout.isatty():
        click.launch(url)


async def _console_url(client: Client) -> str:
    """The address of the console, with a one-time code behind "#", which no server and no proxy logs."""
    gateway = client.context.gateway
    if not gateway:
        raise CommandFailed(
            f"{client.context.source} names no gateway; set TASKYARD_GATEWAY to its http://host:port", MISSING
        )
    code, _ = await client.admin.create_sign_in_code()
    return f"{gateway.rstrip('/')}/#/?code={code}"
