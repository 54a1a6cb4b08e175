"""Function runs in the agent: queues assignments, and exchanges batches of runs and results with hosts."""

from __future__ import annotations

import asyncio
import itertools
import os
import secrets
import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

from taskyard import tracing
from taskyard.v1.common_pb2 import Resources
from taskyard.v1.lease_pb2 import RELEASE_REASON_UNSUPPORTED, Assignment
from taskyard.v1.runner_link_service_pb2 import HELD_STATE_RUNNING
from taskyard_kit.logs import get_log
from taskyard_runner.agent import function_outcome
from taskyard_runner.agent.checkpoints import Uploads
from taskyard_runner.agent.directory import RunDirectory
from taskyard_runner.agent.ended import Ended
from taskyard_runner.agent.function_deadlines import RunDeadlines
from taskyard_runner.agent.function_host import FunctionHost, FunctionRun, restore_run
from taskyard_runner.agent.function_hosts import Hosts
from taskyard_runner.agent.leases import Held, Leases
from taskyard_runner.agent.preparation import Download
from taskyard_runner.agent.requests import Requests
from taskyard_runner.agent.run import AgentRun
from taskyard_runner.agent.runs import Runs
from taskyard_runner.executors import function
from taskyard_runner.executors.function import DEFAULT_GRACE, HostClass, Row
from taskyard_runner.warden.deadline import StopReason
from taskyard_runner.warden.linux import boottime
from taskyard_runner.warden.protocol import Message

_NO_RESOURCES = Resources()

log = get_log(__name__)


