"""Removing workloads' files: by descriptor, without recursion, in bounded time, only below the run's tree.

A run's directory is moved into the trash first, a directory that only the runner can enter, so no workload
can put another directory in the place of one that is on its way out. A workload that kept a descriptor can
still add entries below it. Therefore no step resolves more than one name: a subdirectory that is not empty is
moved up, into the run's own directory, before it is opened, and links are removed, never followed.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import errno
import os
import secrets
import stat
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

from taskyard_kit.logs import get_log

_PRIVATE = 0o700
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# A tree that takes longer waits for the next turn, so that it does not delay the others.
_TREE_SECONDS = 10.0
# How often a directory that gains entries while it is emptied is read again.
_PASSES = 8
_RETRY_SECONDS = 300.0
_SETTLE_SECONDS = 5.0
_MAX_UID = (1 << 32) - 1

log = get_log(__name__)
_libc = ctypes.CDLL(None, use_errno=True)


class Remove(Protocol):
    """os.unlink or os.rmdir."""

    def __call__(self, path: str, *, dir_fd: int) -> None: ...


class Trash:
    """The directory into which run directories are moved, and where they are removed one by one."""

    def __init__(self, runs_directory: str) -> None:
        self._runs = runs_directory
        self._path = f"{os.path.dirname(runs_directory)}/trash"
        self._worker = ThreadPoolExecutor(1, "removal")
        self._reported: set[str] = set()

    async def remove(self, name: str) -> None:
        """Remove the directory of a run. A tree that cannot be removed is kept in the trash and logged."""
        await asyncio.get_running_loop().run_in_executor(self._worker, self._remove, name)

    async def settle(self) -> None:
        """Returns once the pending trees are removed, or after a few seconds."""
        done = asyncio.get_running_loop().run_in_executor(self._worker, lambda: None)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_SETTLE_SECONDS):
                await done

    def discard_except(self, kept: Iterable[str]) -> None:
        """Move the directories of all other runs into the trash; `sweep` removes them."""
        for name in set(os.listdir(self._runs)) - set(kept):
            self._discard(name)

    async def sweep(self) -> None:
        """Empty the trash now and periodically until cancelled."""
        while True:
            for name in await asyncio.to_thread(self._leftovers):
                await asyncio.get_running_loop().run_in_executor(self._worker, self._empty, name)
            await asyncio.sleep(_RETRY_SECONDS)

    def _leftovers(self) -> list[str]:
        try:
            return os.listdir(self._path)
        except OSError:
            return []

    def _remove(self, name: str) -> None:
        if self._discard(name):
            self._empty(name)

    def _discard(self, name: str) -> bool:
        try:
            os.makedirs(self._path, _PRIVATE, exist_ok=True)
            os.rename(f"{self._runs}/{name}", f"{self._path}/{name}")
        except FileNotFoundError:
            return False
        except OSError as error:
            self._report(name, str(error))
            return False
        return True

    def _empty(self, name: str) -> None:
        problem: str | None
        try:
            problem = remove_below(self._path, name, time.monotonic() + _TREE_SECONDS)
        except OSError as error:
            problem = str(error)
        if problem is None:
            self._reported.discard(name)
        else:
            self._report(name, problem)

    def _report(self, name: str, problem: str) -> None:
        if name not in self._reported:
            self._reported.add(name)
            log.warning("run_directory_left", path=f"{self._path}/{name}", error=problem)


def remove_below(trash: str, name: str, deadline: float) -> str | None:
    """Remove an entry of the trash; the reason if something is left, None if nothing is. Raises OSError.

    Root acts as the user of the run first, and only for what that user cannot remove as itself.
    """
    with _opened(trash) as place:
        try:
            top = _open(name, place)
        except NotADirectoryError:
            os.unlink(name, dir_fd=place)
            return None
        try:
            problem = _empty_tree(top, deadline)
        finally:
            os.close(top)
        if problem is None:
            os.rmdir(name, dir_fd=place)
    return problem


def _empty_tree(top: int, deadline: float) -> str | None:
    owner = _owner(top) if os.geteuid() == 0 else None
    if owner is None:
        os.fchmod(top, _PRIVATE)
        return _Emptying(top, deadline).run()
    os.fchown(top, *owner)
    os.fchmod(top, _PRIVATE)
    with _acting_as(*owner):
        problem = _Emptying(top, deadline).run()
    return problem and _Emptying(top, deadline).run()


def _owner(top: int) -> tuple[int, int] | None:
    """The user of the run, who owns its working directory; None if that is the runner's own."""
    found = os.fstat(top)
    with contextlib.suppress(OSError):
        found = os.stat("work", dir_fd=top, follow_symlinks=False) if found.st_uid == 0 else found
    return (found.st_uid, found.st_gid) if found.st_uid else None


