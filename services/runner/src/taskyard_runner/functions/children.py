"""Tasks that a function creates: what it asks for, and how it waits for those that it has spawned."""

from __future__ import annotations

import base64
import itertools
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from taskyard_runner.functions.errors import ChildFailed, Waiting
from taskyard_runner.functions.work import decode, encode

# Children that one request reads, and that one wait names; a gather of more waits several times.
PAGE = 1000
Request = dict[str, Any]


@dataclass(frozen=True)
class Child:
    """A task to create: a function with its payload, or any `spec` of TaskSpec's fields in JSON form.

    With a `key` there is one child of that key, however often the parent is run: for create as long as
    request ids are remembered, for spawn as long as the parent exists. Without one, a repeated run creates it
    again, and spawn finds it by its position among the children that the run has spawned.
    """

    function: str = ""
    payload: Any = None
    key: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    spec: Mapping[str, Any] = field(default_factory=dict)

    def message(self) -> dict[str, Any]:
        """The task as the runner passes it on."""
        spec = dict(self.spec)
        if self.function:
            spec["execution"] = {"function": {"function": self.function}}
        if self.payload is not None:
            content, content_type = encode(self.payload)
            spec["payload"] = {"raw": base64.b64encode(content).decode(), "content_type": content_type}
        return {"spec": spec, "metadata": {"labels": dict(self.labels)}}


@dataclass(frozen=True)
class Spawned:
    """A child that gather waits for: its name, tenants/{tenant}/tasks/{task}, and its key."""

    task: str
    key: str


class Spawning:
    """The keys of the children that a run spawns, the same in every run of a deterministic function."""

    def __init__(self) -> None:
        self._positions = itertools.count(1)

    def request(self, children: Sequence[Child]) -> Request:
        """The request to spawn these. Raises ValueError for a key that could be a position."""
        return {"op": "spawn", "tasks": [self._item(child) for child in children]}

    def _item(self, child: Child) -> dict[str, Any]:
        if child.key.isdigit():
            raise ValueError(f"key {child.key!r} has digits only, which name positions; add a letter")
        return {"key": child.key or str(next(self._positions)), "task": child.message()}


def spawned(request: Request, answer: Mapping[str, Any]) -> list[Spawned]:
    """The handles of spawned children."""
    return [Spawned(task, item["key"]) for task, item in zip(answer["tasks"], request["tasks"], strict=True)]


Steps = Generator[Request, Mapping[str, Any], list[Any]]
"""Yields requests, takes their answers, and returns results."""


def gather(children: Sequence[Spawned], *, return_exceptions: bool, waits_for: list[str]) -> Steps:
    """Read the results of children; while some are live, puts their names into `waits_for`, raises Waiting.

    Raises ChildFailed for the first that did not succeed, or returns it in the place of its result.
    """
    for child in children:
        if not isinstance(child, Spawned):
            raise TypeError(f"gather takes what spawn returned, not {child!r}")
    outcomes: dict[str, Any] = {}
    rest = list(dict.fromkeys(child.task for child in children))
    while rest:
        answer = yield {"op": "children", "tasks": rest[:PAGE]}
        live = [task for task, phase, *_ in answer["children"] if not phase]
        if live:
            waits_for[:] = live
            raise Waiting
        outcomes |= {task: outcome for task, *outcome in answer["children"]}
        rest = rest[len(answer["children"]) :]
    return list(_results([(child.task, outcomes[child.task]) for child in children], return_exceptions))


def _results(outcomes: Sequence[tuple[str, Any]], return_exceptions: bool) -> Iterator[Any]:
    for task, (phase, raw, content_type, code, message) in outcomes:
        if phase == "SUCCEEDED":
            yield decode(raw, content_type)
            continue
        failed = ChildFailed(task, phase, code, message)
        if not return_exceptions:
            raise failed
        yield failed
