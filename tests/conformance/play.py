"""Plays the steps of a behaviour with a driver and compares what comes of them."""

from __future__ import annotations

import asyncio
import json
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.conformance.driver import DriverError
from tests.conformance.languages import Language
from tests.conformance.table import Behaviour, Step, TableError, difference, fill_in
from tests.conformance.world import ActError, Stage, World


@dataclass(frozen=True)
class Verdict:
    """How a behaviour went: no fault if it passed, None if it does not apply to the language."""

    fault: str | None
    seconds: float = 0.0


class StepError(AssertionError):
    """A step did not come out as its table says."""


async def features(language: Language, world: World) -> frozenset[str]:
    """The features that a driver declares."""
    with tempfile.TemporaryDirectory(prefix="taskyard-driver-") as folder:
        stage = Stage(world, language.command, Path(folder))
        try:
            async with asyncio.timeout(60):
                answer = await (await stage.driver()).send("hello", {})
        finally:
            await stage.close()
    return frozenset(answer["ok"].get("features", ()))


async def play(behaviour: Behaviour, language: Language, offered: frozenset[str], world: World) -> Verdict:
    """Play a behaviour in one language."""
    if not behaviour.needs <= offered:
        return Verdict(None)
    begun = time.monotonic()
    world.heal()
    with tempfile.TemporaryDirectory(prefix="taskyard-play-") as folder:
        Path(folder).chmod(0o755)
        stage = Stage(world, language.command, Path(folder))
        fault = await _play_on(stage, behaviour)
    return Verdict(fault, time.monotonic() - begun)


async def _play_on(stage: Stage, behaviour: Behaviour) -> str:
    started: dict[str, asyncio.Future[dict[str, Any]]] = {}
    done = 0
    try:
        for step in behaviour.steps:
            async with asyncio.timeout(step.seconds):
                await _take(stage, step, started)
            done += 1
        stage.world.heal()
        await stage.close()
    except TimeoutError:
        fault = f"no answer within {behaviour.steps[done].seconds:g} s"
    except (StepError, ActError, DriverError, TableError, OSError) as error:
        fault = str(error)
    else:
        return ""
    stage.world.heal()
    try:
        await stage.close()
    except DriverError as error:
        fault += f"; then {error}"
    failed = behaviour.steps[min(done, len(behaviour.steps) - 1)]
    return f"step {done + 1} ({failed.verb} {failed.subject}): {fault}"


async def _take(stage: Stage, step: Step, started: dict[str, asyncio.Future[dict[str, Any]]]) -> None:
    arguments = fill_in(step.arguments, stage.variables)
    if step.verb == "world":
        await stage.act(step.subject, arguments)
        return
    if step.verb == "finish":
        answer = await started.pop(step.subject)
    else:
        future = (await stage.driver()).send(step.subject, arguments)
        if step.verb == "start":
            started[step.label] = future
            return
        answer = await future
    _compare(step, answer, stage.variables)
    for variable, member in step.save.items():
        found = answer["ok"][member]
        stage.variables[variable] = found if isinstance(found, str) else json.dumps(found)


def _compare(step: Step, answer: Mapping[str, Any], variables: Mapping[str, str]) -> None:
    if step.error is not None:
        if "error" not in answer:
            raise StepError(f"succeeded with {answer.get('ok')}, expected the error {dict(step.error)}")
        gap = difference(fill_in(step.error, variables), answer["error"])
    else:
        if "ok" not in answer:
            raise StepError(f"failed: {answer.get('error')}")
        gap = difference(fill_in(step.expect or {}, variables), answer["ok"])
    if gap:
        raise StepError(f"{gap}; the whole answer: {json.dumps(answer)[:1000]}")
