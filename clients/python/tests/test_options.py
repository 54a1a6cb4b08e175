"""What a spec can have, builders, flags and files can give: its descriptor is walked."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click
import pytest
from google.api import field_behavior_pb2
from google.protobuf.descriptor import Descriptor, FieldDescriptor

from taskyard import After, builders, script
from taskyard.cli.launch_options import creation_options, new_task_of
from taskyard.cli.manifest import new_tasks
from taskyard.v1 import task_pb2

# One value: not walked further.
_LEAVES = {"google.protobuf.Duration", "google.protobuf.Timestamp", "taskyard.v1.Payload"}
# Fields that a builder of their own fills: the kinds of execution.
_KINDS = "execution."


def leaves(kind: Descriptor, prefix: str = "") -> Iterator[str]:
    """Every path of a message that has a value."""
    for field in kind.fields:
        path = f"{prefix}{field.name}"
        if _is_leaf(field):
            yield path
        else:
            assert field.message_type is not None
            yield from leaves(field.message_type, f"{path}.")


def _is_leaf(field: FieldDescriptor) -> bool:
    kind = field.message_type
    return kind is None or kind.full_name in _LEAVES or kind.GetOptions().map_entry


def populated(message: Any, prefix: str = "") -> Iterator[str]:
    """Every path of a message that is set."""
    for field, value in message.ListFields():
        path = f"{prefix}{field.name}"
        if _is_leaf(field):
            yield path
        else:
            for one in value if field.is_repeated else [value]:
                yield from populated(one, f"{path}.")


# Fields that the server sets: the schedule that created the task, and its instant.
_BEHAVIOR: Any = field_behavior_pb2.field_behavior
_OUTPUT_ONLY = {
    field.name
    for field in task_pb2.TaskSpec.DESCRIPTOR.fields
    if field_behavior_pb2.OUTPUT_ONLY in field.GetOptions().Extensions[_BEHAVIOR]
}
WANTED = {path for path in leaves(task_pb2.TaskSpec.DESCRIPTOR) if not path.startswith(_KINDS)} - _OUTPUT_ONLY
EXECUTION = {path for path in leaves(task_pb2.TaskSpec.DESCRIPTOR) if path.startswith(_KINDS)}
SELECTOR = {
    "match_labels": {"zone": "eu"},
    "match_expressions": [{"key": "k", "operator": "In", "values": ["v"]}],
}
OPTIONS: dict[str, Any] = {
    "task_type": "t",
    "payload": {"a": 1},
    "slot": "s",
    "entity": ("planner", "p1"),
    "admission": "queue",
    "priority": 1,
    "retry": {
        "max_retries": 1,
        "initial": 1,
        "max": 2,
        "factor": 2.0,
        "jitter": "full",
        "restart": "always",
        "retry_on_timeout": True,
        "max_runner_losses": 1,
    },
    "timeout": 1,
    "total_timeout": 1,
    "queue_timeout": 1,
    "silence_timeout": 1,
    "checkpoint_interval": 1,
    "orphan_timeout": 1,
    "stop_grace_period": 1,
    "retention": 1,
    "max_steps": 1,
    "env": {"A": "b"},
    "callback": "https://example.com/",
    "callback_headers": {"a": "b"},
    "overlap": "forbid",
    "on_runner_lost": "fail",
    "cpu": 1,
    "memory_mb": 1,
    "disk_mb": 1,
    "extended": {"gpu": 1},
    "runner_ids": ("r",),
    "selector": SELECTOR,
    "prefer": [
        {"weight": 1, "runner_ids": ["r"], "selector": SELECTOR, "task_types": ["t"], "tags": ["gpu"]}
    ],
    "avoid": {"runner_ids": ["r"], "selector": SELECTOR, "task_types": ["t"], "tags": ["gpu"]},
    "tags": ["gpu"],
    "after": [After("first", "input", "ended"), After("groups/parts")],
    "limits": ["api:customer-7*3"],
}
# A runner is required or not; what it executes is no requirement that a builder offers.
NOT_OFFERED = {"placement.required.task_types"}


def test_builders_fill_every_field_of_a_spec() -> None:
    from datetime import UTC, datetime

    spec = builders.command("true", not_before=datetime(2026, 1, 1, tzinfo=UTC), **OPTIONS).request.task.spec
    filled = {path for path in populated(spec) if not path.startswith(_KINDS)}
    assert WANTED - filled == NOT_OFFERED


def test_builders_fill_every_field_of_every_kind_of_execution() -> None:
    digest = "ab" * 32
    made = [
        builders.command("p", "a", working_directory="/w"),
        script.bash("b", "a", working_directory="/w"),
        script.custom("awk", "b", flag="-f"),
        builders.container("i", "a", entrypoint=["e"], working_directory="/w", network=True),
        builders.wasm(b"m", "a"),
        builders.wasm("/m.wasm", "a", sha256=digest),
        builders.function("f"),
        builders.external(report_timeout=1),
    ]
    filled = {path for new in made for path in populated(new.request.task.spec)}
    # Client.run_embedded makes these, with the function beside them.
    assert EXECUTION - filled == {"execution.embedded.function"}


FLAGS = """
--type t --payload {"a":1} --slot s --entity planner/p1 --admission Queue --priority 1 --retries 1
--backoff 1s --max-backoff 2s --backoff-factor 2 --jitter Full --restart Always --retry-on-timeout
--max-runner-losses 1 --timeout 1s --total-timeout 1s --queue-timeout 1s --silence-timeout 1s
--checkpoint-interval 1s --orphan-timeout 1s --stop-grace-period 1s --retention 1s --max-steps 1
--env A=b --callback https://example.com/ --callback-header a=b --overlap forbid --on-runner-lost
fail --cpu 1 --memory 1 --disk 1 --resource gpu=1 --runner r --runner-label zone=eu --selector
zone=eu,k!=v --prefer zone=eu,k!=v@1 --prefer runner:r --avoid zone=eu,k!=v --avoid-type t
--tag gpu --after input=first:ended,groups/parts --limit api:customer-7*3
--not-before 2026-01-01T00:00:00Z -- true
"""
# Affinity to what a runner executes, and runners to avoid by their id, are written in a file.
NOT_FLAGS = NOT_OFFERED | {"placement.preferred.runners.task_types", "placement.avoid.runner_ids"}
NOT_FLAGS |= {"placement.preferred.runners.tags", "placement.avoid.tags"}


def parsed(*arguments: str) -> task_pb2.TaskSpec:
    """The spec that the command line describes."""
    found: list[task_pb2.TaskSpec] = []

    @click.command(context_settings={"allow_interspersed_args": False})
    @click.argument("words", nargs=-1, type=click.UNPROCESSED)
    @creation_options
    def command(words: tuple[str, ...], **options: Any) -> None:
        found.append(new_task_of(words, options).request.task.spec)

    command.main(list(arguments), standalone_mode=False)
    return found[0]


def test_flags_fill_every_field_of_a_spec() -> None:
    filled = {path for path in populated(parsed(*FLAGS.split())) if not path.startswith(_KINDS)}
    assert WANTED - filled == NOT_FLAGS


FILE = """
command: [p]
type: t
payload: {a: 1}
slot: s
entity: planner/p1
admission: Queue
priority: 1
retry: {maxRetries: 1, restart: OnFailure, retryOnTimeout: true, maxRunnerLosses: 1}
backoff: {firstMs: 1000, maxMs: 30000, factor: 2.0, jitter: Equal}
timeout: 5s
totalTimeout: 1s
queueTimeout: 1s
silenceTimeout: 1s
checkpointInterval: 1s
orphanTimeout: 1s
stopGracePeriod: 1s
retention: 1s
maxSteps: 1
env: {A: b}
callback: https://example.com/
callbackHeaders: {a: b}
overlap: forbid
onRunnerLost: fail
cpu: 1
memory: 1
disk: 1
extended: {gpu: 1}
runnerIds: [r]
tags: [gpu]
after: [{task: first, alias: input, when: ended}, {group: parts}]
limits: ["api:customer-7*3"]
notBefore: 2026-01-01T00:00:00Z
runnerSelector:
  matchLabels: {zone: eu}
  matchExpressions: [{key: gpu, operator: NotIn, values: [a100]}, {key: spot, operator: DoesNotExist}]
