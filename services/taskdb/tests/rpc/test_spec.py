"""The cache of a SpecReader changes neither the stored specs nor the errors."""

from __future__ import annotations

import tracemalloc
from datetime import UTC, datetime
from uuid import UUID

import pytest

from taskyard import builders, errors, script
from taskyard.new_task import NewTask, Options
from taskyard.v1 import task_pb2, task_service_pb2, task_type_pb2
from taskyard_taskdb.domain.spec_digest import spec_digest
from taskyard_taskdb.domain.task import Actor
from taskyard_taskdb.domain.words import ActorType
from taskyard_taskdb.rpc.spec import SpecReader
from taskyard_taskdb.rpc.spec_defaults import resolve
from taskyard_taskdb.rpc.type_rules import TypeRules
from taskyard_taskdb.storage.create import new_task
from taskyard_taskdb.storage.tenant.task_types import TypeRow
from taskyard_taskdb.storage.tenant.tenants import Tenant

TENANT = Tenant("default", suspended=False)
ACTOR = Actor(ActorType.USER, "key")
COMMON: Options = {"labels": {"team": "a"}, "env": {"A": "b"}, "payload": {"n": 1}}

TASKS = [
    builders.command("echo", "one", "", "ü" * 40, **COMMON),
    builders.command("echo", "two", working_directory="/tmp", **COMMON),
    builders.command("echo"),
    script.bash("echo $1", "three"),
    script.bash("echo $1", "four", labels={"team": "a"}),
    builders.container("image", "five"),
    builders.function("six", {"n": 2}),
    builders.external(),
]


def read(reader: SpecReader, task: NewTask, request_id: str = "") -> new_task.NewTask:
    request = task_service_pb2.CreateTaskRequest()
    request.CopyFrom(task.request)
    request.request_id = request_id
    return reader.read(request, TENANT, ACTOR, None)


@pytest.mark.parametrize("cached", [False, True])
def test_stored_spec_has_every_default(cached: bool) -> None:
    reader = SpecReader()
    for task in TASKS if cached else ():
        read(reader, task)
    for number, task in enumerate(TASKS):
        stored = read(reader, task, f"request-{number}").spec
        wanted, _ = resolve(task.request.task.spec, "task.spec")
        assert task_pb2.TaskSpec.FromString(stored) == wanted
        assert spec_digest(stored) == spec_digest(wanted.SerializeToString())


@pytest.mark.parametrize(
    ("task", "field"),
    [
        (builders.command("echo", "a", "b\0c"), "task.spec.execution.command.args[1]"),
        (builders.command("echo", "ü" * 70_000), "task.spec.execution.command.args[0]"),
        (builders.command("echo", *["a"] * 4097), "task.spec.execution.command.args"),
        (script.bash("true", "b\0c"), "task.spec.execution.script.args[0]"),
        (builders.command("", "a"), "task.spec.execution.command.program"),
        (builders.command("echo", labels={"team": "a\0"}), 'task.metadata.labels["team"]'),
        (builders.command("echo", labels={"-": "a"}), "task.metadata.labels"),
    ],
)
def test_invalid_spec_is_rejected_every_time(task: NewTask, field: str) -> None:
    reader = SpecReader()
    read(reader, builders.command("echo", labels={"team": "a"}))
    for _ in range(2):
        with pytest.raises(errors.InvalidArgument) as refused:
            read(reader, task)
        assert refused.value.violations[0].field.startswith(field)


@pytest.mark.parametrize("request_id", ["a b", "a" * 65, "ü", "a\0b"])
def test_bad_request_id_is_rejected_with_cached_labels(request_id: str) -> None:
    reader = SpecReader()
    task = builders.command("echo", labels={"team": "a"})
    read(reader, task, "good-1")
    with pytest.raises(errors.InvalidArgument, match="request_id"):
        read(reader, task, request_id)
    assert read(reader, task, "good:2.x").request_id == "good:2.x"


@pytest.mark.parametrize("task_id", ["a b", "-", "..", "a" * 257, "ü"])
def test_bad_task_id_is_rejected_after_an_equal_request(task_id: str) -> None:
    reader = SpecReader()
    for given in ("a" * 256, "a-1", task_id):
        request = task_service_pb2.CreateTaskRequest()
        request.CopyFrom(TASKS[0].request)
        request.task_id = given
        if given != task_id:
            assert reader.read(request, TENANT, ACTOR, None).task_id == given
            continue
        with pytest.raises(errors.FieldInvalid, match="task_id"):
            reader.read(request, TENANT, ACTOR, None)


def test_names_of_another_tenant_are_not_found_after_that_tenant_used_them() -> None:
    reader = SpecReader()
    request = task_service_pb2.CreateTaskRequest(task=TASKS[2].request.task)
    request.task.metadata.parent_task = "tenants/default/tasks/parent"
    other = task_service_pb2.CreateTaskRequest()
    other.CopyFrom(request)
    assert reader.read(request, TENANT, ACTOR, None).parent_task_id == "parent"
    with pytest.raises(errors.NotFound):
        reader.read(other, Tenant("acme", suspended=False), ACTOR, None)


def test_large_defaults_of_a_type_do_not_fill_the_memory_with_specs() -> None:
    definition = task_type_pb2.TaskType(execution=script.bash("#" * 300_000).request.task.spec.execution)
    now = datetime.now(UTC)
    row = TypeRow("default", "large", 1, 1, now, now, definition.SerializeToString())
    rules, reader = TypeRules(row), SpecReader()
    tracemalloc.start()
    try:
        for number in range(200):
            request = task_service_pb2.CreateTaskRequest()
            request.task.spec.task_type = "large"
            request.task.spec.env.add(name="N", value=str(number))
            assert len(reader.read(request, TENANT, ACTOR, None, rules).spec) > 300_000
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # All of them take 60 MB.
    assert kept < 40_000_000


def test_ids_ascend_also_across_draws() -> None:
    reader = SpecReader()
    drawn = reader.draw_uids(5000) + reader.draw_uids(1) + reader.draw_uids(3)
    assert drawn == sorted(set(drawn))
    assert all(UUID(uid).version == 7 and str(UUID(uid)) == uid for uid in drawn)
    assert len({uid[19:] for uid in drawn}) == len(drawn)
