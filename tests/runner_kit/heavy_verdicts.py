"""The runner in Go, and every runner with a rule broken. Run by `make runnerkit KIT_ARGS=--prove`."""

from __future__ import annotations

import shutil

import pytest

from tests.runner_kit.broken import BREAKS
from tests.runner_kit.rules import PLAYS
from tests.runner_kit.subject import GO, OURS, Runner, build_go_runner
from tests.runner_kit.verdicts import judge

HAS_GO = shutil.which("go") is not None
CHECKPOINTS = 10


@pytest.fixture(scope="module")
def quick_runner() -> Runner:
    """The runner that starts fastest."""
    if not HAS_GO:
        return Runner(OURS)
    build_go_runner()
    return Runner(GO)


@pytest.mark.timeout(900)
@pytest.mark.skipif(not HAS_GO, reason="Go is not installed")
async def test_the_go_runner_keeps_every_rule_that_it_exercises(quick_runner: Runner) -> None:
    # It takes no checkpoints from its commands.
    assert await judge(quick_runner) == {**dict.fromkeys(PLAYS, ""), CHECKPOINTS: None}


@pytest.mark.timeout(900)
@pytest.mark.parametrize("rule", sorted(BREAKS))
async def test_a_runner_with_one_rule_broken_fails_exactly_that_rule(quick_runner: Runner, rule: int) -> None:
    command = OURS if rule == CHECKPOINTS else quick_runner.command
    verdicts = await judge(Runner(command, BREAKS[rule]))
    assert [number for number, verdict in verdicts.items() if verdict] == [rule], verdicts
