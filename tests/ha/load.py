"""Load on the suite over a failover: creators, a watch and a followed log, and what is checked afterwards."""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import psycopg

from services.runner.tests.runner_process import RunnerProcess
from taskyard import Client, EventType, NewTask, command, errors
from taskyard_taskdb.storage import migrate
from tests.ha.patroni import Cluster, wait_for
from tests.harness.control_plane import ControlPlane, make_keys
from tests.harness.invariants import assert_invariants
from tests.harness.logged_changes import LOGGED

CREATORS = 4
PAUSE_SECONDS = 0.05
LINES = 200
SETTLE_SECONDS = 180.0


@dataclass
class Suite:
    """Two taskdbs, a scheduler and a runner over a cluster."""

    plane: ControlPlane
    cluster: Cluster
    # Each run of a task appends the task's id.
    effects: Path

    @property
    def addresses(self) -> str:
        return ",".join(service.address for service in self.plane.taskdbs)

    def client(self, kind: str = "tenant") -> Client:
        """A client with both addresses."""
        return Client(self.addresses, key=self.plane.keys[kind], tenant="default")


@asynccontextmanager
async def suite(cluster: Cluster, folder: Path) -> AsyncIterator[Suite]:
    """The services, started over the cluster's URL with all hosts."""
    await asyncio.to_thread(migrate.upgrade, cluster.url)
    plane = ControlPlane(cluster.url, folder)
    plane.keys = await asyncio.to_thread(make_keys, cluster.url)
    runner: RunnerProcess | None = None
    try:
        for _ in range(2):
            plane.add_taskdb()
        plane.add_scheduler(",".join(service.address for service in plane.taskdbs))
        address, key = plane.schedulers[0].address, plane.keys["runner"]
        runner = RunnerProcess(folder / "runner", address, id="runner", key=key)
        await runner.start()
        await runner.connected()
        with tempfile.TemporaryDirectory(prefix="taskyard-effects-") as name:
            # A task may run as a user of its own.
            Path(name).chmod(0o755)
            effects = Path(name) / "effects"
            effects.touch()
            effects.chmod(0o666)
            yield Suite(plane, cluster, effects)
    except BaseException:
        print(plane.logs(), cluster.logs())
        raise
    finally:
        if runner is not None:
            await runner.kill()
            runner.clean()
        plane.stop()