class _Emptying:
    """One attempt at everything below a directory."""

    def __init__(self, top: int, deadline: float) -> None:
        self._top = top
        self._device = os.fstat(top).st_dev
        self._deadline = deadline
        self._waiting: list[str] = []
        self._problem: str | None = None

    def run(self) -> str | None:
        """Why something is left, None if nothing is."""
        self._waiting = os.listdir(self._top)
        while self._waiting and not self._timed_out():
            self._remove(self._waiting.pop())
        return self._problem

    def _timed_out(self) -> bool:
        if time.monotonic() < self._deadline:
            return False
        self._problem = self._problem or "it takes long, or something is still being written there"
        return True

    def _remove(self, name: str) -> None:
        """Empty and remove what lies directly below the top."""
        try:
            fd = _open(name, self._top)
        except (NotADirectoryError, FileNotFoundError):
            self._attempt(os.unlink, name, self._top)
            return
        except OSError as error:
            self._failed(name, error)
            return
        try:
            if os.fstat(fd).st_dev != self._device:
                self._problem = f"{name} is another file system"
                return
            self._empty(fd)
        finally:
            os.close(fd)
        self._attempt(os.rmdir, name, self._top)

    def _empty(self, fd: int) -> None:
        for _ in range(_PASSES):
            count = 0
            with os.scandir(fd) as entries:
                for entry in entries:
                    if self._timed_out():
                        return
                    count += 1
                    self._remove_entry(entry, fd)
            if not count or self._problem is not None:
                return

    def _remove_entry(self, entry: os.DirEntry[str], fd: int) -> None:
        if not entry.is_dir(follow_symlinks=False):
            self._attempt(os.unlink, entry.name, fd)
            return
        try:
            os.rmdir(entry.name, dir_fd=fd)
        except OSError as error:
            if error.errno != errno.ENOENT:
                self._move_up(entry.name, fd)

    def _move_up(self, name: str, fd: int) -> None:
        """Have a directory directly below the top, so that no depth needs more names or descriptors."""
        fresh = secrets.token_hex(8)
        try:
            # Its owner may have removed the permissions that moving a directory needs.
            if os.stat(name, dir_fd=fd, follow_symlinks=False).st_mode & _PRIVATE != _PRIVATE:
                _make_accessible(name, fd)
            os.rename(name, fresh, src_dir_fd=fd, dst_dir_fd=self._top)
            self._waiting.append(fresh)
        except FileNotFoundError:
            return
        except OSError as error:
            self._failed(name, error)

    def _attempt(self, remove: Remove, name: str, fd: int) -> None:
        try:
            remove(name, dir_fd=fd)
        except FileNotFoundError:
            return
        except OSError as error:
            self._failed(name, error)

    def _failed(self, name: str, error: OSError) -> None:
        self._problem = self._problem or f"{name[:100]!r}: {error.strerror}"


def _open(name: str, fd: int) -> int:
    """Open a directory by its name, never through a link: that is NotADirectoryError. Raises OSError."""
    try:
        return os.open(name, _DIRECTORY, dir_fd=fd)
    except PermissionError:
        _make_accessible(name, fd)
        return os.open(name, _DIRECTORY, dir_fd=fd)


def _make_accessible(name: str, fd: int) -> None:
    """Give a directory's owner all rights on it, without following a link."""
    found = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=fd)
    try:
        os.chmod(f"/proc/self/fd/{found}", _PRIVATE)
    finally:
        os.close(found)


@contextlib.contextmanager
def _opened(path: str) -> Iterator[int]:
    fd = os.open(path, _DIRECTORY)
    try:
        found = os.fstat(fd)
        if found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) & 0o077:
            raise PermissionError(errno.EPERM, "is not private to the runner", path)
        yield fd
    finally:
        os.close(fd)


@contextlib.contextmanager
def _acting_as(uid: int, gid: int) -> Iterator[None]:
    """Give this thread the user's file permissions instead of root's; other threads keep theirs."""
    try:
        _libc.setfsgid(gid)
        _libc.setfsuid(uid)
        if _libc.setfsuid(_MAX_UID) != uid or _libc.setfsgid(_MAX_UID) != gid:
            raise OSError(errno.EPERM, f"no thread can become user {uid}")
        yield
    finally:
        _libc.setfsuid(0)
        _libc.setfsgid(0)
