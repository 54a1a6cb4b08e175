"""The parts of a Taskyard on one machine: which there are, what they depend on, how they start and stop."""

import asyncio
import time
import tomllib
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial

from taskyard_standalone.database import Database, inspect
from taskyard_standalone.datadir import DataDirectory
from taskyard_standalone.errors import Killed, ServiceError
from taskyard_standalone.keys import DevelopmentKeys, MakeKeys, ensure_keys
from taskyard_standalone.logs import LogFile
from taskyard_standalone.ports import claim_port
from taskyard_standalone.postgres import EmbeddedPostgres, PostgresOptions
from taskyard_standalone.process import Ended, Program, run_to_end
from taskyard_standalone.programs import RUNNER_ID, TENANT
from taskyard_standalone.readiness import until_answered, until_logged, until_serving
from taskyard_standalone.service import Service, ServiceSpec
from taskyard_standalone.settings import (
    GATEWAY_METRICS_PORT,
    RUNNER_METRICS_PORT,
    SCHEDULER_METRICS_PORT,
    TASKDB_METRICS_PORT,
    UpSettings,
)
from taskyard_standalone.supervision import (
    Announce,
    Part,
    RestartBudget,
    keep_alive,
    repeat_if_killed,
    start,
)

_ROTATE_SECONDS = 30.0
# A stop that takes longer is explained.
_WAIT_SECONDS = 1.0
# A step of the start that takes longer is reported again and again.
_PROGRESS_SECONDS = 2.0


@dataclass(frozen=True)
class Addresses:
    """Where the services listen, as host:port."""

    taskdb: str
    scheduler: str
    gateway: str
    global_tasks: str | None = None


