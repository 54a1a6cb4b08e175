"""Helpers of the administrator's commands: lists in every format, names of enum values, labels as text."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import click

from taskyard.cli import printing, screen
from taskyard.stream import Stream

M = TypeVar("M")


async def print_list(
    stream: Stream[M],
    form: str,
    titles: Sequence[str],
    row: Callable[[M], Sequence[str]],
    empty_message: str,
    name: Callable[[M], str] = lambda one: str(getattr(one, "name", "")).rpartition("/")[2],
) -> None:
    """Prints a list as a table, as JSON, as YAML or as names; prints `empty_message` if it is empty."""
    table = screen.Table(*titles)
    printed = printing.for_programs(form)
    async for batch in stream.batches:
        messages: Sequence[Any] = batch
        if printed:
            printed.add(messages)
        elif form == "name":
            click.echo("".join(f"{name(one)}\n" for one in batch), nl=False)
        else:
            table.add(row(one) for one in batch)
    if printed:
        printed.close()
    elif form != "name" and not table.count:
        click.echo(empty_message, err=True)


def word(enum: Any, number: int, prefix: str) -> str:
    """The name of an enum value in lower case; the number of a value that this version does not have."""
    if number not in enum.values():
        return str(number)
    return str(enum.Name(number)).removeprefix(prefix).lower().replace("_", " ")


def pairs(labels: Mapping[str, str]) -> str:
    """Labels on one line."""
    return screen.clean(",".join(f"{name}={value}" for name, value in sorted(labels.items())))


def limit(number: int) -> str:
    """A quota as text; 0 means unlimited."""
    return str(number) if number else "unlimited"


def confirm(question: str, yes: bool) -> None:
    """Asks for confirmation of what cannot be undone; without a terminal --yes is required."""
    if not yes and not click.confirm(question, err=True):
        raise click.Abort


yes_option = click.option("--yes", "-y", is_flag=True, help="Do not ask.")
