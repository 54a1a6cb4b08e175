"""Which operating-system user runs PostgreSQL, and what that user can reach.

PostgreSQL refuses to run as root. Started by root, it gets a user id of its own that no account and no task
shares, so that nothing else on the machine can read its files or signal its processes.
"""

import os
import pwd
import stat
from dataclasses import dataclass
from pathlib import Path

from taskyard_standalone.errors import PostgresError

# Ids that distributions leave unassigned (between systemd's dynamic users and nobody), and that still exist
# inside the 65,536 ids of a rootless container.
_UNASSIGNED = range(65520, 65532)


@dataclass(frozen=True)
class Account:
    """A user and its group, as numbers."""

    uid: int
    gid: int


def server_account(cluster: Path, configured: str | None) -> Account | None:
    """Who PostgreSQL must become for this cluster; None = stay who we are.

    An existing cluster decides by its owner. Raises PostgresError if that owner cannot be used.
    """
    owner = _owner(cluster)
    if os.geteuid() != 0:
        if owner is not None and owner.uid != os.geteuid():
            raise PostgresError(
                f"{cluster} belongs to user {user_name(owner.uid)}, but this is user"
                f" {user_name(os.geteuid())}: run as its owner or choose another --data-dir"
            )
        return None
    if owner is None:
        return _configured_account(configured) if configured else _dedicated_account()
    if owner.uid == 0:
        uid = _dedicated_account().uid
        raise PostgresError(
            f"{cluster} belongs to root, as which PostgreSQL cannot run: chown -R {uid}:{uid} {cluster}"
        )
    return owner


def initialising_account(account: Account) -> Account:
    """Who can run initdb on behalf of `account`: initdb insists on a user that has a name."""
    try:
        pwd.getpwuid(account.uid)
    except KeyError:
        return _configured_account("nobody")
    return account


def can_reach(path: Path, account: Account) -> bool:
    """Whether `account` may enter the directory `path` by its absolute name."""
    resolved = path.resolve()
    return all(permits(part, account, stat.S_IXOTH) for part in (resolved, *resolved.parents))


def permits(path: Path, account: Account, bits: int) -> bool:
    """Whether the mode of `path` gives `account` the permission `bits`, written as for others (rwx = 7)."""
    status = path.stat()
    shift = 6 if status.st_uid == account.uid else 3 if status.st_gid == account.gid else 0
    return (status.st_mode >> shift) & bits == bits


def user_name(uid: int) -> str:
    """The account's name, or its number if it has none."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def _owner(cluster: Path) -> Account | None:
    try:
        status = cluster.stat()
    except FileNotFoundError:
        return None
    return Account(status.st_uid, status.st_gid)


def _configured_account(name: str) -> Account:
    try:
        entry = pwd.getpwuid(int(name)) if name.isdecimal() else pwd.getpwnam(name)
    except KeyError:
        raise PostgresError(
            f"there is no user {name!r} to run PostgreSQL as: create it or name another"
        ) from None
    if entry.pw_uid == 0:
        raise PostgresError(f"PostgreSQL cannot run as {name}: name an unprivileged user")
    return Account(entry.pw_uid, entry.pw_gid)


def _dedicated_account() -> Account:
    for uid in _UNASSIGNED:
        if user_name(uid) == str(uid):
            return Account(uid, uid)
    return _configured_account("nobody")
