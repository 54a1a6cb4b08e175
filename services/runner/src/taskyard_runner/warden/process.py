"""Starting a process: fork, set up, exec.

The warden has a single thread, so Python code between fork and exec is safe.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import resource
import signal
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NoReturn

from taskyard_runner.warden import linux

_HANDLED_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD)
# Those that the warden handles and those that Python ignores; a workload expects their default effect.
_DEFAULT_SIGNALS = (*_HANDLED_SIGNALS, signal.SIGPIPE, signal.SIGXFSZ)
_NUL_FREE = "contains a NUL byte"


@dataclass(frozen=True)
class ChildSetup:
    """The setup that does not depend on what the child executes, so a spare child can do it ahead."""

    stdout: int | None = None
    stderr: int | None = None
    # Placed at descriptor 3.
    extra: int | None = None
    confined: bool = True
    # Files that take the process into its control groups.
    joins: Sequence[str] = ()


@dataclass(frozen=True)
class Launch:
    """The program that a child executes."""

    argv: Sequence[str]
    env: Mapping[str, str]
    cwd: str
    # Soft limit of open files that the warden was started with.
    nofile: int
    rlimits: Mapping[int, int] = field(default_factory=dict)
    # Control groups for its limits, besides those of its ChildSetup.
    joins: Sequence[str] = ()
    # User and group to become; None = stay.
    user: tuple[int, int] | None = None


@dataclass(frozen=True)
class StartError:
    """Why the process did not start: the failed step and errno."""

    step: str
    number: int
    detail: str

    @classmethod
    def parse(cls, data: bytes) -> StartError:
        """Parse the contents of the child's error pipe."""
        step, number, detail = data.decode(errors="replace").split("\n", 2)
        return cls(step, int(number), detail)


def spawn(setup: ChildSetup, awaited: Callable[[], Launch | None]) -> tuple[int, int]:
    """Fork a child that applies its setup and executes what `awaited` returns; None ends it.

    Returns the pid and a pipe, which exec closes or into which the child writes a StartError. Raises
    OSError if fork fails.
    """
    parent = os.getpid()
    read_end, write_end = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    # Until the child resets its handlers, its signals would appear in the parent's wake-up pipe.
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, _HANDLED_SIGNALS)
    try:
        pid = os.fork()
        if pid == 0:
            _live(setup, awaited, parent, write_end)
    except OSError:
        os.close(read_end)
        raise
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        os.close(write_end)
    return pid, read_end


def _live(setup: ChildSetup, awaited: Callable[[], Launch | None], parent: int, errors: int) -> NoReturn:
    step = "confine"
    try:
        os.setsid()
        signal.set_wakeup_fd(-1)
        for signum in _DEFAULT_SIGNALS:
            signal.signal(signum, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        linux.die_with(parent)
        step = "cgroup"
        _join(setup.joins)
        step = "confine"
        if setup.confined:
            linux.forbid_new_privileges()
        launch = awaited()
        if launch is None:
            os._exit(0)
        step = "cgroup"
        _join(launch.joins)
        step = "descriptors"
        errors = _arrange_descriptors(setup, errors)
        step = "limits"
        _limit(launch)
        if launch.user is not None:
            step = "user"
            linux.become_user(*launch.user)
            # A change of user clears the parent-death signal.
            linux.die_with(parent)
        step = "working directory"
        os.chdir(launch.cwd)
        step = "exec"
        os.execve(launch.argv[0], list(launch.argv), dict(launch.env))
    except OSError as error:
        _report_error(errors, step, error.errno or 0, error.strerror or str(error))
    except ValueError:
        _report_error(errors, step, 0, _NUL_FREE)
    except BaseException:
        _report_error(errors, step, 0, traceback.format_exc())
    finally:
        os._exit(127)


def _arrange_descriptors(setup: ChildSetup, errors: int) -> int:
    # Duplicated above 10 first, so that none is overwritten while 0 to 3 are assigned.
    given = (errors, setup.stdout, setup.stderr, setup.extra)
    errors, *rest = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 10) for fd in given if fd is not None]
    targets = [n for n, fd in ((1, setup.stdout), (2, setup.stderr), (3, setup.extra)) if fd is not None]
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    for source, target in zip(rest, targets, strict=True):
        os.dup2(source, target)
    return errors


def _limit(launch: Launch) -> None:
    for kind, value in launch.rlimits.items():
        _, hard = resource.getrlimit(kind)
        bound = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(kind, (bound, bound))
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (launch.nofile, hard))


def _report_error(errors: int, step: str, number: int, detail: str) -> None:
    with contextlib.suppress(OSError):
        os.write(errors, f"{step}\n{number}\n{detail[:2000]}".encode(errors="replace"))


def _join(paths: Sequence[str]) -> None:
    for path in paths:
        fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.write(fd, b"0")
        finally:
            os.close(fd)


def signal_group(pid: int, signum: int) -> None:
    """Signal the process group that `pid` leads; nothing happens if it is gone."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signum)


def signal_process(pid: int, signum: int) -> None:
    """Signal one process; nothing happens if it is gone."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, signum)
