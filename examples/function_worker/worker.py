"""A function worker: `taskyard-runner --app worker:app` in this folder serves these functions."""

import asyncio
import hashlib
from dataclasses import dataclass

from taskyard_runner.functions import App, AsyncContext, Child, Context, Permanent, Transient

app = App()


# Fields of the payload are parameters. Type hints are checked: an invalid field fails the task permanently.
@app.task("greet")
async def greet(name: str, greeting: str = "Hello") -> str:
    return f"{greeting}, {name}!"


@dataclass(frozen=True)
class Order:
    id: str
    amount: float
    currency: str = "EUR"


# `async def` functions share a process. Exceptions are retried as the task's policy says, unless they are
# Permanent or the decorator lists them.
@app.task("charge", permanent=(ValueError,))
async def charge(ctx: AsyncContext, payload: Order) -> dict[str, str]:
    if payload.amount <= 0:
        raise ValueError(f"amount {payload.amount} is not positive")
    if payload.currency != "EUR":
        raise Permanent(f"no account in {payload.currency}", code="NO_ACCOUNT")
    if ctx.attempt == 1:
        raise Transient("the bank is busy", code="BANK_BUSY", retry_after=0.2)
    # The fence lets the bank reject a run that was replaced by a newer one.
    return {"receipt": f"{payload.id}/{ctx.attempt}", "fence": ctx.fence}


# A plain function runs in a process of its own, so it may block and can be killed. This one saves
# checkpoints: after a pause, a drain or a crash the next run resumes from the latest one.
@app.task("hash")
def hash_rounds(ctx: Context, text: str, rounds: int = 1000) -> str:
    state = ctx.load_checkpoint() or {"done": 0, "digest": text}
    while state["done"] < rounds:
        state["digest"] = hashlib.sha256(state["digest"].encode()).hexdigest()
        state["done"] += 1
        if state["done"] % 250 == 0:
            ctx.progress(100 * state["done"] // rounds, f"{state['done']} of {rounds}")
            ctx.save_checkpoint(state)
        if ctx.cancelled:
            ctx.save_checkpoint(state)
            ctx.raise_if_cancelled()
    print(f"{rounds} rounds done")
    return str(state["digest"])


# Tasks that a task creates are its children. With a key each child is created once, however often it runs.
@app.task("campaign")
async def campaign(ctx: AsyncContext, names: list[str]) -> int:
    await ctx.create_all([Child("greet", {"name": name}, key=name) for name in names])
    await asyncio.sleep(0)
    ctx.log("greetings are on their way", count=len(names))
    return len(names)


# A function that waits for children ends its run, so that it holds no place meanwhile, and is called again
# from the top: spawn then returns the children that exist, and gather their results.
@app.task("chorus")
async def chorus(ctx: AsyncContext, names: list[str]) -> str:
    greetings = await ctx.spawn_all([Child("greet", {"name": name}, key=name) for name in names])
    return " ".join(await ctx.gather(*greetings))
