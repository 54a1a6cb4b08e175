"""Becomes a child program: drops privileges, ties its life to its parent's, and executes it.

It runs as a script of its own, with the standard library only. A `preexec_fn` would do the same inside the
supervisor, but would run Python between fork and exec of a process with gRPC threads, which can deadlock.
"""

import ctypes
import json
import os
import signal
import sys
from typing import Any

PR_SET_PDEATHSIG = 1
PR_SET_NO_NEW_PRIVS = 38


def main(arguments: list[str]) -> None:
    """Executes `arguments[1:]` with the options of `arguments[0]`, a JSON object; never returns."""
    _restore_signals()
    how: dict[str, Any] = json.loads(arguments[0])
    libc = ctypes.CDLL(None, use_errno=True)
    # Entered before privileges are dropped: the new user need not be able to reach the directory by its path.
    if how["directory"] is not None:
        os.chdir(how["directory"])
    if how["account"] is not None:
        _drop_privileges(libc, *how["account"])
    # Set after the change of user, which clears it.
    libc.prctl(PR_SET_PDEATHSIG, how["death_signal"], 0, 0, 0)
    if os.getppid() != how["parent"]:
        sys.exit("the supervisor is gone")
    os.execv(arguments[1], arguments[1:])


def _restore_signals() -> None:
    """Gives the program the default dispositions, which Python changes and exec would otherwise pass on."""
    for number in (signal.SIGINT, signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)


def _drop_privileges(libc: ctypes.CDLL, uid: int, gid: int) -> None:
    os.setgroups([])
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)
    libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except OSError as error:
        sys.exit(f"cannot start {sys.argv[2]}: {error.strerror}")
