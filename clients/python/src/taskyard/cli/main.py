"""The entry point of the command line: every way a command can end, as an exit code and at most one line."""

from __future__ import annotations

import os
import sys

from taskyard.cli.failure import BROKEN_PIPE, INTERRUPTED, USAGE, CommandFailed


def main() -> None:
    """Runs the command and exits the process."""
    # gRPC's own messages about connections are not for the terminal; `up` starts services that inherit the
    # environment, and their logs should have these messages.
    if "up" not in sys.argv:
        os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    try:
        code = run(sys.argv[1:])
    except KeyboardInterrupt:
        # Interrupted while modules are still being loaded.
        code = INTERRUPTED
    sys.exit(code)


def run(arguments: list[str]) -> int:
    """The exit code of the command that `arguments` name."""
    try:
        import click
    except ImportError:
        print("taskyard: the command line needs its extra; run: pip install 'taskyard[cli]'", file=sys.stderr)
        return USAGE
    if problem := _not_text(arguments):
        return _fail(problem, USAGE)
    from taskyard.cli.group import taskyard

    try:
        result = taskyard.main(arguments, prog_name="taskyard", standalone_mode=False)
        sys.stdout.flush()
        return int(result or 0)
    except CommandFailed as failed:
        return _fail(str(failed), failed.exit_code)
    except click.exceptions.NoArgsIsHelpError as error:
        # No command was given: print the help.
        click.echo(error.format_message(), err=True)
        return USAGE
    except click.UsageError as error:
        path = error.ctx.command_path if error.ctx else "taskyard"
        return _fail(f"{_usage(error)} (see `{path} --help`)", USAGE)
    except click.ClickException as error:
        return _fail(error.format_message(), USAGE)
    except UnicodeDecodeError as error:
        at = f"byte {error.start + 1} of what was read"
        return _fail(f"the input is not UTF-8 text ({at}); convert it first", USAGE)
    except (KeyboardInterrupt, click.Abort):
        return INTERRUPTED
    except BrokenPipeError:
        # The reader closed the pipe (`| head`); avoid a second error when the interpreter flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE


def _not_text(arguments: list[str]) -> str:
    """Why the arguments cannot be sent: one of them is not UTF-8, which is all that a task can hold."""
    for place, argument in enumerate(arguments, 1):
        try:
            argument.encode()
        except UnicodeEncodeError:
            raw = repr(os.fsencode(argument))[2:-1]
            return f"argument {place}, '{raw}', is not UTF-8 text; pass such bytes in a file, or encoded"
    return ""


def _usage(error: Exception) -> str:
    import click

    assert isinstance(error, click.UsageError)
    message = error.format_message().rstrip(".")
    if isinstance(error, click.NoSuchOption) and error.option_name == "-f":
        options = {name for param in (error.ctx.command.params if error.ctx else ()) for name in param.opts}
        close = [name for name in ("--follow", "--filter") if name in options]
        return f"{message}; -f is short for --file{f', use {close[0]}' if close else ''}"
    return message


def _fail(line: str, code: int) -> int:
    print(f"taskyard: {line}", file=sys.stderr)
    return code


if __name__ == "__main__":
    main()
