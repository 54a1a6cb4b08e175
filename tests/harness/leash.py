"""Nothing outlives a test that was killed: programs on a leash, or tied to the process that starts them.

A leash is a process of its own. The kernel signals it when the test process ends, and gives it whatever
lost its parent below; so what a program leaves running ends with the program.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
from types import FrameType

import psutil

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
LEFT_SOMETHING = 99


def leashed(*argv: str | os.PathLike[str]) -> list[str]:
    """The command line that runs `argv` on a leash; its exit code is LEFT_SOMETHING if it left any behind."""
    return [sys.executable, __file__, str(os.getpid()), *map(str, argv)]


def tied(*argv: str | os.PathLike[str]) -> list[str]:
    """The command line that becomes `argv`, as the same process, and gets SIGTERM when this process is gone.

    The kernel looks at the thread that starts it; that has to be one which lasts.
    """
    return [sys.executable, "-I", "-S", "-c", _TIED, str(os.getpid()), *map(str, argv)]


_TIED = f"""\
import ctypes, os, signal, sys
ctypes.CDLL(None).prctl({_PR_SET_PDEATHSIG}, {int(signal.SIGTERM)}, 0, 0, 0)
for number in (signal.SIGINT, signal.SIGPIPE, signal.SIGXFSZ):
    signal.signal(number, signal.SIG_DFL)
os.getppid() == int(sys.argv[1]) or sys.exit("the parent of this process is gone")
os.execvp(sys.argv[2], sys.argv[2:])
"""


def end_with_parent() -> None:
    """This process is killed as soon as the one that started it is gone."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def main(parent: int, argv: list[str]) -> int:
    """Runs `argv` to its end; the exit code as a shell reports it."""
    libc = ctypes.CDLL(None)
    libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, _let_go)
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    if os.getppid() != parent:
        return 1
    child = os.posix_spawnp(argv[0], argv, os.environ, setsid=True, setsigdef=[signal.SIGPIPE])
    code = _reap_until(child)
    left = [" ".join(process.cmdline()) for process in _family()]
    _end_all()
    if left:
        print("left running:", *left, sep="\n  ", file=sys.stderr)
        return LEFT_SOMETHING
    return code if code >= 0 else 128 - code


def _reap_until(child: int) -> int:
    """The exit code of the child; others that end meanwhile are reaped, so that none stays a zombie."""
    while True:
        pid, status = os.waitpid(-1, 0)
        if pid == child:
            return os.waitstatus_to_exitcode(status)


def _family() -> list[psutil.Process]:
    found = psutil.Process().children(recursive=True)
    return [process for process in found if process.is_running() and process.status() != psutil.STATUS_ZOMBIE]


def _end_all() -> None:
    """Kills everything below, also what is started meanwhile."""
    while family := _family():
        for process in family:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.wait_procs(family, timeout=5)


def _let_go(number: int, _frame: FrameType | None) -> None:
    _end_all()
    os._exit(128 + number)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2:]))
