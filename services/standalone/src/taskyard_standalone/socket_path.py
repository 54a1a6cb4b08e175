"""A short name for the directory of PostgreSQL's socket, where its path is too long for a socket address.

The kernel limits a socket's path to 107 bytes. The server binds relative to its working directory and never
meets the limit; clients connect through a symbolic link in a private runtime directory.
"""

import fcntl
import os
import shutil
import stat
import tempfile
from pathlib import Path

from taskyard_standalone.errors import PostgresError

PORT = 5432
SOCKET_NAME = f".s.PGSQL.{PORT}"
_LIMIT = 107
_LINK = "postgres"


class SocketDirectory:
    """Where clients find the socket of `cluster`; `record` remembers the link across a crash."""

    def __init__(self, cluster: Path, record: Path) -> None:
        self._cluster = cluster.absolute()
        self._record = record
        self._held: int | None = None

    def acquire(self) -> Path:
        """The directory to name as `host`; makes the link if one is needed."""
        if _fits(self._cluster):
            self._discard_recorded()
            return self._cluster
        folder = self._recorded() or self._create()
        # systemd-tmpfiles leaves locked directories alone.
        if self._held is None:
            self._held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            fcntl.flock(self._held, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return folder / _LINK

    def release(self) -> None:
        """Removes the link, if there is one."""
        if self._held is not None:
            os.close(self._held)
            self._held = None
        self._discard_recorded()

    def _create(self) -> Path:
        for base in _runtime_directories():
            if not _fits(base / "taskyard-12345678" / _LINK):
                continue
            folder = Path(tempfile.mkdtemp(prefix="taskyard-", dir=base))
            (folder / _LINK).symlink_to(self._cluster)
            self._record.write_text(f"{folder}\n")
            return folder
        raise PostgresError(
            f"{self._cluster} is too long for a socket address and no short runtime directory is writable:"
            " choose a shorter --data-dir"
        )

    def _recorded(self) -> Path | None:
        """The folder made by an earlier run, if it is still exactly what that run made."""
        try:
            folder = Path(self._record.read_text().strip())
            status = folder.lstat()
            intact = (folder / _LINK).readlink() == self._cluster
        except OSError:
            return None
        private = stat.S_ISDIR(status.st_mode) and not status.st_mode & 0o077
        return folder if intact and private and status.st_uid == os.geteuid() else None

    def _discard_recorded(self) -> None:
        if folder := self._recorded():
            shutil.rmtree(folder, ignore_errors=True)
        self._record.unlink(missing_ok=True)


def _fits(directory: Path) -> bool:
    return len(os.fsencode(directory / SOCKET_NAME)) <= _LIMIT


def _runtime_directories() -> list[Path]:
    named = os.environ.get("XDG_RUNTIME_DIR")
    candidates = [Path(named)] if named else []
    candidates += [Path("/run"), Path(tempfile.gettempdir()), Path("/tmp")]
    return [path for path in candidates if path.is_dir() and os.access(path, os.W_OK | os.X_OK)]
