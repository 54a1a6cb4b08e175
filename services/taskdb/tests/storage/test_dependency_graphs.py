"""Random graphs of dependencies always end, in an order that respects the edges; cycles are found."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from itertools import pairwise
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from services.taskdb.tests.conftest import RunningTaskDb, make_yard, run_taskdb
from services.taskdb.tests.dependency_graphs import Graph, Play, draw, judge
from services.taskdb.tests.yard import Yard
from taskyard_taskdb.domain.dependency import Condition, find_cycle
from taskyard_taskdb.storage.dependency import backlog
from taskyard_taskdb.storage.group import counts
from taskyard_taskdb.storage.pool import Tx
from taskyard_taskdb.storage.tenant import api_keys
from tests.harness.postgres import PostgresServer


class World:
    """A taskdb without housekeeping on a loop of its own, for many examples."""

    def __init__(self, loop: asyncio.Runner, taskdb: RunningTaskDb, yard: Yard) -> None:
        self.loop = loop
        self.taskdb = taskdb
        self.yard = yard
        self.examples = 0

    async def play(self, size: int, seed: int) -> None:
        self.examples += 1
        rng = Random(seed)
        graph = draw(rng, size, f"g{self.examples}")

        async def sweep() -> None:
            await self.fold(rng.choice((1, 5, 1000)))
            await self.taskdb.pool.run(lambda tx: backlog.advance(tx, rng.choice((1, 5, 1000))))

        await Play(self.yard, graph, rng, self.taskdb.rows, sweep).run()
        # A group that is not counted yet keeps the edges of tasks that ended without it.
        while await self.uncounted() or await self.taskdb.pool.run(backlog.exists):
            await sweep()
        await judge(graph, self.taskdb.rows)

    async def uncounted(self) -> bool:
        """Whether groups have outcomes that are not added up."""
        return bool(await self.taskdb.rows("SELECT FROM group_deltas LIMIT 1"))

    async def fold(self, page: int) -> None:
        """Count groups as the leader does."""

        async def fold(tx: Tx) -> None:
            await counts.announce(tx, (await counts.fold(tx, page)).completed)

        await self.taskdb.pool.run(fold)


@pytest.fixture(scope="module")
def world(postgres_server: PostgresServer, migrated_template: str) -> Iterator[World]:
    with postgres_server.database(migrated_template) as url, asyncio.Runner() as loop:
        taskdbs = run_taskdb(url, housekeeping=False)

        async def open_world() -> World:
            taskdb = await anext(taskdbs)
            tenant, scheduler = await taskdb.caller(), await taskdb.caller(api_keys.SCHEDULER)
            return World(loop, taskdb, await make_yard(taskdb, scheduler, tenant))

        async def close_world() -> None:
            await taskdbs.aclose()  # type: ignore[attr-defined]

        made = loop.run(open_world())
        yield made
        loop.run(close_world())


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(size=st.integers(1, 40), seed=st.integers(0, 2**32))
def test_random_graphs_end_in_an_order_that_respects_their_edges(world: World, size: int, seed: int) -> None:
    world.loop.run(world.play(size, seed))


def test_a_fan_in_by_group_is_released_once_by_a_complete_group(world: World) -> None:
    async def play() -> None:
        named: dict[str, list[tuple[str, Condition]]] = {f"m{n}": [] for n in range(300)}
        groups = dict.fromkeys(named, "parts")
        graph = Graph({**named, "last": [("groups/parts", Condition.SUCCEEDED)]}, groups=groups)

        async def sweep() -> None:
            await world.fold(7)
            await world.taskdb.pool.run(backlog.advance)

        await Play(world.yard, graph, Random(1), world.taskdb.rows, sweep).run()
        await judge(graph, world.taskdb.rows)
        rows = await world.taskdb.rows(
            "SELECT live_count, succeeded_count, completion_count FROM groups WHERE group_id = 'parts'"
        )
        assert rows == [(0, 300, 1)]
        # One row for each transaction, not for each outcome.
        assert (await world.taskdb.rows("SELECT last_value FROM group_deltas_id_seq"))[0][0] < 300

    world.loop.run(play())


@given(st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)), max_size=40))
def test_a_cycle_is_found_exactly_if_there_is_one(pairs: list[tuple[int, int]]) -> None:
    edges: dict[int, list[int]] = {}
    for start, end in pairs:
        edges.setdefault(start, []).append(end)
    cycle = find_cycle(edges)
    if cycle:
        assert cycle[0] == cycle[-1] and len(cycle) > 1
        assert all(following in edges[node] for node, following in pairwise(cycle))
    else:
        # Removing what names nothing any more, again and again, leaves nothing.
        left = {node: set(named) for node, named in edges.items()}
        while free := [node for node, named in left.items() if not named & left.keys()]:
            for node in free:
                del left[node]
        assert not left
