"""Task types as tests make and change them, and tasks that leave everything to their type."""

from __future__ import annotations

import json
from typing import Any

from google.protobuf import json_format
from google.protobuf.duration_pb2 import Duration
from google.protobuf.field_mask_pb2 import FieldMask
from google.protobuf.struct_pb2 import Struct

from services.taskdb.tests.conftest import Caller
from taskyard.v1 import task_pb2, task_service_pb2, task_type_pb2, task_type_service_pb2

Service = task_type_service_pb2
TaskType = task_type_pb2.TaskType
PARENT = "tenants/default"
COMMAND = task_pb2.Execution(command=task_pb2.CommandExecution(program="true"))

QUESTION = {
    "type": "object",
    "required": ["user_question", "instruction"],
    "properties": {"user_question": {"type": "string", "pattern": "^(a+)+$"}},
}


async def register(
    caller: Caller, type_id: str = "plan", parent: str = PARENT, request_id: str = "", **fields: Any
) -> TaskType:
    """A new type."""
    if isinstance(fields.get("payload_schema"), dict):
        fields["payload_schema"] = json.dumps(fields["payload_schema"]).encode()
    request = Service.CreateTaskTypeRequest(
        parent=parent, task_type_id=type_id, task_type=TaskType(**fields), request_id=request_id
    )
    made: TaskType = (await caller.task_types.CreateTaskType(request)).task_type
    return made


async def update(
    caller: Caller, name: str, *paths: str, allow_missing: bool = False, **fields: Any
) -> TaskType:
    """The type after a change of these paths."""
    request = Service.UpdateTaskTypeRequest(
        task_type=TaskType(name=name, **fields),
        update_mask=FieldMask(paths=paths),
        allow_missing=allow_missing,
    )
    changed: TaskType = (await caller.task_types.UpdateTaskType(request)).task_type
    return changed


async def get(caller: Caller, name: str) -> TaskType:
    found: TaskType = (await caller.task_types.GetTaskType(Service.GetTaskTypeRequest(name=name))).task_type
    return found


def typed(task_type: str = "plan", payload: Any = None, task_id: str = "", **spec: Any) -> Any:
    """A request for a task that leaves everything to its type."""
    request = task_service_pb2.CreateTaskRequest(parent=PARENT, task_id=task_id)
    request.task.spec.MergeFrom(task_pb2.TaskSpec(task_type=task_type, **spec))
    if payload is not None:
        request.task.spec.payload.json.CopyFrom(json_format.ParseDict(payload, Struct()))
    return request


def seconds(count: int) -> Duration:
    return Duration(seconds=count)
