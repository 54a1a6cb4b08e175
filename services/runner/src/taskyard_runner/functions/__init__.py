"""Functions for `taskyard-runner --app module:app`: register them, and use the context they are given."""

from taskyard_runner.functions.app import App, task
from taskyard_runner.functions.children import Child, Spawned
from taskyard_runner.functions.context import AsyncContext, Context, Entity
from taskyard_runner.functions.errors import (
    Cancelled,
    ChildFailed,
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
    "ChildFailed",
    "Context",
    "Entity",
    "FunctionError",
    "InvalidPayload",
    "InvalidResult",
    "Permanent",
    "RequestFailed",
    "Spawned",
    "Transient",
    "task",
]
