"""The log lines that leave this process, read as an operator's log collector reads them."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest

from taskyard_kit import logs


class JsonLog:
    """What the process has logged, line by line."""

    def __init__(self) -> None:
        self._stream = io.StringIO()
        root = logging.getLogger()
        self._before = root.handlers[:], root.level
        logs.configure("test", format="json", stream=self._stream)

    def events(self, name: str = "") -> list[dict[str, Any]]:
        """The lines of one event, or all."""
        lines: list[dict[str, Any]] = [json.loads(line) for line in self._stream.getvalue().splitlines()]
        return [line for line in lines if not name or line["event"] == name]

    def clear(self) -> None:
        """Forget what was logged."""
        self._stream.seek(0)
        self._stream.truncate()

    def close(self) -> None:
        """Restore the handlers that were there before."""
        root = logging.getLogger()
        root.handlers[:], level = self._before
        root.setLevel(level)


@pytest.fixture
def json_log() -> Iterator[JsonLog]:
    """All logging of this process, as JSON lines."""
    log = JsonLog()
    yield log
    log.close()
