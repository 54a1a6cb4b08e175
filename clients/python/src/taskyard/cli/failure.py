"""Exit codes, and the one-line message of an error with its remedy."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from taskyard import errors
    from taskyard.context import Context

FAILED = 1
USAGE = 2
UNREACHABLE = 3
REFUSED = 4
MISSING = 5
TIME_UP = 124
NO_EXIT_CODE = 125
INTERRUPTED = 130
BROKEN_PIPE = 141

EXIT_CODES = """\
\b
Exit codes:
  0    done
  1    refused by the server, a task did not succeed, `doctor` found
       something, `diff` found differences, or by `status` work cannot proceed
  2    wrong usage
  3    no server answers
  4    the key is refused
  5    no such task, runner, tenant, type or key
  124  timed out
  130  interrupted by Ctrl-C
`taskyard run` returns the exit code of the task; 124 if it timed out,
125 if it ended without an exit code, 130 if it was cancelled."""


class CommandFailed(Exception):
    """Ends a command with a line on stderr and an exit code."""

    def __init__(self, line: str, exit_code: int = FAILED) -> None:
        super().__init__(line)
        self.exit_code = exit_code


def explain(error: errors.TaskyardError, context: Context) -> CommandFailed:
    """The message and exit code for an error of the server or of the connection."""
    from taskyard import errors

    where = f"{context.address} (from {context.source})"
    if isinstance(error, errors.CertificateUntrusted):
        return CommandFailed(f"{_line(error)} ({where})", UNREACHABLE)
    if isinstance(error, errors.Unavailable) and not error.reason:
        problem = _line(error).replace(context.address, where, 1)
        return CommandFailed(
            f"{problem}; start one with `make up` or `taskyard up`, or set TASKYARD_ADDRESS and TASKYARD_KEY",
            UNREACHABLE,
        )
    if isinstance(error, errors.Unavailable | errors.DeadlineExceeded):
        return CommandFailed(f"{_line(error)} ({where})", UNREACHABLE)
    if isinstance(error, errors.Unauthenticated):
        problem = "the key is rejected" if context.key else "a key is required"
        remedy = 'set TASKYARD_KEY, or put key = "…" into the context file'
        if not context.key and context.source == "argument":
            remedy = "a key is only sent to the address that it was configured with; give one with --key"
        return CommandFailed(f"{problem} by the server at {where}; {remedy}", REFUSED)
    if isinstance(error, errors.Unimplemented) and not error.reason:
        return CommandFailed(f"{_line(error)} ({context.source})", UNREACHABLE)
    if isinstance(error, errors.PermissionDenied):
        hint = "" if context.admin_key else "; an administrator's key goes into TASKYARD_ADMIN_KEY"
        return CommandFailed(_line(error) + hint, REFUSED)
    if isinstance(error, errors.InvalidArgument) and [v.field for v in error.violations] == ["name"]:
        given = error.violations[0].description.rpartition(", not ")[2]
        problem = f"no task, runner, tenant, type or key can be called {given}"
        return CommandFailed(f"{problem}: an id is made of letters, digits, dot, dash and underscore", USAGE)
    if isinstance(error, errors.NotFound) and error.kind == "tenant":
        hint = "this key may not see it, or it does not exist; `taskyard whoami` shows the key's tenant"
        return CommandFailed(f'no tenant "{_short(error.name)}": {hint}', MISSING)
    if isinstance(error, errors.NotFound):
        command = _LISTS.get(error.kind)
        hint = f"; to list them: `taskyard {command}`" if command else ""
        return CommandFailed(f'no {error.kind or "such thing"} "{_short(error.name)}"{hint}', MISSING)
    return CommandFailed(_line(error))


_LISTS = {
    "task": "list",
    "runner": "runners",
    "task type": "types",
    "schedule": "schedule",
    "key": "keys",
    "API key": "keys",
}


def _line(error: errors.TaskyardError) -> str:
    # Messages may contain untrusted text: remove terminal control characters.
    return re.sub(r"[\x00-\x1f\x7f-\x9f]", "�", " ".join(error.message.split()))


def _short(name: str) -> str:
    return name.rpartition("/")[2]
