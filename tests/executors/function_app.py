"""The behaviours of the table as functions, each plain and as `async def` (with .async after its name)."""

from __future__ import annotations

import asyncio
import time

from taskyard_runner.functions import App, AsyncContext, Child, Context, Permanent

app = App()


@app.task("prints")
def prints(lines: list[str]) -> None:
    for line in lines:
        print(line)


@app.task("prints.async")
async def prints_async(lines: list[str]) -> None:
    prints(lines)


@app.task("fails")
def fails() -> None:
    raise RuntimeError("not now")


@app.task("fails.async")
async def fails_async() -> None:
    fails()


@app.task("fails-for-good")
def fails_for_good() -> None:
    raise Permanent("no such table", code="BAD_INPUT")


@app.task("fails-for-good.async")
async def fails_for_good_async() -> None:
    fails_for_good()


@app.task("hangs")
def hangs() -> None:
    print("ready")
    time.sleep(600)


@app.task("hangs.async")
async def hangs_async() -> None:
    print("ready")
    await asyncio.sleep(600)


@app.task("counts")
def counts(ctx: Context) -> None:
    number = ctx.load_checkpoint() or 0
    print(f"from {number}")
    if number:
        return
    print("ready")
    while not ctx.cancelled:
        time.sleep(0.01)
    ctx.save_checkpoint(number + 1)


@app.task("counts.async")
async def counts_async(ctx: AsyncContext) -> None:
    number = ctx.load_checkpoint() or 0
    print(f"from {number}")
    if number:
        return
    print("ready")
    try:
        await asyncio.sleep(600)
    finally:
        await ctx.save_checkpoint(number + 1)


@app.task("reports-progress")
def reports_progress(ctx: Context) -> None:
    ctx.progress(60, "half")


@app.task("reports-progress.async")
async def reports_progress_async(ctx: AsyncContext) -> None:
    ctx.progress(60, "half")


@app.task("returns")
def returns() -> dict[str, int]:
    return {"sum": 42}


@app.task("returns.async")
async def returns_async() -> dict[str, int]:
    return returns()


@app.task("takes-memory")
def takes_memory() -> int:
    return len(bytearray(400_000_000))


@app.task("takes-memory.async")
async def takes_memory_async() -> int:
    return takes_memory()


@app.task("lingers")
def lingers() -> None:
    print("before")
    time.sleep(2)
    print("after")


@app.task("lingers.async")
async def lingers_async() -> None:
    print("before")
    await asyncio.sleep(2)
    print("after")


@app.task("sleeps")
def sleeps(seconds: float) -> None:
    time.sleep(seconds)


@app.task("has-children")
def has_children(ctx: Context) -> list[str]:
    once = ctx.create("returns", key="once", labels={"of": "family"}, priority=20)
    if ctx.attempt == 1:
        raise RuntimeError("again")
    return [once, *ctx.create_all([Child("returns"), Child("prints", {"lines": ["child"]})])]


@app.task("has-a-bad-child.async")
async def has_a_bad_child(ctx: AsyncContext) -> str:
    return await ctx.create("returns", priority=5000)
