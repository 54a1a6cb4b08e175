"""Script: an interpreter of the host and a private file with the script's text."""

from __future__ import annotations

from taskyard.v1.task_pb2 import (
    INTERPRETER_BASH,
    INTERPRETER_CUSTOM,
    INTERPRETER_NODE,
    INTERPRETER_PYTHON,
    ScriptExecution,
)
from taskyard_runner.executors.workload import (
    NotRunnable,
    Place,
    Workload,
    check_text,
    find_directory,
    find_program,
)

MAX_BODY_BYTES = 2 << 20

INTERPRETERS = {
    INTERPRETER_BASH: "bash",
    INTERPRETER_PYTHON: "python3",
    INTERPRETER_NODE: "node",
}


def describe(execution: ScriptExecution, place: Place) -> Workload:
    """The interpreter, the script's file and its arguments. Raises NotRunnable."""
    _check_body(execution.body)
    for number, argument in enumerate(execution.args):
        check_text(f"script.args[{number}]", argument)
    file = place.private / "script"
    cwd = find_directory(execution.working_directory, place)
    argv = [*_interpreter(execution, place), str(file), *execution.args]
    return Workload(argv, cwd, place.env, [(file, execution.body)])


def _interpreter(execution: ScriptExecution, place: Place) -> list[str]:
    if execution.interpreter == INTERPRETER_CUSTOM:
        check_text("script.custom_flag", execution.custom_flag)
        program = find_program("script.custom_program", execution.custom_program, place.path)
        return [program, execution.custom_flag] if execution.custom_flag else [program]
    name = INTERPRETERS.get(execution.interpreter)
    if name is None:
        unknown = f"script.interpreter {execution.interpreter} is unknown to this runner"
        raise NotRunnable(f"{unknown}; use BASH, PYTHON, NODE or CUSTOM")
    return [find_program("script.interpreter", name, place.path)]


def _check_body(body: bytes) -> None:
    if not body:
        raise NotRunnable("script.body is empty; give it the script's text")
    if len(body) > MAX_BODY_BYTES:
        raise NotRunnable(f"script.body has {len(body)} bytes; the limit is {MAX_BODY_BYTES}")
    if b"\0" in body:
        raise NotRunnable(f"script.body has a NUL byte at position {body.index(0)}; send text")
    try:
        body.decode()
    except UnicodeDecodeError as error:
        raise NotRunnable(f"script.body is not UTF-8 at position {error.start}; send UTF-8 text") from None
