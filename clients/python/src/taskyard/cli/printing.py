"""Output for programs: the option -o, and printers of JSON, YAML, CSV and JSONPath."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import click
from click.shell_completion import CompletionItem

if TYPE_CHECKING:
    from google.protobuf.message import Message

_JSONPATH = "jsonpath="


class OutputType(click.ParamType[str]):
    """One of these formats; `jsonpath=EXPRESSION` if jsonpath is among them."""

    name = "format"

    def __init__(self, forms: Sequence[str]) -> None:
        self.forms = tuple(forms)

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:
        return f"[{'|'.join(self.forms)}]"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        form, _, template = str(value).partition("=")
        if form == "jsonpath" and form in self.forms:
            from taskyard.cli.jsonpath import JsonPath, JsonPathError

            if not template:
                self.fail("jsonpath needs an expression: -o jsonpath='{.status.phase}'", param, ctx)
            try:
                JsonPath(template)
            except JsonPathError as error:
                self.fail(str(error), param, ctx)
        elif value not in self.forms:
            self.fail(f"{value!r} is not one of {', '.join(self.forms)}", param, ctx)
        return str(value)

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        forms = [f"{form}=" if form == "jsonpath" else form for form in self.forms]
        return [CompletionItem(form) for form in forms if form.startswith(incomplete)]


def output_option(*forms: str) -> Callable[[Any], Any]:
    """The option -o with these formats; the first one is the default."""
    return click.option(
        "-o",
        "--output",
        type=OutputType(forms),
        default=forms[0],
        show_default=True,
        help="Output format.",
    )


exact_option = click.option("--exact", is_flag=True, help="Show times exactly, in UTC.")


class Printer(Protocol):
    """Prints messages one by one, so that a long list is not kept in memory."""

    count: int

    def add(self, messages: Iterable[Message]) -> None:
        """Prints the next messages."""

    def close(self) -> None:
        """Prints what ends the output."""


def for_programs(form: str) -> Printer | None:
    """The printer of a format for programs; None for output for people."""
    if form.startswith(_JSONPATH):
        return JsonPathLines(form.removeprefix(_JSONPATH))
    return JsonArray() if form == "json" else YamlDocuments() if form == "yaml" else None


def print_message(message: Message, form: str) -> None:
    """Prints one message for programs."""
    if form == "json":
        from google.protobuf.json_format import MessageToJson

        click.echo(MessageToJson(message))
    elif printer := for_programs(form):
        printer.add([message])


def plain(message: Message) -> Any:
    """A message as plain values, as in JSON."""
    from google.protobuf.json_format import MessageToDict

    return MessageToDict(message)


def yaml_text(value: Any) -> str:
    """A plain value as a YAML document."""
    import yaml

    return str(yaml.safe_dump(value, sort_keys=False, allow_unicode=True, explicit_start=True))


def json_line(message: Message) -> str:
    """A message as JSON on one line."""
    from google.protobuf.json_format import MessageToJson

    return MessageToJson(message, indent=None)


class YamlDocuments:
    """Messages as YAML documents."""

    def __init__(self) -> None:
        self.count = 0

    def add(self, messages: Iterable[Message]) -> None:
        """Prints the next documents."""
        for message in messages:
            click.echo(yaml_text(plain(message)), nl=False)
            self.count += 1

    def close(self) -> None:
        """No-op: YAML documents need no terminator."""


class JsonArray:
    """A JSON array of messages."""

    def __init__(self) -> None:
        self.count = 0

    def add(self, messages: Iterable[Message]) -> None:
        """Prints the next elements."""
        for message in messages:
            click.echo(("," if self.count else "[") + "\n " + json_line(message), nl=False)
            self.count += 1

    def close(self) -> None:
        """Prints the end."""
        click.echo("\n]" if self.count else "[]")


class JsonPathLines:
    """One line per message, filled in from its JSON."""

    def __init__(self, template: str) -> None:
        from taskyard.cli.jsonpath import JsonPath

        self._path = JsonPath(template)
        self.count = 0

    def add(self, messages: Iterable[Message]) -> None:
        """Prints the next lines."""
        for message in messages:
            click.echo(self._path.render(plain(message)))
            self.count += 1

    def close(self) -> None:
        """No-op: lines need no terminator."""


class CsvTable:
    """Rows as comma-separated values, after a row of titles."""

    def __init__(self, *titles: str) -> None:
        self._titles = [title.lower() for title in titles]
        self.count = 0

    def add(self, rows: Iterable[Sequence[str]]) -> None:
        """Prints the next rows."""
        import csv
        import sys

        writer = csv.writer(sys.stdout, lineterminator="\n")
        if not self.count:
            writer.writerow(self._titles)
        for row in rows:
            writer.writerow(row)
            self.count += 1
