"""One runner's session: the rules of the link, without I/O and with the clock passed in.

The stream handler passes it messages and writes the messages of its outbox; the flushes to taskdb pass it
their results. When a session has ended, `over` is set and, after a failure, `error`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, Protocol

from taskyard import errors
from taskyard.v1 import lease_pb2, runner_pb2, session_service_pb2
from taskyard.v1 import runner_link_service_pb2 as link
from taskyard_scheduler import convert
from taskyard_scheduler.claimed import Claimed
from taskyard_scheduler.domain.capacity import Capacity, RunKey
from taskyard_scheduler.domain.placement import RunnerProfile
from taskyard_scheduler.domain.refusals import RefusalKey, Refusals
from taskyard_scheduler.domain.rooms import Offer
from taskyard_scheduler.link_config import PROTOCOL_VERSION, LinkConfig, duration
from taskyard_scheduler.outbox import Outbox
from taskyard_scheduler.renewals import PendingRenewal
from taskyard_scheduler.report_entry import OUTCOMES, Entry
from taskyard_scheduler.short_runs import Block
from taskyard_scheduler.verdicts import Verdicts


class ParsedReport(NamedTuple):
    """A parsed report of the runner: its kind and its run."""

    report: lease_pb2.RunReport
    kind: str
    key: RunKey
    seq: int


class SessionHost(Protocol):
    """The scheduler's methods that a session calls."""

    def submit_reports(self, items: Sequence[Entry | Block]) -> None: ...
    def submit_renewal(self, session: Session) -> None: ...
    def capacity_changed(self, session: Session) -> None: ...
    def profile_changed(self, session: Session) -> None: ...
    def give_back(self, runner_id: str, unsent: Sequence[Claimed]) -> None: ...