@dataclass
class Load:
    """What the clients did and received; times are monotonic."""

    suite: Suite
    acknowledged: dict[str, float] = field(default_factory=dict)
    client_errors: list[str] = field(default_factory=list)
    # Creates that the client gave up after 30 s.
    repeated: list[str] = field(default_factory=list)
    delivered: list[tuple[str, int]] = field(default_factory=list)
    gaps: int = 0
    lines: list[str] = field(default_factory=list)
    _stop: asyncio.Event = field(default_factory=asyncio.Event)
    _watching: asyncio.Event = field(default_factory=asyncio.Event)
    _progress: asyncio.Event = field(default_factory=asyncio.Event)

    async def create(self, number: int) -> None:
        """Create tasks one after the other until stopped; the client rides out 30 s."""
        async with self.suite.client() as client:
            count = 0
            while not self._stop.is_set():
                count += 1
                task_id = f"load-{number}-{count}"
                effect = f"echo {task_id} >> {self.suite.effects}"
                new = command("sh", "-c", effect, id=task_id, request_id=task_id)
                while not await self._created(client, new, task_id):
                    pass
                await asyncio.sleep(PAUSE_SECONDS)

    async def _created(self, client: Client, new: NewTask, task_id: str) -> bool:
        """Whether a create got an answer; one that took too long is repeated, as its error says."""
        try:
            await client.create(new)
        except (errors.DeadlineExceeded, errors.Unavailable) as error:
            self.repeated.append(f"create {task_id}: {error}")
            return False
        except errors.TaskyardError as error:
            self.client_errors.append(f"create {task_id}: {error}")
            return True
        self.acknowledged[task_id] = time.monotonic()
        self._progress.set()
        return True

    async def watch(self) -> None:
        """Follow all tasks until cancelled."""
        async with self.suite.client() as client:
            try:
                async for event in client.watch(bookmarks=True):
                    self._watching.set()
                    if event.type is EventType.GAP:
                        self.gaps += 1
                    elif event.type is not EventType.BOOKMARK:
                        self.delivered.append((event.task.id, event.version))
            except errors.TaskyardError as error:
                self.client_errors.append(f"watch: {error}")

    async def follow(self) -> None:
        """Follow the output of one task that writes over the whole fault."""
        script = f"for n in $(seq {LINES}); do echo $n; sleep 0.1; done"
        async with self.suite.client() as client:
            task = await client.create(command("sh", "-c", script, id="talker"))
            try:
                async for entry in client.logs(task, follow=True):
                    self.lines.append(entry.message)
            except errors.TaskyardError as error:
                self.client_errors.append(f"logs: {error}")

    async def reached(self, count: int) -> None:
        """Return once so many creates were acknowledged since now."""
        target = len(self.acknowledged) + count
        async with asyncio.timeout(SETTLE_SECONDS):
            while len(self.acknowledged) < target:
                await self._progress.wait()
                self._progress.clear()

    async def finish(self) -> None:
        """Stop creating, and return once every task that exists has ended."""
        self._stop.set()
        await asyncio.to_thread(
            wait_for,
            lambda: not self._value("SELECT count(*) FROM tasks WHERE end_time IS NULL"),
            "every task has ended",
            SETTLE_SECONDS,
        )

    # What is checked

    def first_create_after(self, moment: float) -> float:
        """When the first create was acknowledged after a moment."""
        return min(at for at in self.acknowledged.values() if at > moment)

    def longest_gap(self) -> float:
        """The longest time without an acknowledged create."""
        times = sorted(self.acknowledged.values())
        return max(later - earlier for earlier, later in pairwise(times))

    def lost(self) -> list[str]:
        """Acknowledged tasks that do not exist."""
        with self._connect() as connection:
            found = {row[0] for row in connection.execute("SELECT task_id FROM tasks")}
        return sorted(self.acknowledged.keys() - found)

    def ended_twice(self) -> int:
        """Tasks with more than one outcome."""
        return self._value(
            "SELECT count(*) FROM (SELECT FROM changes WHERE resource_kind = 1 AND phase >= 10"
            " AND coalesce(previous_phase, 0) < 10 GROUP BY tenant_id, resource_id HAVING count(*) > 1) c"
        )

    def ran_twice(self) -> int:
        """Tasks that ran more than once, by what they wrote themselves."""
        return sum(count > 1 for count in Counter(self.suite.effects.read_text().split()).values())

    def undelivered(self) -> set[tuple[str, int]]:
        """Changes of the log that the watch did not deliver."""
        with self._connect() as connection:
            rows = connection.execute(
                f"SELECT resource_id, version FROM {LOGGED}"
                " WHERE resource_kind = 1 AND resource_id LIKE 'load-%'"
            )
            return set(rows.fetchall()) - set(self.delivered)

    def check_database(self) -> None:
        """The invariants of the tables."""
        assert_invariants(self.suite.cluster.url)

    def _connect(self) -> psycopg.Connection[tuple[str, int]]:
        return psycopg.connect(self.suite.cluster.url, connect_timeout=5)

    def _value(self, sql: str) -> int:
        with self._connect() as connection:
            row = connection.execute(sql.encode()).fetchone()
            assert row is not None
            return int(row[0])


@asynccontextmanager
async def load_on(made: Suite) -> AsyncIterator[Load]:
    """Load that runs while the block does; the watch is open when it begins."""
    load = Load(made)
    watching = asyncio.create_task(load.watch())
    async with asyncio.timeout(60):
        # The first bookmark comes with the stream.
        await load._watching.wait()
    following = asyncio.create_task(load.follow())
    creators = [asyncio.create_task(load.create(n)) for n in range(CREATORS)]
    try:
        await load.reached(100)
        yield load
        await asyncio.gather(*creators)
        async with asyncio.timeout(SETTLE_SECONDS):
            await following
    finally:
        for task in (*creators, following, watching):
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