class Yard:
    """Starts the parts in order, keeps them alive, and stops them in the reverse order."""

    def __init__(self, settings: UpSettings, data: DataDirectory, announce: Announce) -> None:
        self._settings = settings
        self._data = data
        self._announce = announce
        self._database_ready = asyncio.Event()
        self.parts: list[Part] = []
        # Each restarts its part whenever the part ends.
        self._keepers: list[asyncio.Future[None]] = []
        self.addresses: Addresses | None = None

    async def start(self) -> None:
        """Returns once everything serves and the context file is written; raises StandaloneError."""
        addresses = await self._claim_addresses()
        url, database = await self._start_database()
        async with self._progress("schema", "migrating"):
            await repeat_if_killed(partial(self._migrate, url), self._budget())
        async with self._progress("keys", "creating"):
            make = partial(ensure_keys, self._data, database.identity, self._key_maker(url))
            keys = await repeat_if_killed(make, self._budget())
        for together in self._services(addresses, url, keys):
            await self._start_together(together, addresses)
        self.addresses = addresses
        self._write_context(addresses, keys)

    async def keep(self) -> None:
        """Never returns; raises StandaloneError when a part cannot be kept alive."""
        self._keepers.append(asyncio.ensure_future(self._rotate_logs()))
        await asyncio.gather(*self._keepers)

    async def stop(self, hurry: asyncio.Event) -> None:
        """Ends every part that was started, the one that others depend on last."""
        for keeper in self._keepers:
            keeper.cancel()
        await asyncio.gather(*self._keepers, return_exceptions=True)
        while self.parts:
            part = self.parts.pop()
            reporting = asyncio.ensure_future(self._report_wait(part, hurry))
            try:
                await part.stop(hurry)
            finally:
                reporting.cancel()
            self._announce(f"  {part.name} stopped")

    async def _report_wait(self, part: Part, hurry: asyncio.Event) -> None:
        """Says what a stop waits for that takes a while, and that a second signal ends it."""
        await asyncio.sleep(_WAIT_SECONDS)
        reason = part.awaits()
        waits = f"for {reason}" if reason else "for the calls in flight"
        hint = "" if hurry.is_set() else "; Ctrl-C once more ends it now"
        self._announce(f"  {part.name} waits {waits}{hint}")

    async def _claim_addresses(self) -> Addresses:
        host = self._settings.host
        taskdb = await claim_port(host, self._settings.taskdb_port, "--taskdb-port")
        scheduler = await claim_port(host, self._settings.scheduler_port, "--scheduler-port")
        gateway = await claim_port(host, self._settings.gateway_port, "--gateway-port")
        named = Addresses(_address(host, taskdb), _address(host, scheduler), _address(host, gateway))
        if not self._settings.global_tasks:
            return named
        keyless = await claim_port(host, self._settings.global_tasks_port, "--global-tasks-port")
        return replace(named, global_tasks=_address(host, keyless))

    async def _start_database(self) -> tuple[str, Database]:
        if self._settings.database_url is not None:
            async with self._progress("postgresql", "connecting"):
                database = await inspect(self._settings.database_url)
            self._report("postgresql", f"{database.server_version}, by --database-url")
            self._database_ready.set()
            return self._settings.database_url, database
        options = PostgresOptions(user=self._settings.postgres_user)
        postgres = EmbeddedPostgres(self._data, options, self._announce)
        self._database_ready = postgres.ready
        seconds = await self._start_part(postgres)
        self._report("postgresql", f"{postgres.version}, psql '{postgres.url()}' ({seconds:.1f} s)")
        return postgres.url(), await inspect(postgres.url())

    async def _migrate(self, url: str) -> None:
        ended = await run_to_end(self._settings.programs.migrate(url))
        if ended.code != 0:
            raise _failed(ended, f"the database could not be migrated: {ended.last_complaint}")

    def _key_maker(self, url: str) -> MakeKeys:
        async def make(suffix: str) -> Mapping[str, str]:
            ended = await run_to_end(self._settings.programs.create_keys(url, suffix))
            if ended.code != 0:
                raise _failed(ended, f"the keys could not be made: {ended.last_complaint}")
            return tomllib.loads(ended.output)

        return make

    def _services(self, addresses: Addresses, url: str, keys: DevelopmentKeys) -> list[list[ServiceSpec]]:
        """What is started one after the other, and together where neither needs the other."""
        programs, metrics = self._settings.programs, self._metrics_address
        taskdb = programs.serve_taskdb(addresses.taskdb, url, metrics(TASKDB_METRICS_PORT))
        scheduler = programs.serve_scheduler(
            addresses.scheduler, addresses.taskdb, keys.scheduler, metrics(SCHEDULER_METRICS_PORT)
        )
        gateway = programs.serve_gateway(
            addresses.gateway,
            addresses.taskdb,
            addresses.scheduler,
            keys.tenant,
            metrics(GATEWAY_METRICS_PORT),
            addresses.global_tasks,
        )
        answers = partial(_until_answered, addresses.gateway)
        last = [ServiceSpec("gateway", gateway, answers)]
        if self._settings.runner:
            runner = programs.serve_runner(
                addresses.scheduler, self._data.runner, keys.runner, metrics(RUNNER_METRICS_PORT)
            )
            # The runner has no port; its log shows when the scheduler has accepted it.
            connected = partial(until_logged, "session_opened")
            last.append(ServiceSpec("runner", runner, connected, stop_seconds=30.0))
        return [
            [_server("taskdb", taskdb, addresses.taskdb)],
            [_server("scheduler", scheduler, addresses.scheduler)],
            last,
        ]

    def _metrics_address(self, port: int) -> str | None:
        return _address(self._settings.host, port) if self._settings.metrics else None

    async def _start_together(self, specs: Sequence[ServiceSpec], addresses: Addresses) -> None:
        """Starts services that do not need each other; they are reported in their order."""
        services = [Service(spec, self._data.log(spec.name), self._database_ready) for spec in specs]
        starting = [asyncio.ensure_future(self._start_part(service)) for service in services]
        try:
            took = await asyncio.gather(*starting)
        finally:
            for start in starting:
                start.cancel()
            await asyncio.gather(*starting, return_exceptions=True)
        for service, seconds in zip(services, took, strict=True):
            self._report(service.name, f"{_place(service.name, addresses)} ({seconds:.1f} s)")

    async def _start_part(self, part: Part) -> float:
        """The seconds that it took."""
        began = time.monotonic()
        # Noted first: a start that is interrupted leaves something to stop.
        self.parts.append(part)
        budget = self._budget()
        async with self._progress(part.name, "starting"):
            await start(part, budget, self._announce)
        self._keepers.append(asyncio.ensure_future(keep_alive(part, budget, self._announce)))
        return time.monotonic() - began

    @asynccontextmanager
    async def _progress(self, name: str, activity: str) -> AsyncIterator[None]:
        """Reports every few seconds that the block still runs, and for how long."""

        async def report() -> None:
            began = time.monotonic()
            while True:
                await asyncio.sleep(_PROGRESS_SECONDS)
                self._report(name, f"{activity} ({time.monotonic() - began:.0f} s)")

        reporting = asyncio.ensure_future(report())
        try:
            yield
        finally:
            reporting.cancel()

    def _budget(self) -> RestartBudget:
        return RestartBudget(self._settings.restart_limit)

    def _report(self, name: str, text: str) -> None:
        self._announce(f"  {name:<11} {text}")

    def _write_context(self, addresses: Addresses, keys: DevelopmentKeys) -> None:
        values = {
            "address": addresses.taskdb,
            "scheduler": addresses.scheduler,
            "gateway": f"http://{addresses.gateway}",
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


def _failed(ended: Ended, message: str) -> ServiceError:
    return Killed(message) if ended.code < 0 else ServiceError(message)


def _server(name: str, program: Program, address: str) -> ServiceSpec:
    return ServiceSpec(name, program, lambda log, since: until_serving(address))


def _address(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _place(name: str, addresses: Addresses) -> str:
    places = {
        "taskdb": addresses.taskdb,
        "scheduler": addresses.scheduler,
        "gateway": f"http://{addresses.gateway}",
        "runner": RUNNER_ID,
    }
    return places[name]


async def _until_answered(address: str, log: LogFile, since: int) -> None:
    await until_answered(address)
