"""The command support-bundle: versions, configuration, health, metrics and logs, without secrets."""

from __future__ import annotations

import asyncio
import io
import json
import os
import platform
import re
import tarfile
import time
import urllib.request
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

import click
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message

from taskyard import errors
from taskyard.cli.background import find_data_dir
from taskyard.cli.session import with_client
from taskyard.client import Client
from taskyard.context import ContextError
from taskyard.failover import split_addresses

TAIL_BYTES = 1024 * 1024
CALL_SECONDS = 30.0
FETCH_SECONDS = 5.0
# Where `taskyard up --metrics` serves.
METRICS = tuple(f"127.0.0.1:{port}" for port in range(9420, 9425))

_SECRET_NAME = re.compile(r"key|secret|password|token|credential|url|dsn", re.IGNORECASE)
_SECRETS = (
    # Keys of Taskyard, secrets of webhooks, passwords in URLs, and what follows a word that announces one.
    (re.compile(r"\bty_[A-Za-z0-9_-]{8,}"), "ty_…"),
    (re.compile(r"\bwhsec_[A-Za-z0-9+/=]+"), "whsec_…"),
    (re.compile(r"(://[^\s:/@]+):[^\s@]+@"), r"\1:…@"),
    (re.compile(r"\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{8,}", re.IGNORECASE), r"\1 …"),
    (
        re.compile(r"((?:password|secret|token|api_?key)[\"']?\s*[=:]\s*[\"']?)[^\s\"',;&]+", re.IGNORECASE),
        r"\1…",
    ),
)


@click.command("support-bundle")
@click.option(
    "--to",
    "target",
    type=click.Path(path_type=Path),
    help="The file.  [default: taskyard-support-TIME.tar.gz]",
)
@click.option("--log", "logs", type=click.Path(path_type=Path), multiple=True, help="A log file to include.")
@click.option(
    "--metrics", "endpoints", multiple=True, metavar="HOST:PORT", help="A metrics endpoint to read; several."
)
@click.option("--data-dir", type=click.Path(path_type=Path), help="Data directory of a `taskyard up`.")
@with_client
async def support_bundle(
    client: Client,
    target: Path | None,
    logs: tuple[Path, ...],
    endpoints: tuple[str, ...],
    data_dir: Path | None,
) -> int:
    """Collect what support needs, in one file.

    Versions, configuration, health, status, doctor, runners, metrics and the end of the logs. Keys,
    passwords and secrets are left out; look through the file before you send it. What cannot be read is
    listed in errors.txt. The logs of a `taskyard up` are found by its data directory.

    \b
    Examples:
      taskyard support-bundle
      taskyard support-bundle --log taskdb.log --metrics db1.example.com:9420
    """
    bundle = Bundle(secrets_of(client))
    bundle.add("versions.json", _versions())
    bundle.add("configuration.json", _configuration(client))
    for name, read in _calls(client).items():
        await bundle.collect(name, read)
    for endpoint in endpoints or METRICS:
        await bundle.collect(f"metrics/{_file_name(endpoint)}.txt", partial(_fetch, endpoint))
    for log in (*logs, *_own_logs(data_dir)):
        await bundle.collect(f"logs/{_file_name(str(log))}", partial(_tail, log))
    path = target or Path(time.strftime("taskyard-support-%Y%m%d-%H%M%S.tar.gz"))
    bundle.write(path)
    click.echo(
        f"{path}: {len(bundle.names)} files, without keys and passwords; look through it before sending."
    )
    return 0


