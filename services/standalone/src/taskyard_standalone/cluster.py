"""A PostgreSQL cluster on disk: creation by initdb, detection, and the processes that use it."""

import os
import re
import shutil
import struct
import tempfile
from dataclasses import dataclass
from pathlib import Path

from taskyard_standalone.account import Account, can_reach, initialising_account
from taskyard_standalone.binaries import MAJOR_VERSION, Binaries
from taskyard_standalone.errors import PostgresError
from taskyard_standalone.process import Program, run_to_end
from taskyard_standalone.socket_path import SOCKET_NAME
from taskyard_standalone.tuning import cluster_settings, usable_memory

SUPERUSER = "postgres"
# The kernel resolves this name to the process's working directory without walking its parents, so a server
# that was put into the directory can use it below parents that its user may not enter.
_WORKING_DIRECTORY = "/proc/self/cwd"


@dataclass(frozen=True)
class Cluster:
    """The data directory of one PostgreSQL server, and the user it runs as (None = ours)."""

    path: Path
    account: Account | None

    def exists(self) -> bool:
        """Whether there is a cluster of our version; raises PostgresError if there is something else."""
        if not self.path.exists():
            return False
        try:
            version = (self.path / "PG_VERSION").read_text().strip()
        except FileNotFoundError:
            raise PostgresError(
                f"{self.path} is not a PostgreSQL data directory: move it away or choose another --data-dir"
            ) from None
        except OSError as error:
            raise PostgresError(f"cannot read {self.path}: {error.strerror}") from error
        if version != str(MAJOR_VERSION):
            raise PostgresError(
                f"{self.path} belongs to PostgreSQL {version}, this Taskyard runs PostgreSQL {MAJOR_VERSION}:"
                " use the Taskyard that made it, or dump it there and restore it here"
            )
        return True

    def directory_argument(self) -> str:
        """The value for -D that the server's user can open."""
        if self.account is None or can_reach(self.path, self.account):
            return str(self.path)
        return _WORKING_DIRECTORY

    def system_identifier(self) -> int:
        """The number that initdb gave to this cluster alone; it opens the control file."""
        with (self.path / "global" / "pg_control").open("rb") as file:
            (identifier,) = struct.unpack("=Q", file.read(8))
        return int(identifier)

    def processes(self) -> list[int]:
        """The PostgreSQL processes that run in this directory, independent of who started them."""
        here = self.path.stat()
        return [pid for pid in _postgres_pids() if _works_in(pid, here)]

    def remove_stale_lock(self) -> None:
        """Removes what a killed server left; the caller has made sure that no process uses the cluster.

        PostgreSQL takes a leftover lock file seriously as long as any process of its user has that number,
        which after a restart of the machine or container may be anything.
        """
        (self.path / "postmaster.pid").unlink(missing_ok=True)
        # A server of another cluster may be configured to put its socket here; its lock stays.
        socket_lock = self.path / f"{SOCKET_NAME}.lock"
        if (pid := _recorded_pid(socket_lock)) and not _is_postgres(pid):
            socket_lock.unlink(missing_ok=True)

    def status(self) -> tuple[int | None, str]:
        """The server's process and state as it notes them itself: starting, ready or stopping."""
        path = self.path / "postmaster.pid"
        try:
            lines = path.read_text().splitlines()
        except OSError:
            return None, ""
        return _recorded_pid(path), lines[7].strip() if len(lines) > 7 else ""

    async def initialise(self, binaries: Binaries) -> None:
        """Makes the cluster; it appears complete under its name or not at all."""
        _remove_unfinished(self.path)
        partial = Path(tempfile.mkdtemp(prefix=f"{self.path.name}.new-", dir=self.path.parent))
        try:
            await self._run_initdb(binaries, partial)
            _append_settings(partial / "postgresql.conf")
            if self.account is not None:
                _give(partial, self.account)
            partial.rename(self.path)
        except BaseException:
            shutil.rmtree(partial, ignore_errors=True)
            raise
        _sync_directory(self.path.parent)

    async def _run_initdb(self, binaries: Binaries, target: Path) -> None:
        account = None
        if self.account is not None:
            account = initialising_account(self.account)
            os.chown(target, account.uid, account.gid)
        argv = (
            str(binaries.initdb),
            f"--pgdata={Cluster(target, account).directory_argument()}",
            f"--username={SUPERUSER}",
            "--encoding=UTF8",
            "--no-locale",
            "--locale-provider=builtin",
            "--builtin-locale=C.UTF-8",
            "--data-checksums",
            # Who may connect is decided by the directory of the socket, which only its owner can enter.
            "--auth-local=trust",
            "--auth-host=reject",
            "--no-instructions",
        )
        ended = await run_to_end(Program(argv, server_environment(), target, account))
        if ended.code != 0:
            raise PostgresError(explain(ended.complaints.splitlines(), self.path, "initdb failed"))


