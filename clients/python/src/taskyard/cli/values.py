"""Values as people type them: durations, pairs of name and value, JSON."""

from __future__ import annotations

import json
import re
from typing import Any, cast

import click

from taskyard.new_task import After

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")


class DurationType(click.ParamType[float]):
    """Seconds, written as 90, 90s, 1m30s, 2h, 500ms or 7d."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, int | float):
            return float(value)
        if re.fullmatch(r"\d+(\.\d+)?", value):
            return float(value)
        if not re.fullmatch(f"({_DURATION.pattern})+", value):
            self.fail(f"{value!r} is not a duration; write it like 90s, 1m30s, 2h or 7d", param, ctx)
        return sum(float(number) * _UNITS[unit] for number, unit in _DURATION.findall(value))


class PairType(click.ParamType[tuple[str, str]]):
    """A name and a value, written as name=value."""

    name = "name=value"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, str]:
        if isinstance(value, tuple):
            return value
        name, separator, rest = str(value).partition("=")
        if not separator or not name:
            self.fail(f"{value!r} has no =; write it as name=value", param, ctx)
        return name, rest


class JsonType(click.ParamType[Any]):
    """A JSON document, or @file to read it from."""

    name = "json"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            if value.startswith("@"):
                with click.open_file(value[1:], encoding="utf-8") as file:
                    value = file.read()
            return json.loads(value)
        except OSError as error:
            self.fail(f"{value[1:]} cannot be read: {error.strerror}", param, ctx)
        except json.JSONDecodeError as error:
            self.fail(f"not JSON at line {error.lineno}, column {error.colno}: {error.msg}", param, ctx)


class AfterType(click.ParamType[tuple[After, ...]]):
    """Tasks that have to end first, written as TASK, ALIAS=TASK or TASK:ended, separated by commas."""

    name = "task,..."

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[After, ...]:
        if isinstance(value, tuple):
            return value
        return tuple(self._one(text.strip(), param, ctx) for text in str(value).split(","))

    def _one(self, text: str, param: click.Parameter | None, ctx: click.Context | None) -> After:
        head, separator, rest = text.partition("=")
        alias, task = (head, rest) if separator else ("", text)
        task, _, when = task.partition(":")
        when = when or "succeeded"
        if not task or (separator and not alias):
            self.fail(f"{text!r} names no task; write it as TASK, ALIAS=TASK or TASK:ended", param, ctx)
        if when not in ("succeeded", "ended", "not_succeeded"):
            self.fail(f"{when!r} is not one of succeeded, ended, not_succeeded", param, ctx)
        return After(task, alias, cast("Any", when))


AFTER = AfterType()
DURATION = DurationType()
PAIR = PairType()
JSON = JsonType()
