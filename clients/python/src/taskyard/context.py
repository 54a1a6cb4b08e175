"""Which server to speak to, with which key: by arguments, then environment, then files."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
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
    """No server is named, or a context file cannot be used; the message says what to do."""


@dataclass(frozen=True)
class Context:
    """The servers, the key and the tenant; `source` says in words where the address came from."""

    address: str
    scheduler: str = ""
    key: str = field(default="", repr=False)
    # For what only an administrator may do; without it `key` has to do.
    admin_key: str = field(default="", repr=False)
    tenant: str = DEFAULT_TENANT
    tls_ca: str = ""
    # Where HTTP is served, as http://host:port; of use to other tools.
    gateway: str = ""
    source: str = "argument"


@dataclass(frozen=True)
class _Layer:
    source: str
    values: Mapping[str, str] = field(repr=False)


def find_context(
    given: Mapping[str, str | None],
    environment: Mapping[str, str] | None = None,
    start: Path | None = None,
) -> Context:
    """The context in force; raises ContextError if nothing names a server or a file is damaged.

    A layer adds what those before it left open. One with another address than the one in force adds nothing:
    its key is meant for another server, and must not be sent to this one.
    """
    environment = os.environ if environment is None else environment
    address, source, found = "", "", dict[str, str]()
    for layer in _layers(given, environment, start or Path.cwd()):
        if address and layer.values.get("address", address) != address:
            continue
        if not address and "address" in layer.values:
            address, source = layer.values["address"], layer.source
        found = {**_without_foreign_admin(layer.values, found), **found}
    if not address:
        raise ContextError(
            "no server is named: start one here with `make up` or `taskyard up`,"
            " or set TASKYARD_ADDRESS and TASKYARD_KEY"
        )
    return Context(**found, source=source)


def _without_foreign_admin(values: Mapping[str, str], found: Mapping[str, str]) -> Mapping[str, str]:
    """Whoever says which key to use means it for everything, also where an administrator is needed."""
    return {name: value for name, value in values.items() if name != "admin_key" or "key" not in found}


def _layers(given: Mapping[str, str | None], environment: Mapping[str, str], start: Path) -> Iterator[_Layer]:
    yield _Layer("argument", {name: value for name, value in given.items() if value})
    told = {name: environment.get(variable, "") for name, variable in _ENVIRONMENT.items()}
    yield _Layer("TASKYARD_ADDRESS", {name: value for name, value in told.items() if value})
    for file in _files(environment, start):
        if file.is_file():
            yield _Layer(str(file), _read(file))


def _files(environment: Mapping[str, str], start: Path) -> Iterator[Path]:
    nearby = (folder / NEARBY_FILE for folder in (start, *start.parents))
    yield from [file for file in nearby if file.is_file()][:1]
    home = Path(environment.get("HOME") or "~").expanduser()
    yield Path(environment.get("XDG_CONFIG_HOME") or home / ".config") / "taskyard" / "config.toml"
    # Where `taskyard up` keeps its data unless it is told otherwise.
    yield Path(environment.get("XDG_DATA_HOME") or home / ".local" / "share") / "taskyard" / "context.toml"


def _read(file: Path) -> dict[str, str]:
    known = {f.name for f in fields(Context)} - {"source"}
    try:
        values = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ContextError(f"{file} cannot be read ({error}); correct or remove it") from None
    for name, value in values.items():
        if name not in known:
            raise ContextError(f"{file}: unknown setting {name!r}; use {', '.join(sorted(known))}")
        if not isinstance(value, str):
            raise ContextError(f"{file}: {name} = {value!r} must be a text in quotes")
    return {name: value for name, value in values.items() if value}
