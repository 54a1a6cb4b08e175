"""The runner's policy on what tasks may touch: which one is in force, proved before anything runs.

none        tasks run as the runner's own user
user        each run has a user of its own, without groups and capabilities; needs root
bubblewrap  besides, the host's files are read-only and its processes out of sight

A runner of root never runs a task as root unless `none` is named. A runner of an ordinary user that has no
bubblewrap either serves one tenant alone.
"""

from __future__ import annotations

import contextlib
import errno
import grp
import json
import os
import pwd
import shutil
import stat
import sys
from dataclasses import dataclass, replace

from taskyard_runner.warden import linux
from taskyard_runner.warden.naming import digest

# Uids that no distribution gives out, ten thousand for each data directory; and some of a user namespace
# that has only the usual 65,536.
_BASES = (1_900_000_000, 64_000)
_SPANS = (10_000, 1_000)
_DIRECTORIES = 10_000
_HELPER = "taskyard-task"
# Where root's runner has the directories of runs if nobody can reach its data directory.
PUBLIC = "/var/lib/taskyard"
_PARTS = ("private", "work", "tmp", "checkpoint")
_REMEDY = (
    "choose a --data-dir or --runs-dir whose parent directories others may pass through (mode 711 is"
    " enough), or name --sandbox none if tasks are to run as root"
)


class SandboxError(Exception):
    """Why the requested sandbox is unavailable, in one line with the remedy."""


@dataclass(frozen=True)
class SandboxSettings:
    """The settings: a mode or `auto`, and a user (name, uid or uid:gid) if all runs share one."""

    mode: str = "auto"
    user: str = ""
    # Where the directories of runs are to be; empty = where the users of tasks can reach them.
    runs_dir: str = ""
    # Files of the runner that no task is to read.
    hidden: tuple[str, ...] = ()


@dataclass(frozen=True)
class Sandbox:
    """The sandbox in force. Without `first_uid` runs have the runner's own user."""

    mode: str
    path: str
    # The directory of all that tasks must reach: those of their runs, the socket and the helper.
    place: str
    first_uid: int = 0
    uid_count: int = 0
    # Of a configured user; otherwise each uid has the group of the same number.
    gid: int | None = None
    bubblewrap: str = ""
    hidden: tuple[str, ...] = ()
    # Nothing keeps the tasks of two tenants apart, and nobody has asked for that by name.
    one_tenant: bool = False
    # Why it is no stronger one.
    why: str = ""

    @property
    def separates_users(self) -> bool:
        """Whether tasks run as others than the runner."""
        return self.uid_count > 0


def find_sandbox(settings: SandboxSettings, data_dir: str, path: str) -> Sandbox:
    """The sandbox in force. Raises SandboxError if the one that was named is not possible here."""
    if settings.mode == "none":
        return Sandbox("none", path, settings.runs_dir or data_dir, why="switched off by the setting sandbox")
    if os.geteuid() != 0:
        return _unprivileged(settings, data_dir, path)
    plain = _own_users(settings, data_dir, path)
    if settings.mode == "bubblewrap":
        return replace(plain, mode="bubblewrap", bubblewrap=_find_bubblewrap(path), hidden=settings.hidden)
    return plain


def _unprivileged(settings: SandboxSettings, data_dir: str, path: str) -> Sandbox:
    if settings.mode == "user":
        raise SandboxError("sandbox = 'user': only root can give tasks a user of their own")
    place = settings.runs_dir or data_dir
    try:
        program = _find_bubblewrap(path)
        _try_bubblewrap(program)
    except SandboxError as error:
        if settings.mode == "bubblewrap":
            raise
        return Sandbox("none", path, place, one_tenant=True, why=str(error))
    return Sandbox("bubblewrap", path, place, bubblewrap=program, hidden=settings.hidden)


def _own_users(settings: SandboxSettings, data_dir: str, path: str) -> Sandbox:
    problems = []
    for place in _places(settings, data_dir):
        try:
            _allow_traversal(place)
        except OSError as error:
            problems.append(f"{place} cannot be used: {error.strerror}")
            continue
        for candidate in _candidates(settings, data_dir, path, place):
            seen = _probe_access(candidate)
            if seen["problem"]:
                problems.append(seen["problem"])
                continue
            if seen["python"] == sys.executable:
                return replace(candidate, path=seen["path"])
            helper = _install_helper(place, seen["python"])
            return replace(candidate, path=f"{seen['path']}{os.pathsep}{helper}")
    reasons = "; ".join(dict.fromkeys(problems))
    raise SandboxError(f"sandbox = {settings.mode!r}: tasks would run as root: {reasons}; {_REMEDY}")


def _places(settings: SandboxSettings, data_dir: str) -> list[str]:
    if settings.runs_dir:
        return [settings.runs_dir]
    return [data_dir, f"{PUBLIC}/runner-{digest(os.path.abspath(data_dir))}"]


def _candidates(settings: SandboxSettings, data_dir: str, path: str, home: str) -> list[Sandbox]:
    if settings.user:
        uid, gid = _parse_user(settings.user)
        return [Sandbox("user", path, home, uid, 1, gid)]
    place = int(digest(os.path.abspath(data_dir)), 16) % _DIRECTORIES
    return [
        Sandbox("user", path, home, _BASES[0] + place * _SPANS[0], _SPANS[0]),
        Sandbox("user", path, home, _BASES[1], _SPANS[1]),
    ]


