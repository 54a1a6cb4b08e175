"""Files of tasks, task types and tenants: parsing, and the position of mistakes."""

import pytest

from taskyard.cli.desired import merge
from taskyard.cli.manifest import json_lines, new_tasks, resources
from taskyard.cli.marked_yaml import YamlError
from taskyard.cli.top import sparkline
from taskyard.v1 import task_pb2, task_type_pb2, tenant_pb2

EVERYTHING = """
id: encode-17
command: [ffmpeg, -i, in.mp4]
args: [out.webm]
labels: {team: video, n: 7}
env: {A: b}
workdir: /srv
type: encode
payload: {width: 640}
priority: 20
retries: {max_retries: 5, initial: 1s, jitter: full}
timeout: 1m30s
queue-timeout: 2h
slot: gpu
cpu: 0.5
memory: 256
runner_labels: {zone: a}
not_before: 2026-01-31T12:00:00Z
spec: {max_steps: 9, overlap: forbid}
"""


def test_task_with_the_option_names_of_the_command_line() -> None:
    (new,) = new_tasks(EVERYTHING, "tasks.yaml")
    task, spec = new.request.task, new.request.task.spec
    assert new.request.task_id == "encode-17"
    assert spec.execution.command.program == "ffmpeg"
    assert list(spec.execution.command.args) == ["-i", "in.mp4", "out.webm"]
    assert spec.execution.command.working_directory == "/srv"
    assert dict(task.metadata.labels) == {"team": "video", "n": "7"}
    assert (spec.task_type, spec.payload.raw, spec.priority) == ("encode", b'{"width":640}', 20)
    assert (spec.retry.max_retries, spec.retry.backoff.initial.seconds) == (5, 1)
    assert (spec.attempt_timeout.seconds, spec.queue_timeout.seconds) == (90, 7200)
    assert (spec.resources.cpu_millis, spec.resources.memory_mb, spec.slot) == (500, 256, "gpu")
    assert dict(spec.placement.required.selector.match_labels) == {"zone": "a"}
    assert (spec.not_before.seconds, spec.max_steps) == (1769860800, 9)
    assert spec.overlap == task_pb2.OVERLAP_POLICY_FORBID


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("script: echo hi", "script"),
        ("script: print(1)\ninterpreter: python", "script"),
        ("function: resize\npayload: [1]", "function"),
        ("image: alpine\nargs: [sh]", "container"),
        ("external: true", "external"),
        ("spec: {execution: {command: {program: ls}}}", "command"),
        ("type: encode", None),
    ],
)
def test_every_kind_of_task(text: str, kind: str | None) -> None:
    (new,) = new_tasks(text, "tasks.yaml")
    assert new.request.task.spec.execution.WhichOneof("kind") == kind


def test_several_documents_and_lines_of_json() -> None:
    assert len(list(new_tasks("command: a\n---\ncommand: b\n---\n", "t.yaml"))) == 2
    lines = ['{"command": ["a"], "id": "1"}\n', "\n", '{"script": "b"}\n']
    assert [new.request.task_id for new in json_lines(iter(lines), "t.jsonl")] == ["1", ""]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("command: [a\nid: b", "t.yaml:2:3: "),
        ("command: a\n\tid: b", "t.yaml:2:1: "),
        ("command: a\ncomand: b", "t.yaml:2:1: unknown field 'comand'; did you mean command?"),
        ("command: a\nlabels: [x]", "t.yaml:2:1: ['x'] must be a mapping"),
        ("command: a\nlabels:\n  n: true", "t.yaml:3:3: true must be a text; put it in quotes"),
        ("command: a\ntimeout: soon", "t.yaml:2:1: 'soon' is not a duration"),
        ("command: a\npriority: high", "t.yaml:2:1: 'high' must be a whole number"),
        ("command: a\nscript: b", "t.yaml:2:1: command and script exclude each other"),
        ("command: a\ncommand: b", "t.yaml:2:1: 'command' is given twice"),
        ("id: a", "t.yaml:1:1: nothing to run; use command"),
        ("- command: a", "t.yaml:1:1: a mapping is expected here, not list"),
        (
            "command: a\nspec:\n  max_stebs: 1",
            "t.yaml:3:3: unknown field 'max_stebs'; did you mean max_steps?",
        ),
        ("command: a\nspec: {overlap: maybe}", "t.yaml:2:8: 'maybe' is not one of forbid, allow"),
        ("command: a\nretries: {max_retry: 1}", "t.yaml:2:11: unknown field 'max_retry'"),
        ("command: a\nnot_before: soon", "t.yaml:2:1: 'soon' is not a time"),
        ("kind: Tenant\nid: a", "t.yaml:1:1: only tasks can be submitted"),
        ("command: \x00", "t.yaml:1:1: "),
    ],
)
def test_mistake_is_reported_with_line_and_column(text: str, message: str) -> None:
    with pytest.raises(YamlError) as caught:
        list(new_tasks(text, "t.yaml"))
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


