"""The configuration file: contexts, each with a server and a key, and the one in use."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

import click

from taskyard.cli import screen
from taskyard.cli.complete import context_names
from taskyard.cli.failure import MISSING, USAGE, CommandFailed
from taskyard.cli.session import Connection
from taskyard.context import (
    CONTEXT_VARIABLE,
    Config,
    Context,
    ContextError,
    config_file,
    distrust,
    find_context,
    read_config,
)

_SECRET = ("key", "admin_key")


@click.group(invoke_without_command=True)
@click.pass_context
def config(context: click.Context) -> None:
    """List contexts; show, use or delete one.

    A context is a server with a key. `taskyard login` adds one; a .taskyard/context.toml in this folder or
    above comes before the current one, TASKYARD_CONTEXT and --context before both.

    \b
    Examples:
      taskyard config
      taskyard config use production
      taskyard --context staging list
    """
    if context.invoked_subcommand is None:
        _list(context.obj)


def _list(connection: Connection) -> None:
    file, found = _read()
    effective = _effective(connection)
    table = screen.Table("", "CONTEXT", "ADDRESS", "TENANT")
    rows = [
        ("*" if name == found.current else "", name, one.get("address", ""), one.get("tenant", "of the key"))
        for name, one in found.contexts.items()
    ]
    table.add(rows)
    if not rows:
        click.echo("No contexts; add one with `taskyard login`.", err=True)
    if effective and effective.source not in (str(file), ""):
        click.echo(f"In use here: {effective.address}, from {effective.source}.", err=True)


def _effective(connection: Connection) -> Context | None:
    given = {"address": connection.address, "key": connection.key, "tenant": connection.tenant}
    try:
        return find_context(given, name=connection.context)
    except ContextError:
        return None


@config.command()
@click.argument("name", required=False, shell_complete=context_names)
@click.pass_obj
def show(connection: Connection, /, name: str | None) -> None:
    """Show a context without its keys, by default the one in use.

    \b
    Example:
      taskyard config show production
    """
    try:
        found = find_context({}, name=name or connection.context)
    except ContextError as error:
        raise CommandFailed(str(error), MISSING) from None
    values = {one: getattr(found, one) for one in found.__dataclass_fields__}
    screen.print_fields(
        [(one, "set" if value and one in _SECRET else value) for one, value in values.items()]
    )


@config.command()
@click.argument("name", shell_complete=context_names)
def use(name: str) -> None:
    """Make a context the current one.

    \b
    Example:
      taskyard config use production
    """
    file, found = _read()
    _require(found, file, name)
    _write(file, Config(found.contexts, name, found.unnamed))
    click.echo(f"Context {name} is in use.")
    if os.environ.get(CONTEXT_VARIABLE):
        click.echo(f"{CONTEXT_VARIABLE} is set and comes first.", err=True)
    elif (effective := _effective(Connection())) and effective.source != str(file):
        click.echo(f"Here {effective.source} comes first.", err=True)


@config.command("delete")
@click.argument("name", shell_complete=context_names)
def delete_context(name: str) -> None:
    """Delete a context and its key.

    \b
    Example:
      taskyard config delete staging
    """
    file, found = _read()
    _require(found, file, name)
    left = {one: values for one, values in found.contexts.items() if one != name}
    _write(file, Config(left, "" if found.current == name else found.current, found.unnamed))
    click.echo(f"{name}  deleted")


def store(name: str, values: Mapping[str, str]) -> Path:
    """Adds or replaces a context and makes it the current one; the path of the file."""
    if not name.replace("-", "").replace("_", "").replace(".", "").isalnum():
        raise CommandFailed(f"context {name!r}: use letters, digits, dot, dash and underscore", USAGE)
    file, found = _read()
    _write(file, Config({**found.contexts, name: values}, name, found.unnamed))
    return file


def _read() -> tuple[Path, Config]:
    file = config_file()
    if file.is_file() and (problem := distrust(file)):
        raise CommandFailed(problem, USAGE)
    try:
        return file, read_config(file)
    except ContextError as error:
        raise CommandFailed(str(error), USAGE) from None


def _require(found: Config, file: Path, name: str) -> None:
    if name not in found.contexts:
        known = ", ".join(found.contexts) or "none"
        raise CommandFailed(f"{file} has no context {name!r}, only: {known}", MISSING)


def _write(file: Path, config: Config) -> None:
    """Replaces the file as a whole, with mode 0600 from its first byte."""
    lines = [f"{name} = {json.dumps(value)}" for name, value in config.unnamed.items()]
    if config.current:
        lines.append(f"current = {json.dumps(config.current)}")
    for name, values in config.contexts.items():
        lines += ["", f"[contexts.{json.dumps(name)}]"]
        lines += [f"{one} = {json.dumps(value)}" for one, value in values.items()]
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    new = file.with_name(f"{file.name}.{os.getpid()}")
    try:
        fd = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        with open(fd, "w", encoding="utf-8") as opened:
            opened.write("\n".join(lines) + "\n")
        os.replace(new, file)
    except OSError as error:
        raise CommandFailed(f"{file} cannot be written: {error.strerror}", USAGE) from None
