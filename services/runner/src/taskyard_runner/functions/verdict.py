"""The outcome of a call: a value becomes a result, an exception an error with a class."""

from __future__ import annotations

import base64
import json
import traceback
from collections.abc import Mapping
from types import FrameType
from typing import Any

from taskyard_runner.functions.app import Function
from taskyard_runner.functions.errors import (
    FunctionError,
    InvalidPayload,
    InvalidResult,
    Permanent,
    Transient,
)
from taskyard_runner.functions.work import JSON

MAX_RESULT_BYTES = 1 << 20
_MAX_MESSAGE = 60_000
# The end of a traceback has the cause; the whole is in the log of the task.
_MAX_TRACE = 16_000
_CODE = "EXCEPTION"


def succeeded(value: Any, metrics: Mapping[str, float] | None = None) -> dict[str, Any] | None:
    """The result of a call; None if it returned and measured nothing. Raises InvalidResult."""
    output = _output(value)
    return {**(output or {}), "metrics": dict(metrics)} if metrics else output


def _output(value: Any) -> dict[str, Any] | None:
    if value is None:
        return None
    if isinstance(value, bytes | bytearray | memoryview):
        content = bytes(value)
        output = {"b64": base64.b64encode(content).decode(), "type": "application/octet-stream"}
        size = len(content)
    else:
        try:
            text = json.dumps(value, allow_nan=False)
        except (TypeError, ValueError, RecursionError) as error:
            raise InvalidResult(
                f"the result cannot be JSON ({error}); return plain values or bytes"
            ) from None
        output, size = {"text": text, "type": JSON}, len(text)
    if size > MAX_RESULT_BYTES:
        raise InvalidResult(
            f"the result has {size} bytes, more than {MAX_RESULT_BYTES}; store it elsewhere and name it",
            code="RESULT_TOO_LARGE",
        )
    return output


def failed(error: BaseException, function: Function | None) -> dict[str, Any]:
    """The failure that an exception is reported as."""
    failure: dict[str, Any] = {
        "class": "permanent" if _is_permanent(error, function) else "transient",
        "code": getattr(error, "code", "") if isinstance(error, FunctionError) else "",
        "message": describe(error),
        "exception": type(error).__name__,
    }
    if not isinstance(error, InvalidPayload):
        failure["traceback"] = trace(error)[-_MAX_TRACE:]
    failure["code"] = failure["code"] or _CODE
    after = getattr(error, "retry_after", None) if isinstance(error, FunctionError) else None
    if isinstance(after, int | float) and after >= 0:
        failure["retry_after"] = after
    return {"error": failure}


def describe(error: BaseException) -> str:
    """Class: message"""
    try:
        text = str(error)
    except Exception:  # __str__ is the user's code; the failure is reported all the same
        text = "(its text cannot be made)"
    name = type(error).__name__
    return f"{name}: {text}"[:_MAX_MESSAGE] if text else name


def trace(error: BaseException) -> str:
    """The traceback from the function on, without the host's own frames."""
    found = error.__traceback__
    while found is not None and _is_host(found.tb_frame):
        found = found.tb_next
    return "".join(traceback.format_exception(type(error), error, found)).rstrip()


def _is_host(frame: FrameType) -> bool:
    # A host that runs as a program is called __main__, but its specification has the name.
    spec = frame.f_globals.get("__spec__")
    name = getattr(spec, "name", None) or frame.f_globals.get("__name__", "")
    return str(name).startswith("taskyard_runner.functions")


def _is_permanent(error: BaseException, function: Function | None) -> bool:
    # The exception speaks for itself before the decorator speaks for it.
    if isinstance(error, Permanent):
        return True
    if isinstance(error, Transient) or function is None:
        return False
    if function.transient and isinstance(error, function.transient):
        return False
    return bool(function.permanent) and isinstance(error, function.permanent)
