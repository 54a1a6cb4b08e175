"""Starting a process: fork, confine, exec; and what is known of processes from /proc.

The warden has a single thread, so Python code between fork and exec is safe.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import resource
import signal
import traceback
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NoReturn

from taskyard_runner.warden import linux

_HANDLED_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD)
# Those that the warden handles and those that Python ignores; a workload expects their default effect.
_DEFAULT_SIGNALS = (*_HANDLED_SIGNALS, signal.SIGPIPE, signal.SIGXFSZ)
_NUL_FREE = "contains a NUL byte"


@dataclass(frozen=True)
class Launch:
    """All that the child does between fork and exec."""

    argv: Sequence[str]
    env: Mapping[str, str]
    cwd: str
    stdout: int | None = None
    stderr: int | None = None
    # Placed at descriptor 3.
    extra: int | None = None
    confined: bool = True
    # Files that take the process into its control groups.
    joins: Sequence[str] = ()
    rlimits: Mapping[int, int] = field(default_factory=dict)
    # Soft limit of open files that the warden was started with.
    nofile: int | None = None


@dataclass(frozen=True)
class StartError:
    """Why there is no process: the step that failed and errno."""

    step: str
    number: int
    detail: str

    @classmethod
    def parse(cls, data: bytes) -> StartError:
        """What the child wrote into its error pipe."""
        step, number, detail = data.decode(errors="replace").split("\n", 2)
        return cls(step, int(number), detail)


def spawn(launch: Launch) -> tuple[int, int]:
    """Start it; the pid, and a pipe that is closed by exec or tells why there was none (StartError).

    Raises OSError if the system has no room for another process.
    """
    parent = os.getpid()
    read_end, write_end = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    # Until its handlers are gone, a signal to the child would appear in the parent's wake-up pipe.
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, _HANDLED_SIGNALS)
    try:
        pid = os.fork()
        if pid == 0:
            _become(launch, parent, write_end)
    except OSError:
        os.close(read_end)
        raise
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        os.close(write_end)
    return pid, read_end


def _become(launch: Launch, parent: int, errors: int) -> NoReturn:
    step = "confine"
    try:
        os.setsid()
        signal.set_wakeup_fd(-1)
        for signum in _DEFAULT_SIGNALS:
            signal.signal(signum, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        step = "cgroup"
        for path in launch.joins:
            _write(path, b"0")
        step = "descriptors"
        errors = _arrange_descriptors(launch, errors)
        step = "limits"
        _limit(launch)
        step = "confine"
        if launch.confined:
            linux.forbid_new_privileges()
        linux.die_with(parent)
        step = "working directory"
        os.chdir(launch.cwd)
        step = "exec"
        os.execve(launch.argv[0], list(launch.argv), dict(launch.env))
    except OSError as error:
        _tell(errors, step, error.errno or 0, error.strerror or str(error))
    except ValueError:
        _tell(errors, step, 0, _NUL_FREE)
    except BaseException:
        _tell(errors, step, 0, traceback.format_exc())
    finally:
        os._exit(127)


def _arrange_descriptors(launch: Launch, errors: int) -> int:
    # Duplicated away first, so that none of them is overwritten while 0 to 3 are put in place.
    given = (errors, launch.stdout, launch.stderr, launch.extra)
    errors, *rest = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 10) for fd in given if fd is not None]
    wanted = [n for n, fd in ((1, launch.stdout), (2, launch.stderr), (3, launch.extra)) if fd is not None]
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    for source, target in zip(rest, wanted, strict=True):
        os.dup2(source, target)
    return errors


def _limit(launch: Launch) -> None:
    for kind, value in launch.rlimits.items():
        _, hard = resource.getrlimit(kind)
        bound = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(kind, (bound, bound))
    if launch.nofile is not None:
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (launch.nofile, hard))


def _tell(errors: int, step: str, number: int, detail: str) -> None:
    with contextlib.suppress(OSError):
        os.write(errors, f"{step}\n{number}\n{detail[:2000]}".encode(errors="replace"))


def _write(path: str, data: bytes) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(fd, data)
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


@dataclass(frozen=True)
class Seen:
    """A process as /proc shows it."""

    pid: int
    state: str
    parent: int
    session: int
    start_ticks: int


def look(pid: int) -> Seen | None:
    """What /proc says about a process; None if it is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            # The name in parentheses may contain anything, so the fields count from the last one.
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return None
    return Seen(pid, fields[0].decode(), int(fields[1]), int(fields[3]), int(fields[19]))


def all_processes() -> Iterator[Seen]:
    """Every process that is alive, zombies excluded."""
    for name in os.listdir("/proc"):
        if name.isdigit() and (seen := look(int(name))) is not None and seen.state not in "ZX":
            yield seen


def marker_of(pid: int, variable: bytes) -> str:
    """The value of an environment variable a process was started with; empty if unknown."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            content = file.read()
    except OSError:
        return ""
    for entry in content.split(b"\0"):
        if entry.startswith(variable + b"="):
            return entry[len(variable) + 1 :].decode(errors="replace")
    return ""


def open_files(pid: int) -> list[str]:
    """What a process has open, as /proc names it."""
    found = []
    try:
        for name in os.listdir(f"/proc/{pid}/fd"):
            with contextlib.suppress(OSError):
                found.append(os.readlink(f"/proc/{pid}/fd/{name}"))
    except OSError:
        pass
    return found
