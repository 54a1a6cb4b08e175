"""The command that creates or updates tenants, task types and tasks from a file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from taskyard.cli import screen
from taskyard.cli.desired import Change, change_of
from taskyard.cli.failure import USAGE, CommandFailed
from taskyard.cli.manifest import KINDS, Resource, resources
from taskyard.cli.marked_yaml import YamlError
from taskyard.cli.session import with_client
from taskyard.client import Client

_SUFFIXES = (".yaml", ".yml", ".json")


@click.command()
@click.option(
    "--file",
    "-f",
    "files",
    multiple=True,
    required=True,
    type=click.Path(exists=True, allow_dash=True, path_type=Path),
    help="YAML file, folder of them, or - for standard input; repeatable.",
)
@click.option("--dry-run", is_flag=True, help="Change nothing; show what would change.")
@with_client
async def apply(client: Client, files: tuple[Path, ...], dry_run: bool) -> None:
    """Create or update tenants, task types and tasks from a file.

    A file holds YAML documents with `kind: Tenant`, `TaskType` or `Task` and an `id`. Missing resources are
    created, different ones are changed, equal ones are left alone; applying a file again changes nothing.
    Fields that a file does not name keep their values.

    \b
    Examples:
      taskyard apply -f yard.yaml
      taskyard apply -f yard.yaml --dry-run
      cat encode.yaml | taskyard apply -f -
    """
    try:
        wanted = [resource for file in files for resource in _read(file)]
    except YamlError as error:
        raise CommandFailed(str(error), USAGE) from None
    if not wanted:
        raise CommandFailed("the files contain no documents", USAGE)
    # Everything is read and compared before the first change: a mistake in the last document changes nothing.
    counts = {"created": 0, "changed": 0, "unchanged": 0}
    ordered = sorted(wanted, key=lambda one: KINDS.index(one.kind))
    for resource, change in [(one, await change_of(client, one)) for one in ordered]:
        if not dry_run:
            await change.make()
        counts[change.verb] += 1
        _print_change(change, resource, dry_run)
    summary = ", ".join(f"{count} {verb}" for verb, count in counts.items() if count)
    click.echo(f"{summary}{' (dry run: nothing was changed)' if dry_run else ''}", err=True)


def _read(file: Path) -> Sequence[Resource]:
    if file.is_dir():
        inside = sorted(one for one in file.iterdir() if one.suffix in _SUFFIXES)
        return [resource for one in inside for resource in _read(one)]
    try:
        with click.open_file(str(file), encoding="utf-8") as opened:
            text = opened.read()
    except UnicodeDecodeError as error:
        raise YamlError(f"{file}:1:1: not UTF-8 at byte {error.start}") from None
    found = list(resources(text, "standard input" if str(file) == "-" else str(file)))
    for resource in found:
        if not resource.id:
            raise resource.document.error(
                (), "a task that is applied needs an id, so that applying it again creates no second task"
            )
    return found


def _print_change(change: Change, resource: Resource, dry_run: bool) -> None:
    verb = f"would be {change.verb}" if dry_run and change.verb != "unchanged" else change.verb
    click.echo(f"{resource.kind} {resource.id}  {screen.paint(verb, change.verb)}")
    for line in change.difference:
        colour = {"+": "created", "-": "error"}.get(line[0], "changed")
        click.echo(f"  {screen.paint(screen.clean(line), colour)}")
