"""Taskyard's client: what user code imports; each name is loaded when it is first used."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from taskyard import errors, limits, presets, script, words
    from taskyard.admin import Admin
    from taskyard.builders import command, container, external, function, typed, wasm
    from taskyard.client import Client
    from taskyard.context import Context, ContextError, ContextExpired, NoContext, PlaintextRefused
    from taskyard.explanation import Explanation, Verdict
    from taskyard.new_task import After, LimitUse, NewTask, Options, Retry
    from taskyard.stream import Stream
    from taskyard.sync import SyncClient
    from taskyard.task import (
        Created,
        Event,
        EventType,
        LogEntry,
        LogLevel,
        LogSource,
        Outcome,
        Phase,
        Run,
        RunState,
        Task,
        TaskFailed,
        TaskFailure,
    )

__all__ = [
    "Admin",
    "After",
    "Client",
    "Context",
    "ContextError",
    "ContextExpired",
    "Created",
    "Event",
    "EventType",
    "Explanation",
    "LimitUse",
    "LogEntry",
    "LogLevel",
    "LogSource",
    "NewTask",
    "NoContext",
    "Options",
    "Outcome",
    "Phase",
    "PlaintextRefused",
    "Retry",
    "Run",
    "RunState",
    "Stream",
    "SyncClient",
    "Task",
    "TaskFailed",
    "TaskFailure",
    "Verdict",
    "command",
    "container",
    "errors",
    "external",
    "function",
    "limits",
    "presets",
    "script",
    "typed",
    "wasm",
    "words",
]

# Loaded late, because the services import taskyard.errors and taskyard.v1 and need nothing of the client.
_HOMES = {
    "builders": ("command", "container", "external", "function", "typed", "wasm"),
    "admin": ("Admin",),
    "client": ("Client",),
    "context": ("Context", "ContextError", "ContextExpired", "NoContext", "PlaintextRefused"),
    "explanation": ("Explanation", "Verdict"),
    "new_task": ("After", "LimitUse", "NewTask", "Options", "Retry"),
    "stream": ("Stream",),
    "sync": ("SyncClient",),
    "task": (
        "Created",
        "Event",
        "EventType",
        "LogEntry",
        "LogLevel",
        "LogSource",
        "Outcome",
        "Phase",
        "Run",
        "RunState",
        "Task",
        "TaskFailed",
        "TaskFailure",
    ),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(f"taskyard.{_HOME[name]}"), name)
    if name in __all__:
        return importlib.import_module(f"taskyard.{name}")
    raise AttributeError(f"module 'taskyard' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
