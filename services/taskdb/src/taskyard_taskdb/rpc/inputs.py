"""Assignment.inputs: the results of prerequisites that have an alias, read at the claim."""

from __future__ import annotations

from collections.abc import Sequence

from taskyard.v1 import lease_pb2, task_pb2
from taskyard_taskdb.domain.names import parse_task_name
from taskyard_taskdb.rpc.convert import make_raw
from taskyard_taskdb.storage.dependency import inputs
from taskyard_taskdb.storage.pool import Pool, Tx

# Of one assignment, of one with its inputs, and of a response with all that it carries.
MAX_INPUT_BYTES = 1024 * 1024
MAX_ASSIGNMENT_BYTES = 3 * 1024 * 1024
MAX_RESPONSE_BYTES = 7 * 512 * 1024


def wants_inputs(assignment: lease_pb2.Assignment) -> bool:
    """Whether its task names a prerequisite by an alias."""
    return any(entry.alias for entry in assignment.spec.after)


async def add_inputs(
    pool: Pool, wanting: Sequence[lease_pb2.Assignment], response_bytes: int
) -> list[lease_pb2.Assignment]:
    """Add the inputs of assignments; returns those that would make the response too large.

    Of the first one that alone is too large, results are omitted: it would not fit another response either.
    """
    beyond: list[lease_pb2.Assignment] = []
    async with pool.reading() as tx:
        for place, assignment in enumerate(wanting):
            added = await _read(tx, assignment)
            size = sum(one.ByteSize() for one in added)
            if place and response_bytes + size > MAX_RESPONSE_BYTES:
                beyond.append(assignment)
                continue
            response_bytes += size
            assignment.inputs.extend(added)
    return beyond


async def _read(tx: Tx, assignment: lease_pb2.Assignment) -> list[lease_pb2.TaskInput]:
    entries = [entry for entry in assignment.spec.after if entry.alias]
    bound = min(MAX_INPUT_BYTES, max(0, MAX_ASSIGNMENT_BYTES - assignment.ByteSize()))
    found = await inputs.read(tx, [parse_task_name(entry.task) for entry in entries], bound)
    made: list[lease_pb2.TaskInput] = []
    for entry in entries:
        message = lease_pb2.TaskInput(alias=entry.alias, task=entry.task)
        outcome = found.get(parse_task_name(entry.task))
        if outcome is not None:
            message.phase = task_pb2.TaskPhase.ValueType(outcome.phase)
            message.omitted = outcome.omitted
            if outcome.result is not None:
                message.result.MergeFromString(outcome.result)
                make_raw(message.result.output)
        made.append(message)
    return made
