"""`taskyard-task`: lets any program inside a task report progress, log, checkpoint and check its lease."""

from __future__ import annotations

import argparse
import json
import math
import os
import shutil
import socket
import sys
from collections.abc import Sequence
from typing import Any

_EXIT_FAILED = 1
_EXIT_NOT_CURRENT = 3
_TIMEOUT = 30.0
_LEVELS = ("debug", "info", "warning", "error", "critical")
_EPILOG = """\
examples:
  taskyard-task progress 40 "frames 400/1000"
  taskyard-task log --level warning "disk is slow"
  taskyard-task checkpoint state.npz --content-type application/x-npz
  taskyard-task result report.json
  taskyard-task metrics accuracy=0.93 steps=12
  taskyard-task fail --permanent --code BAD_INPUT "no such table"; exit 1
  taskyard-task fence --check || exit 1

It works inside a task only: it reads TASKYARD_SOCKET, TASKYARD_TOKEN and their companions.
"""


class HelperError(Exception):
    """What went wrong, in one line."""


def main(argv: Sequence[str] | None = None) -> None:
    """Exit code 0, 1 if it did not work, 2 for bad usage, 3 if the fence is not current."""
    arguments = _parser().parse_args(argv)
    try:
        code = arguments.run(arguments)
    except HelperError as error:
        sys.stderr.write(f"taskyard-task: {error}\n")
        code = _EXIT_FAILED
    sys.exit(code)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="taskyard-task",
        description="Speak with Taskyard from inside a task.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(metavar="COMMAND", required=True)

    progress = commands.add_parser("progress", help="report how far the work is")
    progress.add_argument("percent", type=int, help="0 to 100")
    progress.add_argument("message", nargs="?", default="", help="text such as 'frames 400/1000'")
    progress.add_argument("--step", type=int, default=0, help="number of the step")
    progress.set_defaults(run=_progress)

    log = commands.add_parser("log", help="write a log entry with a level")
    log.add_argument("message", nargs="+")
    log.add_argument("--level", choices=_LEVELS, default="info")
    log.add_argument("--step", type=int, help="number of the step")
    log.add_argument("--action", help="what is being done")
    log.set_defaults(run=_log)

    checkpoint = commands.add_parser("checkpoint", help="keep a file that the next run can start from")
    checkpoint.add_argument("file")
    checkpoint.add_argument("--content-type", default="", help="for example application/json")
    checkpoint.add_argument(
        "--wait", type=float, default=0, metavar="SECONDS", help="wait until it is stored, at most this long"
    )
    checkpoint.set_defaults(run=_checkpoint)

    result = commands.add_parser("result", help="set the task's result from a file, or - for standard input")
    result.add_argument("file")
    result.set_defaults(run=_result)

    metrics = commands.add_parser("metrics", help="set numbers of the task's result, such as accuracy=0.93")
    metrics.add_argument("numbers", nargs="+", metavar="NAME=NUMBER")
    metrics.set_defaults(run=_metrics)

    fail = commands.add_parser("fail", help="describe the failure; the task must then end with an exit code")
    fail.add_argument("message")
    fail.add_argument("--permanent", action="store_true", help="do not retry")
    fail.add_argument("--code", default="", help="cause in UPPER_SNAKE_CASE")
    fail.add_argument("--retry-after", type=float, metavar="SECONDS", help="do not retry sooner")
    fail.set_defaults(run=_fail)

    fence = commands.add_parser("fence", help="print the fencing token")
    fence.add_argument("--check", action="store_true", help="exit 3 unless the lease is still held")
    fence.set_defaults(run=_fence)
    return parser


def _progress(arguments: argparse.Namespace) -> int:
    if not 0 <= arguments.percent <= 100:
        raise HelperError(f"percent {arguments.percent} is not between 0 and 100")
    _ask(op="progress", percent=arguments.percent, message=arguments.message, step=arguments.step)
    return 0


