"""Functions that wait for children, called by the test helper."""

from __future__ import annotations

import pytest

from taskyard_runner.functions import App, AsyncContext, Child, ChildFailed, Context
from taskyard_runner.functions.children import PAGE, Spawned, gather
from taskyard_runner.functions.errors import Waiting
from taskyard_runner.functions.testing import run

app = App()


@app.task("half")
def half(number: int) -> float:
    if number < 0:
        raise ValueError("it is negative")
    return number / 2


@app.task("sum")
def add(ctx: Context, numbers: list[int]) -> float:
    spawned = [ctx.spawn("half", {"number": number}) for number in numbers]
    return float(sum(ctx.gather(*spawned)))


@app.task("nested")
async def nested(ctx: AsyncContext) -> list[object]:
    (first,) = await ctx.gather(await ctx.spawn("sum", {"numbers": [2, 4]}, key="sum"))
    rest = await ctx.spawn_all([Child("half", {"number": 8}), Child("elsewhere", key="far")])
    return [first, *await ctx.gather(*rest)]


@app.task("tolerant")
async def tolerant(ctx: AsyncContext) -> list[str]:
    bad = await ctx.spawn("half", {"number": -1})
    (failed,) = await ctx.gather(bad, return_exceptions=True)
    return [failed.phase, failed.error_code, failed.error_message]


def test_the_helper_calls_children_and_starts_again() -> None:
    done = run(app, "sum", {"numbers": [1, 3]})
    assert (done.result, done.waits, len(done.children)) == (2.0, 1, 2)


def test_waits_nest_and_results_can_be_given() -> None:
    done = run(app, "nested", child_results={"far": "there"})
    assert done.result == [3.0, 4.0, "there"]
    assert done.waits == 2


def test_a_child_without_a_result_is_named() -> None:
    with pytest.raises(KeyError, match=r"child far .*child_results"):
        run(app, "nested")


def test_a_failed_child_raises_or_is_returned() -> None:
    failure = run(app, "sum", {"numbers": [-1]}).failure
    assert failure is not None and (failure.code, failure.permanent) == ("CHILD_FAILED", True)
    assert run(app, "tolerant").result == ["FAILED", "EXCEPTION", "ValueError: it is negative"]
    given = ChildFailed("t", "TIMED_OUT", "TOTAL_TIMEOUT")
    assert run(app, "tolerant", child_results={"half": given}).result == ["TIMED_OUT", "TOTAL_TIMEOUT", ""]


def test_keys_of_digits_and_foreign_handles_are_refused() -> None:
    other = App()

    @other.task("digits")
    def digits(ctx: Context) -> None:
        ctx.spawn("half", key="7")

    @other.task("foreign")
    def foreign(ctx: Context) -> None:
        ctx.gather("tenants/a/tasks/b")  # type: ignore[arg-type]

    for name, words in (("digits", "digits only"), ("foreign", "what spawn returned")):
        failure = run(other, name).failure
        assert failure is not None and words in failure.message


def test_a_large_gather_reads_in_pages_and_waits_for_the_live_ones() -> None:
    spawned = [Spawned(f"t{n}", str(n)) for n in range(PAGE + 2)]
    waits_for: list[str] = []
    steps = gather(spawned, return_exceptions=False, waits_for=waits_for)
    request = next(steps)
    assert len(request["tasks"]) == PAGE
    done = [[task, "SUCCEEDED", "1", "application/json", "", ""] for task in request["tasks"][:400]]
    request = steps.send({"children": done})
    assert request["tasks"][0] == "t400"
    with pytest.raises(Waiting):
        steps.send({"children": [["t400", "", None, "application/json", "", ""]]})
    assert waits_for == ["t400"]
