"""Property: no assignment breaks a hard rule, whatever the order of label changes, drains and reconnects.

The production session, fleet, lane board and dispatcher run against a queue in memory; what happens while a
claim is under way happens between the plan and the hand-out. The rules are judged by a model of their own.
"""

from __future__ import annotations

import asyncio
import uuid
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from taskyard.v1 import common_pb2, lease_pb2, runner_pb2, session_service_pb2, task_pb2
from taskyard.v1 import lease_service_pb2 as leases
from taskyard.v1 import runner_link_service_pb2 as link
from taskyard_scheduler.fleet import Fleet
from taskyard_scheduler.lanes import LaneBoard
from taskyard_scheduler.link_config import LinkConfig
from taskyard_scheduler.loop import Dispatcher
from taskyard_scheduler.reports import Entry
from taskyard_scheduler.session import Said, Session

RUNNERS = ("r1", "r2", "r3")
CAPACITY = 3


def selector(**fields: Any) -> task_pb2.RunnerConstraint:
    return task_pb2.RunnerConstraint(selector=common_pb2.RunnerSelector(**fields))


def expression(key: str, operator: int, *values: str) -> task_pb2.RunnerConstraint:
    made = task_pb2.RunnerConstraint()
    made.selector.match_expressions.add(key=key, operator=operator, values=values)
    return made


# What each class of tasks asks for: its type, and its placement.
CLASSES: Sequence[tuple[str, task_pb2.Placement]] = [
    ("", task_pb2.Placement()),
    ("heavy", task_pb2.Placement()),
    ("", task_pb2.Placement(required=selector(match_labels={"zone": "eu"}))),
    ("", task_pb2.Placement(required=expression("gpu", 3))),
    ("", task_pb2.Placement(required=expression("zone", 2, "us"))),
    ("", task_pb2.Placement(required=expression("spot", 4))),
    ("", task_pb2.Placement(avoid=selector(match_labels={"spot": "yes"}))),
    ("", task_pb2.Placement(required=task_pb2.RunnerConstraint(runner_ids=["r1", "r3"]))),
    ("light", task_pb2.Placement(avoid=task_pb2.RunnerConstraint(task_types=["heavy", "light"]))),
    ("", task_pb2.Placement(required=task_pb2.RunnerConstraint(task_types=["heavy"]))),
]


@dataclass
class Host:
    """A runner as it really is, by the model."""

    runner_id: str
    own: dict[str, str] = field(default_factory=dict)
    admin: dict[str, str] = field(default_factory=dict)
    drained: bool = False
    epoch: int = 0
    # What it holds, by task name, with the type.
    held: dict[str, str] = field(default_factory=dict)
    session: WatchedSession | None = None

    @property
    def labels(self) -> dict[str, str]:
        return {**self.own, **self.admin}

    def message(self) -> runner_pb2.Runner:
        made = runner_pb2.Runner(name=f"runners/{self.runner_id}", admin_labels=self.admin)
        if self.drained:
            made.drain.mode = runner_pb2.DRAIN_MODE_FINISH
        return made

    def registration(self) -> runner_pb2.RunnerRegistration:
        return runner_pb2.RunnerRegistration(
            labels=self.own,
            task_types=["*"],
            execution_kinds=[runner_pb2.EXECUTION_KIND_COMMAND],
            capacity=CAPACITY,
        )

    def refs(self) -> list[link.HeldTask]:
        return [
            link.HeldTask(
                lease=lease_pb2.LeaseRef(task=task, generation=1, lease_id=1), state=link.HELD_STATE_RUNNING
            )
            for task in self.held
        ]

    def free(self) -> link.Capacity:
        return link.Capacity(tasks=CAPACITY - len(self.held))


def allowed(host: Host, placement: task_pb2.Placement) -> bool:
    """The rules of the contract, as a reader of it would put them."""
    required, avoid = placement.required, placement.avoid
    types = set(host.held.values())
    if required.runner_ids and host.runner_id not in required.runner_ids:
        return False
    if required.task_types and not types & set(required.task_types):
        return False
    if not selects(required.selector, host.labels):
        return False
    named = host.runner_id in avoid.runner_ids
    company = types & set(avoid.task_types)
    return not (named or company or (avoid.HasField("selector") and selects(avoid.selector, host.labels)))


def selects(wanted: common_pb2.RunnerSelector, labels: dict[str, str]) -> bool:
    for key, value in wanted.match_labels.items():
        if labels.get(key) != value:
            return False
    for rule in wanted.match_expressions:
        there, among = rule.key in labels, labels.get(rule.key) in list(rule.values)
        if not (None, there and among, not (there and among), there, not there)[rule.operator]:
            return False
    return True


