"""Values as people type them: durations, times, pairs of name and value, JSON, entities, selectors."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from typing import Any, cast

import click

from taskyard.new_task import After, LimitUse, Preference, Selector

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


class TimeType(click.ParamType[datetime]):
    """A moment, written as 2026-01-31T12:00:00Z; without a zone it is UTC."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        try:
            found = value if isinstance(value, datetime) else datetime.fromisoformat(value)
        except ValueError:
            self.fail(f"{value!r} is not a time such as 2026-01-31T12:00:00Z", param, ctx)
        return found if found.tzinfo else found.replace(tzinfo=UTC)


class WordType(click.ParamType[str]):
    """A word of the contract, in any spelling; the builder checks it."""

    name = "word"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        return str(value)


class EntityType(click.ParamType[tuple[str, str]]):
    """A type and an id, written as planner/p1."""

    name = "type/id"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, str]:
        if isinstance(value, tuple):
            return value
        kind, separator, id_ = str(value).partition("/")
        if not (kind and separator and id_):
            self.fail(f"{value!r} is not an entity; write it as type/id, such as planner/p1", param, ctx)
        return kind, id_


class SelectorType(click.ParamType[Selector]):
    """Labels of runners, written as zone=eu,gpu,!spot or tier in (a,b)."""

    name = "selector"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Selector:
        from taskyard.cli.selector_text import parse_selector

        try:
            return parse_selector(value) if isinstance(value, str) else value
        except ValueError as error:
            self.fail(str(error), param, ctx)


class PreferenceType(click.ParamType[Preference]):
    """A selector and a weight, written as zone=eu@80, or runner:ID@80 for one runner."""

    name = "selector@weight"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Preference:
        if not isinstance(value, str):
            found: Preference = value
            return found
        what, _, weight = value.partition("@")
        if weight and not (weight.isdigit() and 1 <= int(weight) <= 100):
            self.fail(f"{value!r} has the weight {weight!r}; it must be 1 to 100", param, ctx)
        number = int(weight or 50)
        if what.startswith("runner:"):
            return {"weight": number, "runner_ids": [what.removeprefix("runner:")]}
        return {"weight": number, "selector": SELECTOR.convert(what, param, ctx)}


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


class LimitUseType(click.ParamType[LimitUse]):
    """A named limit, written as LIMIT, LIMIT:KEY or LIMIT:KEY*UNITS."""

    name = "limit:key"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> LimitUse:
        if isinstance(value, LimitUse):
            return value
        try:
            return LimitUse.parse(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)


AFTER = AfterType()
LIMIT_USE = LimitUseType()
DURATION = DurationType()
TIME = TimeType()
WORD = WordType()
ENTITY = EntityType()
SELECTOR = SelectorType()
PREFERENCE = PreferenceType()
PAIR = PairType()
JSON = JsonType()
