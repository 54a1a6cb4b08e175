"""Functions that spawn children and wait for them, for tests with real runners."""

from __future__ import annotations

import fcntl
import os
from typing import Any

from taskyard_runner.functions import App, AsyncContext, Child, ChildFailed, Context

app = App()


def note(effects: str, line: str) -> None:
    """Append a line; a short write is never torn."""
    fd = os.open(effects, os.O_WRONLY | os.O_APPEND)
    os.write(fd, f"{line}\n".encode())
    os.close(fd)


def pass_gate(gate: str) -> None:
    """Returns once the test has opened the gate."""
    if gate:
        with open(gate) as file:
            fcntl.flock(file, fcntl.LOCK_SH)


@app.task("leaf")
def leaf(number: int, effects: str, gate: str = "") -> int:
    pass_gate(gate)
    note(effects, f"leaf {number}")
    return number * number


@app.task("quick")
async def quick(number: int) -> int:
    return number


@app.task("broken", permanent=(ValueError,))
async def broken() -> None:
    raise ValueError("it is broken")


@app.task("squares")
async def squares(ctx: AsyncContext, count: int, effects: str, gate: str = "") -> int:
    note(effects, f"parent {ctx.attempt}")
    payloads = [{"number": n, "effects": effects, "gate": gate} for n in range(count)]
    spawned = await ctx.spawn_all([Child("leaf", payload) for payload in payloads])
    return sum(await ctx.gather(*spawned))


@app.task("plain_squares")
def plain_squares(ctx: Context, count: int, effects: str, gate: str = "", before: str = "") -> int:
    note(effects, f"parent {ctx.attempt}")
    spawned = [
        ctx.spawn("leaf", {"number": n, "effects": effects, "gate": gate}, key=f"leaf-{n}")
        for n in range(count)
    ]
    note(effects, "spawned")
    pass_gate(before)
    return sum(ctx.gather(*spawned))


@app.task("wide")
async def wide(ctx: AsyncContext, count: int) -> int:
    spawned = await ctx.spawn_all([Child("quick", {"number": n}) for n in range(count)])
    return sum(await ctx.gather(*spawned))


@app.task("careless")
async def careless(ctx: AsyncContext) -> None:
    await ctx.gather(await ctx.spawn("broken"))


@app.task("careful")
async def careful(ctx: AsyncContext) -> dict[str, Any]:
    good, bad = await ctx.spawn("quick", {"number": 5}), await ctx.spawn("broken")
    value, failed = await ctx.gather(good, bad, return_exceptions=True)
    assert isinstance(failed, ChildFailed)
    return {"value": value, "phase": failed.phase, "code": failed.error_code, "task": failed.task}


@app.task("swallowing")
async def swallowing(ctx: AsyncContext) -> str:
    try:
        (value,) = await ctx.gather(await ctx.spawn("quick", {"number": 7}))
    except BaseException:
        return "swallowed"
    return f"got {value}"


@app.task("stages")
async def stages(ctx: AsyncContext) -> int:
    """A second wait that depends on the results of the first, and a child that waits itself."""
    (first,) = await ctx.gather(await ctx.spawn("quick", {"number": 3}))
    (second,) = await ctx.gather(await ctx.spawn("wide", {"count": first + 1}))
    return int(second)


@app.task("changing")
async def changing(ctx: AsyncContext) -> None:
    """Not deterministic: another payload in each run."""
    await ctx.gather(await ctx.spawn("quick", {"number": int(ctx.fence.partition(".")[0])}))
