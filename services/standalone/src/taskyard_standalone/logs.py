"""Log files of child programs: append-only, private, bounded in size, and read back for error messages."""

import os
import shutil
from pathlib import Path

ROTATE_BYTES = 16 * 1024 * 1024
KEPT_COUNT = 3
_TAIL_BYTES = 64 * 1024


class LogFile:
    """One program's log. Programs write to an inherited descriptor, so they never wait for the supervisor."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def open(self) -> int:
        """A descriptor to append to; the caller closes it."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        return os.open(self.path, flags, 0o600)

    def size(self) -> int:
        try:
            return self.path.stat().st_size
        except FileNotFoundError:
            return 0

    def lines(self, since: int = 0) -> list[str]:
        """The non-empty lines from offset `since`, at most the last 64 KiB of them."""
        try:
            with self.path.open("rb") as file:
                start = max(since, self.size() - _TAIL_BYTES)
                file.seek(start)
                text = file.read().decode(errors="replace")
        except FileNotFoundError:
            return []
        return [line for line in text.splitlines() if line.strip()]

    def rotate(self, limit: int = ROTATE_BYTES) -> bool:
        """Moves the content to `<name>.1` once it exceeds `limit`; answers whether it did.

        The file is copied and truncated, since its writers keep their descriptors; what they write between
        the two steps is lost, which for a log is the smaller evil than a restart.
        """
        if self.size() <= limit:
            return False
        for number in range(KEPT_COUNT, 1, -1):
            older = self._numbered(number - 1)
            if older.exists():
                older.replace(self._numbered(number))
        shutil.copyfile(self.path, self._numbered(1))
        self._numbered(1).chmod(0o600)
        os.truncate(self.path, 0)
        return True

    def _numbered(self, number: int) -> Path:
        return self.path.with_name(f"{self.path.name}.{number}")