class Bundle:
    """The files of a bundle; everything that is added has its secrets removed."""

    def __init__(self, secrets: Iterable[str]) -> None:
        self._secrets = sorted((secret for secret in secrets if len(secret) >= 6), key=len, reverse=True)
        self._files: dict[str, bytes] = {}
        self._errors: list[str] = []

    @property
    def names(self) -> list[str]:
        return sorted(self._files)

    def add(self, name: str, content: object) -> None:
        """Add a text, or a value as JSON."""
        text = content if isinstance(content, str) else json.dumps(content, indent=2, default=str)
        self._files[name] = scrubbed(text, self._secrets).encode()

    async def collect(self, name: str, read: Callable[[], Awaitable[object]]) -> None:
        """Add what `read` returns; a failure becomes a line of errors.txt."""
        try:
            self.add(name, await read())
        except (errors.TaskyardError, ContextError, OSError, ValueError, TimeoutError) as error:
            self._errors.append(f"{name}: {error}")

    def write(self, path: Path) -> None:
        """Write the archive, readable by its owner only."""
        if self._errors:
            self.add("errors.txt", "\n".join(self._errors) + "\n")
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as file, tarfile.open(fileobj=file, mode="w:gz") as archive:
            for name in self.names:
                member = tarfile.TarInfo(f"taskyard-support/{name}")
                member.size, member.mtime, member.mode = len(self._files[name]), int(time.time()), 0o600
                archive.addfile(member, io.BytesIO(self._files[name]))


def scrubbed(text: str, secrets: Iterable[str] = ()) -> str:
    """The text without known secrets, and without what looks like one."""
    for secret in secrets:
        text = text.replace(secret, "…")
    for pattern, replacement in _SECRETS:
        text = pattern.sub(replacement, text)
    return text


def secrets_of(client: Client) -> list[str]:
    """Secrets that this command has itself: keys of the context, and variables with a telling name."""
    found = [client.context.key, client.context.admin_key]
    found += [value for name, value in os.environ.items() if _is_secret(name)]
    return [secret for secret in found if secret]


def _is_secret(name: str) -> bool:
    return name.startswith(("TASKYARD_", "OTEL_", "PG")) and _SECRET_NAME.search(name) is not None


def _versions() -> dict[str, Any]:
    installed = {each.metadata["Name"]: each.version for each in distributions()}
    return {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "packages": dict(sorted((name, version) for name, version in installed.items() if name)),
    }


def _configuration(client: Client) -> dict[str, Any]:
    context = client.context
    variables = {name: value for name, value in os.environ.items() if name.startswith(("TASKYARD_", "OTEL_"))}
    return {
        "source": context.source,
        "address": context.address,
        "scheduler": context.scheduler,
        "gateway": context.gateway,
        "tenant": context.tenant,
        "key": "set" if context.key else "not set",
        "admin_key": "set" if context.admin_key else "not set",
        "environment": {name: "set" if _is_secret(name) else value for name, value in variables.items()},
    }


def _calls(client: Client) -> dict[str, Callable[[], Awaitable[object]]]:
    async def health() -> object:
        addresses = (
            *split_addresses(client.context.address),
            *split_addresses(client.context.scheduler or "-"),
        )
        return {address: await client.server_state(address) for address in addresses if address != "-"}

    async def status() -> object:
        return _shown(await client.admin.system_status(timeout=CALL_SECONDS))

    async def doctor() -> object:
        return _shown(await client.admin.doctor())

    async def runners() -> object:
        return [_shown(runner) async for runner in client.admin.runners()]

    found = {"health": health, "status": status, "doctor": doctor, "runners": runners}
    return {f"{name}.json": _within(read) for name, read in found.items()}


def _within(read: Callable[[], Awaitable[object]]) -> Callable[[], Awaitable[object]]:
    async def bounded() -> object:
        async with asyncio.timeout(CALL_SECONDS):
            return await read()

    return bounded


def _shown(message: Message) -> object:
    return MessageToDict(message)


async def _fetch(endpoint: str) -> str:
    def read() -> str:
        with urllib.request.urlopen(f"http://{endpoint}/metrics", timeout=FETCH_SECONDS) as response:
            return str(response.read().decode(errors="replace"))

    return await asyncio.to_thread(read)


async def _tail(path: Path) -> str:
    def read() -> str:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - TAIL_BYTES))
            return file.read().decode(errors="replace")

    return await asyncio.to_thread(read)


def _own_logs(data_dir: Path | None) -> list[Path]:
    folder = find_data_dir(data_dir, Path(".taskyard")) / "logs"
    return sorted(folder.glob("*.log"))


def _file_name(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("-")
