"""The command taskyard-taskdb and its subcommands."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn, TextIO

import psycopg

from taskyard.errors import TaskyardError
from taskyard_kit.keys import ApiKey
from taskyard_kit.run import run
from taskyard_kit.settings import load_or_exit
from taskyard_taskdb.settings import (
    CreateKeySetSettings,
    CreateKeySettings,
    MaintenanceSettings,
    MigrateSettings,
    RestoredSettings,
    ServerSettings,
    VerifyAuditSettings,
)
from taskyard_taskdb.storage import migrate
from taskyard_taskdb.storage.pool import Pool, PoolOptions
from taskyard_taskdb.storage.tenant import api_keys

USAGE = """usage: taskyard-taskdb COMMAND [--help]

  serve             serve the task database over gRPC
  migrate           bring the database to this version's schema
  keys create       make an API key and print it
  keys create-set   make an API key of each kind and print them
  audit verify      check the change log against its seals
  restored          make a restored backup ready to serve
  maintenance       run a maintenance job now, or list the jobs
"""


def main(argv: Sequence[str] | None = None) -> NoReturn:
    """Run a command and exit: 0 done, 1 failed, 2 wrong arguments."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if not arguments or arguments[0] in ("--help", "-h", "help"):
        sys.stdout.write(USAGE)
        sys.exit(0 if arguments else 2)
    for words, command in _COMMANDS.items():
        if tuple(arguments[: len(words)]) == words:
            command(arguments[len(words) :])
            sys.exit(0)
    sys.stderr.write(f"taskyard-taskdb: unknown command {' '.join(arguments[:2])!r}\n{USAGE}")
    sys.exit(2)


def _serve(argv: Sequence[str]) -> None:
    # Imported here, so that other commands do not load the services; the same below.
    from taskyard_taskdb.server import serve

    run(ServerSettings, serve, argv)


def _migrate(argv: Sequence[str]) -> None:
    settings = load_or_exit(MigrateSettings, argv, _environment())
    try:
        if settings.downgrade:
            revision = migrate.downgrade(settings.direct_url, settings.downgrade)
        else:
            revision = migrate.upgrade(settings.direct_url, _report)
    except migrate.SchemaError as error:
        _fail(str(error))
    sys.stdout.write(f"schema {revision}\n")


def _report(line: str) -> None:
    print(f"taskyard-taskdb: {line}", file=sys.stderr, flush=True)


def _create_key(argv: Sequence[str]) -> None:
    settings = load_or_exit(CreateKeySettings, argv, _environment())
    written = _private_file(settings.to) if settings.to is not None else sys.stdout
    try:
        migrate.check(settings.direct_url)
        key, stored = _new_key(settings.kind, settings.id, settings.tenant)
        stored = replace(stored, read_only=settings.read_only, description=settings.description)
        asyncio.run(_store_keys(settings.direct_url, [stored]))
    except (migrate.SchemaError, TaskyardError) as error:
        if settings.to is not None:
            settings.to.unlink()
        _fail(str(error))
    written.write(f"{key.text}\n")
    written.flush()


def _private_file(path: Path) -> TextIO:
    """A new file for its owner alone, whatever the umask."""
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        _fail(f"--to {path}: {error.strerror}; name a new file")
    return open(fd, "w", encoding="utf-8")


def _create_key_set(argv: Sequence[str]) -> None:
    settings = load_or_exit(CreateKeySetSettings, argv, _environment())
    made = {kind: _new_key(kind, f"up{kind}{settings.suffix}", settings.tenant) for kind in _KINDS}
    try:
        migrate.check(settings.direct_url)
        asyncio.run(_store_keys(settings.direct_url, [stored for _, stored in made.values()]))
    except (migrate.SchemaError, TaskyardError) as error:
        _fail(str(error))
    sys.stdout.writelines(f'{kind} = "{key.text}"\n' for kind, (key, _) in made.items())


def _new_key(kind: str, id_: str, tenant: str) -> tuple[ApiKey, api_keys.StoredKey]:
    made = ApiKey.make()
    key = ApiKey(id_ or made.id, made.secret)
    return key, api_keys.StoredKey(
        key.id, _KINDS[kind], key.digest, tenant_id=tenant if kind == "tenant" else None
    )


async def _store_keys(database_url: str, made: Sequence[api_keys.StoredKey]) -> None:
    async def insert(tx: Any) -> None:
        for key in made:
            await api_keys.insert_key(tx, key)

    pool = Pool(database_url, PoolOptions(size=1, reserve=1))
    await pool.open()
    try:
        await pool.run(insert)
    finally:
        await pool.close()


def _verify_audit(argv: Sequence[str]) -> None:
    from taskyard_taskdb import operator_commands

    settings = load_or_exit(VerifyAuditSettings, argv, _environment())
    try:
        migrate.check(settings.direct_url)
        findings = asyncio.run(operator_commands.verify_audit(settings))
    except (migrate.SchemaError, TaskyardError) as error:
        _fail(str(error))
    for finding in findings:
        sys.stdout.write(f"{finding.message}\n")
    if findings:
        places = "1 place" if len(findings) == 1 else f"{len(findings)} places"
        _fail(f"the change log differs from its seals in {places}")
    sys.stdout.write("the change log matches its seals\n")


def _restored(argv: Sequence[str]) -> None:
    from taskyard_taskdb import operator_commands

    settings = load_or_exit(RestoredSettings, argv, _environment())
    try:
        migrate.check(settings.direct_url)
        done = asyncio.run(operator_commands.restored(settings))
    except (migrate.SchemaError, TaskyardError) as error:
        _fail(str(error))
    sys.stdout.write(
        f"restore epoch {done.epoch}; sessions ended: {done.sessions}, leases ended: {done.leases}\n"
    )


def _maintain(argv: Sequence[str]) -> None:
    from taskyard_taskdb.operator_commands import maintain
    from taskyard_taskdb.sweep.jobs import JobAlreadyRunning

    settings = load_or_exit(MaintenanceSettings, argv, _environment())
    try:
        migrate.check(settings.direct_url)
        sys.stdout.write(asyncio.run(maintain(settings)))
    except (migrate.SchemaError, TaskyardError, JobAlreadyRunning, psycopg.Error) as error:
        _fail(str(error))


def _environment() -> dict[str, str]:
    # The server's own variables may be set as well; these commands ignore them.
    return {name: value for name, value in os.environ.items() if not name.startswith("TASKYARD_TASKDB_")}


def _fail(line: str) -> NoReturn:
    sys.stderr.write(f"taskyard-taskdb: {line}\n")
    sys.exit(1)


_KINDS = {
    "admin": api_keys.ADMIN,
    "tenant": api_keys.TENANT,
    "scheduler": api_keys.SCHEDULER,
    "runner": api_keys.RUNNER,
}
_COMMANDS: dict[tuple[str, ...], Callable[[Sequence[str]], None]] = {
    ("serve",): _serve,
    ("migrate",): _migrate,
    ("keys", "create"): _create_key,
    ("keys", "create-set"): _create_key_set,
    ("audit", "verify"): _verify_audit,
    ("restored",): _restored,
    ("maintenance",): _maintain,
}

if __name__ == "__main__":
    main()
