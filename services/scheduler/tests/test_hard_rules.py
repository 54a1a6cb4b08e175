"""Property: no assignment breaks a hard rule, whatever the order of changes, refusals, drains and reconnects.

The production session, fleet, lane board and dispatcher run against a queue in memory; what happens while a
claim is under way happens between the plan and the hand-out. The rules are judged by a model of their own.
"""

from __future__ import annotations

import asyncio
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from services.scheduler.tests.rule_model import CLASSES, TENANTS
from services.scheduler.tests.rule_simulation import RUNNERS, Simulation

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
traits = st.sampled_from(
    [
        ("kinds", ("command",)),
        ("kinds", ("command", "script", "function")),
        ("types", ("*",)),
        ("types", ("mail.*", "heavy")),
        ("functions", ("send",)),
        ("functions", ()),
        ("capacity", 1),
        ("capacity", 3),
        ("memory_mb", 512),
        ("memory_mb", 2048),
        ("memory_mb", None),
    ]
)
work = st.tuples(
    st.just("work"), st.integers(0, len(CLASSES) - 1), st.sampled_from(TENANTS), st.integers(1, 4)
)
changes = st.one_of(
    st.tuples(st.just("admin"), names, keys).map(lambda e: (e[0], e[1], *e[2])),
    st.tuples(st.just("register"), names, keys).map(lambda e: (e[0], e[1], *e[2])),
    st.tuples(st.just("become"), names, traits).map(lambda e: (e[0], e[1], *e[2])),
    st.tuples(st.just("scope"), names, st.sampled_from([(), ("t",), ("u",)])),
    st.tuples(st.just("drain"), names, st.booleans()),
    st.tuples(st.sampled_from(["reconnect", "part", "restart", "finish", "finish", "refuse"]), names),
    st.tuples(st.just("later")),
)
# There is work for every claim, so that something happens to tasks that are on their way.
before = st.tuples(st.lists(work, min_size=1, max_size=2), st.lists(changes, max_size=3)).map(
    lambda found: [*found[0], *found[1]]
)
steps = st.lists(st.tuples(before, st.lists(changes, max_size=3)), min_size=1, max_size=12)


@settings(max_examples=500, deadline=None)
@given(steps)
def test_no_assignment_breaks_a_hard_rule(history: list[tuple[list[Any], list[Any]]]) -> None:
    async def play() -> None:
        simulation = Simulation()
        for before, during_claim in history:
            for event in before:
                simulation.do(*event)
            simulation.during_claim = list(during_claim)
            await simulation.dispatch()
            while simulation.during_claim:
                simulation.do(*simulation.during_claim.pop(0))

    asyncio.run(play())


def test_simulation_hands_out_work_of_every_class() -> None:
    """The property above means something only if assignments are made."""

    async def play() -> set[int]:
        simulation = Simulation()
        simulation.do("admin", "r2", "zone", "eu")
        simulation.do("admin", "r3", "gpu", "h100")
        for class_id in range(len(CLASSES)):
            simulation.do("work", class_id, TENANTS[class_id % 2], 2)
        for _ in range(30):
            await simulation.dispatch()
            for name in RUNNERS:
                simulation.do("finish", name)
        return set(simulation.handed_out)

    # A task that requires a running heavy task may not find any.
    assert asyncio.run(play()) >= set(range(len(CLASSES))) - {9}


def test_simulation_offers_refused_work_again_only_after_its_time() -> None:
    async def play(*after: tuple[Any, ...]) -> int:
        simulation = Simulation()
        for name in ("r2", "r3"):
            simulation.do("drain", name, True)
        simulation.do("work", 0, "t", 1)
        await simulation.dispatch()
        simulation.do("refuse", "r1")
        for event in after:
            simulation.do(*event)
        await simulation.dispatch()
        return simulation.handed_out[0]

    assert asyncio.run(play()) == 1
    for word in ("reconnect", "part"):
        assert asyncio.run(play((word, "r1"))) == 1
    assert asyncio.run(play(("restart", "r1"))) == 2
    assert asyncio.run(play(("later",))) == 2
