"""Results of prerequisites as the workload reads them: a JSON document per alias."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator

from taskyard.v1.common_pb2 import Payload
from taskyard.v1.lease_pb2 import Assignment
from taskyard_runner.executors import NotRunnable

JSON = "application/json"
# The name of a file: the alias is part of a path.
_ALIAS = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}")


def documents(assignment: Assignment) -> Iterator[tuple[str, bytes]]:
    """Alias and document of each input that was not omitted. Raises NotRunnable for an unsafe alias."""
    for one in assignment.inputs:
        if _ALIAS.fullmatch(one.alias) is None:
            raise NotRunnable(f"spec.after alias {one.alias[:80]!r} is no file name; correct it")
        if not one.omitted:
            yield one.alias, document(one.result.output)


def document(output: Payload) -> bytes:
    """JSON as it is, text as a JSON string, other bytes as a JSON string in base64; null without output."""
    if output.WhichOneof("value") != "raw":
        return b"null"
    content_type = output.content_type or JSON
    if content_type == JSON:
        return output.raw
    try:
        if content_type.startswith("text/"):
            return json.dumps(output.raw.decode()).encode()
    except UnicodeDecodeError:
        pass
    return json.dumps(base64.b64encode(output.raw).decode()).encode()
