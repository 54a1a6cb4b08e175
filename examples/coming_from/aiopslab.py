"""Coming from AIOpsLab: a problem is solved by `worker-001-kind` in steps, with logs and metrics."""

from _setting import apply_preset, runner

from taskyard import SyncClient, typed
from taskyard_runner.functions import App, Context

app = App()


@app.task("aiopslab.problem")
def solve(
    ctx: Context,
    problem_id: str,
    agent_config: dict[str, str] | None = None,
    metadata: dict[str, str] | None = None,
) -> dict[str, str]:
    """One problem: an agent acts step by step until it is solved, or its steps are used up."""
    for step, action in enumerate(("observe", "scale", "verify"), 1):
        ctx.log(f"{problem_id}: {action}", step=step, action=action)
        ctx.progress(33 * step, action, step=step)
    ctx.metrics(steps=3)
    return {"problem": problem_id, "solution": "scaled", "steps_allowed": str(ctx.max_steps)}


if __name__ == "__main__":
    apply_preset("aiopslab")
    with SyncClient() as client, runner(__file__, "worker-001-kind"):
        parameters = {"problem_id": "pod-failure-1", "agent_config": {"model": "small"}}
        # Their priority of 0 to 10 is 0 to 20 here, and 5 is 10.
        task = client.create(typed("aiopslab.problem", parameters, priority=16, max_steps=50, timeout=600))
        ended = client.wait(task, timeout=120)
        print(ended.phase, ended.result)
        for entry in client.logs(task):
            print(f"  {entry.level} {entry.message}")
        found = client.list('payload.problem_id = "pod-failure-1"')
        print("tasks of this problem:", len(list(found)))
