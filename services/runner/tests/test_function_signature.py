"""What a function can be called with: schema and conversion follow from its type hints."""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import pytest

from taskyard_runner.functions import App, InvalidPayload
from taskyard_runner.functions.app import AppError, load_app
from taskyard_runner.functions.signature import read_signature
from taskyard_runner.functions.testing import run


class Colour(enum.Enum):
    RED = "red"


@dataclass(frozen=True)
class Box:
    width: int
    colour: Colour = Colour.RED


def fields(ctx: Any, a: int, b: float = 1.0, c: str | None = None) -> None: ...


def whole(payload: Box) -> None: ...


def nested(
    boxes: list[Box], pair: tuple[int, str], table: dict[str, int], size: Literal["s", "m"]
) -> None: ...


def open_ended(a: int, **rest: Any) -> None: ...


def untyped(context, a, b=2): ...  # type: ignore[no-untyped-def]


def test_schema_follows_the_hints() -> None:
    assert read_signature(fields).schema == {
        "type": "object",
        "properties": {
            "a": {"type": "integer"},
            "b": {"type": "number"},
            "c": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        },
        "required": ["a"],
        "additionalProperties": False,
    }
    assert read_signature(whole).schema["properties"]["colour"] == {"enum": ["red"]}
    assert read_signature(nested).schema["properties"]["size"] == {"enum": ["s", "m"]}
    assert "additionalProperties" not in read_signature(open_ended).schema


@pytest.mark.parametrize(
    ("function", "payload", "bound"),
    [
        (fields, {"a": 1, "b": 2}, {"a": 1, "b": 2.0}),
        (fields, {"a": 1, "c": None}, {"a": 1, "c": None}),
        (whole, {"width": 3}, {"payload": Box(3)}),
        (
            nested,
            {"boxes": [{"width": 1}], "pair": [1, "x"], "table": {"k": 2}, "size": "m"},
            {"boxes": [Box(1)], "pair": (1, "x"), "table": {"k": 2}, "size": "m"},
        ),
        (open_ended, {"a": 1, "z": [1]}, {"a": 1, "z": [1]}),
        (untyped, {"a": {"any": "thing"}}, {"a": {"any": "thing"}}),
    ],
)
def test_a_payload_that_fits_becomes_arguments(
    function: Callable[..., Any], payload: Any, bound: dict[str, Any]
) -> None:
    assert read_signature(function).bind(payload) == bound


@pytest.mark.parametrize(
    ("function", "payload", "message"),
    [
        (fields, {"a": True}, "payload.a True is not an integer"),
        (fields, {"a": 1, "b": "2"}, "payload.b '2' is not a number"),
        (fields, None, "payload.a is missing; send it"),
        (fields, {"a": 1, "c": 3}, "payload.c 3 is not a string"),
        (whole, {"width": 1, "colour": "blue"}, "payload.colour 'blue' is not one of ['red']"),
        (whole, {"height": 1}, "payload.height is unknown; known are width, colour"),
        (whole, [], "payload [] is not an object"),
        (nested, {"boxes": [{"width": "x"}]}, "payload.pair is missing; send it"),
        (
            nested,
            {"boxes": [{"width": "x"}], "pair": [1, "x"], "table": {}, "size": "s"},
            "payload.boxes[0].width 'x' is not an integer",
        ),
        (
            nested,
            {"boxes": [], "pair": [1], "table": {}, "size": "s"},
            "payload.pair [1] is not an array of 2 items",
        ),
    ],
)
def test_a_payload_that_does_not_fit_is_refused_by_field(
    function: Callable[..., Any], payload: Any, message: str
) -> None:
    with pytest.raises(InvalidPayload) as refused:
        read_signature(function).bind(payload)
    assert str(refused.value) == message


def test_names_are_checked_and_taken_once() -> None:
    app = App()
    with pytest.raises(ValueError, match="must be 1 to 128"):
        app.task("no spaces")
    app.task("a")(fields)
    with pytest.raises(ValueError, match="is taken by"):
        app.task("a")(whole)


def test_parameters_without_a_name_are_refused() -> None:
    def positional(a: int, /) -> None: ...

    with pytest.raises(TypeError, match="has no name that a payload could use"):
        App().task("x")(positional)


def test_a_registered_function_stays_callable() -> None:
    app = App()

    @app.task("double")
    def double(a: int) -> int:
        return 2 * a

    assert double(2) == 4
    assert [found.name for found in app] == ["double"]


def test_an_app_is_found_by_module_and_name() -> None:
    where = "services.runner.tests.function_app"
    assert load_app(f"{where}:app") is load_app(where)
    for wrong in ("no_such_module_at_all:app", f"{where}:missing", f"{where}:os", ":app"):
        with pytest.raises(AppError):
            load_app(wrong)


@pytest.mark.seed("S1.27")
def test_app_registers_functions_with_their_signatures() -> None:
    app = App()

    @app.task("execute_initial_planning")
    async def execute_initial_planning(user_question: str, instruction: str, **rest: Any) -> None: ...

    async def without_fields(context: Any, **rest: Any) -> None: ...

    others = ("execute_task_creation", "execute_synthesis", "worker_initialisation")
    for name in (*others, "execute_standard_worker", "execute_sql_worker"):
        app.task(name)(without_fields)
    assert len(app) == 6 and app.get("execute_unknown") is None
    planning = app.get("execute_initial_planning")
    assert planning is not None and planning.schema["required"] == ["user_question", "instruction"]
    with pytest.raises(InvalidPayload, match=r"payload\.instruction is missing"):
        planning.signature.bind({"user_question": "why?"})
    for name in others:
        found = app.get(name)
        assert found is not None and found.signature.bind(None) == {}
    unknown = run(app, "execute_synthesis", {"anything": 1})
    assert unknown.failure is None
    with pytest.raises(KeyError, match="no function 'execute_unknown'"):
        run(app, "execute_unknown", {})
