"""The sandbox of each run: its own user, and the wrapper of its program."""

from __future__ import annotations

import os
import secrets
from collections.abc import Sequence
from dataclasses import replace

from taskyard_runner.agent.directory import RunDirectory
from taskyard_runner.executors import Workload
from taskyard_runner.warden.protocol import Message

User = tuple[int, int]


class Sandboxes:
    """Allocates users, and wraps programs where the runner's policy requires it."""

    def __init__(self, config: Message, data_dir: str, socket: str) -> None:
        self.mode: str = config.get("mode", "none")
        self._first: int = config.get("first_uid", 0)
        self._count: int = config.get("uid_count", 0)
        self._gid: int | None = config.get("gid")
        self._bubblewrap: str = config.get("bubblewrap", "")
        self._hidden: Sequence[str] = config.get("hidden", ())
        # What tasks reach lies in the data directory, or elsewhere if they cannot reach that.
        self._place: str = config.get("place") or data_dir
        self._data_dir = data_dir
        self.one_tenant: bool = config.get("one_tenant", False)
        self._socket = socket
        self._taken: set[int] = set()
        # A run must not find files that an earlier run with the same user left elsewhere.
        self._next = secrets.randbelow(self._count) if self._count else 0

    def describe(self) -> str:
        """The sandbox in force, for the runner's registration."""
        if self.mode == "bubblewrap" and not self._count:
            return "bubblewrap, the runner's user"
        if self.one_tenant:
            return "none, one tenant"
        shared = {0: "", 1: ", one user"}.get(self._count, ", a user per run")
        return f"{self.mode}{shared}"

    def take(self) -> User | None:
        """The user of a new run; None = the runner's own."""
        if not self._count:
            return None
        if self._count == 1:
            return self._first, self._first if self._gid is None else self._gid
        while self._next in self._taken:
            self._next = (self._next + 1) % self._count
        uid = self._next
        self._taken.add(uid)
        self._next = (uid + 1) % self._count
        return self._first + uid, self._first + uid

    def adopt(self, user: User | None) -> None:
        """A run that an earlier agent began has this user."""
        if user is not None:
            self._taken.add(user[0] - self._first)

    def release(self, user: User | None) -> None:
        """Release the user of a run whose files are removed."""
        if user is not None:
            self._taken.discard(user[0] - self._first)

    def wrap(self, workload: Workload, directory: RunDirectory) -> Workload:
        """The workload inside bubblewrap, where that is in force; hosts enclose theirs by themselves."""
        if not self._bubblewrap or workload.trusted:
            return workload
        argv = [*self._outer(directory), "--chdir", workload.cwd, "--", *workload.argv]
        return replace(workload, argv=argv, shielded=True)

    def _outer(self, directory: RunDirectory) -> Sequence[str]:
        argv = [self._bubblewrap, "--die-with-parent", "--cap-drop", "ALL"]
        argv += ["--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"]
        argv += ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp"]
        # The runner's own files are out of sight; those of the run are mounted again.
        for path in dict.fromkeys((self._data_dir, self._place)):
            argv += ["--tmpfs", path]
        for path in self._hidden:
            if os.path.exists(path) and not path.startswith("/tmp/"):
                argv += ["--ro-bind", "/dev/null", path]
        helpers = os.path.join(self._place, "bin")
        if os.path.isdir(helpers):
            argv += ["--ro-bind", helpers, helpers]
        for path in (directory.private, directory.work, directory.tmp, directory.checkpoint):
            argv += ["--bind", str(path), str(path)]
        return [*argv, "--bind", self._socket, self._socket]
