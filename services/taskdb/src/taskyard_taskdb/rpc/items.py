"""Errors of single items in a batch."""

from __future__ import annotations

import uuid

from taskyard.errors import Internal, InvalidArgument, TaskyardError
from taskyard_kit.logs import get_log
from taskyard_taskdb.rpc.validate import prefixed

log = get_log(__name__)


def at_index(error: Exception, index: int) -> Exception:
    """The error of an item as that of the whole call: paths begin with the item, metadata name its index."""
    if not isinstance(error, TaskyardError):
        return error
    if isinstance(error, InvalidArgument) and not all(
        v.field.startswith("requests[") for v in error.violations
    ):
        error = prefixed(error, f"requests[{index}].")
    error.extra = {**error.extra, "index": str(index)}
    return error


def known(error: Exception) -> TaskyardError:
    """The error as a caller may see it; the detail of an unknown one goes to the log."""
    if isinstance(error, TaskyardError):
        return error
    correlation_id = uuid.uuid4().hex
    log.error("item_failed", correlation_id=correlation_id, error=repr(error))
    return Internal(correlation_id)
