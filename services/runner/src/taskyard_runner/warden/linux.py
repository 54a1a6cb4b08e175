"""System calls that Python has no function for: prctl, and a timer that counts suspended time."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import struct
import time

_PR_SET_PDEATHSIG = 1
_PR_SET_DUMPABLE = 4
_PR_SET_CHILD_SUBREAPER = 36
_PR_SET_NO_NEW_PRIVS = 38
_TFD_NONBLOCK_CLOEXEC = os.O_NONBLOCK | os.O_CLOEXEC
_TFD_TIMER_ABSTIME = 1

_libc = ctypes.CDLL(None, use_errno=True)


def _prctl(option: int, value: int) -> None:
    if _libc.prctl(option, value, 0, 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"prctl({option}, {value}): {os.strerror(number)}")


def become_subreaper() -> None:
    """Orphaned descendants become children of this process instead of init's."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def hide_from_others() -> None:
    """Other processes of the same user cannot read this one's environment, memory or descriptors."""
    _prctl(_PR_SET_DUMPABLE, 0)


def forbid_new_privileges() -> None:
    """No later exec of this process gains privileges (set-uid programs)."""
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)


def become_user(uid: int, gid: int) -> None:
    """Give up the own user, every other group and with them every capability; raises OSError."""
    os.setgroups([])
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)


def die_with(parent: int) -> None:
    """The kernel kills this process when `parent` ends; also if it has ended already."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)


def boottime() -> float:
    """Seconds since boot including suspension; the clock of every lease and deadline."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class Alarm:
    """A timer descriptor on CLOCK_BOOTTIME: an epoll timeout would sleep through a suspension."""

    def __init__(self) -> None:
        self._fd = _libc.timerfd_create(time.CLOCK_BOOTTIME, _TFD_NONBLOCK_CLOEXEC)
        if self._fd < 0:
            raise OSError(ctypes.get_errno(), "timerfd_create")

    def fileno(self) -> int:
        return int(self._fd)

    def set(self, at: float | None) -> None:
        """Become readable at this boot time; None = never."""
        seconds, nanos = (0, 0) if at is None else divmod(max(1, int(at * 1e9)), 1_000_000_000)
        spec = struct.pack("qqqq", 0, 0, seconds, nanos)
        if _libc.timerfd_settime(self._fd, _TFD_TIMER_ABSTIME, spec, None) != 0:
            raise OSError(ctypes.get_errno(), "timerfd_settime")

    def clear(self) -> None:
        """Take the expiry that made it readable."""
        with contextlib.suppress(BlockingIOError):
            os.read(self._fd, 8)
