"""A result that can be read by itself, and not where it lies in a report."""

from __future__ import annotations

from google.protobuf.struct_pb2 import ListValue, Value

from taskyard.v1.task_pb2 import TaskResult

# Lists in lists. protobuf reads a hundred messages within each other, of which a list and its value are two.
DEPTH = 48


def deep_result() -> bytes:
    """Encoded."""
    value = Value(number_value=1)
    for _ in range(DEPTH):
        value = Value(list_value=ListValue(values=[value]))
    result = TaskResult()
    result.metrics.fields["deep"].CopyFrom(value)
    return result.SerializeToString()
