"""The functions of the chaos load: numbered lines, an effect log, checkpoints that count, children, waits."""

from __future__ import annotations

import json
import os
import time
from typing import Any

from taskyard_runner.functions import App, Child, Context

app = App()
# The keys of the children that chaos.gather spawns.
SPAWNED = ("a", "b")
# They survive any number of faults, as the tasks of the load do.
RETRY = {"max_retries": 20, "max_runner_losses": 1000, "backoff": {"initial": "0.2s", "max": "0.5s"}}


class Effects:
    """The effect log of one run."""

    def __init__(self, ctx: Context, path: str) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND)
        self._generation = int(ctx.fence.partition(".")[0])
        self._task = ctx.task_id

    def add(self, what: str, n: int = 0) -> None:
        t = time.clock_gettime(time.CLOCK_BOOTTIME)
        line = {"t": t, "task": self._task, "gen": self._generation, "what": what, "n": n}
        os.write(self._file, (json.dumps(line) + "\n").encode())


@app.task("chaos.count")
def count(ctx: Context, payload: dict[str, Any]) -> int:
    """Counts to `steps` from its checkpoint."""
    effects = Effects(ctx, payload["effects"])
    number = ctx.load_checkpoint() or 0
    effects.add("start", number)
    while number < payload["steps"]:
        number += 1
        print(f"line {number}", flush=True)
        effects.add("step", number)
        ctx.sleep(payload["pace"])
        if payload["keeps"]:
            ctx.save_checkpoint(number)
            effects.add("kept", number)
    if ctx.attempt <= payload["fails"]:
        effects.add("fail")
        raise RuntimeError("not yet")
    effects.add("end", number)
    return number


@app.task("chaos.parent")
def parent(ctx: Context, payload: dict[str, Any]) -> list[str]:
    """Creates two children by key: one each, however often it runs."""
    effects = Effects(ctx, payload["effects"])
    effects.add("start")
    child = {**payload, "fails": 0}
    labels = {"chaos": "child", "parent": ctx.task_id}
    names = ctx.create_all([Child("chaos.count", child, key=key, labels=labels) for key in ("a", "b")])
    effects.add("end")
    return names


@app.task("chaos.gather")
def gather(ctx: Context, payload: dict[str, Any]) -> list[int]:
    """Spawns two children by key and waits for them without a place; one each, however often it runs."""
    effects = Effects(ctx, payload["effects"])
    effects.add("start")
    child, labels = {**payload, "fails": 0}, {"chaos": "child", "parent": ctx.task_id}
    children = [Child("chaos.count", child, key, labels, {"retry": RETRY}) for key in SPAWNED]
    spawned = ctx.spawn_all(children)
    effects.add("spawned")
    results = ctx.gather(*spawned)
    effects.add("end")
    return results
