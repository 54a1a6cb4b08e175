"""The kit's verdicts: our runner and the one in Go keep every rule, broken ones break exactly theirs."""

from __future__ import annotations

import shutil
import sys

import pytest

from tests.runner_kit.broken import BREAKS
from tests.runner_kit.rules import PLAYS
from tests.runner_kit.subject import GO, OURS, build_go_runner
from tests.runner_kit.verdicts import judge

EVERY_RULE = {number: None if play is None else "" for number, play in PLAYS.items()}


@pytest.mark.timeout(900)
async def test_our_runner_keeps_every_rule() -> None:
    assert await judge(OURS) == EVERY_RULE


@pytest.mark.timeout(900)
@pytest.mark.skipif(shutil.which("go") is None, reason="Go is not installed")
async def test_the_go_runner_keeps_every_rule() -> None:
    build_go_runner()
    assert await judge(GO) == EVERY_RULE


@pytest.mark.timeout(900)
@pytest.mark.parametrize("rule", sorted(BREAKS))
async def test_a_runner_with_one_rule_broken_fails_exactly_that_rule(rule: int) -> None:
    place = OURS.index("--scheduler")
    command = (
        sys.executable,
        "-m",
        "tests.runner_kit.broken",
        str(rule),
        *OURS[place : OURS.index("--kind")],
    )
    verdicts = await judge(command)
    assert [number for number, verdict in verdicts.items() if verdict] == [rule], verdicts
