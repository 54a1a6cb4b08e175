"""Checks that protovalidate cannot express: sizes with their own error reason, JSON, depth, NUL."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from typing import Any, NoReturn

from google.protobuf import struct_pb2
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp

from taskyard.errors import BatchTooLarge, FieldInvalid, FieldViolation, InvalidArgument, TooLarge
from taskyard.v1 import common_pb2, task_pb2
from taskyard_kit import validation

MAX_STRUCT_BYTES = 64 * 1024
MAX_STRUCT_DEPTH = 32

_JSON_TYPES = ("", "application/json")
_SIZED = ("payload.raw", "script.body", "wasm.inline", "output.raw")


def validate(message: Message, prefix: str = "") -> None:
    """Raises FieldInvalid, or TooLarge where a payload, script or module is above its limit."""
    try:
        validation.validate(message)
    except FieldInvalid as error:
        violations = tuple(FieldViolation(prefix + v.field, v.description, v.rule) for v in error.violations)
        kind = TooLarge if all(_is_size(v) for v in violations) else FieldInvalid
        raise kind(violations) from None


def validate_batch(message: Message, items: str, limit: int) -> None:
    """Like validate, and BatchTooLarge for more than `limit` items."""
    count = len(getattr(message, items))
    if count > limit:
        raise BatchTooLarge.of(
            items, f"{count} items; at most {limit} go into one batch", "repeated.max_items"
        )
    validate(message)


def _is_size(violation: FieldViolation) -> bool:
    return violation.rule == "bytes.max_len" and violation.field.endswith(_SIZED)


def check_task(task: task_pb2.Task, path: str) -> None:
    """Check a task beyond its protovalidate rules. Raises FieldInvalid or TooLarge."""
    if task.spec.HasField("payload"):
        check_payload(task.spec.payload, f"{path}.spec.payload")
    check_spec(task.spec, f"{path}.spec")
    check_metadata(task.metadata, f"{path}.metadata")


def check_metadata(metadata: task_pb2.TaskMetadata, path: str) -> None:
    """Check labels and annotations beyond their protovalidate rules. Raises FieldInvalid or TooLarge."""
    if metadata.labels:
        _check_texts(metadata.labels, f"{path}.labels")
    if metadata.HasField("annotations"):
        check_struct(metadata.annotations, f"{path}.annotations")


def check_spec(spec: task_pb2.TaskSpec, path: str) -> None:
    """Check a spec without its payload beyond its protovalidate rules. Raises FieldInvalid."""
    for index, variable in enumerate(spec.env):
        if "\0" in variable.value:
            _reject_nul(f"{path}.env[{index}].value")
    if spec.HasField("callback"):
        _check_texts(spec.callback.headers, f"{path}.callback.headers")
    if spec.HasField("not_before"):
        _check_time(spec.not_before, f"{path}.not_before")
    _check_execution(spec.execution, f"{path}.execution")


def _check_time(value: Timestamp, path: str) -> None:
    try:
        value.ToDatetime()
    except (ValueError, OverflowError):
        raise FieldInvalid.of(path, "must be a time between the years 1 and 9999", "timestamp") from None


def _check_execution(execution: task_pb2.Execution, path: str) -> None:
    kind = execution.WhichOneof("kind")
    if kind == "script" and b"\0" in execution.script.body:
        _reject_nul(f"{path}.script.body")
    if kind == "container":
        _check_items((*execution.container.command, *execution.container.args), f"{path}.container.args")
    if kind == "wasm":
        _check_items(execution.wasm.args, f"{path}.wasm.args")
        if execution.wasm.WhichOneof("module") == "path" and len(execution.wasm.sha256) != 32:
            raise FieldInvalid.of(f"{path}.wasm.sha256", "must be the 32 bytes of the module's digest")


def check_payload(payload: common_pb2.Payload, path: str) -> None:
    """Raises FieldInvalid for a document that is not JSON but declared as such, TooLarge above the limit."""
    form = payload.WhichOneof("value")
    if form == "json":
        check_struct(payload.json, f"{path}.json")
    elif form == "raw" and payload.raw and payload.content_type in _JSON_TYPES:
        try:
            parse_json(payload.raw)
        except (ValueError, RecursionError) as error:
            problem = str(error)[:100]
            raise FieldInvalid.of(
                f"{path}.raw", f"is not JSON ({problem}); correct it or set content_type", "json"
            ) from None


def parse_json(raw: bytes) -> Any:
    """The document in `raw`; raises ValueError for NaN, infinities and numbers that are read as one."""
    # Text first: json.loads takes UTF-16 and a byte order mark in bytes, which JSON does not allow.
    return _DECODER.decode(raw.decode())


def _reject_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


def _finite(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise ValueError(f"{digits[:40]} is beyond the range of a number")
    return value


# A search of the text for such numbers would cost more than the parsing.
_DECODER = json.JSONDecoder(parse_constant=_reject_constant, parse_float=_finite)


def check_struct(value: struct_pb2.Struct, path: str) -> None:
    """Raises TooLarge, or FieldInvalid for a document that is too deep or holds a NUL."""
    if (size := value.ByteSize()) > MAX_STRUCT_BYTES:
        raise TooLarge.of(
            path, f"{size} bytes encoded; at most {MAX_STRUCT_BYTES}, larger ones go as raw bytes"
        )
    _walk(value, path, 1)


def _walk(value: struct_pb2.Struct, path: str, depth: int) -> None:
    if depth > MAX_STRUCT_DEPTH:
        raise FieldInvalid.of(path, f"is nested deeper than {MAX_STRUCT_DEPTH} levels", "struct.max_depth")
    for key, item in value.fields.items():
        if "\0" in key:
            _reject_nul(path)
        _walk_value(item, f"{path}.{key}", depth)


def _walk_value(value: struct_pb2.Value, path: str, depth: int) -> None:
    kind = value.WhichOneof("kind")
    if kind == "struct_value":
        _walk(value.struct_value, path, depth + 1)
    elif kind == "list_value":
        if depth + 1 > MAX_STRUCT_DEPTH:
            raise FieldInvalid.of(
                path, f"is nested deeper than {MAX_STRUCT_DEPTH} levels", "struct.max_depth"
            )
        for index, item in enumerate(value.list_value.values):
            _walk_value(item, f"{path}[{index}]", depth + 1)
    elif kind == "string_value" and "\0" in value.string_value:
        _reject_nul(path)


def check_text(text: str, field: str) -> None:
    """Raises FieldInvalid for a text with NUL, which PostgreSQL cannot store."""
    if "\0" in text:
        _reject_nul(field)


def _check_texts(texts: Mapping[str, str], path: str) -> None:
    for key, value in texts.items():
        if "\0" in value or "\0" in key:
            _reject_nul(f'{path}["{key}"]')


def _check_items(items: Iterable[str], path: str) -> None:
    if any("\0" in item for item in items):
        _reject_nul(path)


def _reject_nul(field: str) -> NoReturn:
    raise FieldInvalid.of(field, "must not contain NUL", "no_nul")


def prefixed(error: InvalidArgument, prefix: str) -> InvalidArgument:
    """The same error with field paths inside a batch."""
    violations = tuple(FieldViolation(prefix + v.field, v.description, v.rule) for v in error.violations)
    return type(error)(violations)
