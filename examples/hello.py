"""Creates a task, waits until it has ended, and prints its output."""

from taskyard import SyncClient, command

with SyncClient() as client:
    task = client.create(command("sh", "-c", 'echo "hello from task $TASKYARD_TASK_ID"'))
    ended = client.wait(task, timeout=60)
    for line in client.logs(task):
        print(line.message)
    assert ended.exit_code == 0
