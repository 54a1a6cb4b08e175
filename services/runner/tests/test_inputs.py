"""Results of prerequisites: the documents that a workload reads, and what a function gets."""

from __future__ import annotations

import json

import pytest

from taskyard.v1.common_pb2 import Payload
from taskyard.v1.lease_pb2 import Assignment, TaskInput
from taskyard.v1.task_pb2 import TaskResult
from taskyard_runner.agent import inputs
from taskyard_runner.executors import NotRunnable
from taskyard_runner.executors.function import describe
from taskyard_runner.functions import App, Context
from taskyard_runner.functions.testing import run
from taskyard_runner.functions.work import parse


def given(
    alias: str, raw: bytes | None = None, content_type: str = "", *, omitted: bool = False
) -> TaskInput:
    result = None if raw is None else TaskResult(output=Payload(raw=raw, content_type=content_type))
    return TaskInput(alias=alias, task=f"tenants/t/tasks/{alias}", result=result, omitted=omitted)


ASSIGNMENT = Assignment(
    inputs=[
        given("json", b'{"n": 7}', "application/json"),
        given("text", "größer".encode(), "text/plain"),
        given("bytes", b"\xff\x00", "image/png"),
        given("nothing"),
        given("large", omitted=True),
    ]
)


def test_every_result_is_a_json_document_of_its_alias() -> None:
    found = {alias: json.loads(document) for alias, document in inputs.documents(ASSIGNMENT)}
    assert found == {"json": {"n": 7}, "text": "größer", "bytes": "/wA=", "nothing": None}


@pytest.mark.parametrize("alias", ["../x", "", ".", "a/b", "a\0", "-x"])
def test_an_alias_that_is_no_file_name_is_refused(alias: str) -> None:
    with pytest.raises(NotRunnable, match="alias"):
        list(inputs.documents(Assignment(inputs=[given(alias, b"1")])))


def test_a_function_gets_the_results_in_the_forms_of_a_payload() -> None:
    row = describe("run", ASSIGNMENT, "f", None, "")
    work = parse(json.loads(json.dumps(row)))
    assert work.inputs() == {"json": {"n": 7}, "text": "größer", "bytes": b"\xff\x00", "nothing": None}
    assert row[-1]["omitted"] == ["large"]


def test_a_function_under_test_is_given_inputs() -> None:
    app = App()

    @app.task("add")
    def add(ctx: Context) -> int:
        return int(sum(ctx.inputs.values()))

    assert run(app, "add", inputs={"a": 1, "b": 41}).result == 42
