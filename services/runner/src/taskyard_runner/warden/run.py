"""One run in the warden: its process, pipes, control group and journal, from the order to the end."""

from __future__ import annotations

import contextlib
import enum
import functools
import json
import os
import resource
import signal
import time
from collections.abc import Collection
from typing import Any, Protocol

from taskyard_runner.warden import kill, process
from taskyard_runner.warden.cgroup import Group
from taskyard_runner.warden.deadline import Deadlines, StopReason
from taskyard_runner.warden.journal import JournalWriter, Kind
from taskyard_runner.warden.linux import boottime
from taskyard_runner.warden.loop import Loop, Timer
from taskyard_runner.warden.order import Order
from taskyard_runner.warden.process import Launch, StartError
from taskyard_runner.warden.protocol import Message
from taskyard_runner.warden.spare import SpareStock, remove_group

_READ_BYTES = 65536
_TAIL_BYTES = 4096
_RETRY_SECONDS = 0.02
# How long the end of a run waits for processes that SIGKILL does not end, and for their pipes.
_LINGER_SECONDS = 10.0


class State(enum.StrEnum):
    """The state of a run."""

    STARTING = "starting"
    RUNNING = "running"
    STOPPING = "stopping"
    ENDED = "ended"


class Listener(Protocol):
    """Receives the events of a run."""

    def started(self, run: Run) -> None: ...

    def wrote(self, run: Run) -> None: ...

    def ended(self, run: Run) -> None: ...

    def clean(self, run: Run) -> bool:
        """Start the run's cleanup, which ends with a call of `cleaned`; False if it could not be started."""
        ...

    def own_pids(self) -> Collection[int]:
        """The children that are neither leftovers nor orphans."""
        ...


