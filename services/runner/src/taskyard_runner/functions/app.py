"""The registry of an application: functions by name, and how each is to be called and judged."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeVar

from taskyard_runner.functions.signature import Signature, read_signature

_NAME = re.compile(r"[A-Za-z0-9._-]{1,128}")
F = TypeVar("F", bound=Callable[..., Any])
Errors = tuple[type[BaseException], ...]


@dataclass(frozen=True)
class Function:
    """A registered function."""

    name: str
    call: Callable[..., Any]
    signature: Signature
    is_async: bool
    # Exceptions whose class is decided here; others are transient.
    permanent: Errors = ()
    transient: Errors = ()
    # JSON Schema of the payload; from the type hints unless one was given.
    schema: dict[str, Any] = field(default_factory=dict)


class App:
    """What `taskyard-runner --app module:app` serves."""

    def __init__(self) -> None:
        self._functions: dict[str, Function] = {}

    def task(
        self,
        name: str,
        *,
        permanent: type[BaseException] | Errors = (),
        transient: type[BaseException] | Errors = (),
        schema: dict[str, Any] | None = None,
    ) -> Callable[[F], F]:
        """Register a function, which stays callable as it is.

        `permanent` and `transient` classify exceptions; Transient and Permanent need no entry,
        and everything else is transient. Raises ValueError for a bad or repeated name.
        """
        if not _NAME.fullmatch(name):
            raise ValueError(f"task name {name!r} must be 1 to 128 of A-Z a-z 0-9 . _ -")

        def register(function: F) -> F:
            if name in self._functions:
                first = self._functions[name].call
                raise ValueError(
                    f"task name {name!r} is taken by {first.__module__}.{first.__qualname__}; choose another"
                )
            signature = read_signature(function)
            self._functions[name] = Function(
                name,
                function,
                signature,
                inspect.iscoroutinefunction(function),
                _tuple(permanent),
                _tuple(transient),
                signature.schema if schema is None else schema,
            )
            # Lets a client call the function itself, not only its name; not every callable takes attributes.
            with contextlib.suppress(AttributeError):
                function.__taskyard_name__ = name  # type: ignore[attr-defined]
            return function

        return register

    def get(self, name: str) -> Function | None:
        """The function of this name."""
        return self._functions.get(name)

    def __iter__(self) -> Iterator[Function]:
        return iter(self._functions.values())

    def __len__(self) -> int:
        return len(self._functions)


# What @task registers with: enough for an application of one module.
default_app = App()
task = default_app.task


class AppError(Exception):
    """Why an application cannot be used, in one line with the remedy."""


def load_app(where: str) -> App:
    """The app at `module:name`; without a name `app`, or the functions of @task. Raises AppError.

    What the module raises while it is imported is raised as it is.
    """
    module_name, _, attribute = where.partition(":")
    if not module_name:
        raise AppError(f"app {where!r} names no module; write module:app")
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not module_name.startswith(error.name):
            raise
        raise AppError(
            f"app {where!r}: there is no module {error.name!r}; start the runner in its folder"
            " or set PYTHONPATH"
        ) from None
    found = getattr(module, attribute or "app", default_app if not attribute else None)
    if not isinstance(found, App):
        raise AppError(f"app {where!r}: {attribute or 'app'} is no App; write app = App() in the module")
    if not len(found):
        raise AppError(f"app {where!r} has no functions; register one with @app.task(name)")
    return found


def _tuple(errors: type[BaseException] | Errors) -> Errors:
    return errors if isinstance(errors, tuple) else (errors,)
