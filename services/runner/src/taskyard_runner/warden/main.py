"""The warden: executes the agent's orders and keeps the results until the agent has stored them."""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import os
import resource
import signal
import traceback
from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from taskyard_runner.warden import kill, leftovers, linux, process
from taskyard_runner.warden.agent_process import AgentProcess
from taskyard_runner.warden.cgroup import Hierarchy, find_hierarchy
from taskyard_runner.warden.deadline import StopReason
from taskyard_runner.warden.guards import Guards
from taskyard_runner.warden.log import LogEvent
from taskyard_runner.warden.loop import Loop
from taskyard_runner.warden.naming import digest
from taskyard_runner.warden.order import Order
from taskyard_runner.warden.process import ChildSetup, Launch
from taskyard_runner.warden.protocol import VERSION, Message
from taskyard_runner.warden.run import Run, State, forget_run
from taskyard_runner.warden.sandbox import Sandbox, SandboxError, SandboxSettings, find_sandbox, remove_place
from taskyard_runner.warden.spare import SpareStock
from taskyard_runner.warden.task_socket import TaskSocket, log_message

_STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)
# Beyond the drain's own deadline: for grace periods and the last reports.
SHUTDOWN_MARGIN = 45.0
_EXIT_LOST = 1
_REQUEST_LIMIT = 1000


class WardenError(Exception):
    """Why the warden cannot start, in one line with the remedy."""


@dataclass(frozen=True)
class WardenConfig:
    """The warden's own settings, and the agent's, which it passes on unread."""

    data_dir: str
    log_limit_bytes: int
    drain_seconds: float
    use_cgroups: bool
    sandbox: SandboxSettings
    agent: Mapping[str, Any]
    agent_env: Mapping[str, str]
    log: LogEvent


def run(config: WardenConfig) -> int:
    """Serve until the agent sends bye; the process's exit code. Raises WardenError."""
    lock = _lock(config.data_dir)
    try:
        return Warden(config).serve()
    finally:
        os.close(lock)


def _lock(data_dir: str) -> int:
    try:
        os.makedirs(data_dir, mode=0o700, exist_ok=True)
        lock = os.open(f"{data_dir}/lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise WardenError(
            f"data_dir {data_dir!r} cannot be used ({error.strerror}); choose a directory that can be written"
        ) from None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise WardenError(
            f"data_dir {data_dir!r} is in use by another runner; stop it or choose another directory"
        ) from None
    return lock