class FunctionPool:
    """Accepts assignments of functions and executes their runs in hosts."""

    def __init__(
        self,
        capacity: int,
        runs_directory: str,
        runs: Runs,
        leases: Leases,
        uploads: Uploads,
        requests: Requests,
        download: Download,
        send_to_warden: Callable[[Message], None],
    ) -> None:
        self._capacity = capacity
        self._runs_directory = runs_directory
        self._runs = runs
        self._leases = leases
        self._uploads = uploads
        self._requests = requests
        self._download = download
        self._send_to_warden = send_to_warden
        self._waiting: dict[HostClass, deque[FunctionRun]] = {}
        self._given = 0
        self._awake = False
        self._acking: set[FunctionHost] = set()
        # The prefix makes run names differ from those of earlier agents.
        self._prefix = f"f{secrets.token_hex(5)}-"
        self._numbers = itertools.count(1)
        self._deadlines = RunDeadlines(runs)
        # Set by the creator of both.
        self.hosts: Hosts

    # -- taking work on

    def accept(self, assignment: Assignment, until: float, total_until: float | None) -> None:
        """Hold a run and queue it."""
        spec = assignment.spec
        name = function.function_of(spec)
        is_async = self.hosts.functions.get(name)
        if is_async is None:
            message = f"function {name!r} is not registered in this runner's app"
            self._runs.refuse(assignment, RELEASE_REASON_UNSUPPORTED, message)
            return
        place = function.host_class(spec, is_async)
        label = f"{self._prefix}{next(self._numbers):x}"
        run = FunctionRun(
            Held(assignment.lease, label, until, guarded=place.forbid),
            RunDirectory(self._runs_directory, label),
            DEFAULT_GRACE,
            resources=_NO_RESOURCES,
            executor=self,
            place=place,
        )
        traceparent = assignment.traceparent
        if tracing.enabled():
            attributes = {"taskyard.task": run.lease.task, "taskyard.generation": run.lease.generation}
            run.span = tracing.start_span("run", traceparent, "consumer", attributes)
            traceparent = tracing.traceparent_of(run.span)
        run.row = function.describe(label, assignment, name, total_until, traceparent)
        run.read_row()
        self._runs.take(run)
        if assignment.HasField("checkpoint"):
            run.preparing = self._runs.spawn(self._restore(run, assignment))
        else:
            self._queue(run)

    async def _restore(self, run: FunctionRun, assignment: Assignment) -> None:
        async def fetch() -> bool:
            run.directory.make_part(run.directory.checkpoint)
            run.has_files = True
            await self._download(assignment, run.directory)
            return True

        if await self._runs.prepared(run, fetch()):
            run.row[7]["restored"] = str(run.directory.restored)
            self._queue(run)

    def _queue(self, run: FunctionRun) -> None:
        self._waiting.setdefault(run.place, deque()).append(run)
        self.wake()

    def release_waiting(self) -> None:
        """Release the runs that no host has."""
        for queue in self._waiting.values():
            for run in list(queue):
                self._runs.stop(run, StopReason.DRAIN, 0.0)

    # -- handing it out

    def wake(self) -> None:
        """Schedule a dispatch in the next step of the event loop."""
        if not self._awake:
            self._awake = True
            asyncio.get_running_loop().call_soon(self._dispatch)

    def _dispatch(self) -> None:
        self._awake = False
        for place, queue in self._waiting.items():
            while queue and queue[0].ended:
                queue.popleft()
            room = min(len(queue), self._capacity - self._given)
            if room <= 0:
                continue
            hosts = [host for host in self.hosts.of(place) if host.usable]
            if place.shared:
                share = -(-room // max(1, len(hosts)))
                for host in sorted(hosts, key=lambda found: len(found.runs)):
                    self._give(host, queue, share)
            else:
                for host in hosts:
                    if not host.runs:
                        self._give(host, queue, max(1, min(host.depth, len(queue) // len(hosts))))
            if queue and self._given < self._capacity and not (place.shared and hosts):
                self.hosts.request_hosts(place, len(queue))

    def _give(self, host: FunctionHost, queue: deque[FunctionRun], count: int) -> None:
        rows: list[Row] = []
        guards: dict[str, float] = {}
        now = boottime()
        count = min(count, self._capacity - self._given)
        while queue and len(rows) < count:
            run = queue.popleft()
            if run.ended:
                continue
            if run.held.until <= now:
                # Its lease expired in the queue; another runner may hold the task.
                run.ended = True
                self._runs.abandon(run)
                continue
            run.ordered = True
            run.host = host
            host.runs[run.name] = run
            rows.append(run.row)
            if run.place.forbid:
                guards[run.name] = run.held.until
        if guards:
            # Sent before the host gets the runs, so that the warden can end each of them.
            self._send_to_warden({"op": "guard", "host": host.name, "runs": guards})
        if rows:
            self._given += len(rows)
            host.last_moved = now
            host.send({"op": "run", "rows": rows})

    # -- messages of hosts

    def host_updated(self, host: FunctionHost, message: Message) -> None:
        if returned := message.get("returned"):
            self._requeue_returned(host, returned)
        for name, when in message.get("started", {}).items():
            if (run := host.runs.get(name)) is not None:
                self._begun(host, run, when)
                self._return_queued(host, run)
        for name in message.get("output", ()):
            if (run := self._signed(host, name)) is not None:
                run.has_files = True
                self._runs.open_logs(run)
        for name, progress in message.get("progress", {}).items():
            if (run := self._signed(host, name)) is not None:
                self._runs.progressed(run, progress)
        if done := message.get("done"):
            self._end(host, done)

    def host_requested(self, host: FunctionHost, message: Message) -> None:
        request, number = message["message"], message["request"]
        if (run := self._signed(host, request.get("run", ""))) is not None:
            run.has_files = run.has_files or request.get("op") == "checkpoint"
        self._requests.handle(
            request, lambda answer: host.send({"op": "answer", "request": number, "message": answer})
        )

    def _begun(self, host: FunctionHost, run: FunctionRun, when: float) -> None:
        if not run.started:
            self._runs.record_start(run, host.handle, when)
        self._deadlines.begin(run, when)

    def _return_queued(self, host: FunctionHost, run: FunctionRun) -> None:
        """A long run must delay neither the runs queued behind it nor a stop that came meanwhile."""
        if not host.place.shared:
            if len(host.runs) > 1:
                host.send({"op": "return"})
            self.wake()
        if run.reason is not None and host.culprit is None:
            self.stop(run, run.reason, run.grace)

    def _requeue_returned(self, host: FunctionHost, names: list[str]) -> None:
        """Move runs that the host has not started to the front of the queue, in their order."""
        for name in reversed(names):
            if (run := host.runs.pop(name, None)) is None:
                continue
            self._leave(run)
            run.ordered, run.host = False, None
            if run.reason is not None:
                reason, run.reason = run.reason, None
                self._runs.end_unstarted(run, reason)
            else:
                self._waiting.setdefault(run.place, deque()).appendleft(run)
        self.wake()

    def _signed(self, host: FunctionHost, name: str) -> FunctionRun | None:
        """The run of this name, with its activity recorded."""
        run = host.runs.get(name)
        if run is not None and run.deadlines is not None:
            run.deadlines.last_activity = boottime()
        return run

    def _end(self, host: FunctionHost, done: Iterable[list[Any]]) -> None:
        ended = []
        for name, begin, end, wrote, answer in done:
            run = host.runs.pop(name, None)
            if run is None:
                if name not in host.kept:
                    self._ack(host, name)
                continue
            self._leave(run)
            host.note_pace(end - begin)
            host.kept.add(name)
            run.has_files = run.has_files or wrote
            outcome = function_outcome.ended(run, answer)
            ended.append(Ended(run, outcome, begin, end, host.handle, wrote, began=True))
        self._runs.conclude_all(ended)
        self.hosts.leave_if_idle(host)
        self.wake()

    def _leave(self, run: FunctionRun) -> None:
        """Remove a run from its host."""
        self._given -= 1
        self._deadlines.end(run)
        if run.place.forbid:
            self._send_to_warden({"op": "unguard", "runs": [run.name]})

    def host_ended(self, host: FunctionHost, result: Message) -> None:
        """The host has ended: its runs are released as lost, and the run that caused the end fails."""
        head = host.head
        if not host.place.shared and head is not None:
            # It calls one run after the other, so the runs after the first have not started.
            self._requeue_returned(host, [name for name in host.runs if name != head.name])
        runs = list(host.runs.values())
        host.runs.clear()
        ended = []
        for run in runs:
            self._leave(run)
            is_culprit = not host.place.shared or len(runs) == 1 or host.culprit is run
            wrote = os.path.exists(run.directory.journal)
            run.has_files = run.has_files or wrote
            begin, end = result.get("start_time") or time.time(), result["end_time"]
            outcome = function_outcome.lost(run, result, is_culprit=is_culprit)
            ended.append(Ended(run, outcome, begin, end, host.handle, wrote))
        self._runs.conclude_all(ended)

    # -- executor of the runs

    def stop(self, run: AgentRun, reason: StopReason, grace: float) -> None:
        """Request the stop; the warden kills an exclusive host after the grace period."""
        assert isinstance(run, FunctionRun) and run.host is not None
        host = run.host
        if run.reason is None or reason == StopReason.ABORT:
            run.reason = reason
        if not host.place.shared and host.head is not run:
            # The host returns it; if it has already started, the stop follows the report of its start.
            host.send({"op": "return"})
            return
        host.send({"op": "stop", "run": run.name, "reason": reason})
        if not host.place.shared:
            host.culprit = run
            self.hosts.kill(host, reason, grace)
        else:
            patience = run.grace if reason == StopReason.ABORT else grace
            asyncio.get_running_loop().call_later(patience, self._force, host, run)

    def _force(self, host: FunctionHost, run: FunctionRun) -> None:
        """Kill the host of a run that ignored its stop."""
        if run.name in host.runs and host.culprit is None:
            log.warning("host_killed", host=host.name, task=run.lease.task, runs=len(host.runs))
            host.culprit = run
            self.hosts.kill(host, run.reason or StopReason.ABORT)

    def note(self, run: AgentRun, **notes: Any) -> None:
        """No-op: the host itself keeps what the next agent needs."""

    def saved(self, run: AgentRun) -> None:
        """Have the host discard the result, unless the next agent needs it to continue with the logs."""
        assert isinstance(run, FunctionRun)
        if run.host is not None and not run.has_files:
            self._ack(run.host, run.name)

    def forget(self, run: AgentRun) -> None:
        assert isinstance(run, FunctionRun)
        if run.has_files:
            if run.host is not None:
                self._ack(run.host, run.name)
            self._runs.spawn(self._runs.remove(run))

    def _ack(self, host: FunctionHost, name: str) -> None:
        host.kept.discard(name)
        host.acks.append(name)
        if not self._acking:
            asyncio.get_running_loop().call_soon(self._send_acks)
        self._acking.add(host)

    def _send_acks(self) -> None:
        for host in self._acking:
            host.send({"op": "ack", "runs": host.acks})
            host.acks = []
            self.hosts.leave_if_idle(host)
        self._acking = set()

    # -- after an earlier agent

    def host_ready(self, host: FunctionHost, hello: Message) -> None:
        """Adopt the runs that an earlier agent gave to the host."""
        host.handle = f"host {host.name}"
        started: dict[str, float] = hello["started"]
        for row in hello["runs"]:
            if row[0] not in host.runs:
                self._adopt(host, row, started.get(row[0]))
        for row, result in hello["done"]:
            if row[0] not in host.kept and row[0] not in host.runs:
                self._adopt_ended(host, row, result)

    def _adopt(self, host: FunctionHost, row: Row, when: float | None) -> None:
        run = restore_run(host, row, self._runs_directory, self)
        if self._leases.get(run.key) is not None:
            host.send({"op": "stop", "run": run.name, "reason": StopReason.ABORT})
            return
        self._runs.take(run)
        host.runs[run.name] = run
        self._given += 1
        self._restore_uploads(run)
        if run.directory.journal.exists():
            self._runs.open_logs(run)
        if when is not None:
            run.started = self._runs.reports.has_start(run.key)
            run.held.change(HELD_STATE_RUNNING)
            self._begun(host, run, when)

    def _restore_uploads(self, run: FunctionRun) -> None:
        """Go on with the checkpoints that an earlier agent did not store."""
        if run.directory.uploads.exists():
            self._uploads.ensure(run.lease, run.directory.uploads, run.checkpoint_sequence)

    def _adopt_ended(self, host: FunctionHost, row: Row, result: list[Any]) -> None:
        run = restore_run(host, row, self._runs_directory, self)
        spooled = self._leases.get(run.key)
        if spooled is None:
            self._runs.take(run)
            host.runs[run.name] = run
            self._given += 1
            # Its outcome waits for the checkpoints that it handed over.
            self._restore_uploads(run)
            run.started = self._runs.reports.has_start(run.key)
            self._end(host, [result])
        elif run.has_files:
            # The outcome is in the spool; only the logs remain to be shipped.
            host.kept.add(run.name)
            run.adopt_outcome(spooled)
            self._runs.add(run)
            self._runs.open_logs(run)
            self._runs.close_logs(run)
        else:
            self._ack(host, run.name)
