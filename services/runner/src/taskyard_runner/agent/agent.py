"""The agent's side of the runner link: chooses the next message to send and handles each received one."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from pathlib import Path

from taskyard.status import from_status
from taskyard.v1.common_pb2 import Resources
from taskyard.v1.lease_pb2 import (
    RELEASE_REASON_DRAINED,
    RELEASE_REASON_NO_CAPACITY,
    Assignment,
    LeaseVerdict,
    RunReport,
)
from taskyard.v1.runner_link_service_pb2 import (
    HELD_STATE_RUNNING,
    HELD_STATE_STOPPING,
    Capacity,
    CheckpointAck,
    ConnectRequest,
    ConnectResponse,
    Hello,
    ReportAck,
    ReportBatch,
    Welcome,
)
from taskyard.v1.runner_pb2 import RunnerRegistration
from taskyard_kit.logs import get_log
from taskyard_kit.metrics import instrument
from taskyard_runner.agent import bounds
from taskyard_runner.agent.checkpoints import Uploads
from taskyard_runner.agent.drain import Drain
from taskyard_runner.agent.leases import Held, Leases, key_of
from taskyard_runner.agent.link import LinkLost, Refused
from taskyard_runner.agent.log_lines import timestamp
from taskyard_runner.agent.logs import LogShipper
from taskyard_runner.agent.metric_names import REPORTS_REJECTED
from taskyard_runner.agent.run import seconds
from taskyard_runner.agent.runs import Runs
from taskyard_runner.agent.short_runs import in_columns, shape_of
from taskyard_runner.agent.spool import Spool
from taskyard_runner.warden.linux import boottime
from taskyard_runner.warden.protocol import Message

PROTOCOL_VERSION = 1
_BATCH_BYTES = 256 * 1024
_BATCH_REPORTS = 1000
_DEFAULT_INTERVAL = 10.0
# Rule 4 allows a second.
_LIST_SECONDS = 0.5
_PROGRESS_SECONDS = 1.0
_MISSED_ACKS = 3
_TOO_WIDE = (
    "nothing keeps tasks of different tenants apart on this host, and the key is for more than one tenant;"
    " install bubblewrap, run the runner as root, give it a key for one tenant"
    " (taskyard keys create --kind runner --runner-tenant NAME), or name --sandbox none"
)

log = get_log(__name__)
_rejected = instrument(REPORTS_REJECTED)


class Agent:
    """Implements the runner link without blocking: the link polls for messages and delivers responses."""

    def __init__(
        self,
        *,
        runner_id: str,
        instance_id: str,
        takeover: bool,
        one_tenant: bool,
        registration: RunnerRegistration,
        evidence: Path,
        leases: Leases,
        spool: Spool,
        logs: LogShipper,
        uploads: Uploads,
        runs: Runs,
        drain: Drain,
        send_to_warden: Callable[[Message], None],
    ) -> None:
        self._runner_id = runner_id
        self._instance_id = instance_id
        self._takeover = takeover
        # Tasks are not isolated from each other; the welcome names the tenants that the key serves.
        self._one_tenant = one_tenant
        self._welcomed = False
        self._registration = registration
        self._evidence = evidence
        self._leases = leases
        self._spool = spool
        self._logs = logs
        self._uploads = uploads
        self._runs = runs
        self._drain = drain
        self._send_to_warden = send_to_warden
        self._flow = bounds.DEFAULT_FLOW
        # Whether the scheduler takes short runs in columns.
        self._short_runs = False
        self._interval = _DEFAULT_INTERVAL
        self._heartbeat_at = 0.0
        self._full = False
        self._sent_draining = False
        self._registration_changed = False
        self._progress: dict[str, float] = {}
        self._log_budget_at = 0.0
        self.leaving = False

    # -- hello and welcome

    def hello(self) -> ConnectRequest:
        """The first message of a stream, which lists every held lease."""
        self._spool.rewind()
        self._logs.rewind()
        self._uploads.rewind()
        self._sent_draining = self._drain.own
        return ConnectRequest(
            hello=Hello(
                runner_id=self._runner_id,
                instance_id=self._instance_id,
                takeover=self._takeover,
                protocol_version=PROTOCOL_VERSION,
                registration=self._registration,
                free=self._free(),
                held=self._leases.begin_session(boottime()),
                draining=self._drain.own,
            )
        )

    def welcome(self, response: ConnectResponse) -> None:
        """The session is open. Raises LinkLost after another message, Refused if the key is too wide."""
        if response.WhichOneof("message") != "welcome":
            raise LinkLost("the scheduler's first message was not a welcome")
        welcome = response.welcome
        if self._one_tenant and len(welcome.tenants) != 1:
            raise Refused(_TOO_WIDE)
        self._welcomed = True
        log.info(
            "session_opened",
            session=welcome.session_id,
            scheduler=welcome.scheduler_id,
            held=len(self._leases),
        )
        # From now on the data directory proves that this runner owns its id.
        self._evidence.write_text(self._runner_id)
        self._takeover = False
        self._flow = bounds.usable(welcome.flow) if welcome.HasField("flow") else bounds.DEFAULT_FLOW
        self._short_runs = welcome.short_runs
        self._interval = bounds.interval(welcome.heartbeat_interval, self._interval)
        # The hello of a single-tenant runner offered no capacity.
        self._heartbeat_at = boottime() + (0.0 if self._one_tenant else self._interval)
        self._renew(self._leases.welcomed(_lease_duration(welcome)))
        self._apply_verdicts(welcome.verdicts)
        if welcome.HasField("drain"):
            self._drain.apply_request(welcome.drain)
        else:
            self._drain.cancel()

    def _free(self) -> Capacity:
        tenants_unverified = self._one_tenant and not self._welcomed
        closed = self._drain.active or self._spool.full or tenants_unverified
        tasks = 0 if closed else max(0, self._registration.capacity - self._leases.active_count)
        return Capacity(tasks=tasks, resources=self._free_resources())

    def _free_resources(self) -> Resources | None:
        if not self._registration.HasField("resources"):
            return None
        total = self._registration.resources
        used = [run.resources for run in self._runs.table.live()]
        return Resources(
            cpu_millis=max(0, total.cpu_millis - sum(r.cpu_millis for r in used)),
            memory_mb=max(0, total.memory_mb - sum(r.memory_mb for r in used)),
            disk_mb=max(0, total.disk_mb - sum(r.disk_mb for r in used)),
        )

    # -- sending: heartbeat, reports, progress, checkpoints, logs

    def next_request(self) -> ConnectRequest | None:
        """The next message by class (rule 12). Raises LinkLost after three unacknowledged intervals."""
        now = boottime()
        oldest = self._leases.oldest_unacked
        if oldest is not None and now - oldest > _MISSED_ACKS * self._interval:
            raise LinkLost(f"no heartbeat was acknowledged for {_MISSED_ACKS * self._interval:g} s")
        if now >= self._heartbeat_due(now):
            return self._heartbeat(now)
        return self._reports() or self._progress_reports(now) or self._bulk(now) or self._goodbye()

    def next_due(self) -> float:
        """When to call next_request again without a wake-up."""
        now = boottime()
        due = [self._heartbeat_due(now)]
        if self._unsent_progress():
            due.append(min(self._progress.values(), default=now))
        if self._log_budget_at > now:
            due.append(self._log_budget_at)
        return min(due)

    def _heartbeat_due(self, now: float) -> float:
        if self._full or self._sent_draining != self._drain.own or self._registration_changed:
            return now
        if self._leases.unlisted:
            self._heartbeat_at = min(self._heartbeat_at, now + _LIST_SECONDS)
        return self._heartbeat_at

    def _heartbeat(self, now: float) -> ConnectRequest:
        heartbeat = self._leases.heartbeat(now, full=self._full)
        heartbeat.free.CopyFrom(self._free())
        heartbeat.draining = self._sent_draining = self._drain.own
        heartbeat.spool_depth = self._spool.depth
        if self._registration_changed:
            heartbeat.registration.CopyFrom(self._registration)
            self._registration_changed = False
        self._full = False
        self._heartbeat_at = now + self._interval
        return ConnectRequest(heartbeat=heartbeat)

    def _reports(self) -> ConnectRequest | None:
        count, size = self._spool.in_flight()
        room = self._flow.max_unacked_reports - count
        if room <= 0 or size >= self._flow.max_unacked_bytes:
            return None
        kind = shape_of if self._short_runs else _alike
        reports = self._spool.take(min(room, _BATCH_REPORTS), _BATCH_BYTES, kind)
        if not reports:
            return None
        if kind(reports[0]) is not None:
            return ConnectRequest(short_runs=in_columns(reports))
        return ConnectRequest(reports=ReportBatch(reports=reports))

    def _unsent_progress(self) -> list[Held]:
        # The scheduler ignores progress of a run whose start was not reported.
        started_states = (HELD_STATE_RUNNING, HELD_STATE_STOPPING)
        return [held for held in self._leases.unreported_progress.values() if held.state in started_states]

    def _progress_reports(self, now: float) -> ConnectRequest | None:
        due = [held for held in self._unsent_progress() if self._progress.get(held.run, 0.0) <= now]
        if not due:
            return None
        batch = ReportBatch()
        for held in due[:_BATCH_REPORTS]:
            held.progress_unreported = False
            self._leases.unreported_progress.pop(held.key, None)
            self._progress[held.run] = now + _PROGRESS_SECONDS
            batch.reports.append(
                RunReport(lease=held.lease, progress=held.progress, time=timestamp(time.time()))
            )
        live = {held.run for held in self._leases}
        self._progress = {run: at for run, at in self._progress.items() if run in live}
        return ConnectRequest(reports=batch)

    def _bulk(self, now: float) -> ConnectRequest | None:
        if self._flow.hold_bulk:
            return None
        chunk = self._uploads.take()
        if chunk is not None:
            return ConnectRequest(checkpoint_chunk=chunk)
        room = self._flow.max_unacked_bytes - self._logs.in_flight - self._spool.in_flight()[1]
        if room <= 0 or now < self._log_budget_at:
            return None
        batch = self._logs.take(room)
        if batch is None:
            return None
        if rate := self._flow.max_log_bytes_per_second:
            self._log_budget_at = now + batch.ByteSize() / rate
        return ConnectRequest(logs=batch)

    def _goodbye(self) -> ConnectRequest | None:
        if self._drain.goodbye is None:
            return None
        self.leaving = True
        return ConnectRequest(goodbye=self._drain.goodbye)

    # -- receiving

    def receive(self, response: ConnectResponse) -> None:
        """Handle a message; an unknown message is ignored, a failure is logged."""
        try:
            self._receive(response)
        except Exception as error:
            log.exception("message_failed", message=response.WhichOneof("message"), error=repr(error))

    def _receive(self, response: ConnectResponse) -> None:
        match response.WhichOneof("message"):
            case "assignments":
                for assignment in response.assignments.assignments:
                    self._try_to_assign(assignment)
            case "heartbeat_ack":
                ack = response.heartbeat_ack
                self._interval = bounds.interval(ack.heartbeat_interval, self._interval)
                self._full = self._full or ack.full_requested
                self._renew(self._leases.acknowledge(ack.heartbeat_id, seconds(ack.lease_ttl)))
                self._apply_verdicts(ack.verdicts)
            case "report_ack":
                self._acknowledge(response.report_ack)
            case "command":
                self._command(response)
            case "log_ack":
                key = key_of(response.log_ack.lease)
                refused = response.log_ack.status.code != 0
                if refused:
                    error = from_status(response.log_ack.status)
                    log.warning("logs_refused", task=key[0], generation=key[1], error=str(error))
                self._logs.acknowledge(key, response.log_ack.through_sequence, refused=refused)
                self._runs.logs_acked(key)
            case "checkpoint_ack":
                self._checkpoint_acked(response.checkpoint_ack)
            case "checkpoint_retry":
                retry = response.checkpoint_retry
                unavailable = from_status(retry.status).retryable
                self._uploads.retry(key_of(retry.lease), retry.sequence, unavailable=unavailable)
            case "flow":
                self._flow = bounds.usable(response.flow)

    def _try_to_assign(self, assignment: Assignment) -> None:
        try:
            self._assign(assignment)
        except Exception as error:
            # An invalid assignment must not prevent the others from starting.
            log.exception("assignment_failed", task=assignment.lease.task, error=repr(error))

    def _assign(self, assignment: Assignment) -> None:
        lease = assignment.lease
        if self._leases.get(key_of(lease)) is not None:
            return
        until = self._leases.first_lease(assignment.heartbeat_id, seconds(assignment.lease_ttl))
        if until is None or boottime() >= until:
            # Released at once: taskdb counts the lease from the claim and may hold the task longer.
            log.warning("assignment_expired", task=lease.task, generation=lease.generation)
            message = "the assignment arrived after its first lease had ended"
            self._runs.refuse(assignment, RELEASE_REASON_NO_CAPACITY, message)
        elif self._drain.active:
            self._runs.refuse(assignment, RELEASE_REASON_DRAINED, "the runner is draining")
        elif self._spool.full:
            message = "the runner's spool is full; it waits for the scheduler to acknowledge reports"
            self._runs.refuse(assignment, RELEASE_REASON_NO_CAPACITY, message)
        elif self._leases.active_count >= self._registration.capacity + self._registration.prefetch:
            message = f"all {self._registration.capacity} places are taken"
            self._runs.refuse(assignment, RELEASE_REASON_NO_CAPACITY, message)
        else:
            total = None
            if assignment.HasField("total_timeout"):
                sent = self._leases.sent_time(assignment.heartbeat_id)
                total = sent + seconds(assignment.total_timeout)
            self._runs.accept(assignment, until, total)

    def _renew(self, renewed: list[Held]) -> None:
        by_end: dict[float, list[str]] = {}
        for held in renewed:
            if held.guarded and held.run and held.active:
                by_end.setdefault(held.until, []).append(held.run)
        for until, runs in by_end.items():
            self._send_to_warden({"op": "lease", "until": until, "runs": runs})

    def _apply_verdicts(self, verdicts: Iterable[LeaseVerdict]) -> None:
        for verdict in verdicts:
            self._runs.apply_verdict(verdict)

    def _acknowledge(self, ack: ReportAck) -> None:
        for rejection in ack.rejections:
            error, lease = from_status(rejection.status), rejection.lease
            reason = error.reason or error.code.name
            _rejected.add(1, {"reason": error.reason})
            log.warning("report_rejected", task=lease.task, generation=lease.generation, reason=reason)
            self._runs.rejected(rejection.seq, reason)
        self._spool.acknowledge(ack.through_seq)
        self._runs.acknowledged(ack.through_seq)

    def _checkpoint_acked(self, ack: CheckpointAck) -> None:
        error = from_status(ack.status) if ack.status.code else None
        if error is not None and error.retryable:
            # An older scheduler, which does not send CheckpointRetry.
            self._uploads.retry(key_of(ack.lease), ack.sequence, unavailable=True)
        else:
            self._uploads.decide(key_of(ack.lease), ack.sequence, str(error or ""))

    def _command(self, response: ConnectResponse) -> None:
        match response.command.WhichOneof("command"):
            case "leases":
                self._apply_verdicts(response.command.leases.verdicts)
            case "drain":
                self._drain.apply_request(response.command.drain)
            case "undrain":
                self._drain.cancel()

    def register(self, registration: RunnerRegistration) -> None:
        """Send a new registration with the next heartbeat."""
        self._registration = registration
        self._registration_changed = True

    # -- for the link and the drain

    @property
    def holds_work(self) -> bool:
        """Whether leases or reports would be lost by exiting."""
        return len(self._leases) > 0 or self._spool.depth > 0

    @property
    def settled(self) -> bool:
        """Nothing runs, every outcome is acknowledged and every log stored."""
        return len(self._leases) == 0 and self._spool.depth == 0 and self._logs.idle


def _alike(report: RunReport) -> None:
    """The shape of every report for a scheduler that does not take short runs."""


def _lease_duration(welcome: Welcome) -> float:
    return seconds(welcome.lease_duration) or 3 * _DEFAULT_INTERVAL
