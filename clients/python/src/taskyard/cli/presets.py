"""The command about presets: task types with the rules of systems that Taskyard replaces."""

from __future__ import annotations

import click

from taskyard import presets as shipped
from taskyard.cli import screen
from taskyard.cli.manifest import resources


@click.group("presets", invoke_without_command=True)
@click.pass_context
def presets(context: click.Context) -> int | None:
    """List presets; show one.

    A preset is a file of task types with the rules of a system that Taskyard replaces. `taskyard apply
    --preset NAME` creates its types; doing so again changes nothing.

    \b
    Examples:
      taskyard presets
      taskyard presets show aiopslab
      taskyard apply --preset aiopslab
    """
    if context.invoked_subcommand is not None:
        return None
    table = screen.Table("PRESET", "TYPES", "ABOUT", "PAGE")
    table.add(
        (name, str(len(_types(name))), about, f"docs/howto/{shipped.PAGES[name]}.md")
        for name, about in shipped.ABOUT.items()
    )
    return 0


@presets.command()
@click.argument("name", type=click.Choice(shipped.NAMES))
def show(name: str) -> int:
    """Print the file of a preset, to copy and change it.

    \b
    Example:
      taskyard presets show niyanta > video.yaml
    """
    click.echo(shipped.path(name).read_text(), nl=False)
    return 0


def _types(name: str) -> list[str]:
    file = shipped.path(name)
    return [resource.id for resource in resources(file.read_text(), file.name)]
