"""The server and key to use: from arguments, then the environment, then files."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from pathlib import Path

NEARBY_FILE = Path(".taskyard") / "context.toml"
DEFAULT_TENANT = "default"

_ENVIRONMENT = {
    "address": "TASKYARD_ADDRESS",
    "scheduler": "TASKYARD_SCHEDULER",
    "key": "TASKYARD_KEY",
    "admin_key": "TASKYARD_ADMIN_KEY",
    "tenant": "TASKYARD_TENANT",
    "tls_ca": "TASKYARD_TLS_CA",
}


class ContextError(ValueError):
    """No server is configured, or a context file is invalid; the message names the remedy."""


class NoContext(ContextError):
    """No server is configured."""


class ContextExpired(ContextError):
    """The time that a context file is good for has passed."""


class PlaintextRefused(ContextError):
    """A key would leave this machine in plaintext."""


@dataclass(frozen=True)
class Context:
    """The servers, the key and the tenant; `source` describes where the address came from."""

    address: str
    scheduler: str = ""
    key: str = field(default="", repr=False)
    # For administrative calls; if empty, `key` is used.
    admin_key: str = field(default="", repr=False)
    tenant: str = DEFAULT_TENANT
    tls_ca: str = ""
    # Where HTTP is served, as http://host:port; of use to other tools.
    gateway: str = ""
    # When the file ceases to be good, in RFC 3339; empty if it does not.
    expire_time: str = ""
    source: str = "argument"


@dataclass(frozen=True)
class _Layer:
    source: str
    values: Mapping[str, str] = field(repr=False)
    is_file: bool = False
    # Why it must not be used.
    problem: ContextError | None = None


def find_context(
    given: Mapping[str, str | None],
    environment: Mapping[str, str] | None = None,
    start: Path | None = None,
) -> Context:
    """The effective context; raises ContextError if no server is configured or a file is damaged.

    Each layer fills in values that earlier layers did not set. A layer with a different address is skipped:
    its key belongs to another server and must not be sent to this one. For the same reason a key of the
    environment is not sent to an address that only a file names: somebody else may have written that file.
    """
    environment = os.environ if environment is None else environment
    address, source, found = "", "", dict[str, str]()
    for layer in _layers(given, environment, start or Path.cwd()):
        if layer.problem is not None:
            if address:
                continue
            raise layer.problem
        if address and layer.values.get("address", address) != address:
            continue
        if not address and "address" in layer.values:
            address, source = layer.values["address"], layer.source
            if layer.is_file:
                _refuse_bare_keys(given, environment, layer.source)
        found = {**_without_foreign_admin(layer.values, found), **found}
    if not address:
        raise NoContext(
            "no server is configured: start one here with `make up` or `taskyard up`,"
            " or set TASKYARD_ADDRESS and TASKYARD_KEY"
        )
    return Context(**found, source=source)


def _without_foreign_admin(values: Mapping[str, str], found: Mapping[str, str]) -> Mapping[str, str]:
    """Drops admin_key if an earlier layer set `key`: that key is then used for administrative calls too."""
    return {name: value for name, value in values.items() if name != "admin_key" or "key" not in found}


def _layers(given: Mapping[str, str | None], environment: Mapping[str, str], start: Path) -> Iterator[_Layer]:
    yield _Layer("argument", {name: value for name, value in given.items() if value})
    variables = {name: environment.get(variable, "") for name, variable in _ENVIRONMENT.items()}
    yield _Layer("TASKYARD_ADDRESS", {name: value for name, value in variables.items() if value})
    for file in _files(environment, start):
        if file.is_file():
            yield _file_layer(file)


def _file_layer(file: Path) -> _Layer:
    if distrust := _distrust(file):
        return _Layer(str(file), {}, is_file=True, problem=ContextError(distrust))
    values = _read(file)
    expired = _is_past(file, values.get("expire_time", ""))
    problem = ContextExpired(f"{file} expired at {values['expire_time']}; get a new one") if expired else None
    return _Layer(str(file), {} if problem else values, is_file=True, problem=problem)


def _is_past(file: Path, moment: str) -> bool:
    if not moment:
        return False
    try:
        found = datetime.fromisoformat(moment)
    except ValueError:
        found = None
    if found is None or found.tzinfo is None:
        raise ContextError(f"{file}: expire_time = {moment!r} is not of the form 2030-01-31T12:00:00Z")
    return found <= datetime.now(UTC)


def _refuse_bare_keys(given: Mapping[str, str | None], environment: Mapping[str, str], file: str) -> None:
    for name in ("key", "admin_key"):
        if environment.get(_ENVIRONMENT[name]) and not given.get(name):
            raise ContextError(
                f"{_ENVIRONMENT[name]} is set, but only {file} names a server, and it may be for another;"
                " set TASKYARD_ADDRESS as well"
            )


def _distrust(file: Path) -> str:
    """Why a file may say what others want; empty if only its owner can have written it."""
    found = file.stat()
    if found.st_uid not in (os.geteuid(), 0):
        return f"{file} belongs to user {found.st_uid}, who could send your keys elsewhere; remove it"
    if found.st_mode & 0o022:
        return f"{file} can be written by others, who could send your keys elsewhere: chmod go-w {file}"
    return ""


def _files(environment: Mapping[str, str], start: Path) -> Iterator[Path]:
    nearby = (folder / NEARBY_FILE for folder in (start, *start.parents))
    yield from [file for file in nearby if file.is_file()][:1]
    home = Path(environment.get("HOME") or "~").expanduser()
    yield Path(environment.get("XDG_CONFIG_HOME") or home / ".config") / "taskyard" / "config.toml"
    # The default data directory of `taskyard up`.
    yield Path(environment.get("XDG_DATA_HOME") or home / ".local" / "share") / "taskyard" / "context.toml"


def _read(file: Path) -> dict[str, str]:
    allowed = {f.name for f in fields(Context)} - {"source"}
    try:
        values = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ContextError(f"{file} cannot be read ({error}); correct or remove it") from None
    for name, value in values.items():
        if name not in allowed:
            raise ContextError(f"{file}: unknown setting {name!r}; use {', '.join(sorted(allowed))}")
        if not isinstance(value, str):
            raise ContextError(f"{file}: {name} = {value!r} must be a text in quotes")
    return {name: value for name, value in values.items() if value}
