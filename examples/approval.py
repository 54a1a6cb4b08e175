"""An external task: no runner executes it; its owner reports its status. Here a person approves."""

from taskyard import SyncClient, external

with SyncClient() as client:
    approval = client.create(
        external(payload={"expense": 4711}, labels={"kind": "approval"}, queue_timeout=86400)
    )
    print("waits for its owner:", client.get(approval).phase)
    client.report(approval, "running", percent=50, message="read by the first of two")
    client.report(approval, "succeeded", output={"approved": True})
    print(client.wait(approval, timeout=30).phase, client.get(approval).output)
