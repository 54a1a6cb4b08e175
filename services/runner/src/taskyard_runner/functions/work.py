"""One run as a function host receives it: a row of the message `run`, and its parsed form."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from typing import Any

from taskyard_runner.functions.errors import InvalidPayload

Row = list[Any]
JSON = "application/json"
BYTES = "application/octet-stream"


@dataclass(frozen=True, slots=True)
class Work:
    """Names the run and the function to call; `extra` holds what most runs do not need."""

    run: str
    function: str
    task: str
    generation: int
    lease_id: int
    attempt: int
    # Text, or {"b64": …} where the bytes are no UTF-8; None = no payload.
    raw: Any
    extra: dict[str, Any]

    @property
    def fence(self) -> str:
        """Guards the function's own side effects, see TaskService.CheckFence."""
        return f"{self.generation}.{self.lease_id}"

    def lease(self) -> bytes:
        """The record that names the run in its journal."""
        lease = {"task": self.task, "generation": self.generation, "lease_id": self.lease_id}
        return json.dumps(lease).encode()

    def payload(self) -> Any:
        """JSON as a value, text as text, everything else as bytes. Raises InvalidPayload."""
        try:
            return decode(self.raw, self.extra.get("content_type", JSON))
        except (ValueError, RecursionError) as error:
            raise InvalidPayload(f"the payload is no JSON ({error}); send JSON or a content type") from None

    def inputs(self) -> dict[str, Any]:
        """The results of prerequisites by alias, in the forms of a payload."""
        return {alias: decode(raw, type_) for alias, (raw, type_) in self.extra.get("inputs", {}).items()}


def decode(raw: Any, content_type: str) -> Any:
    """JSON as a value, text as text, everything else as bytes. Raises ValueError for what is no JSON."""
    if raw is None:
        return None
    if isinstance(raw, dict):
        return base64.b64decode(raw["b64"])
    if content_type == JSON:
        return json.loads(raw)
    return raw if content_type.startswith("text/") else raw.encode()


def encode(value: Any) -> tuple[bytes, str]:
    """A value as it is stored: bytes as they are, everything else as JSON. Raises TypeError, ValueError."""
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value), BYTES
    return json.dumps(value).encode(), JSON


def parse(row: Row) -> Work:
    """Parse a row of the agent."""
    run, function, task, generation, lease_id, attempt, raw, extra = row
    return Work(run, function, task, generation, lease_id, attempt, raw, extra or {})
