"""The answers of CreateTask and BatchCreateTasks."""

from __future__ import annotations

import time
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence

from taskyard import status as wire
from taskyard.errors import Internal, TaskyardError
from taskyard.v1 import task_service_pb2
from taskyard_kit.logs import get_log
from taskyard_taskdb.domain import names
from taskyard_taskdb.domain.words import Admission
from taskyard_taskdb.rpc import convert
from taskyard_taskdb.rpc.ids import uuid_text
from taskyard_taskdb.storage.create.new_task import Created, CreateResult, Dropped, Replayed
from taskyard_taskdb.storage.read import tasks

Response = task_service_pb2.CreateTaskResponse
BatchResponse = task_service_pb2.BatchCreateTasksResponse
Result = task_service_pb2.BatchCreateTasksResult
Records = Mapping[tasks.Key, tasks.TaskRecord]

Rest = Callable[[], Awaitable[None]]
"""What a call with much work awaits between its parts."""

# How long a call works before the event loop runs other calls.
PART_SECONDS = 0.0005

log = get_log(__name__)

_OUTCOMES = {
    Created: task_service_pb2.CREATE_OUTCOME_CREATED,
    Replayed: task_service_pb2.CREATE_OUTCOME_REPLAYED,
    Dropped: task_service_pb2.CREATE_OUTCOME_DROPPED,
}
# Stand in for ids in an encoded answer: no id has such characters. No tag or length ends in the first, so
# that what stands in is found where it begins; the second follows its length, which is 36.
_TASK_ID, _UID = "\0", "\2"
_UID_LENGTH = 36
_SHORTEST_ID = 8


def response(result: CreateResult, view: int, records: Records) -> Response:
    """The answer to one request; `records` has the existing tasks that results name."""
    made = Response()
    _fill(made, result, view, records)
    return made


async def batch_response(
    results: Sequence[CreateResult | Exception], view: int, records: Records, rest: Rest
) -> BatchResponse:
    """The answer to a batch.

    The results are encoded one by one and decoded together: filling in a message field by field takes ten
    times as long as inserting an id into an encoded one.
    """
    encoded: list[bytes] = []
    encode_name = _NameEncoder()
    failed = 0
    pause_at = time.perf_counter() + PART_SECONDS
    for result in results:
        if time.perf_counter() >= pause_at:
            await rest()
            pause_at = time.perf_counter() + PART_SECONDS
        if isinstance(result, Exception):
            failed += 1
            error = wire.to_status(public_error(result))
            encoded.append(BatchResponse(results=[Result(error=error)]).SerializeToString())
        elif view == convert.NAME and type(result) is Created:
            encoded.append(encode_name(result))
        else:
            encoded.append(_encode(result, view, records))
    made = BatchResponse.FromString(b"".join(encoded))
    made.failed_count = failed
    return made


def _encode(result: CreateResult, view: int, records: Records) -> bytes:
    """A result as a part of a BatchCreateTasksResponse."""
    part = BatchResponse()
    _fill(part.results.add().created, result, view, records)
    return part.SerializeToString()


class _NameEncoder:
    """Encodes the results of stored tasks, in the view NAME, as parts of a BatchCreateTasksResponse."""

    def __init__(self) -> None:
        # By all that decides the bytes around the ids.
        self._around: dict[tuple[str, int, bool, bool, bool], list[bytes]] = {}

    def __call__(self, created: Created) -> bytes:
        task = created.task
        if len(task.task_id) < _SHORTEST_ID or task.replaces:
            return _encode(created, convert.NAME, {})
        task_id = task.task_id.encode()
        key = (
            task.tenant_id,
            len(task_id),
            task.uid is None,
            created.admit_time is None,
            created.leased is None,
        )
        around = self._around.get(key)
        if around is None:
            around = self._around[key] = _around_ids(created)
        encoded = task_id.join(around)
        if task.uid is not None:
            encoded = encoded.replace(_UID.encode() * _UID_LENGTH, uuid_text(task.uid).encode(), 1)
        return encoded


def _around_ids(created: Created) -> list[bytes]:
    """The bytes before, between and behind the ids of the task."""
    placeholder = _TASK_ID * len(created.task.task_id)
    stand_in = created._replace(task=created.task._replace(task_id=placeholder))
    part = BatchResponse.FromString(_encode(stand_in, convert.NAME, {}))
    if created.task.uid is not None:
        part.results[0].created.task.metadata.uid = _UID * _UID_LENGTH
    return part.SerializeToString().split(placeholder.encode())


def _fill(made: Response, result: CreateResult, view: int, records: Records) -> None:
    made.outcome = _OUTCOMES[type(result)]
    if isinstance(result, Created):
        convert.fill_created(made.task, result, view)
        replaces_all = result.task.replaces and result.task.admission is Admission.REPLACE
        if replaces_all or result.replaced:
            made.outcome = task_service_pb2.CREATE_OUTCOME_REPLACED
            made.replaced_tasks.extend(names.task_name(result.task.tenant_id, id) for id in result.replaced)
        return
    record = records.get((result.tenant_id, result.task_id))
    if record is None:
        # The task was deleted meanwhile; the response still names it.
        made.task.name = names.task_name(result.tenant_id, result.task_id)
        made.task.metadata.id = result.task_id
    else:
        made.task.CopyFrom(convert.task_message(record, view))


def public_error(error: Exception) -> TaskyardError:
    """The error to return to the caller; the detail of an unexpected one goes to the log only."""
    if isinstance(error, TaskyardError):
        return error
    correlation_id = uuid.uuid4().hex
    log.error("item_failed", correlation_id=correlation_id, error=repr(error))
    return Internal(correlation_id)
