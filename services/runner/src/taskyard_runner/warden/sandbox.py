"""The runner's policy on what tasks may touch: which one is in force, proved before anything runs.

none        tasks run as the runner's own user
user        each run has a user of its own, without groups and capabilities; needs root
bubblewrap  besides, the host's files are read-only and its processes out of sight
"""

from __future__ import annotations

import contextlib
import grp
import json
import os
import pwd
import shutil
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


class SandboxError(Exception):
    """Why the sandbox that was asked for cannot be had, in one line with the remedy."""


@dataclass(frozen=True)
class Wish:
    """What the settings say: a mode or `auto`, and a user (name, uid or uid:gid) if all runs share one."""

    mode: str = "auto"
    user: str = ""


@dataclass(frozen=True)
class Sandbox:
    """What is in force. Without `first_uid` runs have the runner's own user."""

    mode: str
    path: str
    first_uid: int = 0
    uid_count: int = 0
    # Of a configured user; otherwise each uid has the group of the same number.
    gid: int | None = None
    bubblewrap: str = ""
    # Why it is no stronger one.
    why: str = ""

    @property
    def separates_users(self) -> bool:
        """Whether tasks run as others than the runner."""
        return self.uid_count > 0


def find_sandbox(wish: Wish, data_dir: str, path: str) -> Sandbox:
    """The sandbox in force. Raises SandboxError if the one that was named is not possible here."""
    if wish.mode == "none":
        return Sandbox("none", path, why="switched off by the setting sandbox")
    plain = _own_users(wish, data_dir, path)
    if wish.mode == "bubblewrap":
        return _wrapped(plain, path)
    if wish.mode == "user" and not plain.separates_users:
        raise SandboxError(f"sandbox = 'user': {plain.why}")
    return plain


def _own_users(wish: Wish, data_dir: str, path: str) -> Sandbox:
    if os.geteuid() != 0:
        return Sandbox("none", path, why="only root can give tasks a user of their own")
    _open_up(data_dir)
    why = ""
    for candidate in _candidates(wish, data_dir, path):
        seen = _look_around(candidate, data_dir)
        why = seen["problem"]
        if why:
            continue
        if seen["python"] == sys.executable:
            return replace(candidate, path=seen["path"])
        helper = _install_helper(data_dir, seen["python"])
        return replace(candidate, path=f"{seen['path']}{os.pathsep}{helper}")
    return Sandbox("none", path, why=why)


def _candidates(wish: Wish, data_dir: str, path: str) -> list[Sandbox]:
    if wish.user:
        uid, gid = _parse_user(wish.user)
        return [Sandbox("user", path, uid, 1, gid)]
    place = int(digest(os.path.abspath(data_dir)), 16) % _DIRECTORIES
    return [
        Sandbox("user", path, _BASES[0] + place * _SPANS[0], _SPANS[0]),
        Sandbox("user", path, _BASES[1], _SPANS[1]),
    ]


def _parse_user(text: str) -> tuple[int, int]:
    name, _, group = text.partition(":")
    try:
        known = pwd.getpwuid(int(name)) if name.isdigit() else pwd.getpwnam(name)
        uid, gid = known.pw_uid, known.pw_gid
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


def _open_up(data_dir: str) -> None:
    """Let others pass through to the directories of their runs; what lies beside them stays private."""
    for folder in (data_dir, f"{data_dir}/runs"):
        with contextlib.suppress(OSError):
            os.chmod(folder, 0o711)


def _look_around(sandbox: Sandbox, data_dir: str) -> dict[str, str]:
    """What a user of the sandbox can reach: told by a child that becomes one."""
    read_end, write_end = os.pipe2(os.O_CLOEXEC)
    pid = os.fork()
    if pid == 0:
        try:
            os.write(write_end, json.dumps(_reach(sandbox, data_dir)).encode())
        finally:
            os._exit(0)
    os.close(write_end)
    try:
        told = b"".join(iter(lambda: os.read(read_end, 65536), b""))
    finally:
        os.close(read_end)
        os.waitpid(pid, 0)
    found: dict[str, str] = json.loads(told or b'{"problem": "the look around ended without an answer"}')
    return found


def _reach(sandbox: Sandbox, data_dir: str) -> dict[str, str]:
    uid = sandbox.first_uid
    try:
        linux.become_user(uid, uid if sandbox.gid is None else sandbox.gid)
    except OSError as error:
        return {"problem": f"no process can become user {uid} here: {error.strerror}"}
    if not os.access(f"{data_dir}/runs", os.X_OK):
        told = f"others cannot reach data_dir {data_dir!r}"
        return {"problem": f"{told}; choose one whose parent directories they may pass through"}
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


def _install_helper(data_dir: str, python: str) -> str:
    """A taskyard-task for those who cannot reach the runner's own Python; the directory it is in."""
    folder = f"{data_dir}/bin"
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


def _wrapped(plain: Sandbox, path: str) -> Sandbox:
    program = shutil.which("bwrap", path=path)
    if program is None:
        raise SandboxError("sandbox = 'bubblewrap': there is no bwrap in PATH; install bubblewrap")
    return replace(plain, mode="bubblewrap", bubblewrap=program)
