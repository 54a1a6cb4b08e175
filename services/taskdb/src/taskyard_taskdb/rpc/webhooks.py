"""Webhooks: the check of a callback in a spec, and the HTTP request that is sent when the task ends."""

from __future__ import annotations

import re

from google.protobuf import json_format

from taskyard.errors import FieldInvalid
from taskyard.v1 import task_pb2
from taskyard_taskdb.domain.change import ChangeEvent
from taskyard_taskdb.domain.egress import Egress
from taskyard_taskdb.domain.group import group_of
from taskyard_taskdb.domain.words import Phase
from taskyard_taskdb.rpc import convert
from taskyard_taskdb.rpc.group_messages import group_message, stored_group
from taskyard_taskdb.storage.read.tasks import TaskRecord

# The name and the value of a header: a token of HTTP, and text without control characters.
_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}")
_VALUE = re.compile(r"[\t\x20-\x7e]{0,4096}")
# Headers that the sender sets, or that would change how the request is framed.
_RESERVED = frozenset(
    [
        "host",
        "content-length",
        "content-type",
        "transfer-encoding",
        "connection",
        "upgrade",
        "expect",
        "te",
        "trailer",
        "keep-alive",
        "proxy-authorization",
        "proxy-connection",
        "webhook-id",
        "webhook-timestamp",
        "webhook-signature",
        "taskyard-event",
    ]
)


def check_callback(callback: task_pb2.Callback, path: str, egress: Egress) -> None:
    """Raises FieldInvalid for a URL of an internal address, or headers that cannot be sent."""
    problem = egress.problem(callback.url)
    if problem is not None:
        raise FieldInvalid.of(f"{path}.url", problem, "webhook")
    for name, value in callback.headers.items():
        field = f'{path}.headers["{name[:80]}"]'
        if not _NAME.fullmatch(name):
            raise FieldInvalid.of(field, "is not the name of a header", "webhook")
        if name.lower() in _RESERVED:
            raise FieldInvalid.of(field, "is set by Taskyard; choose another name", "webhook")
        if not _VALUE.fullmatch(value):
            raise FieldInvalid.of(
                field, "must be at most 4096 printable ASCII characters on one line", "webhook"
            )


def _group_request(record: TaskRecord) -> tuple[str, dict[str, str], bytes]:
    assert record.callback is not None and record.details is not None, "a webhook of a group has both"
    callback = task_pb2.Callback.FromString(record.callback)
    group = group_message(stored_group(record.details))
    group.ClearField("callback")
    headers = _headers(callback, ChangeEvent.GROUP_COMPLETED)
    return callback.url, headers, json_format.MessageToJson(group, indent=None).encode()


def _headers(callback: task_pb2.Callback, event: ChangeEvent) -> dict[str, str]:
    return {
        **callback.headers,
        "content-type": "application/json",
        "user-agent": "taskyard",
        "taskyard-event": event.word,
    }


def webhook_request(record: TaskRecord) -> tuple[str, dict[str, str], bytes]:
    """URL, headers and body for an ended task: its JSON without fields that may be secret or large.

    For a record of a group, see storage/webhook, those of the group.
    """
    if group_of(record.task_id) is not None:
        return _group_request(record)
    task = convert.task_message(record, convert.FULL)
    callback = task_pb2.Callback()
    callback.CopyFrom(task.spec.callback)
    for field in ("payload", "env", "callback"):
        task.spec.ClearField(field)
    if task.spec.execution.WhichOneof("kind") == "script":
        task.spec.execution.script.ClearField("body")
    if task.spec.execution.wasm.WhichOneof("module") == "inline":
        task.spec.execution.wasm.ClearField("inline")
    headers = _headers(callback, ChangeEvent[f"TASK_{Phase(record.phase).name}"])
    return callback.url, headers, json_format.MessageToJson(task, indent=None).encode()
