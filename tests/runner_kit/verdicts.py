"""The verdict on each rule."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Collection, Sequence
from pathlib import Path

from tests.runner_kit.rules import PLAYS

PLAY_SECONDS = 240.0


async def judge(command: Sequence[str], only: Collection[int] = ()) -> dict[int, str | None]:
    """By rule: None if it is not exercised, empty if it is kept, otherwise what the runner did instead."""
    verdicts: dict[int, str | None] = {}
    for number, play in PLAYS.items():
        if only and number not in only:
            continue
        if play is None:
            verdicts[number] = None
            continue
        with tempfile.TemporaryDirectory(prefix="taskyard-kit-", ignore_cleanup_errors=True) as folder:
            Path(folder).chmod(0o755)
            try:
                async with asyncio.timeout(PLAY_SECONDS):
                    await play(command, Path(folder, "play"))
                verdicts[number] = ""
            except AssertionError as error:
                verdicts[number] = str(error) or "not as the rule says"
            except TimeoutError:
                verdicts[number] = f"no sign of life in time; the runner's last lines:\n{_tail(Path(folder))}"
        print(line_of(number, verdicts[number]), flush=True)
    return verdicts


def line_of(number: int, verdict: str | None) -> str:
    play = PLAYS[number]
    about = (play.__doc__ or "").strip() if play else "Not exercised by a runner of commands."
    sign = "–" if verdict is None else "✗" if verdict else "✓"
    return f"{sign} rule {number:2}  {about}" + (f"\n    {verdict}" if verdict else "")


def _tail(folder: Path) -> str:
    logs = sorted(folder.rglob("runner.log"))
    return "\n".join(log.read_text(errors="replace")[-1500:] for log in logs)
