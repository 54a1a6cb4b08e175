"""The server and key to use: from arguments, then the environment, then files."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

NEARBY_FILE = Path(".taskyard") / "context.toml"
# The tenant of a key that belongs to none: an administrator's.
DEFAULT_TENANT = "default"

# How long calls that are safe to repeat wait out an outage, unless the caller sets it.
PATIENCE_SECONDS = 30.0

_ENVIRONMENT = {
    "address": "TASKYARD_ADDRESS",
    "scheduler": "TASKYARD_SCHEDULER",
    "key": "TASKYARD_KEY",
    "admin_key": "TASKYARD_ADMIN_KEY",
    "tenant": "TASKYARD_TENANT",
    "tls_ca": "TASKYARD_TLS_CA",
    "gateway": "TASKYARD_GATEWAY",
}
CONTEXT_VARIABLE = "TASKYARD_CONTEXT"
# host:port, [::1]:port, https://host, or a target of one of gRPC's own resolvers.
_ADDRESS = re.compile(
    r"(unix|unix-abstract|ipv4|ipv6|dns|vsock):\S+|https://[^\s/:]+|(https?://)?(\[[^\s\]]+\]|[^\s/:,]+):(\d+)"
)


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
    # If empty, that of the key.
    tenant: str = ""
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
    *,
    name: str = "",
) -> Context:
    """The effective context; raises ContextError if no server is configured or a file is damaged.

    Each layer fills in values that earlier layers did not set. A layer with a different address is skipped:
    its key belongs to another server and must not be sent to this one; one of the replicas that a layer
    lists is not different. For the same reason a key of the environment is not sent to an address that only
    a file names: somebody else may have written that file. `name` selects a context of the configuration
    file, in place of the files that are found otherwise.
    """
    environment = os.environ if environment is None else environment
    address, source, found = "", "", dict[str, str]()
    for layer in _layers(given, environment, start or Path.cwd(), name):
        if layer.problem is not None:
            if address:
                continue
            raise layer.problem
        if address and not _names(layer.values.get("address", address), address):
            continue
        if not address and "address" in layer.values:
            address, source = layer.values["address"], layer.source
            if layer.is_file:
                _refuse_bare_keys(given, environment, layer.source)
        found = _merge(found, layer.values)
    if not address:
        raise NoContext(_missing(environment, start))
    _check_addresses(found, source)
    _check_keys(found)
    return Context(**found, source=source)


def _missing(environment: Mapping[str, str], start: Path | None) -> str:
    from taskyard.local_instance import starting_instance

    if instance := starting_instance(environment, start):
        return (
            f"no server is configured yet: `taskyard up` (process {instance.pid}) is starting in"
            f" {instance.data_dir}; try again once it is ready"
        )
    return (
        "no server is configured: start one here with `make up` or `taskyard up`,"
        " sign in to one with `taskyard login`, or set TASKYARD_ADDRESS and TASKYARD_KEY"
    )


def _names(listed: str, address: str) -> bool:
    """Whether each replica of `address` is one of those that are listed."""
    return {one.strip() for one in address.split(",")} <= {one.strip() for one in listed.split(",")}


def _merge(found: Mapping[str, str], values: Mapping[str, str]) -> dict[str, str]:
    """The values of earlier layers, completed by those of the next one.

    The tenant and the administrator's key of a layer go with its key. A tenant that an earlier layer names,
    and that is not the one of the key, is only accessible to the administrator.
    """
    keyed = "key" in found
    own = {name: value for name, value in values.items() if not (keyed and name in ("admin_key", "tenant"))}
    merged = {**own, **found}
    admin_key = own.get("admin_key", "")
    foreign = "key" in own and found.get("tenant", own.get("tenant")) != own.get("tenant")
    return {**merged, "key": admin_key} if foreign and admin_key else merged


def _check_keys(found: Mapping[str, str]) -> None:
    for name in ("key", "admin_key"):
        if re.search(r"[^!-~]", found.get(name, "")):
            raise ContextError(
                f"the {name.replace('_', ' ')} contains a line break, a blank or another character that no"
                f" key has; correct {_ENVIRONMENT[name]} or the file that names it"
            )


def _check_addresses(found: Mapping[str, str], source: str) -> None:
    for name in ("address", "scheduler"):
        if not (value := found.get(name)):
            continue
        for one in [value] if value.startswith(("ipv4:", "ipv6:")) else value.split(","):
            match = _ADDRESS.fullmatch(one.strip())
            if match is None or int(match[4] or 1) not in range(1, 65536):
                variable = _ENVIRONMENT[name]
                raise ContextError(
                    f"{name} {one.strip()!r} (from {source}) is not host:port, such as 127.0.0.1:7420;"
                    f" correct {variable if source == 'TASKYARD_ADDRESS' else f'it, or set {variable}'}"
                )


def _layers(
    given: Mapping[str, str | None], environment: Mapping[str, str], start: Path, name: str
) -> Iterator[_Layer]:
    yield _Layer("argument", {name: value for name, value in given.items() if value})
    variables = {name: environment.get(variable, "") for name, variable in _ENVIRONMENT.items()}
    yield _Layer("TASKYARD_ADDRESS", {name: value for name, value in variables.items() if value})
    if name := name or environment.get(CONTEXT_VARIABLE, ""):
        yield _named_layer(config_file(environment), name)
        return
    for file in _files(environment, start):
        if file.is_file():
            yield _file_layer(file)


def _file_layer(file: Path) -> _Layer:
    if problem := distrust(file):
        return _Layer(str(file), {}, is_file=True, problem=ContextError(problem))
    values = _read(file)
    expired = _expired(file, values)
    return _Layer(str(file), {} if expired else values, is_file=True, problem=expired)


def _expired(source: object, values: Mapping[str, str]) -> ContextExpired | None:
    moment = values.get("expire_time", "")
    if not moment:
        return None
    try:
        found = datetime.fromisoformat(moment)
    except ValueError:
        found = None
    if found is None or found.tzinfo is None:
        raise ContextError(f"{source}: expire_time = {moment!r} is not of the form 2030-01-31T12:00:00Z")
    return (
        ContextExpired(f"{source} expired at {moment}; get a new one") if found <= datetime.now(UTC) else None
    )


def _named_layer(file: Path, name: str) -> _Layer:
    if file.is_file() and (problem := distrust(file)):
        return _Layer(str(file), {}, is_file=True, problem=ContextError(problem))
    contexts = read_config(file).contexts
    if name not in contexts:
        known = ", ".join(contexts) or "none"
        problem = f"{file} has no context {name!r}, only: {known}; add it with `taskyard login --name {name}`"
        return _Layer(str(file), {}, is_file=True, problem=ContextError(problem))
    source = f"context {name} of {file}"
    return _Layer(source, contexts[name], problem=_expired(source, contexts[name]))


def _refuse_bare_keys(given: Mapping[str, str | None], environment: Mapping[str, str], file: str) -> None:
    for name in ("key", "admin_key"):
        if environment.get(_ENVIRONMENT[name]) and not given.get(name):
            raise ContextError(
                f"{_ENVIRONMENT[name]} is set, but only {file} names a server, and it may be for another;"
                " set TASKYARD_ADDRESS as well"
            )


def distrust(file: Path) -> str:
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
    yield config_file(environment)
    yield default_data_dir(environment) / NEARBY_FILE.name


def default_data_dir(environment: Mapping[str, str]) -> Path:
    """The default data directory of `taskyard up`."""
    home = _home(environment)
    return Path(environment.get("XDG_DATA_HOME") or home / ".local" / "share") / "taskyard"


def patience_seconds(given: float | None) -> float:
    """How long a call waits out an outage: as given, else by the environment, else the default."""
    if given is not None:
        return given
    text = os.environ.get("TASKYARD_PATIENCE", "")
    try:
        return float(text) if text else PATIENCE_SECONDS
    except ValueError:
        raise ContextError(f"TASKYARD_PATIENCE {text!r} is not a number of seconds, such as 30") from None


def config_file(environment: Mapping[str, str] | None = None) -> Path:
    """The user's configuration file."""
    environment = os.environ if environment is None else environment
    folder = environment.get("XDG_CONFIG_HOME") or _home(environment) / ".config"
    return Path(folder) / "taskyard" / "config.toml"


