"""The verdict on each rule."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Collection
from pathlib import Path

from tests.runner_kit.rules import PLAYS, Play
from tests.runner_kit.subject import NotExercised, Runner

PLAY_SECONDS = 240.0
# Most of a play is waiting.
AT_ONCE = 5


async def judge(runner: Runner, only: Collection[int] = ()) -> dict[int, str | None]:
    """By rule: None if it is not exercised, empty if it is kept, otherwise what the runner did instead.

    A rule that seems broken is played again, without others beside it: a busy machine delays heartbeats too.
    """
    places = asyncio.Semaphore(AT_ONCE)

    async def judge_one(number: int) -> str | None:
        async with places:
            begun = time.monotonic()
            verdict = await _verdict(runner, PLAYS[number])
            print(line_of(number, verdict, time.monotonic() - begun), flush=True)
            return verdict

    chosen = [number for number in PLAYS if not only or number in only]
    verdicts = dict(zip(chosen, await asyncio.gather(*map(judge_one, chosen)), strict=True))
    for number in [number for number, verdict in verdicts.items() if verdict]:
        verdicts[number] = await judge_one(number)
    return verdicts


async def _verdict(runner: Runner, play: Play) -> str | None:
    with tempfile.TemporaryDirectory(prefix="taskyard-kit-", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o755)
        try:
            async with asyncio.timeout(PLAY_SECONDS):
                await play(runner, Path(folder, "play"))
        except NotExercised:
            return None
        except AssertionError as error:
            return str(error) or "not as the rule says"
        except TimeoutError:
            return f"no sign of life in time; the runner's last lines:\n{_tail(Path(folder))}"
    return ""


def line_of(number: int, verdict: str | None, seconds: float) -> str:
    about = (PLAYS[number].__doc__ or "").strip()
    sign = "–" if verdict is None else "✗" if verdict else "✓"
    about = f"Not exercised: {about}" if verdict is None else about
    return f"{sign} rule {number:2}  {about} ({seconds:.1f} s)" + (f"\n    {verdict}" if verdict else "")


def _tail(folder: Path) -> str:
    logs = sorted(folder.rglob("runner.log"))
    return "\n".join(log.read_text(errors="replace")[-1500:] for log in logs)
