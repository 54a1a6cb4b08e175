"""The data directory: its layout, the proof that it is ours, and the lock that makes one `up` its owner."""

import fcntl
import os
import tempfile
from pathlib import Path
from types import TracebackType

from taskyard_standalone.account import user_name
from taskyard_standalone.errors import DataDirectoryError
from taskyard_standalone.logs import LogFile

_MARKER = "taskyard-data"
_LAYOUT_VERSION = "1"
# What may lie in a directory that `up` has not yet made its own: a context file written by hand, and the
# traces of a first start that was killed before it wrote the marker.
_HARMLESS = frozenset({"context.toml", ".gitignore", "lock"})


class DataDirectory:
    """An opened and locked data directory; a context manager that gives the lock back."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock: int | None = None

    @property
    def cluster(self) -> Path:
        """PostgreSQL's own directory; it holds the socket too, since no other user can enter it."""
        return self.path / "postgres"

    @property
    def context(self) -> Path:
        """How the command line finds this Taskyard."""
        return self.path / "context.toml"

    @property
    def keys(self) -> Path:
        """The development keys."""
        return self.path / "keys.toml"

    @property
    def runner(self) -> Path:
        """The runner's spool and working directories."""
        return self.path / "runner"

    def log(self, name: str) -> LogFile:
        """The log of one program."""
        return LogFile(self.path / "logs" / f"{name}.log")

    def __enter__(self) -> "DataDirectory":
        """Makes, locks and checks the directory; raises DataDirectoryError if it cannot be used."""
        try:
            self._open()
        except OSError as error:
            self._unlock()
            owner = _owner_of(self.path)
            raise DataDirectoryError(
                f"cannot use the data directory {self.path}: {error.strerror}"
                f"{f' (it belongs to {owner})' if owner else ''}; choose another with --data-dir"
            ) from error
        except BaseException:
            self._unlock()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._unlock()

    def write_private(self, path: Path, text: str) -> None:
        """Replaces a file of the directory by one that only we can read; a reader sees the old or the new."""
        descriptor, partial = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            Path(partial).replace(path)
        except BaseException:
            Path(partial).unlink(missing_ok=True)
            raise

    def _open(self) -> None:
        if not self.path.exists():
            # Tasks of root's runner have users of their own and pass through here to the directories of their
            # runs; all that is private in it has a mode of its own.
            self.path.mkdir(mode=0o700, parents=True)
            self.path.chmod(0o711 if os.geteuid() == 0 else 0o700)
        self._refuse_foreign()
        self._take_lock()
        self._write_marker()
        (self.path / "logs").mkdir(mode=0o700, exist_ok=True)

    def _refuse_foreign(self) -> None:
        if not self.path.is_dir():
            raise DataDirectoryError(f"{self.path} is not a directory: choose another --data-dir")
        marker = self.path / _MARKER
        if not marker.exists():
            foreign = sorted({entry.name for entry in self.path.iterdir()} - _HARMLESS)
            if foreign:
                raise DataDirectoryError(
                    f"{self.path} holds {foreign[0]!r} and is not a Taskyard data directory:"
                    " choose an empty or new one with --data-dir"
                )
            return
        version = marker.read_text().strip()
        if version != _LAYOUT_VERSION:
            raise DataDirectoryError(
                f"{self.path} has layout version {version!r}, this Taskyard knows {_LAYOUT_VERSION}:"
                " use the newer Taskyard that wrote it or choose another --data-dir"
            )

    def _take_lock(self) -> None:
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        self._lock = os.open(self.path / "lock", flags, 0o600)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(self._lock, 32, 0).decode(errors="replace").strip() or "unknown"
            raise DataDirectoryError(
                f"another taskyard up (pid {holder}) is using {self.path}:"
                " stop it first or choose another --data-dir"
            ) from None
        os.ftruncate(self._lock, 0)
        os.pwrite(self._lock, f"{os.getpid()}\n".encode(), 0)

    def _unlock(self) -> None:
        # Closing releases the lock, and so does any exit of the process.
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _write_marker(self) -> None:
        # Keys and data never belong into the repository that the directory may lie in.
        ignore = self.path / ".gitignore"
        if not ignore.exists():
            ignore.write_text("*\n")
        marker = self.path / _MARKER
        if not marker.exists():
            marker.write_text(f"{_LAYOUT_VERSION}\n")


def _owner_of(path: Path) -> str:
    """The owner's name if `path` exists and belongs to another user."""
    try:
        uid = path.stat().st_uid
    except OSError:
        return ""
    return "" if uid == os.geteuid() else user_name(uid)
