"""Groups: parts that are counted together, a task that waits for all of them, and a cancelled group."""

from taskyard import SyncClient, command

with SyncClient() as client:
    client.create_all(command("sleep", f"0.{n}", group="parts") for n in range(1, 6))
    # To wait for the group closes it: it is complete once its five tasks have ended.
    join = client.create(command("echo", "all parts are done", after=["groups/parts"]))
    parts = client.groups.wait("parts", timeout=120)
    assert parts.succeeded_count == 5
    assert client.wait(join, timeout=60).phase.name == "SUCCEEDED"
    print(f"{parts.succeeded_count} parts succeeded, {parts.not_succeeded_count} did not")

    client.create(command("sleep", "600", group="unwanted"))
    client.groups.cancel("unwanted", "not needed any more")
    print("cancelled:", client.groups.wait("unwanted", timeout=120).not_succeeded_count)
