"""Slots: at most one task of a name runs at a time; a new one queues, replaces the old one, or is dropped."""

from taskyard import Outcome, SyncClient, command

with SyncClient() as client:
    first = client.create(command("sleep", "30", slot="report-2026"))
    queued = client.create(command("true", slot="report-2026", admission="queue"))
    print("queued:", client.get(queued).phase)
    dropped = client.create(command("true", slot="report-2026", admission="drop_if_running"))
    assert dropped.outcome is Outcome.DROPPED
    print("dropped; the live one is", dropped.id == first.id or dropped.id == queued.id)
    newest = client.create(command("echo", "the newest wins", slot="report-2026", admission="replace"))
    assert newest.outcome is Outcome.REPLACED
    assert client.wait(newest, timeout=90).phase.name == "SUCCEEDED"
    for task in (first, queued):
        print(task.id, client.wait(task, timeout=60).phase)
