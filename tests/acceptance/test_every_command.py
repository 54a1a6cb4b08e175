"""Every command of the parser is run by a test in this folder that checks its outcome."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import click

from taskyard.cli.group import taskyard

HERE = Path(__file__).parent
# Ways in which the tests here run the real program, and which of their arguments are not its own.
RUNNERS = {"cli": 0, "done": 0, "start_cli": 0, "on_terminal": 1, "taskyard": 1, "elsewhere": 0}
# The exit code of these is checked on its own.
WITHOUT_CODE = {"start_cli", "on_terminal"}

Words = tuple[str, ...]


def commands(group: click.Group, before: Words = ()) -> Iterator[Words]:
    """The words of every command that does something: also of a group that can be called by itself."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if command.hidden:
            # Another name of a command.
            continue
        if isinstance(command, click.Group):
            yield from commands(command, (*before, name))
        if not isinstance(command, click.Group) or command.invoke_without_command:
            yield (*before, name)


def runs(function: ast.FunctionDef) -> Iterator[Words]:
    """The leading words of every run of the program whose outcome the function looks at."""
    ignored = {id(node.value) for node in ast.walk(function) if isinstance(node, ast.Expr)}
    looks_at_code = "returncode" in ast.dump(function)
    for node in ast.walk(function):
        if not isinstance(node, ast.Call) or id(node) in ignored:
            continue
        called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if called in RUNNERS and (called not in WITHOUT_CODE or looks_at_code):
            yield tuple(leading_words(node.args[RUNNERS[called] :]))


def leading_words(arguments: list[ast.expr]) -> Iterator[str]:
    for argument in arguments:
        if not isinstance(argument, ast.Constant) or not isinstance(argument.value, str):
            return
        yield argument.value


def covered() -> set[Words]:
    functions = (
        node
        for file in HERE.glob("test_*.py")
        for node in ast.parse(file.read_text()).body
        if isinstance(node, ast.FunctionDef)
    )
    found = {words for function in functions for words in runs(function)}
    # `runners show local` is a run of `runners show`; of `runners` only if no command follows.
    return {words[:length] for words in found for length in (1, 2) if len(words) >= length}


def test_each_command_is_run_by_a_test_that_checks_its_outcome() -> None:
    known = set(commands(taskyard))
    assert ("run",) in known and ("runners", "show") in known
    missing = sorted(" ".join(words) for words in known - covered())
    assert not missing, f"tests/acceptance runs none of: {', '.join(missing)}"
