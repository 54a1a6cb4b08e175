"""Scripts as tasks: `script.bash("…")`, `script.python("…")`, `script.node("…")`, `script.custom(…)`."""

from __future__ import annotations

from typing import Unpack

from taskyard.new_task import NewTask, Options, new_task
from taskyard.v1 import task_pb2 as pb


def bash(body: str, *args: str, working_directory: str = "", **options: Unpack[Options]) -> NewTask:
    """A bash script; `args` are its $1, $2, …

    Example:
        new = script.bash('echo "hello $1"', "Ada")
    """
    return _script(
        pb.ScriptExecution(interpreter=pb.INTERPRETER_BASH, args=args, working_directory=working_directory),
        body,
        options,
    )


def python(body: str, *args: str, working_directory: str = "", **options: Unpack[Options]) -> NewTask:
    """A Python script, run by the host's python3.

    Example:
        new = script.python("import sys; print(sys.argv[1])", "Ada")
    """
    return _script(
        pb.ScriptExecution(interpreter=pb.INTERPRETER_PYTHON, args=args, working_directory=working_directory),
        body,
        options,
    )


def node(body: str, *args: str, working_directory: str = "", **options: Unpack[Options]) -> NewTask:
    """A JavaScript program, run by the host's node.

    Example:
        new = script.node("console.log(process.argv[2])", "Ada")
    """
    return _script(
        pb.ScriptExecution(interpreter=pb.INTERPRETER_NODE, args=args, working_directory=working_directory),
        body,
        options,
    )


def custom(
    program: str,
    body: str,
    *args: str,
    flag: str = "",
    working_directory: str = "",
    **options: Unpack[Options],
) -> NewTask:
    """A script for any interpreter: `program flag FILE args…`.

    Example:
        new = script.custom("perl", 'print "hello $ARGV[0]\\n"', "Ada")
    """
    return _script(
        pb.ScriptExecution(
            interpreter=pb.INTERPRETER_CUSTOM,
            custom_program=program,
            custom_flag=flag,
            args=args,
            working_directory=working_directory,
        ),
        body,
        options,
    )


def _script(execution: pb.ScriptExecution, body: str, options: Options) -> NewTask:
    execution.body = body.encode()
    return new_task(pb.Execution(script=execution), options)