def _log(arguments: argparse.Namespace) -> int:
    fields = {"step": arguments.step, "action": arguments.action}
    given = {name: value for name, value in fields.items() if value is not None}
    _ask(op="log", level=arguments.level, message=" ".join(arguments.message), **given)
    return 0


def _checkpoint(arguments: argparse.Namespace) -> int:
    folder = _variable("TASKYARD_CHECKPOINT_DIR")
    name = f"offered-{os.getpid()}"
    copy = os.path.join(folder, name)
    try:
        # A copy of this moment: the program may go on writing its own file.
        shutil.copyfile(arguments.file, copy)
        answer = _ask(
            op="checkpoint",
            file=name,
            content_type=arguments.content_type,
            wait=arguments.wait,
            timeout=_TIMEOUT + arguments.wait,
        )
    except OSError as error:
        raise HelperError(f"{error.filename}: {error.strerror}") from None
    finally:
        if os.path.exists(copy):
            os.unlink(copy)
    print(answer["sequence"])
    if arguments.wait and not answer.get("stored"):
        raise HelperError(f"checkpoint {answer['sequence']} was not stored within {arguments.wait:g} s")
    return 0


def _result(arguments: argparse.Namespace) -> int:
    target = _variable("TASKYARD_RESULT_FILE")
    try:
        if arguments.file == "-":
            content = sys.stdin.buffer.read()
        else:
            with open(arguments.file, "rb") as file:
                content = file.read()
        _replace(target, content)
    except OSError as error:
        raise HelperError(f"{error.filename}: {error.strerror}") from None
    return 0


def _metrics(arguments: argparse.Namespace) -> int:
    target = _variable("TASKYARD_METRICS_FILE")
    found: dict[str, float] = {}
    if os.path.exists(target):
        with open(target, "rb") as file:
            found = json.load(file)
    for item in arguments.numbers:
        name, _, text = item.partition("=")
        try:
            found[name] = float(text)
        except ValueError:
            raise HelperError(f"{item!r} is not NAME=NUMBER") from None
        if not name or not math.isfinite(found[name]):
            raise HelperError(f"{item!r} is not NAME=NUMBER with a finite number")
    _replace(target, json.dumps(found).encode())
    return 0


def _fail(arguments: argparse.Namespace) -> int:
    failure: dict[str, Any] = {
        "class": "permanent" if arguments.permanent else "transient",
        "message": arguments.message,
        "code": arguments.code,
    }
    if arguments.retry_after is not None:
        failure["retry_after"] = arguments.retry_after
    _replace(_variable("TASKYARD_ERROR_FILE"), json.dumps(failure).encode())
    return 0


def _fence(arguments: argparse.Namespace) -> int:
    if not arguments.check:
        print(_variable("TASKYARD_FENCE"))
        return 0
    answer = _ask(op="fence")
    print(answer["token"])
    return 0 if answer["current"] else _EXIT_NOT_CURRENT


def _replace(target: str, content: bytes) -> None:
    part = f"{target}.part"
    with open(part, "wb") as file:
        file.write(content)
    os.replace(part, target)


def _variable(name: str) -> str:
    value = os.environ.get(name)
    if not value:
        raise HelperError(f"{name} is not set; taskyard-task works inside a task only")
    return value


def _ask(*, timeout: float = _TIMEOUT, **message: Any) -> dict[str, Any]:
    """Send a message to the runner and return its answer."""
    message["token"] = _variable("TASKYARD_TOKEN")
    path = _variable("TASKYARD_SOCKET")
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(timeout)
            connection.connect(path)
            connection.sendall(json.dumps(message).encode() + b"\n")
            with connection.makefile("rb") as stream:
                line = stream.readline()
    except OSError as error:
        raise HelperError(f"the runner does not answer at {path}: {error.strerror or error}") from None
    if not line:
        raise HelperError(f"the runner closed the connection at {path}")
    answer: dict[str, Any] = json.loads(line)
    if not answer.get("ok"):
        raise HelperError(str(answer.get("error", "refused")))
    return answer


if __name__ == "__main__":
    main()