class Session:
    """The session of one runner on one stream; calls `wake` when its outbox has messages and when it ends."""

    def __init__(
        self,
        hello: link.Hello,
        opened: session_service_pb2.OpenSessionResponse,
        config: LinkConfig,
        host: SessionHost,
        wake: Callable[[], None],
        now: float,
    ) -> None:
        self.runner_id = hello.runner_id
        self.instance_id = hello.instance_id
        self.session_id = opened.session_id
        self.epoch = opened.session_epoch
        self.over = False
        self.closing = False
        self.error: errors.TaskyardError | None = None
        self.heartbeat_id = 0
        self.heartbeat_time = now
        self.drain: runner_pb2.DrainRequest | None = None
        # Includes the refusals of the agent's earlier sessions once the fleet has admitted this one.
        self.refusals = Refusals()
        # The time from which the log rate limit allows more logs.
        self.log_time = 0.0
        self.outbox = Outbox(wake)
        # Places that are lent to taskdb for tasks that it leases when they are created.
        self.lent = 0
        self.capacity = Capacity(hello.registration.capacity, hello.registration.prefetch)
        self._config = config
        self._host = host
        self._wake = wake
        self._registration = hello.registration
        self._runner = opened.runner
        self._own_drain = hello.draining
        # Lower bound of the time at which taskdb last renewed the session.
        self._renewed_time = now
        self._renewal = PendingRenewal()
        self._mismatch = False
        self._verdicts = Verdicts()
        self._in_flight: deque[Entry | Block] = deque()
        self._unacked_reports = 0
        self._last_seq = 0
        self._acked_seq = 0
        self._unacked_bytes = 0
        self.profile = self._make_profile()
        self._send_welcome(hello, opened, now)

    # ---- hello and welcome (rules 1, 2)

    def _send_welcome(
        self, hello: link.Hello, opened: session_service_pb2.OpenSessionResponse, now: float
    ) -> None:
        aborted = lease_pb2.LEASE_ACTION_ABORT
        lost = {convert.run_key(v.lease) for v in opened.verdicts if v.action == aborted}
        listed = [(convert.run_key(held.lease), held.state == link.HELD_STATE_ENDED) for held in hello.held]
        self.capacity.update(hello.free.tasks, convert.free_resources(hello.free), listed, full=True)
        for (task, _), run in self.capacity.held.items():
            run.task_type = opened.held_task_types.get(task, "")
        # OpenSession moved every held lease to this session unless it returned a verdict for it.
        self.capacity.follow(key for key, _ in listed if key not in lost)
        self._verdicts.add(opened.verdicts, now)
        self.drain = convert.drain_of(opened.runner)
        config = self._config
        self.outbox.welcome(
            link.Welcome(
                session_id=self.session_id,
                session_epoch=self.epoch,
                scheduler_id=config.scheduler_id,
                protocol_version=min(hello.protocol_version, PROTOCOL_VERSION),
                heartbeat_interval=duration(config.heartbeat_interval),
                lease_duration=duration(config.lease_duration),
                flow=config.flow(),
                verdicts=opened.verdicts,
                max_session_age=duration(config.max_session_age),
                drain=self.drain,
                tenants=opened.runner.tenants,
                short_runs=True,
            )
        )

    # ---- heartbeats and renewal (rules 4, 5, 6)

    def receive_heartbeat(self, heartbeat: link.Heartbeat, now: float) -> None:
        """Updates liveness, capacity and held runs; the ack follows once taskdb has stored the renewal."""
        if heartbeat.heartbeat_id <= self.heartbeat_id:
            raise self.violation(
                f"heartbeat_id {heartbeat.heartbeat_id} came after {self.heartbeat_id}; ids count up"
            )
        self.heartbeat_id = heartbeat.heartbeat_id
        self.heartbeat_time = now
        self._own_drain = heartbeat.draining
        if heartbeat.HasField("registration"):
            self._register(heartbeat.registration)
        self._take_over(heartbeat)
        self._host.submit_renewal(self)
        self._host.capacity_changed(self)

    def _take_over(self, heartbeat: link.Heartbeat) -> None:
        renewal = self._renewal
        listed: list[tuple[RunKey, bool]] = []
        refs: dict[RunKey, lease_pb2.LeaseRef] = {}
        for held in heartbeat.changed:
            key = convert.run_key(held.lease)
            refs[key] = held.lease
            listed.append((key, held.state == link.HELD_STATE_ENDED))
            if held.HasField("progress"):
                renewal.progress[key] = session_service_pb2.LeaseProgress(
                    lease=held.lease, progress=held.progress
                )
        dropped = {convert.run_key(ref): ref for ref in heartbeat.dropped}
        lost = {key: ref for key, ref in dropped.items() if self.capacity.is_live(key)}
        free = heartbeat.free
        new = self.capacity.update(
            free.tasks, convert.free_resources(free), listed, dropped, full=heartbeat.full
        )
        for key in dropped:
            self._verdicts.forget(key)
        renewal.heartbeat_id = heartbeat.heartbeat_id
        renewal.listed.update((key, refs[key]) for key in new)
        renewal.drop(lost)
        self._mismatch = heartbeat.held_count != len(self.capacity.held)

    def _register(self, registration: runner_pb2.RunnerRegistration) -> None:
        self._registration = registration
        self._renewal.registration = registration
        self.capacity.capacity = registration.capacity
        self.capacity.prefetch = registration.prefetch
        self._refresh_profile()

    def take_renewal(self, now: float) -> tuple[PendingRenewal, session_service_pb2.SessionRenewal]:
        """Returns the pending renewal; `renewed` or `renewal_failed` is called with its result."""
        taken, self._renewal = self._renewal, PendingRenewal()
        taken.start_time = now
        request = session_service_pb2.SessionRenewal(
            runner_id=self.runner_id,
            session_epoch=self.epoch,
            lease_duration=duration(self._config.lease_duration),
            listed=taken.listed.values(),
            dropped=taken.dropped.values(),
            progress=taken.progress.values(),
            used_capacity=self.capacity.used,
            draining=self._own_drain,
            registration=taken.registration,
        )
        if (budget := self.capacity.budget) is not None:
            request.free_resources.CopyFrom(convert.resources_message(budget))
        return taken, request

    def renewal_failed(self, taken: PendingRenewal) -> None:
        """taskdb could not be reached: the heartbeat stays unacknowledged and joins the next renewal."""
        taken.merge(self._renewal)
        self._renewal = taken

    def renewed(
        self, taken: PendingRenewal, result: session_service_pb2.SessionRenewalResult, now: float
    ) -> None:
        """taskdb has stored the renewal, or reports that the session is lost."""
        if self.over:
            return
        if result.lost:
            self.lose(now)
            return
        self._renewed_time = taken.start_time
        self.capacity.follow(taken.listed)
        self._verdicts.replace(result.verdicts, taken.start_time, self.capacity.has)
        ack = link.HeartbeatAck(
            heartbeat_id=taken.heartbeat_id,
            lease_ttl=duration(self._config.lease_duration),
            verdicts=self._verdicts.all(),
            full_requested=self._mismatch,
        )
        self.outbox.acknowledge_heartbeat(ack)
        if self.drain is not None and not self._own_drain:
            self.outbox.command(link.Command(drain=self.drain))

    def lose(self, now: float) -> None:
        """taskdb no longer has the session: it was superseded, or it expired."""
        limit = self._config.lease_duration
        if now - self._renewed_time >= limit:
            self.finish(errors.HeartbeatTimeout(self.runner_id, f"{limit:g} s"))
        else:
            self.finish(errors.SessionSuperseded(self.runner_id))

    # ---- commands as desired state (rule 13)

    def send_verdicts(self, verdicts: Iterable[lease_pb2.LeaseVerdict], now: float) -> None:
        """Sends verdicts on leases to the agent at once; heartbeat acks repeat them.

        Assignments of those leases that were not written yet are withdrawn.
        """
        new = list(verdicts)
        self._verdicts.add(new, now)
        if not new:
            return
        withdrawn = self.outbox.withdraw_assignments({convert.run_key(verdict.lease) for verdict in new})
        for one in withdrawn:
            self.capacity.withdraw(one.key)
        self._host.give_back(self.runner_id, withdrawn)
        self.outbox.command(link.Command(leases=link.LeaseVerdicts(verdicts=new)))

    def update_runner(self, runner: runner_pb2.Runner) -> None:
        """An administrator changed drain or labels, or deleted the runner."""
        if runner.HasField("delete_time"):
            message = f'runner "{self.runner_id}" was deleted; enrol it under another id'
            self.finish(errors.PermissionDenied(message=message))
            return
        drain = convert.drain_of(runner)
        if drain is not None and drain != self.drain:
            self.outbox.command(link.Command(drain=drain))
        elif drain is None and self.drain is not None:
            self.outbox.command(link.Command(undrain=link.UndrainCommand()))
        self.drain = drain
        self._runner = runner
        self._refresh_profile()
        self._host.capacity_changed(self)

    def _refresh_profile(self) -> None:
        profile = self._make_profile()
        if profile != self.profile:
            self.profile = profile
            self._host.profile_changed(self)

    def _make_profile(self) -> RunnerProfile:
        # Merged as taskdb does it; taskdb may not have this registration yet.
        runner = self._runner
        labels = {**(runner.scope_labels or self._registration.labels), **runner.admin_labels}
        since = runner.register_time.seconds + runner.register_time.nanos / 1e9
        return convert.runner_profile(
            self.runner_id, self._registration, labels, runner.tenants, register_time=since
        )

    # ---- reports (rules 7, 8, 11)

    def receive_reports(self, reports: Iterable[ParsedReport], size: int, now: float) -> None:
        """Accepts reports in order, and progress with seq 0; acks follow once taskdb has committed them."""
        entries = []
        freed = False
        for parsed in reports:
            entry = self._entry(parsed)
            entries.append(entry)
            if parsed.kind in OUTCOMES:
                entry.ends = convert.tenant_of(parsed.key[0])
                self._end(parsed, now)
                freed = True
        if self._in_flight and self._in_flight[-1] is entries[-1]:
            entries[-1].size = size
            self._unacked_bytes += size
        self._check_window()
        self._host.submit_reports(entries)
        if freed:
            self._host.capacity_changed(self)

    def receive_short_runs(self, runs: lease_pb2.ShortRuns, size: int) -> None:
        """Accepts a block of short runs like the report of each."""
        block = Block(self, self.runner_id, runs, size)
        self._enter(block, runs.first_seq)
        self._unacked_bytes += size
        self.capacity.end_all(block.keys)
        self._check_window()
        self._host.submit_reports([block])
        self._host.capacity_changed(self)

    def _entry(self, parsed: ParsedReport) -> Entry:
        seq = parsed.seq
        entry = Entry(self, self.runner_id, parsed.report, seq=seq)
        if seq:
            self._enter(entry, seq)
        elif parsed.kind != "progress":
            raise self.violation(f"a {parsed.kind} report came without a seq; only progress may have 0")
        return entry

    def _enter(self, item: Entry | Block, first_seq: int) -> None:
        if first_seq <= self._last_seq:
            raise self.violation(
                f"report seq {first_seq} came after {self._last_seq}; they ascend in a session"
            )
        self._last_seq = item.seq
        self._in_flight.append(item)
        self._unacked_reports += item.count

    def _end(self, parsed: ParsedReport, now: float) -> None:
        if parsed.kind == "released":
            reason = parsed.report.released.reason
            if reason == lease_pb2.RELEASE_REASON_NO_CAPACITY:
                self.capacity.refuse()
            elif reason == lease_pb2.RELEASE_REASON_UNSUPPORTED:
                self._record_refusal(parsed.key, now)
        self.capacity.end(parsed.key)

    def _record_refusal(self, key: RunKey, now: float) -> None:
        run = self.capacity.sent.get(key) or self.capacity.held.get(key)
        if run is not None and run.kind:
            refusal = RefusalKey(convert.tenant_of(key[0]), run.kind, run.task_type, run.function)
            self.refusals.add(refusal, now)
            self._host.profile_changed(self)

    def reports_decided(self) -> None:
        """Acknowledges reports up to the first one that taskdb has not decided yet."""
        rejections = []
        through = self._acked_seq
        while self._in_flight and self._in_flight[0].decided:
            item = self._in_flight.popleft()
            through = item.seq
            self._unacked_reports -= item.count
            self._unacked_bytes -= item.size
            if self._verdicts:
                for key in item.keys:
                    self._verdicts.forget(key)
            for seq, lease, status in item.rejections():
                rejections.append(link.ReportRejection(seq=seq, lease=lease, status=status))
        if through > self._acked_seq:
            self._acked_seq = through
            self.outbox.acknowledge_reports(through, rejections)

    @property
    def unacked_reports(self) -> int:
        """Reports that taskdb has not decided yet."""
        return self._unacked_reports

    def take_bulk(self, size: int) -> None:
        """Counts log or checkpoint bytes that arrived; `bulk_stored` follows."""
        self._unacked_bytes += size
        self._check_window()

    def bulk_stored(self, size: int) -> None:
        """Counts bytes that left the scheduler's memory."""
        self._unacked_bytes -= size

    def _check_window(self) -> None:
        config = self._config
        if self._unacked_reports > 2 * config.max_unacked_reports:
            raise errors.WindowExceeded(self.runner_id, f"{config.max_unacked_reports} reports")
        if self._unacked_bytes > 2 * config.max_unacked_bytes:
            raise errors.WindowExceeded(self.runner_id, f"{config.max_unacked_bytes} bytes")

    # ---- assignments (rule 3)

    def offer(self, now: float) -> Offer | None:
        """The free capacity of the runner; None if it accepts no work."""
        if not self.accepts_work(now):
            return None
        capacity = self.capacity
        free = capacity.room(now) - self.lent
        if free <= 0:
            return None
        return Offer(
            self.runner_id,
            self.runner_id,
            free,
            capacity.used,
            capacity.capacity,
            capacity.budget,
            since=self.profile.register_time,
            limited=bool(self.profile.tenants) or self.refusals.prune(now),
        )

    def accepts_work(self, now: float) -> bool:
        """Whether the runner accepts work; it may be full."""
        if self.over or self.closing or self.draining:
            return False
        return now - self.heartbeat_time <= self._config.fresh_limit

    @property
    def draining(self) -> bool:
        """Whether the agent or an administrator drains the runner."""
        return self._own_drain or self.drain is not None

    def assign(self, found: Sequence[Claimed], claim_time: float) -> Sequence[Claimed]:
        """Sends claimed tasks; returns those that can no longer be sent.

        They name the last heartbeat received before the claim was sent, at `claim_time`: the agent counts the
        lease from the sending of that heartbeat, which is always before the claim.
        """
        if self.over or self.closing or self.draining:
            return found
        # A verdict may arrive before the response to the claim that it concerns.
        stopped = [one for one in found if self._verdicts.has(one.key)] if self._verdicts else []
        if stopped:
            found = [one for one in found if one not in stopped]
        expire_time = claim_time + self._config.first_lease
        accounted = self.capacity.budget is not None
        send, workload = self.capacity.send, None
        for one in found:
            if one.workload is not workload:
                workload = one.workload
                run = one.run(expire_time, accounted=accounted)
            send(one.key, run)
        self.outbox.assign(found)
        return stopped

    # ---- the end (rules 2, 6, 14)

    def send_goodbye(self, reason: link.ServerGoodbyeReason.ValueType, reconnect_after: float) -> None:
        """Announces the end of the session; reports are accepted until the agent half-closes."""
        if not (self.over or self.closing):
            self.closing = True
            wait = duration(reconnect_after)
            self.outbox.goodbye(link.ServerGoodbye(reason=reason, reconnect_after=wait))

    def finish(self, error: errors.TaskyardError | None = None) -> None:
        """Ends the session; only the first call sets the error."""
        if not self.over:
            self.over = True
            self.error = error
            self._wake()

    def check_silence(self, now: float) -> None:
        """Ends the session if no heartbeat arrived for three intervals."""
        limit = self._config.silence_limit
        if now - self.heartbeat_time >= limit:
            self.finish(errors.HeartbeatTimeout(self.runner_id, f"{limit:g} s"))

    def violation(self, problem: str) -> errors.ProtocolViolation:
        return errors.ProtocolViolation(self.runner_id, problem)