prefer: [{weight: 1, runnerIds: [r], taskTypes: [t], tags: [gpu], selector: "zone=eu,k!=v"}]
avoid: {runnerIds: [r], taskTypes: [t], tags: [gpu], selector: "zone=eu,k!=v"}
"""


@pytest.mark.seed("S4.12", "S4.74", "S4.75")
def test_files_fill_every_field_of_a_spec_in_the_spelling_of_kubernetes() -> None:
    (new,) = new_tasks(FILE, "task.yaml")
    spec = new.request.task.spec
    filled = {path for path in populated(spec) if not path.startswith(_KINDS)}
    assert WANTED - filled == NOT_OFFERED
    selector = spec.placement.required.selector
    assert dict(selector.match_labels) == {"zone": "eu"}
    assert [(one.key, one.operator, list(one.values)) for one in selector.match_expressions] == [
        ("gpu", 2, ["a100"]),
        ("spot", 4, []),
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--entity", "planner"), "write it as type/id"),
        (("--selector", "a==b=c"), "is no requirement"),
        (("--prefer", "zone=eu@0"), "must be 1 to 100"),
        (("--admission", "maybe"), "is not one of drop_if_running, replace, queue"),
        (("--not-before", "soon"), "is not a time"),
        (("--resource", "gpu=one"), "is not a whole number"),
        (("--backoff", "0s"), "must be above 0"),
    ],
)
def test_a_flag_that_cannot_be_read_names_the_value_and_the_form(
    arguments: tuple[str, ...], message: str
) -> None:
    with pytest.raises(click.UsageError) as refused:
        parsed(*arguments, "--", "true")
    assert message in refused.value.format_message()
