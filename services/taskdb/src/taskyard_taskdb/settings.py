"""The settings of taskdb's commands."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Literal

from taskyard_kit.serve import ServeSettings
from taskyard_kit.settings import Problem, Settings, setting
from taskyard_kit.telemetry import TelemetrySettings
from taskyard_taskdb.access_policy import MAX_BATCH_BYTES
from taskyard_taskdb.domain.egress import Egress
from taskyard_taskdb.storage.pool import PoolOptions

AUDIT_AGE = timedelta(days=365)
RUNNER_AGE = timedelta(days=7)


@dataclass(frozen=True)
class JobOptions:
    """Settings of the maintenance jobs; the hour is in UTC."""

    archive_untyped: bool = True
    audit_age: timedelta = AUDIT_AGE
    runner_age: timedelta = RUNNER_AGE
    hour: int = 3


DATABASE_URL = "TASKYARD_DATABASE_URL"


class DatabaseSettings(Settings):
    """The address of the database."""

    service = "taskdb"
    database_url: str = setting(
        env=DATABASE_URL, help="PostgreSQL 15 or newer, like postgresql://user@host:5432/taskyard"
    )
    database_direct_url: str = setting(
        "",
        env="TASKYARD_DATABASE_DIRECT_URL",
        help="PostgreSQL past a pooler; if given, database_url is a pooler in transaction mode",
    )

    def check(self) -> Iterator[Problem]:
        yield from super().check()
        for name, url in (("database_url", self.database_url), ("direct_url", self.direct_url)):
            if not url.startswith(("postgresql://", "postgres://")):
                yield Problem(name, "…", "must begin with postgresql://")
        if self.direct_url == self.database_url and self.database_direct_url:
            yield Problem("database_direct_url", "…", "must lead past the pooler of database_url")

    @property
    def direct_url(self) -> str:
        """The address for LISTEN, migrations and commands: past the pooler, if there is one."""
        return self.database_direct_url or self.database_url


class JobSettings(DatabaseSettings):
    """The settings of the maintenance jobs."""

    archive: bool = setting(
        True, help="archive tasks without a task type after their retention; if false, delete them"
    )
    audit_retention: timedelta = setting(
        AUDIT_AGE, min=timedelta(days=1), help="how long the change log, which is the audit, is kept"
    )
    dead_runner_retention: timedelta = setting(
        RUNNER_AGE, min=timedelta(minutes=1), help="how long a dead runner is listed"
    )
    maintenance_hour: int = setting(3, min=0, max=23, help="hour of UTC at which nightly jobs run")

    def job_options(self) -> JobOptions:
        """Return the options of the maintenance jobs."""
        return JobOptions(
            archive_untyped=self.archive,
            audit_age=self.audit_retention,
            runner_age=self.dead_runner_retention,
            hour=self.maintenance_hour,
        )


class ServerSettings(JobSettings, ServeSettings, TelemetrySettings):
    """`taskyard-taskdb serve`."""

    about = "Serve the task database over gRPC."

    listen: str = setting("127.0.0.1:7420", help="host:port or unix:/path to serve gRPC on")
    max_message_bytes: int = setting(
        MAX_BATCH_BYTES,
        min=64 * 1024,
        max=64 * 1024 * 1024,
        help="largest BatchCreateTasks in bytes, at most 16 MiB; other requests have at most 4 MiB",
    )
    pool_size: int = setting(8, min=2, max=200, help="database connections for work")
    pool_reserve: int = setting(2, min=1, max=50, help="database connections kept for heartbeats")
    pool_queries: int = setting(4, min=1, max=50, help="database connections for lists, statistics and audit")
    pool_timeout: timedelta = setting(
        timedelta(seconds=5), min=timedelta(milliseconds=10), help="longest wait for a free connection"
    )
    statement_timeout: timedelta = setting(
        timedelta(seconds=30), min=timedelta(milliseconds=100), help="longest time for one SQL statement"
    )
    lock_timeout: timedelta = setting(
        timedelta(seconds=2), min=timedelta(milliseconds=10), help="longest wait for one row lock"
    )
    idle_in_transaction_timeout: timedelta = setting(
        timedelta(seconds=15),
        min=timedelta(milliseconds=100),
        help="longest pause within a transaction; then PostgreSQL ends it and releases its locks",
    )
    housekeeping: bool = setting(True, help="take part in the election of the leader that runs housekeeping")
    leader_ttl: timedelta = setting(
        timedelta(seconds=10),
        min=timedelta(seconds=1),
        max=timedelta(minutes=1),
        help="term of the leader, renewed at half time; after a crash another replica leads once it ends",
    )
    reap_grace: timedelta = setting(
        timedelta(seconds=40),
        help="how long a new leader expires no lease; at least a session's lease and a heartbeat",
    )
    webhook_networks: str = setting(
        "", help="non-public networks that webhooks may reach, separated by commas"
    )
    webhook_timeout: timedelta = setting(
        timedelta(seconds=10), min=timedelta(milliseconds=100), help="longest wait for a receiver's response"
    )
    webhook_give_up: timedelta = setting(
        timedelta(days=3), min=timedelta(minutes=1), help="how long the delivery of a webhook is retried"
    )

    def check(self) -> Iterator[Problem]:
        yield from super().check()
        try:
            self.egress()
        except ValueError as error:
            yield Problem("webhook_networks", self.webhook_networks, f"must be networks: {error}")

    def egress(self) -> Egress:
        """Return the addresses that webhooks may reach."""
        return Egress.parse(self.webhook_networks)

    def pool_options(self) -> PoolOptions:
        """Return the options of the connection pool."""
        return PoolOptions(
            pooled=bool(self.database_direct_url),
            size=self.pool_size,
            reserve=self.pool_reserve,
            queries=self.pool_queries,
            acquire_timeout=self.pool_timeout,
            statement_timeout=self.statement_timeout,
            lock_timeout=self.lock_timeout,
            idle_in_transaction_timeout=self.idle_in_transaction_timeout,
        )


class MigrateSettings(DatabaseSettings):
    """`taskyard-taskdb migrate`."""

    about = "Migrate the database to this version's schema."

    downgrade: str = setting("", help="undo migrations down to this revision instead; base undoes all")


class CreateKeySettings(DatabaseSettings):
    """`taskyard-taskdb keys create`."""

    about = "Make an API key and print it; it cannot be shown again."

    kind: Literal["admin", "tenant", "scheduler", "runner"] = setting(
        help="admin, tenant, scheduler or runner"
    )
    tenant: str = setting("", help="tenant of a tenant key; ignored for other kinds")
    id: str = setting("", help="id of the key, 4 to 32 of a-z and 0-9; generated if empty")
    read_only: bool = setting(False, help="a tenant key that may only read")
    description: str = setting("", help="what the key is for")
    to: Path | None = setting(None, help="new file to write it to, which only its owner can read")

    def check(self) -> Iterator[Problem]:
        yield from super().check()
        if self.kind == "tenant" and not self.tenant:
            yield Problem("tenant", "", "a tenant key needs --tenant")
        if self.read_only and self.kind != "tenant":
            yield Problem("read_only", "true", "is for tenant keys only")
        if self.id and not (4 <= len(self.id) <= 32 and self.id.isascii() and _is_lower_alnum(self.id)):
            yield Problem("id", self.id, "must be 4 to 32 of a-z and 0-9")


class CreateKeySetSettings(DatabaseSettings):
    """`taskyard-taskdb keys create-set`."""

    about = "Make one API key of each kind and print them as TOML; they cannot be shown again."

    tenant: str = setting(help="tenant of the tenant key")
    suffix: str = setting(help="the keys' ids are up, the kind and this: 1 to 16 of a-z and 0-9")

    def check(self) -> Iterator[Problem]:
        yield from super().check()
        if not (1 <= len(self.suffix) <= 16 and self.suffix.isascii() and _is_lower_alnum(self.suffix)):
            yield Problem("suffix", self.suffix, "must be 1 to 16 of a-z and 0-9")


class VerifyAuditSettings(DatabaseSettings):
    """`taskyard-taskdb audit verify`."""

    about = "Compare the change log with its seals; prints each difference and then exits with code 1."

    after: int = setting(0, min=0, help="only changes above this id")
    seal: str = setting("", help="a seal that must still exist, as last_id:hash from the log of taskdb")

    @property
    def expected_seal(self) -> tuple[int, bytes] | None:
        """Return the seal of --seal, None without one."""
        if not self.seal:
            return None
        last_id, _, digest = self.seal.partition(":")
        return int(last_id), bytes.fromhex(digest)

    def check(self) -> Iterator[Problem]:
        yield from super().check()
        try:
            expected = self.expected_seal
        except ValueError:
            expected = (0, b"")
        if expected is not None and len(expected[1]) != 32:
            yield Problem("seal", self.seal, "must be an id, a colon and 64 hexadecimal digits")


class RestoredSettings(DatabaseSettings):
    """`taskyard-taskdb restored`."""

    about = "Prepare a restored backup for service: run it once, before taskdb is started on it."

    grace: timedelta = setting(
        timedelta(seconds=60),
        min=timedelta(0),
        help="how long tasks that were leased cannot be claimed; at least the longest lease of a runner",
    )


def _is_lower_alnum(text: str) -> bool:
    return text.isalnum() and text == text.lower()


class MaintenanceSettings(JobSettings):
    """`taskyard-taskdb maintenance`."""

    about = "Run a maintenance job now, while the services run."

    job: str = setting("", help="name of the job; --list shows them")
    once: bool = setting(False, help="run it now, once, to its end")
    list: bool = setting(False, help="list the jobs and the outcome of their last runs")

    def check(self) -> Iterator[Problem]:
        yield from super().check()
        if not self.list and not (self.job and self.once):
            yield Problem("job", self.job, "name a job and add --once, or use --list")