def server_environment() -> dict[str, str]:
    """A clean environment, so that no PG* variable or locale of the caller reaches the server."""
    return {"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC"}


def explain(lines: list[str], cluster: Path, otherwise: str) -> str:
    """One sentence for what PostgreSQL complained about in `lines`."""
    text = "\n".join(lines)
    if "could not look up effective user ID" in text:
        return (
            f"user id {os.geteuid()} has no name, which PostgreSQL needs to make {cluster}:"
            " give it an entry in /etc/passwd or name a database with --database-url"
        )
    if "No space left on device" in text:
        return f"no space left on the disk of {cluster}: free some and start again"
    if "invalid permissions" in text:
        return f"{cluster} may be read by others: chmod 0700 {cluster}"
    if "Permission denied" in text:
        return f"PostgreSQL may not access its files in {cluster}: restore their owner and permissions"
    if "lock file" in text and "already exists" in text:
        return f"another PostgreSQL server uses {cluster}: stop it first"
    complaints = [line for line in lines if re.search(r"\b(FATAL|PANIC|error):", line)] or lines[-1:]
    reason = (
        re.sub(r"^.*?\b(FATAL|PANIC|error):\s*", "", complaints[-1]) if complaints else "no reason was logged"
    )
    return f"{otherwise}: {reason}"


def _append_settings(path: Path) -> None:
    """Adds our settings after initdb's; given to initdb, a large cache would slow down its own servers."""
    lines = [f"{name} = '{value}'\n" for name, value in cluster_settings(usable_memory()).items()]
    with path.open("a") as file:
        file.write("\n# Set by Taskyard when it made this cluster; change them as you need.\n")
        file.writelines(lines)
        file.flush()
        os.fsync(file.fileno())


def _remove_unfinished(cluster: Path) -> None:
    for path in cluster.parent.glob(f"{cluster.name}.new-*"):
        shutil.rmtree(path, ignore_errors=True)


def _give(tree: Path, account: Account) -> None:
    """Makes `account` the owner of everything in `tree`, without following links."""
    for _, folders, files, descriptor in os.fwalk(tree):
        for name in (*folders, *files):
            os.chown(name, account.uid, account.gid, dir_fd=descriptor, follow_symlinks=False)
    os.chown(tree, account.uid, account.gid)


def _sync_directory(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _recorded_pid(path: Path) -> int | None:
    try:
        first = path.read_text().split("\n", 1)[0].strip()
    except OSError:
        return None
    return abs(int(first)) if first.lstrip("-").isdecimal() else None


def _postgres_pids() -> list[int]:
    return [pid for pid in map(int, filter(str.isdecimal, os.listdir("/proc"))) if _is_postgres(pid)]


def _is_postgres(pid: int) -> bool:
    """Whether `pid` is a living PostgreSQL process; a killed one may wait long for init to reap it."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False
    return status.startswith("Name:\tpostgres\n") and "\nState:\tZ" not in status


def _works_in(pid: int, directory: os.stat_result) -> bool:
    try:
        return os.path.samestat(os.stat(f"/proc/{pid}/cwd"), directory)
    except OSError:
        return False
