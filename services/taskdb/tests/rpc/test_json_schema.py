"""Schemas of payloads: what they check, and what they may cost."""

from __future__ import annotations

import json
from typing import Any

import pytest
from google.protobuf.field_mask_pb2 import FieldMask

from services.taskdb.tests.conftest import Caller
from services.taskdb.tests.rpc.type_calls import (
    COMMAND,
    PARENT,
    QUESTION,
    register,
    typed,
)
from taskyard import errors
from taskyard.status import from_status
from taskyard.v1 import common_pb2, task_service_pb2, task_type_pb2, task_type_service_pb2
from taskyard_taskdb.rpc import json_schema

Service = task_type_service_pb2
TaskType = task_type_pb2.TaskType


def compiled(schema: Any) -> json_schema.PayloadSchema:
    return json_schema.compile_schema(json.dumps(schema).encode(), "f")


def findings(schema: Any, document: Any) -> list[errors.FieldViolation]:
    payload = common_pb2.Payload(raw=json.dumps(document).encode())
    return list(json_schema.check(compiled(schema), payload, "f"))


def nested(depth: int, leaf: Any) -> Any:
    for _ in range(depth):
        leaf = [leaf]
    return leaf


def doubling(reference: str, **fields: str) -> dict[str, Any]:
    """A schema of thirty parts, each of which refers to the next one twice; fields are those of each part."""
    parts: dict[str, Any] = {"x30": {"type": "object"}}
    for n in range(30):
        twice = {"$ref": reference.format(n + 1)}
        parts[f"x{n}"] = {"allOf": [twice, twice]}
    for n in range(31):
        parts[f"x{n}"] |= {name: value.format(n) for name, value in fields.items()}
    return {"$ref": reference.format(0), "$defs": parts}


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        (doubling("#/$defs/x{}"), "expand"),
        (doubling("#/%24defs/x{}"), "expand"),
        (doubling("#x{}", **{"$anchor": "x{}"}), "expand"),
        (doubling("http://a.example/x{}", **{"$id": "http://a.example/x{}"}), "is outside of the schema"),
        ({"$id": "http://a.example/", "$ref": "other"}, "is outside of the schema"),
        ({"$defs": {"a": {"$id": "http://a.example/"}}}, "only the root of a schema may have one"),
        ({"$ref": "#/$defs/a"}, "has no target"),
        ({"$ref": "#a"}, "has no target"),
        ({"$defs": {"a": {"$anchor": "n"}, "b": {"const": {"$anchor": "n"}}}}, "given twice"),
        ({"allOf": [{"pattern": f"^[01]{{2000}}{n}$"} for n in range(300)]}, "expand"),
    ],
)
def test_schemas_with_multiplying_references_are_rejected_with_the_reason(schema: Any, reason: str) -> None:
    with pytest.raises(errors.FieldInvalid, match=reason) as refused:
        compiled(schema)
    assert refused.value.violations[0].field == "f"


def test_schemas_that_are_nested_too_deeply_are_refused() -> None:
    with pytest.raises(errors.FieldInvalid, match="deeper"):
        json_schema.compile_schema(b'{"items":' * 200 + b"{}" + b"}" * 200, "f")


def test_references_are_followed_however_they_are_spelled() -> None:
    for reference in ("#/$defs/a~1b", "#/%24defs/a~1b", "#n"):
        schema = {"items": {"$ref": reference}, "$defs": {"a/b": {"$anchor": "n", "type": "string"}}}
        assert not findings(schema, ["x"])
        assert [found.field for found in findings(schema, ["x", 1])] == ["f.raw[1]"]


def test_recursive_schema_rejects_without_listing_every_alternative() -> None:
    again = {"type": "array", "items": {"$ref": "#"}}
    tree = {"anyOf": [again, again, {"type": "string"}]}
    # Three alternatives at each level: listing the violations of the deeper document would take hours.
    for depth in (8, 200):
        assert not findings(tree, nested(depth, "leaf"))
        (found,) = findings(tree, nested(depth, 1))
        assert found.field == "f.raw" and "recursive" in found.description