def _home(environment: Mapping[str, str]) -> Path:
    return Path(environment.get("HOME") or "~").expanduser()


@dataclass(frozen=True)
class Config:
    """A configuration file: contexts by name, the current one, and values without a name."""

    contexts: Mapping[str, Mapping[str, str]]
    current: str = ""
    unnamed: Mapping[str, str] = field(default_factory=dict)


def read_config(file: Path) -> Config:
    """The configuration in a file, empty if there is none; raises ContextError if it is damaged."""
    # Loaded here: many programs have no such file.
    import tomllib

    try:
        values = tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return Config({})
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ContextError(f"{file} cannot be read ({error}); correct or remove it") from None
    contexts, current = values.pop("contexts", {}), values.pop("current", "")
    if not isinstance(contexts, dict) or not all(isinstance(one, dict) for one in contexts.values()):
        raise ContextError(f"{file}: contexts must be tables, such as [contexts.production]")
    if not isinstance(current, str) or (current and current not in contexts):
        raise ContextError(f"{file}: current = {current!r} names no context; use {', '.join(contexts)}")
    named = {name: _checked(one, f"{file}: contexts.{name}") for name, one in contexts.items()}
    return Config(named, current, _checked(values, str(file)))


def _read(file: Path) -> Mapping[str, str]:
    config = read_config(file)
    return config.contexts[config.current] if config.current else config.unnamed


def _checked(values: Mapping[str, Any], where: str) -> dict[str, str]:
    allowed = {f.name for f in fields(Context)} - {"source"}
    for name, value in values.items():
        if name not in allowed:
            raise ContextError(f"{where}: unknown setting {name!r}; use {', '.join(sorted(allowed))}")
        if not isinstance(value, str):
            raise ContextError(f"{where}: {name} = {value!r} must be a text in quotes")
    return {name: value for name, value in values.items() if value}