def test_invalid_json_line_is_reported_with_its_number() -> None:
    with pytest.raises(YamlError, match=r"^t\.jsonl:2:13: "):
        list(json_lines(iter(['{"command": "a"}\n', '{"command": }\n']), "t.jsonl"))


YARD = """
kind: Tenant
id: acme
tier: standard
quota: {max_concurrent_tasks: 5}
---
kind: TaskType
id: encode
execution: {command: {program: encode.sh}}
attempt_timeout: 5m
payload_schema: {type: object, required: [width]}
config: {quality: high}
on_runner_lost: redistribute
"""


def test_tenants_and_task_types() -> None:
    tenant, task_type = resources(YARD, "yard.yaml")
    assert (tenant.kind, tenant.id) == ("Tenant", "acme")
    assert tenant.message.tier == tenant_pb2.TENANT_TIER_STANDARD
    assert tenant.message.quota.max_concurrent_tasks == 5
    found: task_type_pb2.TaskType = task_type.message
    assert found.attempt_timeout.seconds == 300
    assert found.payload_schema == b'{"type": "object", "required": ["width"]}'
    assert found.config.raw == b'{"quality": "high"}'
    assert found.on_runner_lost == task_pb2.RUNNER_LOST_POLICY_REDISTRIBUTE


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("id: a", "y.yaml:1:1: kind is missing"),
        ("kind: Pod\nid: a", "y.yaml:1:1: 'Pod' is not one of Tenant, TaskType, Limit, Schedule, Task"),
        ("kind: Tenant\ntier: free", "y.yaml:1:1: id is missing"),
        ("kind: Tenant\nid: a\ntier: golden", "y.yaml:3:1: 'golden' is not one of free, standard"),
        ("kind: Tenant\nid: a\nquota: {weight: much}", "y.yaml:3:9: 'much' must be a number"),
        ("kind: TaskType\nid: a\nentity_types: b", "y.yaml:3:1: 'b' must be a list"),
    ],
)
def test_mistakes_in_applied_files_are_reported(text: str, message: str) -> None:
    with pytest.raises(YamlError) as caught:
        list(resources(text, "y.yaml"))
    assert str(caught.value).startswith(message)


def test_only_fields_named_in_a_file_are_compared() -> None:
    quota = tenant_pb2.TenantQuota(max_concurrent_tasks=5, weight=10)
    current = tenant_pb2.Tenant(
        name="tenants/a", display_name="A", tier=tenant_pb2.TENANT_TIER_FREE, quota=quota
    )
    same = tenant_pb2.Tenant(tier=tenant_pb2.TENANT_TIER_FREE)
    same.quota.weight = 10
    assert merge(current, same)[1:] == ([], [])
    other = tenant_pb2.Tenant(display_name="B")
    other.quota.weight = 20
    merged, paths, difference = merge(current, other)
    assert paths == ["display_name", "quota"]
    assert difference == ["~ display_name: A → B", "~ quota.weight: 10 → 20"]
    assert (merged.quota.max_concurrent_tasks, merged.quota.weight) == (5, 20)


def test_maps_are_compared_as_a_whole_and_documents_by_their_meaning() -> None:
    current, wanted = task_pb2.Task(), task_pb2.Task()
    current.metadata.labels.update({"a": "1", "b": "2"})
    wanted.metadata.labels.update({"a": "9", "c": "3"})
    _, paths, difference = merge(current, wanted, 2)
    assert paths == ["metadata.labels"]
    assert difference == [
        "~ metadata.labels.a: 1 → 9",
        "- metadata.labels.b: 2",
        "+ metadata.labels.c: 3",
    ]
    first = task_type_pb2.TaskType(payload_schema=b'{"a":1,"b":2}')
    again = task_type_pb2.TaskType(payload_schema=b'{"b": 2, "a": 1}')
    assert merge(first, again)[1] == []


def test_a_sparkline_fills_its_height() -> None:
    assert sparkline([0, 1, 2, 4], 10) == "▁▃▅█"
    assert sparkline([1, 2], 0) == ""
    assert sparkline([0, 0], 5) == "▁▁"