def _parse_user(text: str) -> tuple[int, int]:
    name, _, group = text.partition(":")
    try:
        entry = pwd.getpwuid(int(name)) if name.isdigit() else pwd.getpwnam(name)
        uid, gid = entry.pw_uid, entry.pw_gid
    except KeyError:
        if not name.isdigit():
            raise SandboxError(f"sandbox_user = {text!r}: there is no such user; create it") from None
        uid = gid = int(name)
    if group:
        try:
            gid = int(group) if group.isdigit() else grp.getgrnam(group).gr_gid
        except KeyError:
            raise SandboxError(f"sandbox_user = {text!r}: there is no such group; create it") from None
    if uid == 0:
        raise SandboxError(
            f"sandbox_user = {text!r}: root is no sandbox; use --sandbox none if that is meant"
        )
    return uid, gid


def _allow_traversal(place: str) -> None:
    """Let other users traverse to the directories of their runs; the other entries stay private.

    Raises OSError if it is not root's alone.
    """
    if os.path.dirname(place) == PUBLIC:
        os.makedirs(PUBLIC, 0o711, exist_ok=True)
        found = os.lstat(PUBLIC)
        if found.st_uid != 0 or not stat.S_ISDIR(found.st_mode) or found.st_mode & 0o022:
            raise PermissionError(errno.EPERM, f"others can write to {PUBLIC}")
    os.makedirs(f"{place}/runs", 0o711, exist_ok=True)
    for folder in (place, f"{place}/runs"):
        os.chmod(folder, 0o711)


def remove_place(place: str, data_dir: str) -> None:
    """Remove a place of our own outside the data directory, unless something of a run is left there."""
    if os.path.dirname(place) != PUBLIC or place == data_dir:
        return
    with contextlib.suppress(OSError):
        os.unlink(f"{place}/bin/{_HELPER}")
    with contextlib.suppress(OSError):
        for name in os.listdir(f"{place}/runs"):
            # Made ahead and never used; all of it is still root's.
            for part in (*_PARTS, ""):
                os.rmdir(f"{place}/runs/{name}/{part}")
    for folder in (f"{place}/bin", f"{place}/trash", f"{place}/runs", place, PUBLIC):
        with contextlib.suppress(OSError):
            os.rmdir(folder)


def _probe_access(sandbox: Sandbox) -> dict[str, str]:
    """What a user of the sandbox can reach, as a child that changes to that user finds."""
    read_end, write_end = os.pipe2(os.O_CLOEXEC)
    pid = os.fork()
    if pid == 0:
        try:
            os.write(write_end, json.dumps(_reach(sandbox)).encode())
        finally:
            os._exit(0)
    os.close(write_end)
    try:
        answer = b"".join(iter(lambda: os.read(read_end, 65536), b""))
    finally:
        os.close(read_end)
        os.waitpid(pid, 0)
    found: dict[str, str] = json.loads(answer or b'{"problem": "the access probe ended without an answer"}')
    return found


def _reach(sandbox: Sandbox) -> dict[str, str]:
    uid = sandbox.first_uid
    try:
        linux.become_user(uid, uid if sandbox.gid is None else sandbox.gid)
    except OSError as error:
        return {"problem": f"no process can become user {uid} here: {error.strerror}"}
    if not os.access(f"{sandbox.place}/runs", os.X_OK):
        return {"problem": f"others cannot reach {sandbox.place}"}
    folders = [folder for folder in sandbox.path.split(os.pathsep) if os.access(folder, os.X_OK)]
    own = os.access(sys.executable, os.X_OK)
    if not own:
        # The programs beside it need it.
        folders = [folder for folder in folders if folder != os.path.dirname(sys.executable)]
    path = os.pathsep.join(folders)
    python = sys.executable if own else shutil.which("python3", path=path)
    if not python:
        return {
            "problem": f"others can execute neither {sys.executable} nor any python3, so no taskyard-task"
        }
    return {"problem": "", "path": path, "python": python}


def _install_helper(place: str, python: str) -> str:
    """A taskyard-task for those who cannot reach the runner's own Python; the directory it is in."""
    folder = f"{place}/bin"
    os.makedirs(folder, mode=0o755, exist_ok=True)
    source = os.path.join(os.path.dirname(os.path.dirname(__file__)), "task_helper.py")
    with open(source) as file:
        text = file.read()
    part = f"{folder}/{_HELPER}.part"
    with open(part, "w") as file:
        file.write(f"#!{python} -I\n{text}")
    os.chmod(part, 0o755)
    os.replace(part, f"{folder}/{_HELPER}")
    return folder


def _find_bubblewrap(path: str) -> str:
    program = shutil.which("bwrap", path=path)
    if program is None:
        raise SandboxError("sandbox = 'bubblewrap': there is no bwrap in PATH; install bubblewrap")
    return program


def _try_bubblewrap(program: str) -> None:
    """Raises SandboxError if this user cannot have namespaces of its own."""
    argv = [
        program,
        "--unshare-pid",
        "--ro-bind",
        "/",
        "/",
        "--dev",
        "/dev",
        "--proc",
        "/proc",
        "--",
        "/bin/true",
    ]
    null = [(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_RDWR, 0) for fd in (0, 1, 2)]
    pid = os.posix_spawn(program, argv, {}, file_actions=null)
    if os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) != 0:
        raise SandboxError(
            "sandbox = 'bubblewrap': bwrap does not work for this user; allow user namespaces on this host"
        )