class Warden:
    """One per data directory."""

    def __init__(self, config: WardenConfig) -> None:
        self._config = config
        self._log = config.log
        self._runs: dict[str, Run] = {}
        self._by_pid: dict[int, Run] = {}
        self._by_token: dict[str, Run] = {}
        self._cleanups: dict[int, Run] = {}
        self._requests: dict[int, tuple[Message, Callable[[Message], None]]] = {}
        self._request_ids = itertools.count(1)
        # Values that one agent keeps for the next.
        self._kept: dict[str, Any] = {}
        self._stop_count = 0
        self._exit_code: int | None = None
        self._sandbox = self._find_sandbox()
        self._runs_directory = f"{self._sandbox.place}/runs"
        os.makedirs(self._runs_directory, mode=0o700, exist_ok=True)
        linux.become_subreaper()
        linux.hide_from_others()
        _close_on_exec()
        self._nofile = _raise_nofile()
        self._hierarchy, self._limits_problem = self._find_hierarchy()
        self._lost = leftovers.read_lost_runs(self._runs_directory)
        self._kill_leftovers()
        self._loop = Loop(self._failed)
        self._spares = SpareStock(self._loop, self._hierarchy)
        self._guards = Guards(self._loop, self._lease_expired)
        others = self._sandbox.separates_users
        self._socket = TaskSocket(
            self._loop, self._sandbox.place, self._handle_task_message, for_others=others
        )
        self._agent = AgentProcess(self._loop, config.agent_env, self._nofile)
        self._agent.on_connect = self._hello
        self._agent.on_message = self._handle_agent_message

    def serve(self) -> int:
        """Run until the agent sends bye or the third signal."""
        signals = (*_STOP_SIGNALS, signal.SIGCHLD, signal.SIGHUP)
        self._loop.on_signals(signals, self._signalled)
        self._agent.start()
        try:
            self._loop.run()
        finally:
            self._socket.close()
            self._end_everything()
        return self._exit_code or 0

    def _failed(self, error: Exception) -> None:
        # An error with one run must not end the others.
        self._log("step_failed", level="error", error="".join(traceback.format_exception(error)))

    # -- start

    def _find_sandbox(self) -> Sandbox:
        try:
            return find_sandbox(self._config.sandbox, self._config.data_dir, self._config.agent["path"])
        except SandboxError as error:
            raise WardenError(str(error)) from None

    def _find_hierarchy(self) -> tuple[Hierarchy | None, str]:
        if not self._config.use_cgroups:
            return None, "switched off by the setting cgroups"
        return find_hierarchy(digest(os.path.abspath(self._config.data_dir)))

    def _kill_leftovers(self) -> None:
        survivors = leftovers.kill_leftovers(self._runs_directory, self._lost, self._hierarchy)
        if survivors:
            self._log("leftover_processes_survived", level="error", processes=survivors)

    def _hello(self) -> Message:
        return {
            "op": "hello",
            "protocol": VERSION,
            "config": {**self._config.agent, "path": self._sandbox.path},
            "sandbox": asdict(self._sandbox),
            "kept": self._kept,
            "socket": self._socket.path,
            "runs_directory": self._runs_directory,
            "limits": self._hierarchy.version if self._hierarchy else "rlimits",
            "limits_problem": self._limits_problem,
            "runs": [run.describe() for run in self._runs.values()],
            "lost": [{"run": lost.run, "meta": lost.meta} for lost in self._lost],
            "requests": [
                {"request": number, "message": request} for number, (request, _) in self._requests.items()
            ],
            "stopping": self._stop_count,
            "drain_seconds": self._config.drain_seconds,
        }

    # -- orders of the agent

    def _handle_agent_message(self, message: Message) -> None:
        handler = getattr(self, f"_on_{message.get('op')}", None)
        if handler is None:
            return
        try:
            handler(message)
        except (KeyError, TypeError, ValueError) as error:
            self._log("order_refused", level="error", op=message.get("op"), error=repr(error))

    def _on_start(self, message: Message) -> None:
        order = Order.parse(message)
        if order.run in self._runs:
            return
        run = Run(
            order, f"{self._runs_directory}/{order.run}", self._loop, self, self._config.log_limit_bytes
        )
        self._runs[order.run] = run
        if linux.boottime() >= order.lease_until:
            # The agent or the warden was frozen with the order; another runner may hold the task.
            run.refuse(StopReason.LEASE_EXPIRED)
            return
        self._by_token[order.token] = run
        run.start(self._spares, self._nofile)
        if run.pid:
            self._by_pid[run.pid] = run

    def _on_stop(self, message: Message) -> None:
        run = self._runs.get(message["run"])
        if run is not None:
            run.stop(StopReason(message["reason"]), float(message["grace"]))

    def _on_lease(self, message: Message) -> None:
        until = float(message["until"])
        for name in message["runs"]:
            if (run := self._runs.get(name)) is not None:
                run.lease(until)
            else:
                self._guards.lease(name, until)

    def _on_guard(self, message: Message) -> None:
        self._guards.add(message["host"], message["runs"])

    def _on_unguard(self, message: Message) -> None:
        self._guards.drop(message["runs"])

    def _lease_expired(self, host: str) -> None:
        if (run := self._runs.get(host)) is not None:
            run.stop(StopReason.LEASE_EXPIRED, 0.0)

    def _on_note(self, message: Message) -> None:
        run = self._runs.get(message["run"])
        if run is not None:
            run.notes.update(message["notes"])

    def _on_saved(self, message: Message) -> None:
        forget_run(f"{self._runs_directory}/{message['run']}")

    def _on_forget(self, message: Message) -> None:
        name = message["run"]
        self._lost = [lost for lost in self._lost if lost.run != name]
        forget_run(f"{self._runs_directory}/{name}")
        run = self._runs.get(name)
        if run is not None and run.state == State.ENDED:
            del self._runs[name]

    def _on_keep(self, message: Message) -> None:
        self._kept.update(message["values"])

    def _on_answer(self, message: Message) -> None:
        _, answer = self._requests.pop(message["request"], ({}, lambda _: None))
        answer(message["message"])

    def _on_bye(self, message: Message) -> None:
        code = int(message.get("code", 0))
        if code and (runs := self._work()):
            # A failing agent must not end the tasks; the next agent adopts them.
            self._log("agent_failed", level="error", runs=runs)
        else:
            self._exit_code = code

    def _work(self) -> int:
        """The number of live runs that are not function hosts."""
        return sum(not run.order.host for run in self._by_pid.values())

    # -- events of runs

    def started(self, run: Run) -> None:
        self._agent.send({"op": "started", "run": run.order.run, "pid": run.pid, "time": run.start_time})

    def wrote(self, run: Run) -> None:
        self._agent.send_latest({"op": "output", "run": run.order.run, "size": run.journal.size})

    def ended(self, run: Run) -> None:
        self._by_pid.pop(run.pid, None)
        self._by_token.pop(run.order.token, None)
        self._guards.host_ended(run.order.run)
        self._agent.send({"op": "ended", "run": run.order.run, "result": run.result})
        if self._hierarchy is None and not self._by_pid:
            kill.kill_unowned(self.own_pids())

    def clean(self, run: Run) -> bool:
        launch = Launch(run.order.cleanup, run.order.env, "/", self._nofile)
        try:
            pid, errors = process.spawn(ChildSetup(confined=False), lambda: launch)
        except OSError as error:
            self._log("cleanup_failed", level="error", run=run.order.run, error=str(error))
            return False
        os.close(errors)
        self._cleanups[pid] = run
        return True

    def own_pids(self) -> Collection[int]:
        return {self._agent.pid, self._spares.pid, *self._by_pid, *self._cleanups}

    # -- messages of workloads

    def _handle_task_message(self, message: Message, uid: int, answer: Callable[[Message], None]) -> bool:
        run = self._by_token.get(str(message.get("token", "")))
        if run is not None and run.order.user is not None and uid not in (run.order.user[0], os.geteuid()):
            run = None
        if run is None:
            answer({"ok": False, "error": "no run has this token; is TASKYARD_TOKEN the one of this run?"})
            return False
        run.record_activity()
        message.pop("token")
        match message.get("op"):
            case "log":
                run.append_message(log_message(message))
                answer({"ok": True})
            case "progress":
                run.notes["progress"] = message
                self._agent.send_latest({"op": "progress", "run": run.order.run, "message": message})
                answer({"ok": True})
            case _:
                self._pass_on(run, message, answer)
        return True

    def _pass_on(self, run: Run, message: Message, answer: Callable[[Message], None]) -> None:
        if len(self._requests) >= _REQUEST_LIMIT:
            answer({"ok": False, "error": "too many requests wait for an answer; try again"})
            return
        number = next(self._request_ids)
        request = {"run": run.order.run, **message}
        self._requests[number] = (request, answer)
        self._agent.send({"op": "request", "request": number, "message": request})

    # -- signals

    def _signalled(self, number: int) -> None:
        if number == signal.SIGCHLD:
            self._reap()
        elif number == signal.SIGHUP:
            self._log("agent_restart_requested")
            self._agent.send({"op": "restart"})
        elif number in _STOP_SIGNALS:
            self._stop()

    def _stop(self) -> None:
        self._stop_count += 1
        effect = {1: "drain", 2: "release"}.get(self._stop_count, "kill")
        self._log("signal_received", effect=effect)
        if effect == "kill":
            self._give_up()
        else:
            self._agent.send({"op": effect, "seconds": self._config.drain_seconds})
            if self._stop_count == 1:
                self._loop.after(self._config.drain_seconds + SHUTDOWN_MARGIN, self._give_up)

    def _give_up(self) -> None:
        self._exit_code = _EXIT_LOST if self._work() else 0
        self._loop.stop()

    def _reap(self) -> None:
        while True:
            try:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if not pid:
                return
            if pid == self._agent.pid:
                self._agent_ended(status)
            elif pid == self._spares.pid:
                self._spares.clear()
            elif (cleaned := self._cleanups.pop(pid, None)) is not None:
                cleaned.cleaned()
            elif (run := self._by_pid.get(pid)) is not None:
                run.exited(status, usage)

    def _agent_ended(self, status: int) -> None:
        code = self._agent.exited(status)
        if self._exit_code is not None:
            self._loop.stop()
            return
        self._log("agent_ended", level="warning", exit_code=code, runs=len(self._by_pid))
        self._agent.restart()

    def _end_everything(self) -> None:
        self._agent.signal(signal.SIGKILL)
        for run in list(self._by_pid.values()):
            run.stop(StopReason.SHUTDOWN, 0.0)
        self._spares.clear()
        if self._hierarchy is not None:
            leftovers.remove_groups(self._hierarchy)
        remove_place(self._sandbox.place, self._config.data_dir)


def _close_on_exec() -> None:
    """Keep inherited descriptors from the children."""
    for name in os.listdir("/proc/self/fd"):
        if int(name) > 2:
            with contextlib.suppress(OSError):
                os.set_inheritable(int(name), False)


def _raise_nofile() -> int:
    """Allow as many open files as the host lets this process; the soft limit it was started with."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return soft
