"""Functions for `taskyard-runner --app module:app`: register them, and use the context they are given."""

from taskyard_runner.functions.app import App, task
from taskyard_runner.functions.context import AsyncContext, Child, Context, Entity
from taskyard_runner.functions.errors import (
    Cancelled,
    FunctionError,
    InvalidPayload,
    InvalidResult,
    Permanent,
    RequestFailed,
    Transient,
)

__all__ = [
    "App",
    "AsyncContext",
    "Cancelled",
    "Child",
    "Context",
    "Entity",
    "FunctionError",
    "InvalidPayload",
    "InvalidResult",
    "Permanent",
    "RequestFailed",
    "Transient",
    "task",
]