class WatchedSession(Session):
    """Checks every assignment at the moment it goes out."""

    host: Host

    def assign(
        self, assignments: Sequence[lease_pb2.Assignment], heartbeat_id: int, claim_time: float
    ) -> Sequence[lease_pb2.Assignment]:
        unsent = super().assign(assignments, heartbeat_id, claim_time)
        if not unsent:
            for assignment in assignments:
                spec = assignment.spec
                assert not self.host.drained, "a drained runner got work"
                assert allowed(self.host, spec.placement), (self.host, spec)
                self.host.held[assignment.lease.task] = spec.task_type
            assert len(self.host.held) <= CAPACITY
        return unsent


class World:
    """Everything around the dispatcher."""

    def __init__(self) -> None:
        self.hosts = {name: Host(name) for name in RUNNERS}
        self.queue: dict[int, list[str]] = {n: [] for n in range(len(CLASSES))}
        self.fleet = Fleet()
        self.now = 0.0
        self.board = LaneBoard(self.clock)
        config = LinkConfig(scheduler_id="s")
        self.config = config
        self.dispatcher = Dispatcher(self, self.board, self.fleet, config, self.give_back, clock=self.clock)
        self.dispatcher.available = True
        self.meanwhile: list[tuple[Any, ...]] = []
        self.count = 0
        self.handed_out = 0
        for host in self.hosts.values():
            self.connect(host)
        self.board.apply(
            leases.WatchQueueResponse(
                full=True,
                classes=[
                    leases.PlacementClass(
                        tenant="t",
                        class_id=n,
                        kind=runner_pb2.EXECUTION_KIND_COMMAND,
                        task_type=task_type,
                        placement=placement,
                    )
                    for n, (task_type, placement) in enumerate(CLASSES)
                ],
            )
        )

    def clock(self) -> float:
        return self.now

    # ---- what sessions ask for

    def submit_reports(self, entries: Sequence[Entry]) -> None:
        self.board.released(Counter(entry.ends for entry in entries if entry.ends))

    def submit_renewal(self, session: Session) -> None:
        pass

    def capacity_changed(self, session: Session) -> None:
        self.dispatcher.capacity_changed(session.runner_id)

    def profile_changed(self, session: Session) -> None:
        self.fleet.profile_changed(session)

    # ---- taskdb

    async def pop_tasks(self, request: leases.PopTasksRequest) -> leases.PopTasksResponse:
        results = [self._pop(pop) for pop in request.runners]
        # The answer is on its way; the world goes on.
        while self.meanwhile:
            self.do(*self.meanwhile.pop(0))
        return leases.PopTasksResponse(results=results)

    def _pop(self, pop: leases.RunnerPop) -> leases.PopResult:
        result = leases.PopResult()
        for tenant in pop.tenants:
            left = tenant.max_tasks
            for lane in tenant.lanes:
                waiting = self.queue[lane.lane.class_id]
                while waiting and left:
                    result.assignments.append(self._assignment(waiting.pop(0), lane.lane.class_id))
                    left -= 1
                if not waiting:
                    result.drained_lanes.append(lane.lane)
        return result

    def _assignment(self, task: str, class_id: int) -> lease_pb2.Assignment:
        task_type, placement = CLASSES[class_id]
        made = lease_pb2.Assignment(lease=lease_pb2.LeaseRef(task=task, generation=1, lease_id=1))
        made.spec.task_type = task_type
        made.spec.execution.command.program = "true"
        made.spec.placement.CopyFrom(placement)
        return made

    def give_back(self, runner_id: str, assignments: Sequence[lease_pb2.Assignment]) -> None:
        for assignment in assignments:
            self._enqueue(_class_of(assignment), [assignment.lease.task])

    def _enqueue(self, class_id: int, tasks: Iterable[str]) -> None:
        self.queue[class_id].extend(tasks)
        lane = leases.Lane(tenant="t", backlog=len(self.queue[class_id]))
        lane.key.class_id = class_id
        lane.head_ready_time.seconds = 1000
        self.board.apply(leases.WatchQueueResponse(lanes=[lane]))

    # ---- what happens

    def do(self, word: str, *args: Any) -> None:
        getattr(self, f"do_{word}")(*args)

    def do_work(self, class_id: int, count: int) -> None:
        self.count += count
        self._enqueue(class_id, [f"tenants/t/tasks/{self.count - n}" for n in range(count)])

    def do_admin(self, name: str, key: str, value: str) -> None:
        host = self.hosts[name]
        host.admin.pop(key, None)
        if value:
            host.admin[key] = value
        self._update(host)

    def do_drain(self, name: str, drained: bool) -> None:
        self.hosts[name].drained = drained
        self._update(self.hosts[name])

    def _update(self, host: Host) -> None:
        if host.session is not None and not host.session.over:
            host.session.update_runner(host.message())

    def do_register(self, name: str, key: str, value: str) -> None:
        host = self.hosts[name]
        host.own.pop(key, None)
        if value:
            host.own[key] = value
        if host.session is not None:
            self._beat(host, host.session, registration=host.registration())

    def _beat(self, host: Host, session: Session, **fields: Any) -> None:
        session.receive_heartbeat(
            link.Heartbeat(
                heartbeat_id=session.heartbeat_id + 1,
                free=host.free(),
                changed=host.refs(),
                held_count=len(host.held),
                full=True,
                **fields,
            ),
            self.now,
        )

    def do_reconnect(self, name: str) -> None:
        self.connect(self.hosts[name])

    def connect(self, host: Host) -> None:
        host.epoch += 1
        hello = link.Hello(
            runner_id=host.runner_id,
            instance_id=str(uuid.UUID(int=1)),
            protocol_version=1,
            registration=host.registration(),
            free=host.free(),
            held=host.refs(),
        )
        opened = session_service_pb2.OpenSessionResponse(
            session_id="s",
            session_epoch=host.epoch,
            runner=host.message(),
            held_task_types={task: kind for task, kind in host.held.items() if kind},
        )
        session = WatchedSession(hello, opened, self.config, self, lambda: None, self.now)
        session.host = host
        host.session = session
        self.fleet.add_session(session, self.now)

    def do_finish(self, name: str) -> None:
        host = self.hosts[name]
        if host.session is None or not host.held:
            return
        task = next(iter(host.held))
        del host.held[task]
        report = lease_pb2.RunReport(
            lease=lease_pb2.LeaseRef(task=task, generation=1, lease_id=1), succeeded=lease_pb2.RunSucceeded()
        )
        self.count += 1
        host.session.receive_reports([Said(report, "succeeded", (task, 1), self.count)], 1, self.now)

    async def dispatch(self) -> None:
        """One round of the dispatcher."""
        self.now += 0.01
        for host in self.hosts.values():
            if host.session is not None:
                self._beat(host, host.session)
        plans = self.dispatcher._plan_all()
        if plans:
            await self.dispatcher._carry_out(plans)
        for host in self.hosts.values():
            if host.session is not None:
                self.handed_out += len(host.session.outbox.withdraw_assignments())


