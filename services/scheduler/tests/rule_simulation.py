"""A fleet and a queue in memory around the production session and dispatcher; assignments are checked."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from services.scheduler.tests.rule_model import (
    CLASSES,
    Host,
    allowed,
    class_of,
    kind_number,
    lease_of,
    task_class_of,
    tenant_of,
)
from taskyard.v1 import common_pb2, lease_pb2, session_service_pb2
from taskyard.v1 import lease_service_pb2 as leases
from taskyard.v1 import runner_link_service_pb2 as link
from taskyard_scheduler.claimed import Claimed
from taskyard_scheduler.fleet import Fleet
from taskyard_scheduler.lanes import LaneBoard
from taskyard_scheduler.link_config import LinkConfig
from taskyard_scheduler.loop import Dispatcher
from taskyard_scheduler.report_entry import Entry
from taskyard_scheduler.reports import Item
from taskyard_scheduler.session import ParsedReport, Session

RUNNERS = ("r1", "r2", "r3")
REFUSED_SECONDS = 600.0


class WatchedSession(Session):
    """Checks every assignment when it is sent."""

    host: Host
    simulation: Simulation

    def assign(self, found: Sequence[Claimed], claim_time: float) -> Sequence[Claimed]:
        unsent = super().assign(found, claim_time)
        if not unsent:
            for one in found:
                self._check(one.key[0])
        return unsent

    def _check(self, task: str) -> None:
        host, task_class = self.host, task_class_of(task)
        assert not host.drained, "a drained runner got work"
        assert allowed(host, task_class, tenant_of(task), self.simulation.now), (host, task, task_class)
        host.held[task] = task_class
        host.fresh.add(task)
        assert len(host.held) <= host.capacity, "more than it has places for"
        if task_class.memory_mb and host.memory_mb is not None:
            assert host.used_mb <= host.memory_mb, "more than it has memory for"


class Simulation:
    """Simulates everything around the dispatcher."""

    def __init__(self) -> None:
        self.hosts = {name: Host(name) for name in RUNNERS}
        self.sessions: dict[str, WatchedSession] = {}
        self.queue: dict[tuple[str, int], list[str]] = {}
        self.fleet = Fleet()
        self.now = 0.0
        self.board = LaneBoard(self.clock, reservation_delay=0.05)
        config = LinkConfig(scheduler_id="s")
        self.config = config
        self.dispatcher = Dispatcher(self, self.board, self.fleet, config, self.give_back, clock=self.clock)
        self.dispatcher.available = True
        self.during_claim: list[tuple[Any, ...]] = []
        self.count = 0
        self.handed_out: Counter[int] = Counter()
        for host in self.hosts.values():
            self.connect(host)
        classes = [
            leases.PlacementClass(
                class_id=n,
                kind=kind_number(task_class.kind),
                task_type=task_class.task_type,
                function=task_class.function,
                placement=task_class.placement,
                resources=common_pb2.Resources(memory_mb=task_class.memory_mb),
                runner_id_pattern=task_class.pattern,
            )
            for n, task_class in enumerate(CLASSES)
        ]
        self.board.apply(leases.WatchQueueResponse(full=True, classes=classes))

    def clock(self) -> float:
        return self.now

    # ---- called by sessions

    def submit_reports(self, items: Sequence[Item]) -> None:
        self.board.released(Counter(item.ends for item in items if isinstance(item, Entry) and item.ends))

    def submit_renewal(self, session: Session) -> None:
        pass

    def capacity_changed(self, session: Session) -> None:
        self.dispatcher.capacity_changed(session.runner_id)

    def profile_changed(self, session: Session) -> None:
        self.fleet.profile_changed(session)

    # ---- taskdb

    async def claim_for_runners(
        self, request: leases.ClaimForRunnersRequest
    ) -> leases.ClaimForRunnersResponse:
        results = [self._pop(pop) for pop in request.runners]
        # Other events happen while the response is in transit.
        while self.during_claim:
            self.do(*self.during_claim.pop(0))
        return leases.ClaimForRunnersResponse(results=results)

    def _pop(self, pop: leases.RunnerClaim) -> leases.RunnerClaimResult:
        result = leases.RunnerClaimResult()
        memory = pop.budget.memory_mb if pop.HasField("budget") else 10**9
        for tenant in pop.tenants:
            left = tenant.max_tasks
            for lane in tenant.lanes:
                waiting = self.queue[tenant.tenant, lane.lane.class_id]
                while waiting and left and lane.cost.memory_mb <= memory:
                    memory -= lane.cost.memory_mb
                    task = waiting.pop(0)
                    result.assignments.add(lease=lease_of(task), spec=task_class_of(task).spec())
                    left -= 1
                if not waiting:
                    result.drained_lanes.append(lane.lane)
        return result

    def give_back(self, runner_id: str, unsent: Sequence[Claimed]) -> None:
        for one in unsent:
            self._enqueue([one.key[0]])

    def _enqueue(self, tasks: Iterable[str]) -> None:
        for task in tasks:
            tenant, class_id = tenant_of(task), class_of(task)
            queue = self.queue.setdefault((tenant, class_id), [])
            queue.append(task)
            lane = leases.Lane(tenant=tenant, backlog=len(queue))
            lane.key.class_id, lane.key.pinned_runner = class_id, CLASSES[class_id].pinned
            lane.head_ready_time.seconds = 1000
            self.board.apply(leases.WatchQueueResponse(lanes=[lane]))

    # ---- what happens

    def do(self, word: str, *args: Any) -> None:
        getattr(self, f"do_{word}")(*args)

    def do_work(self, class_id: int, tenant: str, count: int) -> None:
        self.count += count
        self._enqueue(f"tenants/{tenant}/tasks/{class_id}-{self.count - n}" for n in range(count))

    def do_later(self) -> None:
        """Advances the clock until refusals have expired."""
        self.now += REFUSED_SECONDS
        for host in self.hosts.values():
            self._beat(host)

    def do_admin(self, name: str, key: str, value: str) -> None:
        _put(self.hosts[name].admin, key, value)
        self._update(self.hosts[name])

    def do_drain(self, name: str, drained: bool) -> None:
        self.hosts[name].drained = drained
        self._update(self.hosts[name])

    def do_scope(self, name: str, scope: tuple[str, ...]) -> None:
        self.hosts[name].scope = scope
        self._update(self.hosts[name])

    def _update(self, host: Host) -> None:
        self.sessions[host.runner_id].update_runner(host.message())

    def do_register(self, name: str, key: str, value: str) -> None:
        _put(self.hosts[name].own, key, value)
        self._beat(self.hosts[name], registration=self.hosts[name].registration())

    def do_become(self, name: str, attribute: str, value: Any) -> None:
        """The agent registers again: with other kinds, types, functions, capacity or memory."""
        setattr(self.hosts[name], attribute, value)
        self._beat(self.hosts[name], registration=self.hosts[name].registration())

    def _beat(self, host: Host, **fields: Any) -> None:
        session = self.sessions[host.runner_id]
        heartbeat = link.Heartbeat(
            heartbeat_id=session.heartbeat_id + 1,
            free=host.free(),
            changed=host.refs(),
            held_count=len(host.held),
            full=True,
            **fields,
        )
        session.receive_heartbeat(heartbeat, self.now)

    def do_reconnect(self, name: str) -> None:
        self.connect(self.hosts[name])

    def do_part(self, name: str) -> None:
        """The stream breaks before the runner reconnects."""
        session = self.sessions[name]
        session.finish()
        self.fleet.remove_session(session, self.now)
        self.connect(self.hosts[name])

    def do_restart(self, name: str) -> None:
        """A new agent process, which is offered again what the former refused."""
        self.hosts[name].instance += 1
        self.hosts[name].refused.clear()
        self.connect(self.hosts[name])

    def connect(self, host: Host) -> None:
        host.epoch += 1
        host.fresh.clear()
        hello = link.Hello(
            runner_id=host.runner_id,
            instance_id=str(uuid.UUID(int=host.instance)),
            protocol_version=1,
            registration=host.registration(),
            free=host.free(),
            held=host.refs(),
        )
        opened = session_service_pb2.OpenSessionResponse(
            session_id="s",
            session_epoch=host.epoch,
            runner=host.message(),
            held_task_types={
                task: task_class.task_type for task, task_class in host.held.items() if task_class.task_type
            },
        )
        session = WatchedSession(hello, opened, self.config, self, lambda: None, self.now)
        session.host, session.simulation = host, self
        self.sessions[host.runner_id] = session
        self.fleet.add_session(session, self.now)

    def do_finish(self, name: str) -> None:
        self._end(self.hosts[name], "succeeded", lease_pb2.RunSucceeded())

    def do_refuse(self, name: str) -> None:
        """The runner refuses a task as unsupported. The scheduler does not have the kind of a task from an
        earlier session, so it cannot record that refusal."""
        host = self.hosts[name]
        reason = lease_pb2.RunReleased(reason=lease_pb2.RELEASE_REASON_UNSUPPORTED)
        task = next(iter(host.held), "")
        if task in host.fresh:
            task_class = host.held[task]
            refusal = (tenant_of(task), task_class.kind, task_class.task_type, task_class.function)
            host.refused[refusal] = self.now + REFUSED_SECONDS
        self._end(host, "released", reason)
        if task:
            self._enqueue([task])

    def _end(self, host: Host, kind: str, outcome: Any) -> None:
        if not host.held:
            return
        task = next(iter(host.held))
        del host.held[task]
        report = lease_pb2.RunReport(lease=lease_of(task), **{kind: outcome})
        self.count += 1
        self.sessions[host.runner_id].receive_reports(
            [ParsedReport(report, kind, (task, 1), self.count)], 1, self.now
        )

    async def dispatch(self) -> None:
        """One round of the dispatcher."""
        self.now += 0.01
        for host in self.hosts.values():
            self._beat(host)
        plans = self.dispatcher._plan_all()
        if plans:
            await self.dispatcher._carry_out(plans)
        for session in self.sessions.values():
            sent = session.outbox.withdraw_assignments()
            self.handed_out.update(class_of(one.key[0]) for one in sent)


def _put(labels: dict[str, str], key: str, value: str) -> None:
    labels.pop(key, None)
    if value:
        labels[key] = value
