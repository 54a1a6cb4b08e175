"""Coming from Niyanta: a workload with a checkpoint is paused, resumes where it was, and leaves an audit."""

import time

from _setting import apply_preset, runner

from taskyard import SyncClient, typed
from taskyard_runner.functions import App, Context

app = App()


@app.task("niyanta.workload")
def transcode(ctx: Context, frames: int) -> dict[str, int]:
    """Frames one by one; a checkpoint after each, so that another worker may go on."""
    first = ctx.load_checkpoint() or 0
    for frame in range(first + 1, frames + 1):
        ctx.save_checkpoint(frame)
        ctx.progress(100 * frame // frames, f"frame {frame} of {frames}")
        ctx.raise_if_cancelled()
        ctx.sleep(0.1)
    return {"frames": frames, "first": first}


if __name__ == "__main__":
    apply_preset("niyanta")
    with SyncClient() as client, runner(__file__, "worker-a", "--label", "region=us-west-2"):
        # hard_affinity {"worker_tags": ["us-west-2"]} is `tags`; soft_affinity is `prefer`.
        task = client.create(
            typed(
                "niyanta.workload", {"frames": 30}, tags=["us-west-2"], prefer=[{"runner_ids": ["worker-a"]}]
            )
        )
        while client.get(task).proto.status.checkpoint_sequence < 3:
            time.sleep(0.1)
        client.pause(task)
        while str(client.get(task).phase) != "PAUSED":
            time.sleep(0.1)
        client.resume(task)
        ended = client.wait(task, timeout=120)
        print(ended.phase, ended.result)
        assert ended.result["first"] >= 3, "it resumed from its checkpoint"
