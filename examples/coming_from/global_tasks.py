"""Coming from the Global tasks DB: a module records a task, does the work itself and reports it."""

from _setting import apply_preset

from taskyard import SyncClient, typed

apply_preset("global-tasks")
with SyncClient() as client:
    task = client.create(typed("node_addition", {"nodes": 3}))
    print("returned to the caller at once:", task.id)
    client.report(task, "running", details={"added": 1})
    client.report(task, details={"added": 3})
    ended = client.report(task, "succeeded")
    print(ended.phase, dict(ended.proto.status.details))
    client.delete(task)
