"""Plain functions pass the table, each in a host of its own; and what only functions can do."""

from __future__ import annotations

import pytest

from taskyard import Phase, function
from tests.executors.bench import PATIENCE, Bench
from tests.executors.cases import ExecutorCases
from tests.executors.functions import Functions


class TestFunction(ExecutorCases):
    kind = Functions()


@pytest.mark.asyncio(loop_scope="module")
async def test_children_belong_to_their_parent_and_a_key_makes_one_of_them(bench: Bench) -> None:
    task = await bench.run(function("has-children", retry={"max_retries": 1, "initial": 0.05}))
    assert (task.phase, task.attempt) == (Phase.SUCCEEDED, 2), task.proto
    found = [child async for child in bench.client.list(f'metadata.parent_task = "{task.name}"')]
    assert {child.name for child in found} == set(task.output)
    # The first one was created by both attempts, and is one.
    assert len(task.output) == 3
    family = next(child for child in found if child.name == task.output[0]).proto
    assert dict(family.metadata.labels) == {"of": "family"}
    assert family.spec.priority == 20
    for child in found:
        done = await bench.client.wait(child, timeout=PATIENCE)
        assert done.phase is Phase.SUCCEEDED


@pytest.mark.asyncio(loop_scope="module")
async def test_the_parent_receives_the_reason_why_a_child_was_refused(bench: Bench) -> None:
    task = await bench.run(function("has-a-bad-child.async", retry=0))
    assert task.error is not None and task.error.code == "FIELD_INVALID"
    assert "priority" in task.error.message
