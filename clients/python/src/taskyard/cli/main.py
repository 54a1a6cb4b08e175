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
        import rich  # noqa: F401
    except ImportError:
        print("taskyard: the command line needs its extra; run: pip install 'taskyard[cli]'", file=sys.stderr)
        return USAGE
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
        return _fail(f"{error.format_message().rstrip('.')} (see `{path} --help`)", USAGE)
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


def _fail(line: str, code: int) -> int:
    print(f"taskyard: {line}", file=sys.stderr)
    return code


if __name__ == "__main__":
    main()
