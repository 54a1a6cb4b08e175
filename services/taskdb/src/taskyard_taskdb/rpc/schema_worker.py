"""The process in which one schema is compiled or one payload is validated at a time, within a CPU budget.

It reads jobs from the socket that it inherits and writes one answer each; end of file ends it. The kernel
ends it when a job uses up its CPU time (SIGPROF) or an allocation exceeds the memory limit.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import socket
import struct
import sys
from collections.abc import Sequence

from taskyard.errors import FieldInvalid, FieldViolation
from taskyard.v1 import common_pb2
from taskyard_taskdb.rpc import json_schema

# Lengths of path, schema and payload; the payload's is -1 for compiling only.
JOB = struct.Struct("!IIi")
ANSWER = struct.Struct("!I")
MAX_MEMORY = 1024 * 1024 * 1024
# Below the server, so that a flood of checks slows down the checks.
NICENESS = 15


def main() -> None:
    """Serve jobs: the descriptor and the CPU seconds of one job are the arguments."""
    connection = socket.socket(fileno=int(sys.argv[1]))
    budget = float(sys.argv[2])
    os.nice(NICENESS)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY, MAX_MEMORY))
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    with connection, connection.makefile("rb") as jobs:
        while head := jobs.read(JOB.size):
            sizes = JOB.unpack(head)
            path, schema = (jobs.read(size) for size in sizes[:2])
            payload = jobs.read(sizes[2]) if sizes[2] >= 0 else None
            signal.setitimer(signal.ITIMER_PROF, budget)
            found = answer(path.decode(), schema, payload)
            signal.setitimer(signal.ITIMER_PROF, 0)
            encoded = json.dumps([[v.field, v.description, v.rule] for v in found]).encode()
            connection.sendall(ANSWER.pack(len(encoded)) + encoded)


def answer(path: str, schema: bytes, payload: bytes | None) -> Sequence[FieldViolation]:
    """The violations in an encoded payload, or in the schema itself if there is none."""
    try:
        compiled = json_schema.compile_schema(schema, path)
        if payload is None:
            return ()
        return json_schema.check(compiled, common_pb2.Payload.FromString(payload), path)
    except FieldInvalid as error:
        return error.violations


if __name__ == "__main__":
    main()