class Run:
    """A process and all that belongs to it. `result` is set once all its processes have ended."""

    def __init__(self, order: Order, directory: str, loop: Loop, listener: Listener, log_limit: int) -> None:
        self.order = order
        self.directory = directory
        self.state = State.STARTING
        self.pid = 0
        self.result: Message | None = None
        self.start_time = 0.0
        self.notes: dict[str, Any] = {}
        named = b"" if order.host else json.dumps(order.meta).encode()
        self.journal = JournalWriter(f"{directory}/journal", log_limit, named)
        self._deadlines = Deadlines(order, order.lease_until)
        self._loop = loop
        self._listener = listener
        self._group: Group | None = None
        self._pipes: dict[int, Kind] = {}
        self._pipe_names: set[str] = set()
        self._tail = bytearray()
        self._stop_reason: StopReason | None = None
        self._start_error: StartError | None = None
        self._status: int | None = None
        self._usage: resource.struct_rusage | None = None
        self._deadline: Timer | None = None
        self._kill: Timer | None = None
        self._errors: int | None = None
        self._killed = False
        self._cleared = False
        self._cleaning = False
        self._linger_until = 0.0

    # -- start

    def start(self, stock: SpareStock, nofile: int) -> None:
        """Start the process; an error ends the run with a start error and is not raised."""
        try:
            self._launch(stock, nofile)
        except OSError as error:
            self._start_error = StartError("prepare", error.errno or 0, error.strerror or str(error))
            self._finish()
            return
        self._arm()

    def _launch(self, stock: SpareStock, nofile: int) -> None:
        order = self.order
        spare = stock.take()
        try:
            joins = spare.group.limit(order.limits) if spare.group is not None else []
            rlimits = self._rlimits(without_group=spare.group is None)
            launch = Launch(order.argv, order.env, order.cwd, nofile, rlimits, joins, order.user)
        except OSError:
            stock.give_up(spare)
            raise
        self.pid, self._errors, self._group = spare.pid, spare.errors, spare.group
        self._open_pipe(spare.stdout, Kind.STDOUT)
        self._open_pipe(spare.stderr, Kind.STDERR)
        self._loop.watch(self._errors, self._executed)
        # Before it begins: the next warden then accounts for all that it may have written.
        self._remember()
        # A child that has exited already is reaped like any other.
        with contextlib.suppress(OSError):
            spare.launch(launch)

    def refuse(self, reason: StopReason) -> None:
        """End the run without a process."""
        self._stop_reason = reason
        self._finish()

    def _rlimits(self, *, without_group: bool) -> dict[int, int]:
        limits = self.order.limits
        found = {resource.RLIMIT_CORE: 0}
        if limits.file_bytes:
            found[resource.RLIMIT_FSIZE] = limits.file_bytes
        if without_group and limits.memory_bytes:
            found[resource.RLIMIT_AS] = limits.memory_bytes
        if without_group and limits.pids and self.order.user is not None:
            # Counted per user, so only a user of its own makes it a limit of the run.
            found[resource.RLIMIT_NPROC] = limits.pids
        return found

    def _remember(self) -> None:
        """Persist what the next warden needs if this one is killed."""
        record = {"meta": self.order.meta, "session": self.pid, "boot_id": boot_id()}
        content = json.dumps({**record, "cleanup": list(self.order.cleanup)})
        with contextlib.suppress(OSError):
            fd = os.open(f"{self.directory}/run.json", os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                os.write(fd, content.encode())
            finally:
                os.close(fd)

    def _executed(self) -> None:
        if self._errors is None:
            return
        try:
            data = os.read(self._errors, 8192)
        except BlockingIOError:
            return
        self._loop.unwatch(self._errors)
        os.close(self._errors)
        self._errors = None
        if data:
            self._start_error = StartError.parse(data)
            return
        self.start_time = time.time()
        self._deadlines.begin(boottime())
        if self.state == State.STARTING:
            self.state = State.RUNNING
        self._listener.started(self)
        self._arm()

    # -- output

    def _open_pipe(self, fd: int, kind: Kind) -> None:
        os.set_blocking(fd, False)
        self._pipes[fd] = kind
        self._pipe_names.add(f"pipe:[{os.fstat(fd).st_ino}]")
        self._loop.watch(fd, lambda: self._read(fd))

    def _read(self, fd: int) -> None:
        try:
            data = os.read(fd, _READ_BYTES)
        except BlockingIOError:
            return
        if not data:
            self._close_pipe(fd)
            self._finish_if_clear()
            return
        kind = self._pipes[fd]
        self.journal.append(kind, data)
        if kind == Kind.STDERR:
            self._tail = (self._tail + data[-_TAIL_BYTES:])[-_TAIL_BYTES:]
        self.record_activity()
        self._listener.wrote(self)

    def _close_pipe(self, fd: int) -> None:
        self._loop.unwatch(fd)
        os.close(fd)
        del self._pipes[fd]

    def record_activity(self) -> None:
        """Record activity of the workload for its silence timeout."""
        self._deadlines.last_activity = boottime()

    def append_message(self, message: bytes) -> None:
        """Keep a message of the workload between its lines of output."""
        if self.state != State.ENDED:
            self.journal.append(Kind.MESSAGE, message)
            self._listener.wrote(self)

    # -- deadlines and stop

    def lease(self, until: float) -> None:
        """Extend the lease to `until`."""
        self._deadlines.lease_until = until
        self._arm()

    @property
    def lease_until(self) -> float:
        return self._deadlines.lease_until

    def _arm(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
        if self._killed or self._status is not None or self.state == State.ENDED:
            return
        if self.state != State.STOPPING:
            self._deadline = self._loop.at(self._deadlines.next_due()[0], self._check)
        elif self.order.forbid_overlap:
            self._deadline = self._loop.at(self._deadlines.lease_until, self._check)

    def _check(self) -> None:
        now = boottime()
        when, reason = self._deadlines.next_due()
        if self.order.forbid_overlap and self._deadlines.lease_until <= now:
            self.stop(StopReason.LEASE_EXPIRED, 0.0)
        elif self.state != State.STOPPING and when <= now:
            self.stop(reason, self._deadlines.grace(reason))
        else:
            self._arm()

    def stop(self, reason: StopReason, grace: float) -> None:
        """SIGTERM now, SIGKILL to everything after the grace period; without one at once.

        The first reason is kept; a process that had already ended keeps its own outcome.
        """
        if self.state == State.ENDED or self._ended_already():
            return
        if self._stop_reason is None or reason == StopReason.ABORT:
            self._stop_reason = reason
        if self.state != State.STOPPING and grace > 0:
            self._ask_to_end()
        self.state = State.STOPPING
        self._kill_within(grace)
        self._arm()

    def _ask_to_end(self) -> None:
        behind = kill.followers(self.pid) if self.order.shielded else []
        for pid in behind:
            process.signal_process(pid, signal.SIGTERM)
        if behind:
            return
        process.signal_group(self.pid, signal.SIGTERM)
        if self.state == State.STARTING:
            # The child may not lead its group yet.
            process.signal_process(self.pid, signal.SIGTERM)

    def _ended_already(self) -> bool:
        if self._status is None:
            with contextlib.suppress(ChildProcessError):
                pid, status, usage = os.wait4(self.pid, os.WNOHANG)
                if pid:
                    self.exited(status, usage)
        return self._status is not None

    def _kill_within(self, grace: float) -> None:
        when = boottime() + grace
        if grace <= 0:
            self._kill_all()
        elif self._kill is None or when < self._kill.when:
            if self._kill is not None:
                self._kill.cancel()
            self._kill = self._loop.at(when, self._kill_all)

    def _kill_all(self) -> None:
        self._killed = True
        process.signal_group(self.pid, signal.SIGKILL)
        process.signal_process(self.pid, signal.SIGKILL)
        self._kill_rest()

    def _kill_rest(self) -> int:
        """Kill all processes of the run; how many survive."""
        if self._group is not None:
            return self._group.kill()
        own_pids = self._listener.own_pids()
        return kill.kill_run(self.directory, self.pid, self._pipe_names, own_pids)

    # -- end

    def exited(self, status: int, usage: resource.struct_rusage) -> None:
        """The process has ended; kill its remaining processes, then end the run."""
        self._executed()
        self._status = status
        self._usage = usage
        self._linger_until = boottime() + _LINGER_SECONDS
        for timer in (self._kill, self._deadline):
            if timer is not None:
                timer.cancel()
        if self.order.cleanup and os.WIFSIGNALED(status):
            self._cleaning = self._listener.clean(self)
        self._clear()

    def cleaned(self) -> None:
        """The cleanup has ended."""
        self._cleaning = False
        self._clear()

    def _clear(self) -> None:
        if self.state == State.ENDED:
            return
        left = self._kill_rest() + self._cleaning
        patient = boottime() < self._linger_until
        self._cleared = not left or not patient
        if left and patient:
            self._loop.after(_RETRY_SECONDS, self._clear)
        elif self._pipes and patient:
            # The kernel closes the pipes with their last writer; another scan finds a hidden process.
            self._loop.after(1.0, self._clear)
        elif not patient:
            for fd in list(self._pipes):
                self._close_pipe(fd)
        self._finish_if_clear()

    def _finish_if_clear(self) -> None:
        if self._cleared and not self._pipes and self.state != State.ENDED:
            self._finish()

    def _finish(self) -> None:
        self.state = State.ENDED
        self.journal.close()
        self.result = self._outcome()
        if self._group is not None:
            remove_group(self._loop, self._group)
        self._listener.wrote(self)
        self._listener.ended(self)

    def _outcome(self) -> Message:
        code = os.waitstatus_to_exitcode(self._status or 0)
        usage, failed, group = self._usage, self._start_error, self._group
        return {
            "exit_code": code if code >= 0 and failed is None else None,
            "signal": -code if code < 0 else None,
            "stop_reason": self._stop_reason,
            "start_error": [failed.step, failed.number, failed.detail] if failed else None,
            "out_of_memory": group is not None and group.out_of_memory(),
            "out_of_processes": group is not None and group.out_of_processes(),
            "start_time": self.start_time or None,
            "end_time": time.time(),
            "stderr_tail": self._tail.decode(errors="replace"),
            "output_dropped": self.journal.unrecorded,
            "cpu_seconds": usage.ru_utime + usage.ru_stime if usage else 0.0,
            "max_rss_bytes": usage.ru_maxrss * 1024 if usage else 0,
        }

    def describe(self) -> Message:
        """The state that the next agent needs to adopt this run."""
        return {
            "run": self.order.run,
            "state": self.state,
            "pid": self.pid,
            "start_time": self.start_time or None,
            "lease_until": self._deadlines.lease_until,
            "meta": self.order.meta,
            "notes": self.notes,
            "result": self.result,
        }


def forget_run(directory: str) -> None:
    """Remove the record for the next warden, because the outcome is in the agent's spool."""
    with contextlib.suppress(OSError):
        os.unlink(f"{directory}/run.json")


@functools.cache
def boot_id() -> str:
    """Identifies the boot of the host; session ids are valid only within one boot."""
    with open("/proc/sys/kernel/random/boot_id") as file:
        return file.read().strip()
