"""Groups as messages: of rows, and of the stored form in which a webhook keeps one."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any
from uuid import UUID

from taskyard.v1 import group_pb2
from taskyard_taskdb.domain.names import task_name
from taskyard_taskdb.rpc.times import set_time
from taskyard_taskdb.storage.group.groups import GroupRow


def group_message(row: GroupRow) -> group_pb2.Group:
    """The group as callers see it; headers of its webhook are left out, as they may be secret."""
    message = group_pb2.Group(
        name=row.name,
        uid=str(row.uid),
        state=group_pb2.GroupState.ValueType(row.state),
        live_count=row.live_count,
        succeeded_count=row.succeeded_count,
        not_succeeded_count=row.not_succeeded_count,
        completion_count=row.completion_count,
        parent_task=task_name(row.tenant_id, row.parent_task_id) if row.parent_task_id else "",
    )
    set_time(message.create_time, row.create_time)
    set_time(message.close_time, row.close_time)
    set_time(message.complete_time, row.complete_time)
    set_time(message.cancel_time, row.cancel_time)
    if row.callback is not None:
        message.callback.MergeFromString(row.callback)
        message.callback.headers.clear()
    return message


def stored_group(document: bytes) -> GroupRow:
    """The group of a JSON document that has the columns of its row."""
    row: dict[str, Any] = json.loads(document)
    times = ("create_time", "close_time", "complete_time", "cancel_time")
    values = {name: datetime.fromisoformat(row[name]) if row[name] else None for name in times}
    callback = bytes.fromhex(row["callback"][2:]) if row["callback"] else None
    kept = {name: row[name] for name in GroupRow._fields if name not in values}
    return GroupRow(**{**kept, **values, "callback": callback, "uid": UUID(row["uid"])})
