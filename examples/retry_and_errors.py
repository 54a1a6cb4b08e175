"""What goes wrong: a task that fails is data, a call that fails is an exception."""

from taskyard import SyncClient, command, errors

FLAKY = 'echo "attempt $TASKYARD_ATTEMPT"; [ "$TASKYARD_ATTEMPT" -ge 3 ]'

with SyncClient() as client:
    # Two failures, then a success: the runs tell the story.
    task = client.create(
        command("sh", "-c", FLAKY, retry={"max_retries": 4, "initial": 0.1, "jitter": "full"})
    )
    assert client.wait(task, timeout=60).phase.name == "SUCCEEDED"
    for run in client.runs(task):
        print(f"attempt {run.attempt}: {run.state.name}", run.error.code if run.error else "")

    # A failure that another attempt cannot mend ends the task at once.
    broken = client.wait(client.create(command("sh", "-c", "echo no such table >&2; exit 65")), timeout=60)
    assert broken.error is not None and broken.error.permanent
    print(broken.phase, broken.exit_code, broken.error.message)

    # Errors of calls are classes by reason, with their data on them.
    try:
        client.create(command("true", slot="not a slot"))
    except errors.InvalidArgument as error:
        for violation in error.violations:
            print(violation.field, violation.description)
    try:
        client.retry(task)
    except errors.PhaseConflict as error:
        print(f"{error.phase}, but it needs {error.needed}")
