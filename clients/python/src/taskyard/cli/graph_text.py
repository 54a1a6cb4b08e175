"""Draws tasks and what they wait for as a tree of lines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from taskyard.names import last_segment
from taskyard.v1 import task_pb2

Node = tuple[str, str, Sequence[task_pb2.Dependency]]
"""The id of a task, its phase, and spec.after."""


def draw(tasks: Iterable[Node]) -> Iterator[str]:
    """The lines of a tree: each task below the last of those that it waits for, the others beside it."""
    nodes = {task_id: (phase, [_label(entry) for entry in after]) for task_id, phase, after in tasks}
    depths: dict[str, int] = {}
    for task_id in nodes:
        _measure(task_id, nodes, depths)
    below: dict[str, list[str]] = {}
    parents: dict[str, str] = {}
    for task_id, (_, named) in nodes.items():
        # The deepest: everything that a task waits for is drawn above it.
        parent = max((one for one in named if one in nodes), key=lambda one: depths[one], default="")
        parents[task_id] = parent
        below.setdefault(parent, []).append(task_id)
    # A stack, as a chain may be long: task, what is left of it, what is left of those below it.
    stack = [(task_id, "", "") for task_id in reversed(below.get("", []))]
    while stack:
        task_id, start, indent = stack.pop()
        phase, named = nodes[task_id]
        others = [one for one in named if one != parents[task_id]]
        beside = f"  {'also ' if parents[task_id] else ''}after {', '.join(others)}" if others else ""
        yield f"{start}{task_id}  {phase}{beside}"
        children = below.get(task_id, [])
        for place, child in reversed(list(enumerate(children))):
            last = place == len(children) - 1
            stack.append((child, indent + ("└─ " if last else "├─ "), indent + ("   " if last else "│  ")))


def _label(entry: task_pb2.Dependency) -> str:
    return f"groups/{last_segment(entry.group)}" if entry.group else last_segment(entry.task)


def _measure(task_id: str, nodes: dict[str, tuple[str, list[str]]], depths: dict[str, int]) -> None:
    """Note how many tasks are above a task, and above all that it waits for."""
    stack = [task_id]
    while stack:
        known = [one for one in nodes[stack[-1]][1] if one in nodes]
        missing = [one for one in known if one not in depths]
        if missing:
            stack += missing
        else:
            depths[stack.pop()] = 1 + max((depths[one] for one in known), default=0)
