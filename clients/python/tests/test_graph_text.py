"""The drawing of a group's dependencies."""

from __future__ import annotations

from taskyard.cli.graph_text import draw
from taskyard.v1.task_pb2 import Dependency


def lines(**after: str) -> list[str]:
    """The drawing of tasks, each given with those that it waits for."""
    entries = {
        task: [
            Dependency(group=one[7:])
            if one.startswith("groups/")
            else Dependency(task=f"tenants/t/tasks/{one}")
            for one in named.split()
        ]
        for task, named in after.items()
    }
    return list(draw([(task, "PENDING", named) for task, named in entries.items()]))


def test_each_task_is_below_the_last_that_it_waits_for() -> None:
    assert lines(join="left right", left="start", right="start left", start="", alone="") == [
        "start  PENDING",
        "└─ left  PENDING",
        "   └─ right  PENDING  also after start",
        "      └─ join  PENDING  also after left",
        "alone  PENDING",
    ]


def test_branches_are_joined_by_rails() -> None:
    assert lines(a="", b="a", c="b", d="a") == [
        "a  PENDING",
        "├─ b  PENDING",
        "│  └─ c  PENDING",
        "└─ d  PENDING",
    ]


def test_prerequisites_outside_of_the_group_are_named() -> None:
    assert lines(a="elsewhere groups/g") == ["a  PENDING  after elsewhere, groups/g"]


def test_a_long_chain_is_drawn() -> None:
    chain = {f"t{n}": f"t{n - 1}" if n else "" for n in range(3000)}
    assert len(lines(**chain)) == 3000
