"""A workload that counts, writes a checkpoint when it is stopped, and resumes from that checkpoint."""

from taskyard import SyncClient, script

COUNTER = r"""
import os, pathlib, signal, sys, time, subprocess

saved = os.environ.get("TASKYARD_CHECKPOINT_FILE")
count = int(pathlib.Path(saved).read_text()) if saved else 0
print(f"starting at {count}", flush=True)
stopped = False

def stop(*_):
    global stopped
    stopped = True

signal.signal(signal.SIGTERM, stop)
while count < 30 and not stopped:
    time.sleep(0.1)
    count += 1
if stopped:
    pathlib.Path("state").write_text(str(count))
    subprocess.run(["taskyard-task", "checkpoint", "state", "--wait", "10"], check=True)
    sys.exit(1)
print(f"done at {count}", flush=True)
"""

with SyncClient() as client:
    task = client.create(script.python(COUNTER, retry=0))
    # Wait until it runs, then pause it.
    for entry in client.logs(task, follow=True):
        print(entry.message)
        break
    client.pause(task)
    for event in client.watch(task, snapshot=True):
        if event.phase.name == "PAUSED":
            break
    (checkpoint, *_) = client.checkpoints(task)
    print("paused; it had counted to", client.read_checkpoint(task, checkpoint.sequence).decode())
    client.resume(task)
    assert client.wait(task, timeout=60).phase.name == "SUCCEEDED"
    lines = [entry.message for entry in client.logs(task)]
    print(*lines, sep="\n")
    assert lines[0] == "starting at 0" and lines[-1] == "done at 30"
    assert lines[1] != "starting at 0"
