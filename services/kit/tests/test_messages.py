"""Messages for people: rejected ids and labels, and calls at the wrong address."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator

import grpc
import pytest
from google.protobuf.descriptor import Descriptor, FieldDescriptor

import taskyard.v1
from buf.validate import validate_pb2
from services.kit.tests.conftest import Running
from taskyard.errors import FieldInvalid
from taskyard.status import from_rpc_error
from taskyard.v1 import task_pb2, task_service_pb2
from taskyard.v1.task_service_pb2_grpc import TaskServiceStub
from taskyard_kit import pattern_words, validation


def patterns() -> Iterator[str]:
    """Every pattern that a field of the contract must match."""
    for module in pkgutil.iter_modules(taskyard.v1.__path__):
        if module.name.endswith("_pb2"):
            file = importlib.import_module(f"taskyard.v1.{module.name}").DESCRIPTOR
            for message in file.message_types_by_name.values():
                yield from _of_message(message)


def _of_message(message: Descriptor) -> Iterator[str]:
    for field in message.fields:
        yield from _of_rules(_rules(field))
    for nested in message.nested_types:
        yield from _of_message(nested)


def _rules(field: FieldDescriptor) -> validate_pb2.FieldRules:
    return field.GetOptions().Extensions[validate_pb2.field]


def _of_rules(rules: validate_pb2.FieldRules) -> Iterator[str]:
    for each in (rules, rules.map.keys, rules.map.values, rules.repeated.items):
        if each.string.pattern:
            yield each.string.pattern


def test_every_pattern_of_the_contract_has_words_with_an_example() -> None:
    found = set(patterns())
    assert len(found) > 15
    for pattern in found:
        words = pattern_words.describe(pattern)
        assert pattern not in words, f"{pattern}: describe it in pattern_words"
        assert ", like " in words


def test_a_rejected_id_says_what_is_allowed_with_an_example() -> None:
    with pytest.raises(FieldInvalid) as caught:
        validation.validate(task_service_pb2.GetTaskRequest(name="tenants/default/tasks/no spaces"))
    (violation,) = caught.value.violations
    assert violation.field == "name"
    assert (
        "letters, digits, dot, dash and underscore, like tenants/default/tasks/encode-17"
        in violation.description
    )
    assert "[A-Za-z" not in violation.description


def test_a_rejected_label_says_what_is_allowed_with_an_example() -> None:
    task = task_pb2.Task(metadata=task_pb2.TaskMetadata(labels={"-team": "a"}))
    with pytest.raises(FieldInvalid, match=r"must begin and end with a letter or digit.*like team"):
        validation.validate(task)


async def test_a_call_at_the_wrong_address_names_the_right_one(echo: Running) -> None:
    async with grpc.aio.insecure_channel(echo.server.address) as channel:
        with pytest.raises(grpc.RpcError) as caught:
            await TaskServiceStub(channel).GetTask(task_service_pb2.GetTaskRequest())
    error = from_rpc_error(caught.value)
    assert error.reason == "UNIMPLEMENTED"
    assert (
        error.message
        == "this is echo, which does not serve taskyard.v1.TaskService; use the address of taskdb"
    )
