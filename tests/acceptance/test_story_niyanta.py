"""Two customers of Niyanta: tiers and quotas, tags, checkpoints, a killed worker, audit, pause and resume."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from taskyard import SyncClient, errors, typed
from tests.acceptance.story import app_runner, client_of, until
from tests.acceptance.suite import Suite

APP = """
from taskyard_runner.functions import App, Context

app = App()


@app.task("niyanta.workload")
def transcode(ctx: Context, frames: int = 1, pause: float = 0.05) -> dict:
    first = ctx.load_checkpoint() or 0
    for frame in range(first + 1, frames + 1):
        ctx.save_checkpoint(frame, wait=10)
        ctx.progress(100 * frame // frames, f"frame {frame}")
        ctx.raise_if_cancelled()
        ctx.sleep(pause)
    return {"frames": frames, "first": first}
"""


@pytest.fixture(scope="module")
def premium(suite: Suite) -> Iterator[SyncClient]:
    """The client of a premium customer, with the workload type of its own."""
    yield from customer(suite, "cust_premium", "premium")


@pytest.fixture(scope="module")
def free(suite: Suite) -> Iterator[SyncClient]:
    yield from customer(suite, "cust_free", "free")


def customer(suite: Suite, name: str, tier: str) -> Iterator[SyncClient]:
    suite.done("tenants", "create", name, "--tier", tier)
    key = suite.done("keys", "create", "--for", name, "--description", "story").strip().splitlines()[-1]
    # A full queue is an error soon, and not waited for.
    with client_of(suite, key, name, outage_timeout=3) as client:
        suite.done("--tenant", name, "--key", key, "apply", "--preset", "niyanta")
        yield client


@pytest.mark.seed("S2.5", "S2.7", "S2.12", "S2.14")
def test_a_free_customer_may_queue_50_workloads_where_a_premium_one_may_queue_more(
    suite: Suite, premium: SyncClient, free: SyncClient
) -> None:
    suite.done("tenants", "update", "cust_free", "--rate", "0")
    waiting = typed("niyanta.workload", {}, tags=["nowhere"])
    for client, room in ((free, False), (premium, True)):
        made = [client.create(waiting) for _ in range(50)]
        if room:
            made.append(client.create(waiting))
        else:
            with pytest.raises(errors.ResourceExhausted):
                client.create(waiting)
        for task in made:
            client.cancel(task)


@pytest.mark.seed("S2.53", "S2.63")
def test_tags_choose_the_worker_and_nothing_else_does(suite: Suite, premium: SyncClient) -> None:
    with (
        app_runner(suite, APP, "worker-east", "--label", "region=us-east-1"),
        app_runner(suite, APP, "worker-west", "--label", "region=us-west-2", "--label", "hardware=gpu"),
    ):
        for tags, expected in ((["gpu", "us-west-2"], "worker-west"), (["us-east-1"], "worker-east")):
            task = premium.create(typed("niyanta.workload", {"frames": 1}, tags=tags))
            ended = premium.wait(task, timeout=120)
            assert ended.proto.status.last_runner == f"runners/{expected}"


@pytest.mark.seed("S2.42", "S2.43", "S2.77")
def test_a_killed_worker_costs_no_work_behind_its_last_checkpoint(suite: Suite, premium: SyncClient) -> None:
    with app_runner(suite, APP, "worker-dies", "--label", "pool=k") as dying:
        task = premium.create(typed("niyanta.workload", {"frames": 40, "pause": 0.2}, tags=["k"]))
        until(lambda: premium.get(task).proto.status.checkpoint_sequence >= 3, "three checkpoints")
        dying.kill()
    with app_runner(suite, APP, "worker-lives", "--label", "pool=k"):
        ended = premium.wait(task, timeout=300)
    assert ended.succeeded and ended.result["first"] >= 3
    assert ended.proto.status.last_runner == "runners/worker-lives" and ended.proto.status.generation >= 2
    words = [event.event_type for event in premium.audit(f'resource = "{task.name}"')]
    assert words.count("task.started") >= 2 and "task.checkpoint_created" in words


@pytest.mark.seed("S2.94", "S2.95")
def test_a_workload_is_paused_resumed_from_its_checkpoint_and_audited(
    suite: Suite, premium: SyncClient
) -> None:
    with app_runner(suite, APP, "worker-pause", "--label", "pool=p"):
        task = premium.create(typed("niyanta.workload", {"frames": 30, "pause": 0.2}, tags=["p"]))
        until(lambda: premium.get(task).proto.status.checkpoint_sequence >= 2, "two checkpoints")
        premium.pause(task)
        until(lambda: str(premium.get(task).phase) == "PAUSED", "paused")
        premium.resume(task)
        ended = premium.wait(task, timeout=300)
    assert ended.result["first"] >= 2 and ended.proto.status.progress.percent == 100
    words = [event.event_type for event in premium.audit(f'resource = "{task.name}"')]
    assert {"task.paused", "task.resumed", "task.succeeded"} <= set(words)
    expires = ended.proto.metadata.expire_time.seconds - ended.proto.status.end_time.seconds
    assert abs(expires - 90 * 86400) <= 1


@pytest.mark.seed("S2.31", "S2.80")
def test_customers_do_not_see_each_other(premium: SyncClient, free: SyncClient) -> None:
    task = premium.create(typed("niyanta.workload", {"frames": 1}, tags=["nowhere"]))
    with pytest.raises(errors.NotFound):
        free.get(task.name)
    premium.cancel(task)