def test_a_document_that_is_too_large_for_its_schema_is_refused_unread() -> None:
    many = {"items": {"allOf": [{"type": "integer"} for _ in range(2000)]}}
    (found,) = findings(many, [1] * 50_000)
    assert (found.field, found.rule) == ("f.raw", "json_schema.work")
    assert "150000 bytes" in found.description and "49" in found.description
    assert not findings(many, [1] * 1000)
    # Where every property has a pattern, one value is still compared with one of them only.
    forms = {f"p{n}": {"type": "string", "pattern": f"^[a-z]+{n}$"} for n in range(100)}
    text = {"properties": {"text": {"type": "string"}, **forms}}
    assert not findings(text, {"text": "x" * 1_000_000, "p1": "a1"})
    (found,) = findings(text, {"text": "x" * 1_000_000, "p1": "a2"})
    assert "violations are not listed" in found.description
    assert [found.field for found in findings(text, {"text": "x", "p1": "a2"})] == ["f.raw.p1"]


def test_a_pattern_with_a_large_program_is_not_run_over_a_long_text() -> None:
    slow = {"pattern": "[01]*1[01]{1000}x"}
    (found,) = findings(slow, "01" * 250_000)
    assert found.rule == "json_schema.work"
    assert not findings(slow, "1" * 2000 + "x")


@pytest.mark.seed("S1.32", "S0.75")
@pytest.mark.covers("CreateTask", "PAYLOAD_SCHEMA_VIOLATION")
@pytest.mark.covers("BatchCreateTasks", "PAYLOAD_SCHEMA_VIOLATION")
@pytest.mark.covers("UpdateTask", "PAYLOAD_SCHEMA_VIOLATION")
async def test_payloads_are_checked_against_the_schema(tenant: Caller) -> None:
    await register(tenant, execution=COMMAND, payload_schema=QUESTION)
    good = {"user_question": "aaa", "instruction": "x"}
    task = (await tenant.tasks.CreateTask(typed(payload=good))).task
    with pytest.raises(errors.PayloadSchemaViolation) as refused:
        await tenant.tasks.CreateTask(typed(payload={"user_question": "a" * 5000 + "b"}))
    assert {v.field for v in refused.value.violations} == {
        "task.spec.payload.json.user_question",
        "task.spec.payload.json.instruction",
    }
    with pytest.raises(errors.PayloadSchemaViolation):
        await tenant.tasks.CreateTask(typed())
    raw = typed()
    raw.task.spec.payload.raw = b'{"user_question": 1, "instruction": 2}'
    with pytest.raises(errors.PayloadSchemaViolation) as refused:
        await tenant.tasks.CreateTask(raw)
    assert refused.value.violations[0].field == "task.spec.payload.raw.user_question"
    batch = task_service_pb2.BatchCreateTasksRequest(
        parent=PARENT,
        requests=[typed(payload=good), typed(payload={})],
        mode=common_pb2.BATCH_MODE_PER_ITEM,
    )
    response = await tenant.tasks.BatchCreateTasks(batch)
    error = from_status(response.results[1].error)
    assert isinstance(error, errors.PayloadSchemaViolation) and response.failed_count == 1
    assert error.violations[0].field.startswith("requests[1].task.spec.payload.json")
    change = task_service_pb2.UpdateTaskRequest(update_mask=FieldMask(paths=["spec.payload"]))
    change.task.name = task.name
    change.task.spec.payload.raw = b"{}"
    with pytest.raises(errors.PayloadSchemaViolation):
        await tenant.tasks.UpdateTask(change)


@pytest.mark.covers("ValidatePayload", "NOT_FOUND")
async def test_a_payload_is_validated_without_a_task(tenant: Caller) -> None:
    made = await register(tenant, payload_schema=QUESTION)

    async def validate(raw: bytes, name: str = made.name) -> Any:
        return await tenant.task_types.ValidatePayload(
            Service.ValidatePayloadRequest(name=name, payload=common_pb2.Payload(raw=raw))
        )

    assert (await validate(b'{"user_question": "a", "instruction": ""}')).valid
    response = await validate(b'{"user_question": "a"}')
    assert not response.valid and response.violations[0].field == "payload.raw.instruction"
    with pytest.raises(errors.FieldInvalid):
        await validate(b"{")
    with pytest.raises(errors.NotFound):
        await validate(b"{}", f"{PARENT}/taskTypes/none")
