"""An application for the tests of function hosts; folders and gates come with the payload."""

from __future__ import annotations

import asyncio
import fcntl
import logging
import os
import signal
import sys
import time
from typing import Any

from taskyard_runner.functions import App, AsyncContext, Cancelled, Child, Context, Permanent, Transient

app = App()


@app.task("noop")
async def noop() -> None:
    pass


@app.task("noop-sync")
def noop_sync() -> None:
    pass


@app.task("add")
async def add(a: int, b: int = 1) -> int:
    return a + b


@app.task("add-sync")
def add_sync(a: int, b: int = 1) -> int:
    return a + b


@app.task("keep-and-fail")
def keep_and_fail(ctx: Context) -> None:
    ctx.save_checkpoint(1)
    raise Transient("after its checkpoint")


@app.task("progress-and-keep")
def progress_and_keep(ctx: Context) -> None:
    for percent in (50, 100):
        ctx.progress(percent, f"at {percent}")
        ctx.save_checkpoint(percent, wait=30)


@app.task("echo")
def echo(ctx: Context, payload: Any) -> Any:
    return {
        "payload": payload if not isinstance(payload, bytes) else payload.hex(),
        "attempt": ctx.attempt,
        "fence": ctx.fence,
        "task": ctx.task,
        "env": ctx.env,
        "labels": ctx.labels,
        "pid": os.getpid(),
        "grpc": "grpc" in sys.modules,
    }


@app.task("describe")
def describe(ctx: Context) -> dict[str, Any]:
    return {
        "entity": ctx.entity and [ctx.entity.type, ctx.entity.id],
        "max_steps": ctx.max_steps,
        "checkpoint_interval": ctx.checkpoint_interval,
        "scheduled_time": ctx.scheduled_time and ctx.scheduled_time.isoformat(),
    }


@app.task("measure")
async def measure(ctx: AsyncContext, output: Any = None) -> Any:
    ctx.metrics(accuracy=0.5, steps=3)
    ctx.metrics(accuracy=0.93)
    ctx.log("solved", step=2, action="submit", why="done")
    return output


@app.task("fail", permanent=(KeyError,))
async def fail(how: str) -> None:
    if how == "transient":
        raise Transient("the disk is slow", code="SLOW_DISK", retry_after=7)
    if how == "permanent":
        raise Permanent("no such table", code="BAD_INPUT")
    if how == "listed":
        raise KeyError("listed")
    if how == "exit":
        sys.exit(4)
    raise ValueError("plain")


@app.task("talk")
def talk(ctx: Context) -> None:
    print("printed")
    print("to stderr", file=sys.stderr)
    logging.getLogger("mine").warning("logged %d", 1)
    ctx.log("context log", "error", step=3, extra="x")
    ctx.progress(60, "half")
    print("unfinished", end="")


@app.task("talk-async")
async def talk_async(ctx: AsyncContext, name: str, rounds: int = 3) -> None:
    for n in range(rounds):
        print(f"{name} {n}")
        await asyncio.sleep(0)


@app.task("wait")
def wait(gate: str) -> str:
    """Blocks until the gate is opened."""
    with open(gate) as file:
        fcntl.flock(file, fcntl.LOCK_SH)
    return "through"


@app.task("wait-async")
async def wait_async(ctx: AsyncContext, gate: str) -> str:
    print("ready")
    await asyncio.to_thread(wait, gate)
    return "through"


@app.task("block")
def block(ctx: Context, seconds: float = 600) -> None:
    """Does not look at anything."""
    print("ready")
    time.sleep(seconds)


@app.task("block-loop")
async def block_loop(ctx: AsyncContext, seconds: float = 600) -> None:
    """Blocks the event loop of its host."""
    print("ready")
    time.sleep(seconds)  # noqa: ASYNC251


@app.task("sleep-async")
async def sleep_async(ctx: AsyncContext, seconds: float = 600) -> None:
    print("ready")
    await asyncio.sleep(seconds)


@app.task("stubborn-async")
async def stubborn_async(ctx: AsyncContext) -> None:
    print("ready")
    while True:
        try:
            await asyncio.sleep(600)
        except asyncio.CancelledError:
            continue


@app.task("obedient")
def obedient(ctx: Context) -> None:
    print("ready")
    try:
        while True:
            ctx.sleep(600)
    except Cancelled:
        ctx.log(f"stopped by {ctx.stop_reason}")
        raise


@app.task("count")
def count(ctx: Context) -> int:
    """Counts on from its checkpoint; a pause makes it save the next number."""
    number = ctx.load_checkpoint() or 0
    print(f"from {number}")
    if number:
        return int(number)
    print("ready")
    while not ctx.cancelled:
        time.sleep(0.01)
    ctx.save_checkpoint(number + 1)
    return 0


@app.task("count-async")
async def count_async(ctx: AsyncContext) -> int:
    number = ctx.load_checkpoint() or 0
    print(f"from {number}")
    if number:
        return int(number)
    print("ready")
    try:
        await asyncio.sleep(600)
    except asyncio.CancelledError:
        await ctx.save_checkpoint(number + 1)
        raise
    return 0


@app.task("parent")
async def parent(ctx: AsyncContext, key: str = "first") -> list[str]:
    one = await ctx.create("add", {"a": 1}, key=key, labels={"of": "parent"}, priority=20)
    return [one, *await ctx.create_all([Child("add", {"a": 2}), Child("add", {"a": 3})])]


@app.task("spawning")
async def spawning(ctx: AsyncContext) -> str:
    return (await ctx.spawn("add", {"a": 1}, key="one")).task


@app.task("spawning-sync")
def spawning_sync(ctx: Context) -> str:
    return ctx.spawn("add", {"a": 1}, key="one").task


@app.task("hog")
def hog() -> int:
    return len(bytearray(400_000_000))


@app.task("die")
def die(number: int = int(signal.SIGKILL)) -> None:
    os.kill(os.getpid(), number)


@app.task("die-async")
async def die_async(ctx: AsyncContext) -> None:
    await asyncio.sleep(0.05)
    os.kill(os.getpid(), signal.SIGKILL)


@app.task("exit")
def leave(code: int = 0) -> None:
    os._exit(code)


kept: list[bytes] = []


@app.task("leak")
async def leak(size: int) -> int:
    kept.append(os.urandom(size))
    return os.getpid()


@app.task("where")
async def where() -> int:
    return os.getpid()


@app.task("where-sync")
def where_sync() -> int:
    return os.getpid()


@app.task("large")
async def large(size: int) -> str:
    return "x" * size


@app.task("unserialisable")
async def unserialisable() -> object:
    return object()


@app.task("nap")
def nap(seconds: float) -> int:
    """Blocks for a moment."""
    time.sleep(seconds)
    return os.getpid()
