"""Our runner keeps every rule, a broken one fails its rule; the others are in `heavy_verdicts.py`."""

from __future__ import annotations

import shutil
from collections.abc import Sequence

import pytest

from tests.runner_kit.broken import BREAKS
from tests.runner_kit.rules import PLAYS
from tests.runner_kit.subject import GO, OURS, Runner, build_go_runner
from tests.runner_kit.verdicts import judge

HELLO, WINDOW = 1, 11


@pytest.mark.timeout(900)
async def test_our_runner_keeps_every_rule() -> None:
    assert await judge(Runner(OURS)) == dict.fromkeys(PLAYS, "")


@pytest.mark.timeout(300)
async def test_a_runner_that_ignores_the_window_fails_that_rule() -> None:
    command: Sequence[str] = OURS
    if shutil.which("go") is not None:
        # It starts fastest.
        build_go_runner()
        command = GO
    verdicts = await judge(Runner(command, BREAKS[WINDOW]), {HELLO, WINDOW})
    assert [number for number, verdict in verdicts.items() if verdict] == [WINDOW], verdicts
