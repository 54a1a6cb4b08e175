"""The development keys: created on the first start and kept in the data directory."""

import secrets
import tomllib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, dataclass, field

from taskyard_standalone.datadir import DataDirectory
from taskyard_standalone.errors import DataDirectoryError

MakeKeys = Callable[[str], Awaitable[Mapping[str, str]]]
"""Makes a key of each kind, whose names end with the given suffix."""


@dataclass(frozen=True)
class DevelopmentKeys:
    """One key per kind of principal, and the identity of the database that stores their hashes."""

    database: str
    admin: str = field(repr=False)
    tenant: str = field(repr=False)
    scheduler: str = field(repr=False)
    runner: str = field(repr=False)


async def ensure_keys(data: DataDirectory, database: str, make: MakeKeys) -> DevelopmentKeys:
    """The stored keys if they belong to `database`, otherwise new ones."""
    stored = _load(data)
    if stored is not None and stored.database == database:
        return stored
    # A name is never used twice: a start killed between making and storing a key leaves its name taken.
    suffix = secrets.token_hex(4)
    keys = DevelopmentKeys(database=database, **await make(suffix))
    data.write_private(data.keys, "".join(f'{name} = "{value}"\n' for name, value in asdict(keys).items()))
    return keys


def _load(data: DataDirectory) -> DevelopmentKeys | None:
    try:
        return DevelopmentKeys(**tomllib.loads(data.keys.read_text()))
    except FileNotFoundError:
        return None
    except (tomllib.TOMLDecodeError, TypeError):
        raise DataDirectoryError(f"{data.keys} is damaged: remove it, and new keys are made") from None
