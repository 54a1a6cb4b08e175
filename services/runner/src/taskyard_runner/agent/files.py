"""Reading a workload's files: only regular files of its own user, never through a link."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path


def read_regular(path: Path, limit: int, owner: int | None = None) -> bytes | None:
    """At most `limit` bytes of a file of the workload; None if there is none.

    Raises OSError, also for what is no regular file or belongs to another user than `owner`: the reader may
    have rights that the workload has not, and a link would lend them to it.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO):
            raise OSError(errno.EINVAL, "is not a regular file") from None
        raise
    with open(fd, "rb") as file:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode):
            raise OSError(errno.EINVAL, "is not a regular file")
        # A host of ours may have written it, but then nobody has linked it there.
        ours = found.st_uid == os.geteuid() and found.st_nlink == 1
        if owner is not None and found.st_uid != owner and not ours:
            raise OSError(errno.EPERM, "belongs to another user")
        return file.read(limit)