def _class_of(assignment: lease_pb2.Assignment) -> int:
    spec = assignment.spec
    return CLASSES.index((spec.task_type, spec.placement))


names = st.sampled_from(RUNNERS)
keys = st.sampled_from(
    [
        ("zone", "eu"),
        ("zone", "us"),
        ("zone", ""),
        ("gpu", "h100"),
        ("gpu", ""),
        ("spot", "yes"),
        ("spot", ""),
    ]
)
events = st.one_of(
    st.tuples(st.just("work"), st.integers(0, len(CLASSES) - 1), st.integers(1, 4)),
    st.tuples(st.just("admin"), names, keys).map(lambda e: (e[0], e[1], *e[2])),
    st.tuples(st.just("register"), names, keys).map(lambda e: (e[0], e[1], *e[2])),
    st.tuples(st.just("drain"), names, st.booleans()),
    st.tuples(st.just("reconnect"), names),
    st.tuples(st.just("finish"), names),
)
steps = st.lists(
    st.tuples(st.lists(events, max_size=4), st.lists(events, max_size=3)), min_size=1, max_size=12
)


@settings(max_examples=300, deadline=None)
@given(steps)
def test_no_assignment_breaks_a_hard_rule(history: list[tuple[list[Any], list[Any]]]) -> None:
    async def play() -> None:
        world = World()
        for before, meanwhile in history:
            for event in before:
                world.do(*event)
            world.meanwhile = list(meanwhile)
            await world.dispatch()
            while world.meanwhile:
                world.do(*world.meanwhile.pop(0))

    asyncio.run(play())


def test_the_world_hands_out_work() -> None:
    """The property above means something only if assignments are made."""

    async def play() -> int:
        world = World()
        world.do("admin", "r2", "zone", "eu")
        for class_id in range(len(CLASSES)):
            world.do("work", class_id, 2)
        for _ in range(6):
            await world.dispatch()
            for name in RUNNERS:
                world.do("finish", name)
        return world.handed_out

    assert asyncio.run(play()) >= 10
