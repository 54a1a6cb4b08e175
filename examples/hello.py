"""Creates a task, waits for its end, and prints what it wrote."""

from taskyard import SyncClient, command

with SyncClient() as client:
    task = client.create(command("sh", "-c", 'echo "hello from task $TASKYARD_TASK_ID"'))
    ended = client.wait(task, timeout=60)
    for line in client.logs(task):
        print(line.message)
    assert ended.exit_code == 0
