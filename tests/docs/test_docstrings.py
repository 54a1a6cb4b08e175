"""Every public method of the client has an example in its docstring, and the examples run as they are."""

from __future__ import annotations

import ast
import inspect
import types
from datetime import UTC, datetime, timedelta
from textwrap import dedent
from typing import Any

import pytest

import taskyard
from taskyard import builders, script
from taskyard.admin import Admin
from taskyard.groups import Groups
from taskyard.named_limits import Limits
from taskyard.schedules import Schedules
from taskyard.v1 import api_key_pb2, task_type_pb2, tenant_pb2
from tests.acceptance.suite import Suite

pytestmark = pytest.mark.timeout(400)

BUILDERS = [
    *(getattr(taskyard, name) for name in ("command", "container", "external", "function", "typed", "wasm"))
]
SCRIPTS = [script.bash, script.python, script.node, script.custom]


def public(cls: type) -> dict[str, Any]:
    """The public methods and properties of a class by name, in the order in which they are defined."""
    members: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        members.update(
            {
                name: one
                for name, one in vars(base).items()
                if not name.startswith("_") and inspect.getdoc(one)
            }
        )
    return members


def example(subject: Any) -> str:
    """The code below "Example:" in a docstring; fails if there is none."""
    doc = inspect.getdoc(subject) or ""
    _, found, code = doc.partition("Example:\n")
    assert found and code.strip(), f"{subject} has no example in its docstring"
    return dedent(code)


async def execute(code: str, names: dict[str, Any]) -> None:
    compiled = compile(code, "<docstring>", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    made = types.FunctionType(compiled, names)()
    if inspect.isawaitable(made):
        await made


@pytest.fixture
def context(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What examples use: the names of the package, and a client of the suite."""
    monkeypatch.chdir(suite.folder)
    names = {name: getattr(taskyard, name) for name in taskyard.__all__}
    return {**names, "tenant_pb2": tenant_pb2, "api_key_pb2": api_key_pb2, "task_type_pb2": task_type_pb2}


async def prepare(client: taskyard.Client) -> None:
    """The tasks and the type that examples speak of."""
    for name in ("encode-17", "encode-18"):
        new = taskyard.command("echo", "done", id=name, request_id=name, labels={"team": "video"})
        await client.wait(await client.create(new), timeout=60)
    await client.admin.put_type(task_type_pb2.TaskType(name="encode", description="Encodes a video"))


@pytest.mark.parametrize("name", public(taskyard.Client))
async def test_the_example_of_a_client_method_runs(name: str, context: dict[str, Any]) -> None:
    code = example(public(taskyard.Client)[name])
    async with taskyard.Client() as client:
        await prepare(client)
        await execute(code, {**context, "client": client})


async def test_the_examples_of_the_administrator_run_one_after_the_other(context: dict[str, Any]) -> None:
    async with taskyard.Client() as client:
        await prepare(client)
        for name, member in public(Admin).items():
            try:
                await execute(example(member), {**context, "client": client})
            except Exception as error:
                raise AssertionError(f"the example of Admin.{name} fails") from error


async def test_the_examples_of_schedules_run_one_after_the_other(context: dict[str, Any]) -> None:
    times = {"datetime": datetime, "timedelta": timedelta, "UTC": UTC}
    async with taskyard.Client() as client:
        for name, member in public(Schedules).items():
            try:
                await execute(example(member), {**context, **times, "client": client})
            except Exception as error:
                raise AssertionError(f"the example of Schedules.{name} fails") from error


async def test_the_examples_of_groups_run_one_after_the_other(context: dict[str, Any]) -> None:
    async with taskyard.Client() as client:
        for name, member in public(Groups).items():
            try:
                await execute(example(member), {**context, "client": client})
            except Exception as error:
                raise AssertionError(f"the example of Groups.{name} fails") from error


async def test_the_examples_of_limits_run_one_after_the_other(context: dict[str, Any]) -> None:
    async with taskyard.Client() as client:
        for name, member in public(Limits).items():
            try:
                await execute(example(member), {**context, "timedelta": timedelta, "client": client})
            except Exception as error:
                raise AssertionError(f"the example of Limits.{name} fails") from error


async def test_the_example_of_the_client_itself_runs(context: dict[str, Any]) -> None:
    await execute(example(taskyard.Client), context)


@pytest.mark.parametrize("builder", [*BUILDERS, *SCRIPTS], ids=lambda one: one.__name__)
async def test_the_example_of_a_builder_runs(builder: Any, context: dict[str, Any]) -> None:
    await execute(example(builder), context)


def test_every_builder_is_covered() -> None:
    made = {
        one
        for _, one in inspect.getmembers(builders, inspect.isfunction)
        if one.__module__ == builders.__name__
    }
    assert made == set(BUILDERS)
