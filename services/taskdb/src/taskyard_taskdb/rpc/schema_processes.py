"""The bounded pool of processes that compile and validate expensive schemas, shared fairly by tenants.

A process is started when the first job needs one, by exec and not by fork, and ends with the pool. A job that
uses up its CPU time ends its process; the next job starts another one.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
from collections import Counter, OrderedDict, deque
from datetime import timedelta
from typing import NamedTuple

from taskyard.errors import FieldViolation, Overloaded, ServerDraining
from taskyard_kit.logs import get_log
from taskyard_kit.shutdown import end_tasks
from taskyard_taskdb.rpc.schema_worker import ANSWER, JOB

# The estimate allows a validation of about a second; a slower machine gets a multiple of it.
CPU_SECONDS = 4.0
# Jobs of one tenant that wait for a process.
MAX_WAITING = 64
_RETRY_AFTER = timedelta(seconds=1)
# The server's environment holds the database's password.
_ENVIRONMENT = ("PATH", "PYTHONPATH", "LD_LIBRARY_PATH", "LANG", "LC_ALL")

log = get_log(__name__)


class Job(NamedTuple):
    """A schema to compile, or a payload to validate with it; `path` begins the fields of violations."""

    path: str
    schema: bytes
    payload: bytes | None = None

    def encode(self) -> bytes:
        path, size = self.path.encode(), -1 if self.payload is None else len(self.payload)
        head = JOB.pack(len(path), len(self.schema), size)
        return b"".join((head, path, self.schema, self.payload or b""))


class ProcessEnded(Exception):
    """The process of a job ended; `over_budget` if it had used up its CPU time."""

    def __init__(self, *, over_budget: bool) -> None:
        super().__init__()
        self.over_budget = over_budget


_Answer = tuple[FieldViolation, ...]
_Waiting = deque[tuple[Job, "asyncio.Future[_Answer]"]]


def default_size() -> int:
    """Half of the cores, at least two, so that one tenant cannot occupy all processes."""
    return max(2, len(os.sched_getaffinity(0)) // 2)


class SchemaProcesses:
    """Runs jobs, at most half of the processes for one tenant, tenants in turn."""

    def __init__(self, size: int | None = None, cpu_seconds: float = CPU_SECONDS) -> None:
        self._size = size or default_size()
        self._per_tenant = max(1, self._size // 2)
        self._cpu_seconds = cpu_seconds
        self._idle: list[_Process] = []
        self._running: dict[asyncio.Task[None], tuple[str, asyncio.Future[_Answer]]] = {}
        self._queues: OrderedDict[str, _Waiting] = OrderedDict()
        self._closed = False

    async def run(self, tenant_id: str, job: Job) -> _Answer:
        """The violations that the job found. Raises Overloaded or ServerDraining."""
        if self._closed:
            raise ServerDraining()
        queue = self._queues.setdefault(tenant_id, deque())
        if len(queue) >= MAX_WAITING:
            raise Overloaded(
                f"tenants/{tenant_id}", f"{MAX_WAITING} waiting schema checks", retry_after=_RETRY_AFTER
            )
        answer: asyncio.Future[_Answer] = asyncio.get_running_loop().create_future()
        queue.append((job, answer))
        self._start_next()
        return await answer

    @property
    def pids(self) -> list[int]:
        """The processes that wait for a job."""
        return [process.pid for process in self._idle]

    async def close(self) -> None:
        """End every process; waiting jobs fail with ServerDraining."""
        self._closed = True
        waiting = [answer for queue in self._queues.values() for _, answer in queue]
        self._queues.clear()
        running = dict(self._running)
        await end_tasks(running)
        for answer in (*waiting, *(answer for _, answer in running.values())):
            if not answer.done():
                answer.set_exception(ServerDraining())
        for process in self._idle:
            await process.end()
        self._idle.clear()

    def _start_next(self) -> None:
        busy = Counter(tenant_id for tenant_id, _ in self._running.values())
        for tenant_id in list(self._queues):
            queue = self._queues[tenant_id]
            while queue and queue[0][1].done():
                queue.popleft()
            if not queue:
                del self._queues[tenant_id]
            elif len(self._running) < self._size and busy[tenant_id] < self._per_tenant:
                job, answer = queue.popleft()
                # The tenant's next job waits behind those of the others.
                self._queues.move_to_end(tenant_id)
                task = asyncio.create_task(self._work(tenant_id, job, answer))
                self._running[task] = (tenant_id, answer)
                task.add_done_callback(self._ended)
                busy[tenant_id] += 1

    async def _work(self, tenant_id: str, job: Job, answer: asyncio.Future[_Answer]) -> None:
        try:
            result = await self._result(tenant_id, job)
        except Exception as error:
            if not answer.done():
                answer.set_exception(error)
        else:
            if not answer.done():
                answer.set_result(result)

    def _ended(self, task: asyncio.Task[None]) -> None:
        del self._running[task]
        if not self._closed:
            self._start_next()

    async def _result(self, tenant_id: str, job: Job) -> _Answer:
        for last in (False, True):
            try:
                return await self._ask(job)
            except ProcessEnded as ended:
                log.warning("schema_process_ended", tenant=tenant_id, over_budget=ended.over_budget)
                if ended.over_budget or last:
                    break
        problem = (
            f"takes more than {self._cpu_seconds:g} s of CPU time to compare with its schema, "
            "or more memory than a check may use: send less, or simplify the schema"
        )
        return (FieldViolation(job.path, problem, "json_schema.work"),)

    async def _ask(self, job: Job) -> _Answer:
        process = self._idle.pop() if self._idle else await _Process.start(self._cpu_seconds)
        try:
            answer = await process.ask(job)
        except BaseException:
            await process.end()
            raise
        self._idle.append(process)
        return answer


class _Process:
    """One process and the connection to it."""

    def __init__(
        self, process: subprocess.Popen[bytes], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._process = process
        self._reader = reader
        self._writer = writer

    @classmethod
    async def start(cls, cpu_seconds: float) -> _Process:
        ours, theirs = socket.socketpair()
        with theirs:
            process = await asyncio.to_thread(_spawn, theirs.fileno(), cpu_seconds)
        reader, writer = await asyncio.open_unix_connection(sock=ours)
        return cls(process, reader, writer)

    @property
    def pid(self) -> int:
        return self._process.pid

    async def ask(self, job: Job) -> _Answer:
        """Raises ProcessEnded."""
        try:
            self._writer.write(job.encode())
            await self._writer.drain()
            (size,) = ANSWER.unpack(await self._reader.readexactly(ANSWER.size))
            found = json.loads(await self._reader.readexactly(size))
        except (asyncio.IncompleteReadError, ConnectionError):
            code = await asyncio.to_thread(self._process.wait)
            raise ProcessEnded(over_budget=code == -signal.SIGPROF) from None
        return tuple(FieldViolation(*violation) for violation in found)

    async def end(self) -> None:
        self._process.kill()
        self._writer.close()
        with contextlib.suppress(ConnectionError):
            await self._writer.wait_closed()
        await asyncio.to_thread(self._process.wait)


def _spawn(connection: int, cpu_seconds: float) -> subprocess.Popen[bytes]:
    # Popen starts the process by vfork and exec: no code of gRPC's threads runs in a copy of this process.
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "taskyard_taskdb.rpc.schema_worker", str(connection), str(cpu_seconds)],
        pass_fds=(connection,),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        env={name: os.environ[name] for name in _ENVIRONMENT if name in os.environ},
        # Ctrl-C in the terminal is for the server, which ends the process.
        start_new_session=True,
    )
