"""The play of rule 10, about checkpoints: what is uploaded, when, and again."""

from __future__ import annotations

import hashlib
import sys
from dataclasses import dataclass, field
from pathlib import Path

from google.rpc.status_pb2 import Status

from taskyard.errors import Code
from taskyard.v1 import checkpoint_pb2
from taskyard.v1 import runner_link_service_pb2 as link
from tests.runner_kit.peer import KitScheduler, RecordedSession, spec_of
from tests.runner_kit.subject import NotExercised, Runner, Subject, subject

CHUNK_BYTES = 256 * 1024
SOON = 30.0

# Hands two checkpoints to the runner, the first of three chunks; creates one file, waits for two others.
WORKLOAD = """
import json, os, pathlib, socket, sys, time

none, second, gate = map(pathlib.Path, sys.argv[1:])
if "TASKYARD_SOCKET" not in os.environ:
    none.touch()
    sys.exit()
runner = socket.socket(socket.AF_UNIX)
runner.connect(os.environ["TASKYARD_SOCKET"])
answers = runner.makefile()

def until(path):
    while not path.exists():
        time.sleep(0.05)

def save(name, content):
    pathlib.Path(os.environ["TASKYARD_CHECKPOINT_DIR"], name).write_bytes(content)
    message = {"op": "checkpoint", "file": name, "token": os.environ["TASKYARD_TOKEN"]}
    runner.sendall(json.dumps(message).encode() + b"\\n")
    assert json.loads(answers.readline())["ok"]

save("first", bytes(600_000))
until(second)
save("second", b"later")
until(gate)
"""


@dataclass
class Upload:
    """One upload as its chunks arrived."""

    header: checkpoint_pb2.CheckpointHeader
    content: bytearray = field(default_factory=bytearray)
    complete: bool = False


def uploads(session: RecordedSession) -> list[Upload]:
    """The uploads of a session, in order; raises AssertionError if chunks do not fit together."""
    found: list[Upload] = []
    for chunk in session.of("checkpoint_chunk"):
        if chunk.offset == 0:
            assert chunk.HasField("header"), "the first chunk of a checkpoint has no header"
            found.append(Upload(chunk.header))
        in_order = found and chunk.offset == len(found[-1].content)
        assert in_order, f"a chunk at offset {chunk.offset} is out of order"
        size = len(chunk.data)
        assert size <= CHUNK_BYTES, f"a chunk has {size} bytes, allowed are {CHUNK_BYTES}"
        found[-1].content += chunk.data
        if chunk.last:
            found[-1].complete = True
            digest = hashlib.sha256(found[-1].content).digest()
            assert digest == found[-1].header.sha256, "the digest of a checkpoint is not that of its content"
    return found


async def rule_10(command: Runner, folder: Path) -> None:
    """A checkpoint is uploaded, again from its first chunk, until it is acknowledged; one at a time."""
    async with subject(command, folder, heartbeat_interval=0.5) as runner:
        peer = runner.peer
        files = [str(runner.path(name)) for name in ("none", "second", "gate")]
        task = peer.assign(spec_of(sys.executable, "-c", WORKLOAD, *files))
        await peer.report(task, "started")
        number = (await _complete(peer, runner, 1))[0].header.sequence
        runner.path("second").touch()
        await peer.heartbeats(3)
        begun = [upload.header.sequence for upload in uploads(peer.last)]
        assert begun == [number], f"checkpoints {begun[1:]} are uploaded before {number} is acknowledged"
        peer.drop()
        await peer.session_number(2)
        sent = (await _complete(peer, runner, 1))[0].header.sequence
        assert sent == number, f"after a loss {sent} is uploaded, not {number}"
        lease = task.assignment.lease
        unavailable = Status(code=Code.UNAVAILABLE, message="not now")
        retry = link.CheckpointRetry(lease=lease, sequence=number, status=unavailable)
        peer.session.send(checkpoint_retry=retry)
        sent = (await _complete(peer, runner, 2))[1].header.sequence
        assert sent == number, f"after a retry {sent} is uploaded, not {number}"
        peer.session.send(checkpoint_ack=link.CheckpointAck(lease=lease, sequence=number))
        last = (await _complete(peer, runner, 3))[2].header.sequence
        assert last > number, f"the second checkpoint has the sequence {last}, the first had {number}"
        peer.session.send(checkpoint_ack=link.CheckpointAck(lease=lease, sequence=last))
        await peer.heartbeats(2)
        peer.drop()
        third = await peer.session_number(3)
        await peer.heartbeats(2)
        repeated = [upload.header.sequence for upload in uploads(third)]
        assert not repeated, f"acknowledged checkpoints {repeated} are uploaded again"
        runner.path("gate").touch()
        assert (await peer.outcome(task)).WhichOneof("report") == "succeeded"


async def _complete(peer: KitScheduler, runner: Subject, count: int) -> list[Upload]:
    """The uploads of the last session once this many are complete."""

    def enough() -> bool:
        return sum(upload.complete for upload in uploads(peer.last)) >= count or runner.path("none").exists()

    try:
        await peer.until(enough, SOON)
    except TimeoutError:
        done = sum(upload.complete for upload in uploads(peer.last))
        raise AssertionError(f"{done} checkpoints are uploaded, expected {count}") from None
    if runner.path("none").exists():
        raise NotExercised("the runner gives commands no TASKYARD_SOCKET")
    return uploads(peer.last)
