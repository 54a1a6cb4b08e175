"""Command: a program of the host, executed without a shell."""

from __future__ import annotations

from taskyard.v1.task_pb2 import CommandExecution
from taskyard_runner.executors.workload import Place, Workload, check_text, find_directory, find_program


def describe(execution: CommandExecution, place: Place) -> Workload:
    """The program itself. Raises NotRunnable."""
    for number, argument in enumerate(execution.args):
        check_text(f"command.args[{number}]", argument)
    program = find_program("command.program", execution.program, place.path)
    cwd = find_directory(execution.working_directory, place)
    return Workload([program, *execution.args], cwd, place.env)
