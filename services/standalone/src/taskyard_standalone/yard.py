"""The parts of a Taskyard on one machine: which there are, what they depend on, how they start and stop."""

import asyncio
import time
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from taskyard_standalone.database import Database, inspect
from taskyard_standalone.datadir import DataDirectory
from taskyard_standalone.errors import ServiceError
from taskyard_standalone.keys import DevelopmentKeys, MakeKeys, ensure_keys
from taskyard_standalone.ports import claim_port
from taskyard_standalone.postgres import EmbeddedPostgres, PostgresOptions
from taskyard_standalone.process import Program, run_to_end
from taskyard_standalone.programs import RUNNER_ID, TENANT
from taskyard_standalone.readiness import until_logged, until_serving
from taskyard_standalone.service import Service, ServiceSpec
from taskyard_standalone.settings import (
    RUNNER_METRICS_PORT,
    SCHEDULER_METRICS_PORT,
    TASKDB_METRICS_PORT,
    UpSettings,
)
from taskyard_standalone.supervision import Announce, Part, RestartBudget, keep_alive

_ROTATE_SECONDS = 30.0


@dataclass(frozen=True)
class Addresses:
    """Where the services listen, as host:port."""

    taskdb: str
    scheduler: str


class Yard:
    """Starts the parts in order, keeps them alive, and stops them in the reverse order."""

    def __init__(self, settings: UpSettings, data: DataDirectory, announce: Announce) -> None:
        self._settings = settings
        self._data = data
        self._announce = announce
        self._database_ready = asyncio.Event()
        self.parts: list[Part] = []

    async def start(self) -> None:
        """Returns once everything serves and the context file is written; raises StandaloneError."""
        addresses = await self._claim_addresses()
        url, database = await self._start_database()
        await self._migrate(url)
        keys = await ensure_keys(self._data, database.identity, self._key_maker(url))
        for spec in self._services(addresses, url, keys):
            service = Service(spec, self._data.log(spec.name), self._database_ready)
            await self._start_part(service, partial(_place, spec.name, addresses))
        self._write_context(addresses, keys)

    async def keep(self) -> None:
        """Restarts what ends; raises StandaloneError when a part cannot be kept alive."""
        keepers = [
            asyncio.ensure_future(
                keep_alive(part, RestartBudget(self._settings.restart_limit), self._announce)
            )
            for part in self.parts
        ]
        keepers.append(asyncio.ensure_future(self._rotate_logs()))
        try:
            await asyncio.gather(*keepers)
        finally:
            for keeper in keepers:
                keeper.cancel()
            await asyncio.gather(*keepers, return_exceptions=True)

    async def stop(self, hurry: asyncio.Event) -> None:
        """Ends every part that was started, the one that others depend on last."""
        while self.parts:
            part = self.parts.pop()
            await part.stop(hurry)
            self._announce(f"  {part.name} stopped")

    async def _claim_addresses(self) -> Addresses:
        host = self._settings.host
        taskdb = await claim_port(host, self._settings.taskdb_port, "--taskdb-port")
        scheduler = await claim_port(host, self._settings.scheduler_port, "--scheduler-port")
        return Addresses(_address(host, taskdb), _address(host, scheduler))

    async def _start_database(self) -> tuple[str, Database]:
        if self._settings.database_url is not None:
            database = await inspect(self._settings.database_url)
            self._report("postgresql", f"{database.server_version}, by --database-url")
            self._database_ready.set()
            return self._settings.database_url, database
        options = PostgresOptions(user=self._settings.postgres_user)
        postgres = EmbeddedPostgres(self._data, options, self._announce)
        self._database_ready = postgres.ready
        await self._start_part(postgres, lambda: f"{postgres.version}, psql '{postgres.url()}'")
        return postgres.url(), await inspect(postgres.url())

    async def _migrate(self, url: str) -> None:
        ended = await run_to_end(self._settings.programs.migrate(url))
        if ended.code != 0:
            raise ServiceError(f"the database could not be migrated: {ended.last_complaint}")

    def _key_maker(self, url: str) -> MakeKeys:
        async def make(suffix: str) -> Mapping[str, str]:
            ended = await run_to_end(self._settings.programs.create_keys(url, suffix))
            if ended.code != 0:
                raise ServiceError(f"the keys could not be made: {ended.last_complaint}")
            return tomllib.loads(ended.output)

        return make

    def _services(self, addresses: Addresses, url: str, keys: DevelopmentKeys) -> list[ServiceSpec]:
        programs, metrics = self._settings.programs, self._metrics_address
        taskdb = programs.serve_taskdb(addresses.taskdb, url, metrics(TASKDB_METRICS_PORT))
        scheduler = programs.serve_scheduler(
            addresses.scheduler, addresses.taskdb, keys.scheduler, metrics(SCHEDULER_METRICS_PORT)
        )
        services = [_server("taskdb", taskdb, addresses.taskdb)]
        services.append(_server("scheduler", scheduler, addresses.scheduler))
        if self._settings.runner:
            runner = programs.serve_runner(
                addresses.scheduler, self._data.runner, keys.runner, metrics(RUNNER_METRICS_PORT)
            )
            # The runner has no port; its log shows when the scheduler has accepted it.
            connected = partial(until_logged, "session_opened")
            services.append(ServiceSpec("runner", runner, connected, stop_seconds=30.0))
        return services

    def _metrics_address(self, port: int) -> str | None:
        return _address(self._settings.host, port) if self._settings.metrics else None

    async def _start_part(self, part: Part, describe: Callable[[], str]) -> None:
        began = time.monotonic()
        # Noted first: a start that is interrupted leaves something to stop.
        self.parts.append(part)
        await part.start()
        self._report(part.name, f"{describe()} ({time.monotonic() - began:.1f} s)")

    def _report(self, name: str, text: str) -> None:
        self._announce(f"  {name:<11} {text}")

    def _write_context(self, addresses: Addresses, keys: DevelopmentKeys) -> None:
        values = {
            "address": addresses.taskdb,
            "scheduler": addresses.scheduler,
            "key": keys.tenant,
            "admin_key": keys.admin,
            "tenant": TENANT,
        }
        text = "".join(f'{name} = "{value}"\n' for name, value in values.items())
        self._data.write_private(self._data.context, text)

    async def _rotate_logs(self) -> None:
        while True:
            await asyncio.sleep(_ROTATE_SECONDS)
            for part in self.parts:
                self._data.log(part.name).rotate()


def _server(name: str, program: Program, address: str) -> ServiceSpec:
    return ServiceSpec(name, program, lambda log, since: until_serving(address))


def _address(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _place(name: str, addresses: Addresses) -> str:
    return {"taskdb": addresses.taskdb, "scheduler": addresses.scheduler, "runner": RUNNER_ID}[name]
