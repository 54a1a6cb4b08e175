"""Coming from a task queue of planner and worker functions: plan, work, and put the results together."""

from _setting import apply_preset, runner

from taskyard import SyncClient, typed
from taskyard_runner.functions import App, Context

app = App()


@app.task("execute_initial_planning")
def execute_initial_planning(ctx: Context, user_question: str, instruction: str) -> dict[str, object]:
    """The entity is the planner whose row this function would read and write."""
    assert ctx.entity is not None
    return {"planner": ctx.entity.id, "todo": [f"{user_question} part {part}" for part in (1, 2)]}


@app.task("execute_standard_worker")
def execute_standard_worker(ctx: Context) -> dict[str, str]:
    """The work of one worker; its entity is the worker."""
    assert ctx.entity is not None
    return {"worker": ctx.entity.id, "answer": "42"}


@app.task("execute_synthesis")
def execute_synthesis(ctx: Context) -> str:
    """The answer of a planner, made of what its workers found."""
    assert ctx.entity is not None
    return f"planner {ctx.entity.id} has its answer"


if __name__ == "__main__":
    apply_preset("agent-functions")
    with SyncClient() as client, runner(__file__, "agent-1"):
        question = {"user_question": "How many?", "instruction": "count"}
        plan = client.create(typed("execute_initial_planning", question, entity=("planner", "p1")))
        todo = client.wait(plan, timeout=120).result["todo"]
        # One after the other per worker, all workers at the same time.
        work = [
            client.create(typed("execute_standard_worker", entity=("worker", f"w{number}")))
            for number, _ in enumerate(todo, 1)
        ]
        print([client.wait(task, timeout=120).result for task in work])
        synthesis = client.create(typed("execute_synthesis", entity=("planner", "p1")))
        print(client.wait(synthesis, timeout=120).result)
