"""Failures: a failed task is returned as data, a failed call raises an exception."""

from taskyard import SyncClient, command, errors

FLAKY = 'echo "attempt $TASKYARD_ATTEMPT"; [ "$TASKYARD_ATTEMPT" -ge 3 ]'

with SyncClient() as client:
    # Two failed attempts, then a success; the list of runs shows all three.
    task = client.create(
        command("sh", "-c", FLAKY, retry={"max_retries": 4, "initial": 0.1, "jitter": "full"})
    )
    assert client.wait(task, timeout=60).phase.name == "SUCCEEDED"
    for run in client.runs(task):
        print(f"attempt {run.attempt}: {run.state.name}", run.error.code if run.error else "")

    # A permanent failure ends the task at once, without further attempts.
    broken = client.wait(client.create(command("sh", "-c", "echo no such table >&2; exit 65")), timeout=60)
    assert broken.error is not None and broken.error.permanent
    print(broken.phase, broken.exit_code, broken.error.message)

    # Each error reason is a class of its own, with the error's data as fields.
    try:
        client.create(command("true", slot="not a slot"))
    except errors.InvalidArgument as error:
        for violation in error.violations:
            print(violation.field, violation.description)
    try:
        client.retry(task)
    except errors.PhaseConflict as error:
        print(f"{error.phase}, but it needs {error.needed}")
